// Package atomicfile replaces files so that a reader, a crash or a full disk never meets half of one.
//
// A write goes to a temporary file with a reserved, deterministic name in the same directory, is made durable there,
// and takes the place of the old file in one step. Until that step the old file is whole and untouched; after it the
// new one is. A temporary file that a killed process left behind is recognised and removed by the next write of the
// same name; one that a live process holds is waited for.
package atomicfile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	temporarySuffix = ".machineadm-tmp"
	linkSuffix      = ".machineadm-tmplink"
	candidateSuffix = ".machineadm-candidate"
	// nameMax is NAME_MAX of every file system that matters here.
	nameMax = 255
	// ownerWait bounds how long a write waits for another live writer of the same file.
	ownerWait = 10 * time.Second
)

// ErrBusy says that another live process kept writing the same file for longer than a write is willing to wait.
var ErrBusy = errors.New("another process keeps writing this file")

// Options say how the new file looks.
type Options struct {
	// Mode holds the permission bits, and set-user-ID, set-group-ID and sticky where wanted. They are set as given:
	// the umask takes nothing away. Windows has no such bits:  there, a file that gives others nothing (0600) has an access
	// list for SYSTEM, the Administrators and this user alone, and any other inherits that of the directory.
	Mode fs.FileMode
	// Owner is who owns the new file; nil leaves it to the file system, which means the user of this process.
	Owner *Owner
	// KeepLabel carries the SELinux label of the file that is replaced over to the new one.
	KeepLabel bool
}

// Owner is a numeric user and group.
type Owner struct{ UID, GID int }

// WriteFile is Write for a directory that the caller names by path. Links in the path are followed: use it only where
// the caller trusts every directory on the way.
func WriteFile(path string, data []byte, o Options) (err error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	return Write(dir, filepath.Base(path), data, o)
}

// Reserved reports whether a file name is one that this package keeps for its temporary files.
func Reserved(name string) bool {
	return strings.HasPrefix(name, ".") && (strings.HasSuffix(name, temporarySuffix) || strings.HasSuffix(name, linkSuffix))
}

// CandidateName is the name of a file that a daemon's checker reads before its content is written to name: in the same
// directory, so that relative includes work, and passed over by daemons that read a directory of drop-ins.
func CandidateName(name string) string { return temporaryName(name, candidateSuffix) }

// Leftover reports whether a file name is one that only an interrupted write leaves behind.
func Leftover(name string) bool {
	return Reserved(name) || strings.HasPrefix(name, ".") && strings.HasSuffix(name, candidateSuffix)
}

// CleanUp removes from dir what interrupted writes of name left there: temporary files, links and candidates.
func CleanUp(dir *os.File, name string) error {
	if checkName(name) != nil {
		return nil //nolint:nilerr // no write of this package has such a name
	}
	candidate := CandidateName(name)
	var errs []error
	for _, left := range []string{
		temporaryName(name, temporarySuffix), temporaryName(name, linkSuffix), candidate, temporaryName(candidate, temporarySuffix),
	} {
		errs = append(errs, Remove(dir, left))
	}
	return errors.Join(errs...)
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
		return fmt.Errorf("%w: the name is reserved for temporary files", fs.ErrInvalid)
	}
	return nil
}

// failed names the file and the step, so that a full disk and a missing right can be distinguished.
func failed(op, dir, name, step string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: filepath.Join(dir, name), Err: fmt.Errorf("%s: %w", step, err)}
}

// withoutPath drops the path of a temporary file, which has no meaning to the reader.
func withoutPath(err error) error {
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		return inner.Err
	}
	return err
}

// backoff provides growing pauses until a deadline.
type backoff struct {
	deadline time.Time
	pause    time.Duration
}

func newBackoff(limit time.Duration) *backoff {
	return &backoff{deadline: time.Now().Add(limit), pause: time.Millisecond}
}

// wait pauses, or reports that the deadline has passed.
func (p *backoff) wait() bool {
	if time.Now().After(p.deadline) {
		return false
	}
	time.Sleep(p.pause)
	p.pause = min(p.pause*2, 50*time.Millisecond)
	return true
}
