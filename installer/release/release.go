// Package release writes the files of a release from built programs: archives, packages of Linux distributions, a system
// extension, a Windows installer, bills of materials, and the manifest that lists them.
//
// The same programs give the same bytes, whatever the directory, user, umask, locale and clock: every time within is that of
// the commit, every owner is root, every list is sorted.
package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/machineadm/machineadm/installer/manifest"
)

// Release is what is released. All fields but Quick, Kinds, Sequence, Expires and Key must be set.
type Release struct {
	Version  string     // v1.2.3 or v1.2.3-rc.1
	Time     time.Time  // of the commit
	Sequence uint64     // of the manifest; 0 means the seconds of Time since 1970
	Expires  time.Time  // of the manifest; zero means never
	Names    []string   // of the programs, without .exe
	Binaries string     // directory with OS-ARCH/NAME
	Share    string     // directory with schemas, completions and manual pages: share/ of `make install`
	Platform []Platform // to release for
	Kinds    []string   // of artifacts, as in the manifest; empty means all
	Nfpm     string     // path of the program nfpm
	Out      string     // directory to write to, which is emptied first
	Key      string     // file of the secret key that signs the manifest; empty means unsigned
	Quick    bool       // compress fast and badly, for tests
}

// Platform is an operating system and an architecture, as GOOS and GOARCH.
type Platform struct{ OS, Arch string }

func (p Platform) suffix() string {
	if p.OS == "windows" {
		return ".exe"
	}
	return ""
}

// Platforms are all of a release.
func Platforms() []Platform {
	return []Platform{{"linux", "amd64"}, {"linux", "arm64"}, {"windows", "amd64"}}
}

// artifact is a written file. files are those within that the manifest lists: of an archive all, otherwise the programs.
type artifact struct {
	manifest.File
	files []File
}

func (r *Release) name(p Platform, suffix string) string {
	return "machineadm-" + r.Version + "-" + p.OS + "-" + p.Arch + suffix
}

func (r *Release) file(kind string, p Platform, suffix string) manifest.File {
	return manifest.File{Name: r.name(p, suffix), Kind: kind, OS: p.OS, Arch: p.Arch}
}

// maker writes the artifacts of one kind for one platform.
type maker struct {
	kind, os string // os is empty for every one
	make     func(*Release, context.Context, Platform) ([]artifact, error)
}

func makers() []maker {
	return []maker{
		{manifest.KindBinary, "", (*Release).binary},
		{manifest.KindArchive, "", (*Release).archives},
		{manifest.KindDeb, "linux", linuxPackages(manifest.KindDeb)},
		{manifest.KindRPM, "linux", linuxPackages(manifest.KindRPM)},
		{manifest.KindArchLinux, "linux", linuxPackages(manifest.KindArchLinux)},
		{manifest.KindAPK, "linux", linuxPackages(manifest.KindAPK)},
		{manifest.KindSysext, "linux", (*Release).sysext},
		{manifest.KindMSI, "windows", (*Release).msi},
	}
}

// Make writes the release and reports every artifact on log.
func (r *Release) Make(ctx context.Context, log io.Writer) error {
	if !manifest.IsVersion(r.Version) {
		return fmt.Errorf("version %q is not of the form v1.2.3 or v1.2.3-rc.1: set VERSION=v1.2.3", r.Version)
	}
	if err := errors.Join(os.RemoveAll(r.Out), os.MkdirAll(r.Out, 0o755)); err != nil { //nolint:gosec // for everyone
		return err
	}
	m := manifest.Manifest{Format: manifest.Format, Name: "machineadm", Version: r.Version, Sequence: r.Sequence}
	if m.Sequence == 0 {
		m.Sequence = uint64(max(r.Time.Unix(), 0)) //nolint:gosec // not negative
	}
	if !r.Expires.IsZero() {
		expires := r.Expires.UTC()
		m.Expires = &expires
	}
	for _, p := range r.Platform {
		for _, k := range makers() {
			if (k.os != "" && k.os != p.OS) || (len(r.Kinds) > 0 && !slices.Contains(r.Kinds, k.kind)) {
				continue
			}
			made, err := k.make(r, ctx, p)
			if err != nil {
				return fmt.Errorf("%s for %s/%s: %w", k.kind, p.OS, p.Arch, err)
			}
			for _, a := range made {
				files, err := r.finish(a)
				if err != nil {
					return wrap(a.Name, err)
				}
				m.Files = append(m.Files, files...)
			}
		}
	}
	return r.sign(&m, log)
}

// finish completes the manifest's entry of an artifact, and writes its bill of materials.
func (r *Release) finish(a artifact) ([]manifest.File, error) {
	for _, f := range a.files {
		e, err := f.entry()
		if err != nil {
			return nil, err
		}
		a.Contents = append(a.Contents, e)
	}
	at := filepath.Join(r.Out, a.Name)
	if err := errors.Join(os.Chmod(at, 0o644), measure(&a.File, at)); err != nil { //nolint:gosec // for everyone
		return nil, err
	}
	files := []manifest.File{a.File}
	if a.Kind == manifest.KindBinary {
		files[0].Contents = nil // the artifact itself
	}
	if len(r.Kinds) > 0 && !slices.Contains(r.Kinds, manifest.KindSBOM) {
		return files, nil
	}
	text, err := r.bill(a)
	if err != nil {
		return nil, err
	}
	sbom := manifest.File{Name: a.Name + ".spdx.json", Kind: manifest.KindSBOM, OS: a.OS, Arch: a.Arch}
	at = filepath.Join(r.Out, sbom.Name)
	if err := os.WriteFile(at, text, 0o644); err != nil { //nolint:gosec // for everyone
		return nil, err
	}
	err = measure(&sbom, at)
	return append(files, sbom), err
}

// seconds is Time for programs.
func (r *Release) seconds() string { return strconv.FormatInt(r.Time.Unix(), 10) }

// measure sets size and digest from a file on disk.
func measure(f *manifest.File, at string) error {
	e, err := File{From: at}.entry()
	f.Size, f.SHA256 = e.Size, e.SHA256
	return err
}

// sign writes the manifest, and its signature if there is a key.
func (r *Release) sign(m *manifest.Manifest, log io.Writer) error {
	text, err := m.Encode()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.Out, manifest.FileName), text, 0o644); err != nil { //nolint:gosec // for everyone
		return err
	}
	state := "unsigned"
	if r.Key != "" {
		key, err := os.ReadFile(r.Key)
		if err != nil {
			return fmt.Errorf("read the signing key: %w", err)
		}
		private, err := manifest.ParsePrivateKey(key)
		if err != nil {
			return fmt.Errorf("%s %w", r.Key, err)
		}
		signature, err := manifest.Sign(text, private)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.Out, manifest.SignatureName), signature, 0o644); err != nil { //nolint:gosec // for everyone
			return err
		}
		state = "signed by " + private.Public().ID()
	}
	for _, f := range m.Files {
		if _, err := fmt.Fprintf(log, "%-9s %9d  %s: %s\n", f.Kind, f.Size, f.Name, state); err != nil {
			return err
		}
	}
	return nil
}
