package install

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/installer/manifest"
)

// Limits of an archive, beyond the files that the manifest lists.
const (
	window   = 128 << 20 // bytes of zstd's window: --long=27
	perEntry = 4 << 10   // bytes of tar's header and padding for each file and directory
)

// unpacker writes files of an archive below a directory.
type unpacker struct {
	into     *os.Root
	listed   map[string]manifest.Entry // the files of the archive that were not read yet
	selected map[string]bool
	parents  map[string]bool
	written  chan *os.File // to be made durable and closed while the next one is expanded
}

// unpack writes the chosen files of a tar.zst archive into an empty directory. The archive must contain exactly the files of
// contents, with the modes of a release, and their directories.
func unpack(from io.Reader, into *os.Root, contents, chosen []manifest.Entry) error {
	u := &unpacker{
		into: into, listed: map[string]manifest.Entry{}, selected: map[string]bool{}, parents: map[string]bool{},
		written: make(chan *os.File, len(chosen)),
	}
	limit := int64(1 << 20)
	for _, e := range contents {
		u.listed[e.Path] = e
		limit += e.Size + perEntry
		for dir := path.Dir(e.Path); dir != "."; dir = path.Dir(dir) {
			u.parents[dir] = true
		}
	}
	for _, e := range chosen {
		u.selected[e.Path] = true
	}
	expanded, err := zstd.NewReader(from, zstd.WithDecoderMaxWindow(window), zstd.WithDecoderLowmem(true))
	if err != nil {
		return err
	}
	defer expanded.Close()
	bounded := &io.LimitedReader{R: expanded, N: limit}
	durable := make(chan error)
	go func() {
		var err error
		for file := range u.written {
			err = errors.Join(err, file.Sync(), file.Close())
		}
		durable <- err
	}()
	err = u.all(tar.NewReader(bounded))
	close(u.written)
	if err = errors.Join(err, <-durable); err == nil {
		_, err = io.Copy(io.Discard, bounded) // the checksum at the end
	}
	if bounded.N <= 0 {
		err = errors.New("is larger than its list of files")
	}
	return archiveError(err)
}

// archiveError returns the error of an archive that is signed and yet not valid. A failure of the disk stays.
func archiveError(err error) error {
	var disk *fs.PathError
	if err == nil || errors.As(err, &disk) {
		return err
	}
	return &Error{
		Code: report.ExitUntrusted, Problem: err.Error(),
		Remedy: "ask the publisher for a valid release: this one is signed, and its archive is not what the manifest lists",
	}
}

func (u *unpacker) all(r *tar.Reader) error {
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := u.one(h, r); err != nil {
			return fmt.Errorf("%q %w", h.Name, err)
		}
	}
	for name := range u.listed {
		return fmt.Errorf("%q is listed in the manifest, and not in the archive", name)
	}
	return nil
}

// one checks an entry, and writes it if it is chosen.
func (u *unpacker) one(h *tar.Header, content io.Reader) error {
	if h.Uid != 0 || h.Gid != 0 {
		return errors.New("does not belong to root")
	}
	if h.Typeflag == tar.TypeDir {
		if name := strings.TrimSuffix(h.Name, "/"); !u.parents[name] || h.Mode != directory {
			return errors.New("is a directory without listed files, or its mode is not 0755")
		}
		return nil
	}
	e, ok := u.listed[h.Name]
	switch {
	case h.Typeflag != tar.TypeReg:
		return errors.New("is neither a regular file nor a directory")
	case !ok:
		return errors.New("is not listed in the manifest, or twice in the archive")
	case h.Mode != int64(mode(e.Path)):
		return fmt.Errorf("has mode %04o, and must have %04o", h.Mode, mode(e.Path))
	case h.Size != e.Size:
		return fmt.Errorf("has %d bytes, and the manifest lists %d", h.Size, e.Size)
	}
	delete(u.listed, h.Name)
	if !u.selected[h.Name] {
		return nil
	}
	return u.write(e, content)
}

func (u *unpacker) write(e manifest.Entry, content io.Reader) error {
	if err := u.into.MkdirAll(path.Dir(e.Path), directory); err != nil {
		return err
	}
	file, err := u.into.OpenFile(e.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, untilRemoved)
	if err != nil {
		return err
	}
	defer func() { u.written <- file }()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(file, sum), content); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != e.SHA256 {
		return errors.New("has the SHA-256 " + got + ", and the manifest lists " + e.SHA256)
	}
	return file.Chmod(mode(e.Path))
}

// finish makes the directories of a release durable, and readable for all users.
func finish(root *os.Root) error {
	return fs.WalkDir(root.FS(), ".", func(at string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		dir, err := root.Open(at)
		if err != nil {
			return err
		}
		return errors.Join(dir.Chmod(directory), dir.Sync(), dir.Close())
	})
}
