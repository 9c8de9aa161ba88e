package release

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/machineadm/machineadm/installer/manifest"
)

// archives writes one archive with bin/, share/ and the plugins that prepare a node, and one of each other package of plugins.
func (r *Release) archives(ctx context.Context, p Platform) (made []artifact, err error) {
	for _, k := range packs() {
		files := r.packed(p, k)
		a := artifact{File: r.file(manifest.KindArchive, p, ".tar.zst"), files: files}
		switch k.name {
		case command, kit:
			continue
		case plugins:
			share, err := r.shared()
			if err != nil {
				return nil, err
			}
			a.files = sorted(r.programs(p, roleCommand), files, share)
		default:
			a.Name = strings.Replace(a.Name, command, k.name, 1)
		}
		if len(a.files) == 0 {
			continue // of a release of some programs
		}
		if p.OS == "windows" {
			a.Name = strings.TrimSuffix(a.Name, ".tar.zst") + ".zip"
		}
		if err := r.archive(ctx, p, a); err != nil {
			return nil, wrap(a.Name, err)
		}
		made = append(made, a)
	}
	return made, nil
}

func (r *Release) archive(ctx context.Context, p Platform, a artifact) error {
	out, err := os.Create(filepath.Join(r.Out, a.Name))
	if err != nil {
		return err
	}
	if p.OS == "windows" {
		err = writeZip(out, a.files, r.Time)
	} else {
		err = pipe(func(w io.Writer) error { return writeTar(w, a.files, r.Time) }, out, compressor(ctx, r.Quick))
	}
	return errors.Join(err, out.Close())
}

// binary copies the command line.
func (r *Release) binary(_ context.Context, p Platform) ([]artifact, error) {
	programs := r.programs(p, roleCommand)
	a := artifact{File: r.file(manifest.KindBinary, p, p.suffix()), files: programs}
	return []artifact{a}, stage(r.Out, []File{{Path: a.Name, Mode: 0o755, From: programs[0].From}}, r.Time)
}

// compressor has a window of 128 MiB, the largest that decoders accept by default: plugins have much in common.
func compressor(ctx context.Context, quick bool) *exec.Cmd {
	level := "-19"
	if quick {
		level = "-3"
	}
	return exec.CommandContext(ctx, "zstd", "--quiet", "--long=27", "--single-thread", "--no-progress", level, "-") //nolint:gosec // two constants
}

// pipe runs a program with the input that feed writes.
func pipe(feed func(io.Writer) error, to io.Writer, cmd *exec.Cmd) error {
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	var complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = to, &complaint
	if err := cmd.Start(); err != nil {
		return wrap(cmd.Path, err)
	}
	fed := errors.Join(feed(in), in.Close())
	if err := cmd.Wait(); err != nil {
		return wrap(cmd.Path+": "+complaint.String(), err)
	}
	return fed
}

// writeTar writes files with their directories, owned by root.
func writeTar(w io.Writer, files []File, at time.Time) error {
	out := tar.NewWriter(w)
	header := tar.Header{ModTime: at, Uname: "root", Gname: "root", Format: tar.FormatUSTAR}
	for _, dir := range parents(files) {
		h := header
		h.Typeflag, h.Name, h.Mode = tar.TypeDir, dir+"/", 0o755
		if err := out.WriteHeader(&h); err != nil {
			return err
		}
	}
	for _, f := range files {
		content, size, err := f.open()
		if err != nil {
			return err
		}
		h := header
		h.Typeflag, h.Name, h.Mode, h.Size = tar.TypeReg, f.Path, int64(f.Mode.Perm()), size
		if f.Link != "" {
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, f.Link, 0
		}
		err = out.WriteHeader(&h)
		if err == nil {
			_, err = io.Copy(out, content)
		}
		if err := errors.Join(err, content.Close()); err != nil {
			return wrap(f.Path, err)
		}
	}
	return out.Close()
}

func writeZip(w io.Writer, files []File, at time.Time) error {
	out := zip.NewWriter(w)
	out.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	for _, f := range files {
		h := &zip.FileHeader{Name: f.Path, Method: zip.Deflate, Modified: at.UTC()}
		h.SetMode(f.Mode & fs.ModePerm)
		entry, err := out.CreateHeader(h)
		if err == nil {
			_, err = f.copyTo(entry)
		}
		if err != nil {
			return wrap(f.Path, err)
		}
	}
	return out.Close()
}
