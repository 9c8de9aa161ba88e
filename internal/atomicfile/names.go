package atomicfile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

const (
	temporarySuffix = ".machineadm-tmp"
	linkSuffix      = ".machineadm-tmplink"
	candidateSuffix = ".machineadm-candidate"
	// nameMax is NAME_MAX of every file system that matters here.
	nameMax = 255
)

// Reserved reports whether a file name is one that this package keeps for its temporary files.
func Reserved(name string) bool {
	return strings.HasPrefix(name, ".") && (strings.HasSuffix(name, temporarySuffix) || strings.HasSuffix(name, linkSuffix))
}

// TemporaryName is the name of the file that Write makes before it renames it to name.
func TemporaryName(name string) string { return temporaryName(name, temporarySuffix) }

// CandidateName is the name of a file that a daemon's checker reads before its content is written to name: in the same
// directory, so that relative includes work, and passed over by daemons that read a directory of drop-ins.
func CandidateName(name string) string { return temporaryName(name, candidateSuffix) }

// Leftover reports whether a file name is one that only an interrupted write leaves behind.
func Leftover(name string) bool {
	return Reserved(name) || strings.HasPrefix(name, ".") && strings.HasSuffix(name, candidateSuffix)
}

// temporaryName is deterministic, so that the next writer finds what a killed one left behind. It starts with a dot
// and keeps no suffix of the real name, so that daemons that read a drop-in directory pass it over.
func temporaryName(name, suffix string) string {
	temporary := "." + name + suffix
	if len(temporary) <= nameMax {
		return temporary
	}
	sum := sha256.Sum256([]byte(name))
	return "." + hex.EncodeToString(sum[:16]) + suffix
}

func checkName(name string) error {
	switch {
	case name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") || filepath.Base(name) != name:
		return fmt.Errorf("%w: not a single file name", fs.ErrInvalid)
	case Reserved(name):
		return ErrReserved
	}
	return nil
}
