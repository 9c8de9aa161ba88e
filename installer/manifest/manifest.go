// Package manifest describes the files of a release and checks the signature of the description.
//
// A release is a directory on a web server or a disk: manifest.json, its signature manifest.json.minisig, and the files that
// the manifest lists, all beside each other.
package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// Names of the manifest and its signature within a release.
const (
	FileName      = "manifest.json"
	SignatureName = "manifest.json.minisig"
)

// Format is the version of the manifest's form that this release reads and writes.
const Format = 1

// Limits, so that a manifest cannot exhaust memory or disk of the machine that reads it.
const (
	MaxSize          = 1 << 20 // of manifest.json in bytes
	MaxSignatureSize = 8 << 10 // of manifest.json.minisig in bytes
	MaxFileSize      = 4 << 30 // of one file of a release, and of the contents of one archive together, in bytes
)

// Kinds of artifacts.
const (
	KindArchive   = "archive" // .tar.zst or .zip: bin/, plugins/, share/; Contents lists every regular file in it
	KindBinary    = "binary"  // the program machineadm itself
	KindDeb       = "deb"
	KindRPM       = "rpm"
	KindArchLinux = "archlinux"
	KindAPK       = "apk"
	KindSysext    = "sysext"
	KindMSI       = "msi"
	KindSBOM      = "sbom"
)

// Manifest lists the files of one release.
type Manifest struct {
	Format   int    `json:"format"`
	Name     string `json:"name"`    // "machineadm"
	Version  string `json:"version"` // of the release, semantic with a v: v0.1.0
	Sequence uint64 `json:"sequence"`
	// Expires is the time from which the manifest must not be used, or nil.
	Expires *time.Time `json:"expires,omitempty"`
	Files   []File     `json:"files"` // sorted by name
}

// File is one file of a release.
type File struct {
	Name   string `json:"name"` // beside manifest.json, without separators
	Kind   string `json:"kind"`
	OS     string `json:"os,omitempty"`   // as GOOS; empty for all
	Arch   string `json:"arch,omitempty"` // as GOARCH; empty for all
	Size   int64  `json:"size"`           // in bytes
	SHA256 string `json:"sha256"`         // lower-case hex
	// Contents are the programs within, sorted by path; of an archive, all regular files.
	Contents []Entry `json:"contents,omitempty"`
}

// Entry is one file within an artifact.
type Entry struct {
	Path   string `json:"path"` // slash separated, relative
	Size   int64  `json:"size"` // in bytes
	SHA256 string `json:"sha256"`
}

// Encode returns manifest.json. It sorts files and contents, and refuses what Decode refuses.
func (m *Manifest) Encode() ([]byte, error) {
	slices.SortFunc(m.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	for _, f := range m.Files {
		slices.SortFunc(f.Contents, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	return m.encode()
}

func (m *Manifest) encode() ([]byte, error) {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", FileName, err)
	}
	if text = append(text, '\n'); len(text) > MaxSize {
		return nil, fmt.Errorf("%s is larger than %d bytes", FileName, MaxSize)
	}
	return text, nil
}

// Decode reads manifest.json. The text must be exactly what Encode writes, so that two readers cannot understand it
// differently: an unknown, repeated or otherwise spelled field is an error.
func Decode(r io.Reader) (*Manifest, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxSize+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", FileName, err)
	case len(text) > MaxSize:
		return nil, fmt.Errorf("%s is larger than %d bytes", FileName, MaxSize)
	}
	var form struct{ Format int }
	if err := json.Unmarshal(text, &form); err != nil {
		return nil, fmt.Errorf("%s: %w", FileName, err)
	}
	if form.Format != Format { // checked first, because a later format has other fields
		return nil, fmt.Errorf("%s: format: is %d, and this machineadm reads format %d only", FileName, form.Format, Format)
	}
	m := &Manifest{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(m); err != nil {
		return nil, fmt.Errorf("%s: %w", FileName, err)
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	canonical, err := m.encode()
	if err != nil {
		return nil, err
	}
	if line := firstDifference(text, canonical); line > 0 {
		return nil, fmt.Errorf("%s:%d: differs from the form that machineadm writes: a repeated or misspelled field, or other spaces", FileName, line)
	}
	return m, nil
}

// firstDifference returns the first line, counted from 1, in which texts differ, or 0.
func firstDifference(a, b []byte) int {
	if bytes.Equal(a, b) {
		return 0
	}
	line := 1
	for i := 0; i < min(len(a), len(b)) && a[i] == b[i]; i++ {
		if a[i] == '\n' {
			line++
		}
	}
	return line
}

// check returns the first invalid field.
func (m *Manifest) check() error {
	switch {
	case m.Format != Format:
		return fmt.Errorf("%s: format: must be %d", FileName, Format)
	case !isName(m.Name) || !consists(m.Name, "-", false):
		return fmt.Errorf("%s: name: %q is not a lower-case name", FileName, m.Name)
	case !IsVersion(m.Version):
		return fmt.Errorf("%s: version: %q is not of the form v1.2.3 or v1.2.3-rc.1", FileName, m.Version)
	case m.Sequence == 0:
		return fmt.Errorf("%s: sequence: must be above zero", FileName)
	case len(m.Files) == 0:
		return fmt.Errorf("%s: files: is empty", FileName)
	}
	for i, f := range m.Files {
		at := fmt.Sprintf("%s: files[%d]", FileName, i)
		switch {
		case i > 0 && m.Files[i-1].Name >= f.Name:
			return fmt.Errorf("%s.name: %q is not after %q: names are sorted and unique", at, f.Name, m.Files[i-1].Name)
		case f.Name == FileName || f.Name == SignatureName:
			return fmt.Errorf("%s.name: a manifest does not list itself", at)
		}
		if err := f.check(); err != nil {
			return fmt.Errorf("%s.%w", at, err)
		}
	}
	return nil
}

func (f *File) check() error {
	forOne := f.Kind == KindArchive || f.Kind == KindBinary
	switch {
	case !isName(f.Name):
		return fmt.Errorf("name: %q is not a plain file name", f.Name)
	case !slices.Contains(kinds(), f.Kind):
		return fmt.Errorf("kind: %q is none of %s", f.Kind, strings.Join(kinds(), ", "))
	case !consists(f.OS, "", false) || forOne && f.OS == "":
		return fmt.Errorf("os: %q is not a GOOS", f.OS)
	case !consists(f.Arch, "", false) || forOne && f.Arch == "":
		return fmt.Errorf("arch: %q is not a GOARCH", f.Arch)
	case f.Kind == KindArchive && len(f.Contents) == 0:
		return errors.New("contents: is empty")
	}
	if err := checkContent(f.Size, f.SHA256); err != nil {
		return err
	}
	total := int64(0)
	for i, e := range f.Contents {
		err := checkContent(e.Size, e.SHA256)
		switch {
		case !fs.ValidPath(e.Path) || !allNames(e.Path):
			return fmt.Errorf("contents[%d].path: %q is not a plain relative path", i, e.Path)
		case i > 0 && f.Contents[i-1].Path >= e.Path:
			return fmt.Errorf("contents[%d].path: %q is not after %q: paths are sorted and unique", i, e.Path, f.Contents[i-1].Path)
		case err != nil:
			return fmt.Errorf("contents[%d].%w", i, err)
		}
		if total += e.Size; total > MaxFileSize {
			return fmt.Errorf("contents: is larger than %d bytes together", int64(MaxFileSize))
		}
	}
	return nil
}

func checkContent(size int64, digest string) error {
	switch {
	case size < 0 || size > MaxFileSize:
		return fmt.Errorf("size: %d is not from 0 to %d", size, int64(MaxFileSize))
	case len(digest) != 64 || strings.Trim(digest, "0123456789abcdef") != "":
		return fmt.Errorf("sha256: %q is not 64 lower-case hexadecimal digits", digest)
	}
	return nil
}

// IsVersion reports whether a version is semantic, complete, and without build metadata.
func IsVersion(version string) bool {
	return isName(version) && semver.Canonical(version) == version && version != ""
}

func kinds() []string {
	return []string{KindArchive, KindBinary, KindDeb, KindRPM, KindArchLinux, KindAPK, KindSysext, KindMSI, KindSBOM}
}

// isName reports whether a name is one plain step of a path on every platform: at most 200 ASCII letters, digits and
// _ . + ~ -, without a dot at either end and no - at the start.
func isName(name string) bool {
	return name != "" && len(name) <= 200 && strings.Trim(name, ".") == name && name[0] != '-' && consists(name, "_.+~-", true)
}

func allNames(path string) bool {
	return !slices.ContainsFunc(strings.Split(path, "/"), func(step string) bool { return !isName(step) })
}

// consists reports whether a text has no characters but lower-case letters, digits, the characters of more, and, with capitals, upper-case letters.
func consists(text, more string, capitals bool) bool {
	return strings.IndexFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune(more, r) && (!capitals || r < 'A' || r > 'Z')
	}) < 0
}
