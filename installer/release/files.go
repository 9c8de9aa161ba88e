package release

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/machineadm/machineadm/installer/linux"
	"github.com/machineadm/machineadm/installer/manifest"
)

// File is one file of an artifact: a copy of From, else a link if Link is set, else Data.
type File struct {
	Path string // slash-separated, relative
	Mode fs.FileMode
	From string // path of a file on disk
	Link string // target of a symbolic link
	Data []byte
}

func (f File) open() (io.ReadCloser, int64, error) {
	if f.From == "" {
		return io.NopCloser(bytes.NewReader(f.Data)), int64(len(f.Data)), nil
	}
	file, err := os.Open(f.From)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, info.Size(), nil
}

// copyTo writes the content, and nothing for a link, and returns its size.
func (f File) copyTo(w io.Writer) (n int64, err error) {
	from, _, err := f.open()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	return io.Copy(w, from)
}

// entry describes the file for the manifest.
func (f File) entry() (manifest.Entry, error) {
	hash := sha256.New()
	size, err := f.copyTo(hash)
	return manifest.Entry{Path: f.Path, Size: size, SHA256: hex.EncodeToString(hash.Sum(nil))}, err
}

// stage writes files below dir with one time, whatever the umask.
func stage(dir string, files []File, at time.Time) error {
	for _, f := range files {
		to := filepath.Join(dir, filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { //nolint:gosec // a copy of public files
			return err
		}
		out, err := os.Create(to)
		if err != nil {
			return err
		}
		_, err = f.copyTo(out)
		if err := errors.Join(err, out.Chmod(f.Mode), out.Close(), os.Chtimes(to, at, at)); err != nil {
			return err
		}
	}
	return nil
}

func sorted(files ...[]File) []File {
	all := slices.Concat(files...)
	slices.SortFunc(all, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// Roles of the programs, which are their directories in an archive.
const (
	roleCommand     = "bin"
	rolePlugin      = "plugins"
	roleConformance = "conformance"
)

func role(name string) string {
	switch name {
	case command:
		return roleCommand
	case kit:
		return roleConformance
	}
	return rolePlugin
}

// runsOn reports whether a plugin prepares a node of the operating system. Those for Linux are built for Windows as well, for their tests.
func runsOn(name, goos string) bool {
	switch name {
	case "machineadm-timesync-plugin-w32time":
		return goos == "windows"
	case "machineadm-sysctl-plugin-procfs", "machineadm-timesync-plugin-chronyd", "machineadm-timesync-plugin-ntpd",
		"machineadm-timesync-plugin-systemd":
		return goos == "linux"
	}
	return true
}

// programs returns the programs of a platform that have one of the roles, as ROLE/NAME.
func (r *Release) programs(p Platform, roles ...string) []File {
	var files []File
	for _, name := range r.Names {
		if !slices.Contains(roles, role(name)) || !runsOn(name, p.OS) {
			continue
		}
		name += p.suffix()
		files = append(files, File{Path: role(strings.TrimSuffix(name, ".exe")) + "/" + name, Mode: 0o755, From: filepath.Join(r.Binaries, p.OS+"-"+p.Arch, name)})
	}
	return files
}

// shared returns the files for every platform, as share/PATH: schemas, completions, and manual pages, compressed.
func (r *Release) shared() ([]File, error) {
	var files []File
	err := fs.WalkDir(os.DirFS(r.Share), ".", func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || at == "machineadm/installed" {
			return err
		}
		f := File{Path: "share/" + at, Mode: 0o644, From: filepath.Join(r.Share, filepath.FromSlash(at))}
		if strings.HasPrefix(at, "man/") {
			if f, err = compressed(f); err != nil {
				return err
			}
		}
		files = append(files, f)
		return nil
	})
	return files, err
}

// compressed returns the file as PATH.gz, without a name or time within.
func compressed(f File) (File, error) {
	var data bytes.Buffer
	w, err := gzip.NewWriterLevel(&data, gzip.BestCompression)
	if err != nil {
		return File{}, err
	}
	_, err = f.copyTo(w)
	err = errors.Join(err, w.Close())
	return File{Path: f.Path + ".gz", Mode: f.Mode, Data: data.Bytes()}, err
}

// installed returns files of an archive at their places in a Linux system.
func installed(files []File) []File {
	moved := make([]File, len(files))
	for i, f := range files {
		dir, rest, _ := strings.Cut(f.Path, "/")
		switch dir {
		case roleCommand, roleConformance:
			dir = "usr/bin"
		case rolePlugin:
			dir = "usr/libexec/machineadm"
		default:
			dir = "usr/" + dir
		}
		f.Path = dir + "/" + rest
		moved[i] = f
	}
	return moved
}

// units returns the systemd units and presets, and the link that enables the one that resumes a run.
func units() ([]File, error) {
	const lib, resume = "usr/lib/systemd/", "machineadm-resume.service"
	files := []File{{Path: lib + "system/multi-user.target.wants/" + resume, Link: "../" + resume, Mode: fs.ModeSymlink | 0o777}}
	found, err := fs.Glob(linux.Files, "system*/*")
	for _, name := range found {
		data, err := linux.Files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		files = append(files, File{Path: lib + name, Mode: 0o644, Data: data})
	}
	return files, err
}

// parents returns the directories of sorted files, in the order of an archive.
func parents(files []File) []string {
	var dirs []string
	for _, f := range files {
		for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// wrap names what failed.
func wrap(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
