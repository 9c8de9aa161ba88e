package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/installer/manifest"
)

// partial is the prefix of a file that is not complete.
const partial = ".part-"

// Mirror verifies a release and copies its files into a directory, which any web server can serve. It can be repeated:
// complete files stay. The manifest is written last, so that a directory with a manifest has its files. Errors are of type
// *Error.
func Mirror(ctx context.Context, o Options) (result Copied, err error) {
	if err := os.MkdirAll(o.To, 0o755); err != nil {
		return result, localError(err)
	}
	root, err := os.OpenRoot(o.To)
	if err != nil {
		return result, localError(err)
	}
	defer func() { _ = root.Close() }() // opened for reading only
	unlock, err := lock(root)
	if err != nil {
		return result, localError(err)
	}
	defer unlock()
	result.Directory = o.To
	err = fromAny(ctx, o, func(s *source) error { return result.from(ctx, s, root, o) })
	return result, err
}

func (c *Copied) from(ctx context.Context, s *source, root *os.Root, o Options) error {
	m, err := s.release(ctx, o.Keys)
	if err != nil {
		return err
	}
	now, right := clock()
	if err := admit(m.Manifest, o, newest{}, now, right); err != nil {
		return err
	}
	if there := mirrored(root); m.Sequence < there.sequence || m.Sequence == there.sequence && m.Version != there.version {
		return &Error{
			Code: report.ExitUntrusted, elsewhere: true,
			Problem: fmt.Sprintf("the release %s has sequence %d, and %s in %s has sequence %d", m.Version, m.Sequence, there.version, o.To, there.sequence),
			Remedy:  "use a location with a newer release; if this one is intended, give a directory of its own with --to",
		}
	}
	stale, err := fs.Glob(root.FS(), partial+"*") // of killed runs, also of another release
	if err != nil {
		return err
	}
	for _, name := range stale {
		if err := root.RemoveAll(name); err != nil {
			return err
		}
	}
	c.Version, c.Files = m.Version, len(m.Files)
	for _, f := range m.Files {
		if complete(root, f) {
			continue
		}
		if err := put(root, f.Name, func(to *os.File) error { return s.fetch(ctx, f, to) }); err != nil {
			return err
		}
		c.Copied++
	}
	for _, text := range []struct {
		name string
		data []byte
	}{{manifest.SignatureName, m.signature}, {manifest.FileName, m.text}} {
		if there, err := root.ReadFile(text.name); err == nil && bytes.Equal(there, text.data) {
			continue
		}
		if err := put(root, text.name, func(to *os.File) error { _, err := to.Write(text.data); return err }); err != nil {
			return err
		}
	}
	return nil
}

// mirrored returns the release in a directory, with the sequence 0 if there is none.
func mirrored(root *os.Root) newest {
	file, err := root.Open(manifest.FileName)
	if err != nil {
		return newest{}
	}
	defer func() { _ = file.Close() }() // opened for reading only
	m, err := manifest.Decode(file)
	if err != nil {
		return newest{} // damaged: it is replaced
	}
	return newest{m.Sequence, m.Version}
}

// complete reports whether a directory has the file of a release.
func complete(root *os.Root, f manifest.File) bool {
	info, err := root.Lstat(f.Name)
	if err != nil || !info.Mode().IsRegular() || info.Size() != f.Size {
		return false
	}
	file, err := root.Open(f.Name)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }() // opened for reading only
	sum, err := digest(file)
	return err == nil && sum == f.SHA256
}

// put makes or replaces a file in one step, after it was written and is durable.
func put(root *os.Root, name string, write func(*os.File) error) (err error) {
	file, err := root.OpenFile(partial+name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if err = write(file); err == nil {
		err = errors.Join(file.Chmod(0o644), file.Sync())
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = root.Rename(partial+name, name)
	}
	if err != nil {
		return errors.Join(err, root.Remove(partial+name))
	}
	return syncDirectory(root)
}

// syncDirectory makes the names in a directory durable. Windows has no such call.
func syncDirectory(root *os.Root) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
