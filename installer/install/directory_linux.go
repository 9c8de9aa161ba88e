package install

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/installer/manifest"
	"github.com/machineadm/machineadm/internal/atomicfile"
)

// Names in the directory of --to. Those that start with a dot are temporary.
const (
	releases     = "releases" // one directory for each release
	current      = "current"  // link to the release in use
	previous     = "previous" // link to the release before
	sequence     = "sequence" // file: the highest sequence of a release that was installed
	temporary    = ".new"     // suffix of a release that is not complete, prefix of a link that is not in place
	download     = ".download"
	again        = "+1" // suffix of a release that replaces a damaged or partial one of the same version
	directory    = 0o755
	untilRemoved = 0o600
)

// links are made once in the directory of --to.
func links() map[string]string {
	return map[string]string{"bin": current + "/bin", "plugins": current + "/plugins"}
}

// seen returns the newest release that was installed, with the sequence 0 if there is none.
func (t *target) seen() (newest, error) {
	text, err := t.root.ReadFile(sequence)
	if errors.Is(err, fs.ErrNotExist) {
		return newest{}, nil
	}
	if err != nil {
		return newest{}, err
	}
	number, version, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return newest{}, &Error{
			Code: report.ExitState, Problem: filepath.Join(t.path, sequence) + " does not contain a number",
			Remedy: "write into it the sequence of the newest release that was installed here, from its " + manifest.FileName,
		}
	}
	return newest{n, version}, nil
}

// keepSequence records a release unless one with a higher sequence is recorded.
func (t *target) keepSequence(r newest) error {
	seen, err := t.seen()
	if err != nil || seen.sequence > 0 && seen.sequence >= r.sequence {
		return err
	}
	return atomicfile.Write(t.dir, sequence, []byte(strings.TrimSpace(fmt.Sprint(r.sequence)+" "+r.version)+"\n"), atomicfile.Options{Mode: 0o644})
}

// link returns the name of the release that a link refers to, or "".
func (t *target) link(name string) (string, error) {
	to, err := t.root.Readlink(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	dir, release := path.Split(to)
	if err != nil || dir != releases+"/" || !isRelease(release) {
		return "", t.foreign(name)
	}
	return release, nil
}

// isRelease reports whether a name below releases is one of this package.
func isRelease(name string) bool { return manifest.IsVersion(strings.TrimSuffix(name, again)) }

func (t *target) foreign(name string) error {
	return &Error{
		Code: report.ExitPrecondition, Problem: filepath.Join(t.path, name) + " was not made by machineadm install",
		Remedy: "move it away, or install into another directory with --to",
	}
}

// check refuses a directory in which files of other programs have the names of ours. The file sequence is made first.
func (t *target) check() error {
	if _, err := t.root.Lstat(sequence); errors.Is(err, fs.ErrNotExist) {
		if _, err := t.root.Lstat(releases); !errors.Is(err, fs.ErrNotExist) {
			return t.foreign(releases)
		}
	}
	for name, want := range links() {
		if to, err := t.root.Readlink(name); !errors.Is(err, fs.ErrNotExist) && (err != nil || to != want) {
			return t.foreign(name)
		}
	}
	for _, name := range []string{current, previous} {
		if _, err := t.link(name); err != nil {
			return err
		}
	}
	t.ours = true
	return nil
}

// replace makes a link, or changes an existing one in one step.
func (t *target) replace(name, to string) error {
	if there, err := t.root.Readlink(name); err == nil && there == to {
		return nil
	}
	next := temporary + name
	if err := t.root.RemoveAll(next); err != nil { // of a killed run
		return err
	}
	if err := t.root.Symlink(to, next); err != nil {
		return err
	}
	if err := t.root.Rename(next, name); err != nil {
		return err
	}
	return t.dir.Sync()
}

// use makes a complete release the current one, and removes all but this and the one before.
func (t *target) use(m *manifest.Manifest, release string) (err error) {
	if err := t.keepSequence(newest{m.Sequence, m.Version}); err != nil { // before the switch: a killed run must not allow an older release
		return err
	}
	before, err := t.link(current)
	if err != nil {
		return err
	}
	if before != "" && strings.TrimSuffix(before, again) != m.Version {
		if err := t.replace(previous, releases+"/"+before); err != nil {
			return err
		}
	}
	for name, to := range links() {
		if err := t.replace(name, to); err != nil {
			return err
		}
	}
	if err := t.replace(current, releases+"/"+release); err != nil {
		return err
	}
	return t.cleanUp()
}

// cleanUp removes releases that are no longer used and what a killed run left.
func (t *target) cleanUp() error {
	var keep []string
	for _, name := range []string{current, previous} {
		release, err := t.link(name)
		if err != nil {
			return err
		}
		keep = append(keep, release)
	}
	for _, name := range []string{download, temporary + current, temporary + previous, temporary + "bin", temporary + "plugins"} {
		if err := t.root.RemoveAll(name); err != nil {
			return err
		}
	}
	entries, err := fs.ReadDir(t.root.FS(), releases)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if slices.Contains(keep, e.Name()) || !isRelease(strings.TrimSuffix(e.Name(), temporary)) {
			continue
		}
		if err := t.root.RemoveAll(releases + "/" + e.Name()); err != nil {
			return err
		}
	}
	return nil
}

// holds reports whether a release contains exactly these files.
func (t *target) holds(release string, want []manifest.Entry) (bool, error) {
	left := map[string]manifest.Entry{}
	for _, e := range want {
		left[e.Path] = e
	}
	top := releases + "/" + release
	err := fs.WalkDir(t.root.FS(), top, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			info, err := d.Info()
			if err == nil && info.Mode().Perm() != directory {
				err = errDiffers
			}
			return err
		}
		e, ok := left[strings.TrimPrefix(at, top+"/")]
		if !ok {
			return errDiffers
		}
		delete(left, e.Path)
		return t.same(at, e)
	})
	switch {
	case errors.Is(err, errDiffers), errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	return len(left) == 0, nil
}

// errDiffers reports that an installed file differs from the release.
var errDiffers = errors.New("differs")

// same returns errDiffers unless the file is the one of the manifest.
func (t *target) same(at string, e manifest.Entry) (err error) {
	info, err := t.root.Lstat(at)
	if err != nil {
		return err
	}
	if info.Mode() != mode(e.Path) || info.Size() != e.Size {
		return errDiffers
	}
	file, err := t.root.Open(at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	sum, err := digest(file)
	if err == nil && sum != e.SHA256 {
		err = errDiffers
	}
	return err
}

// mode returns the mode of a file in a release.
func mode(name string) fs.FileMode {
	if strings.HasPrefix(name, "bin/") || strings.HasPrefix(name, "plugins/") {
		return 0o755
	}
	return 0o644
}
