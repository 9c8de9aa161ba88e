// Package download makes small signed releases, and its tests install them from real servers, also from servers and disks that
// fail or attack.
package download

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"
	"github.com/klauspost/compress/zstd"

	"github.com/machineadm/machineadm/installer/manifest"
)

// Member is an entry of an archive.
type Member struct {
	Header  tar.Header
	Content string
}

// Regular returns a member with the mode that its path has in a release.
func Regular(path, content string) Member {
	mode := int64(0o755)
	if filepath.Dir(path) != "bin" && filepath.Dir(path) != "plugins" {
		mode = 0o644
	}
	return Member{tar.Header{Typeflag: tar.TypeReg, Name: path, Mode: mode, Size: int64(len(content))}, content}
}

// Members returns a release of scripts: the program, two plugins and a manual page.
func Members(version string) []Member {
	return []Member{
		{Header: tar.Header{Typeflag: tar.TypeDir, Name: "bin/", Mode: 0o755}},
		Regular("bin/machineadm", "#!/bin/sh\necho machineadm "+version+"\n"),
		{Header: tar.Header{Typeflag: tar.TypeDir, Name: "plugins/", Mode: 0o755}},
		Regular("plugins/machineadm-sysctl-plugin-procfs", "#!/bin/sh\necho sysctl "+version+"\n"),
		Regular("plugins/machineadm-timesync-plugin-chronyd", "#!/bin/sh\necho timesync "+version+"\n"),
		Regular("share/man/man8/machineadm.8", ".TH machineadm 8\n"),
	}
}

// Contents returns what a manifest lists of members: the regular files.
func Contents(members []Member) (entries []manifest.Entry) {
	for _, m := range members {
		if m.Header.Typeflag == tar.TypeReg {
			entries = append(entries, manifest.Entry{Path: m.Header.Name, Size: int64(len(m.Content)), SHA256: Digest([]byte(m.Content))})
		}
	}
	return entries
}

// Archive returns a tar.zst archive, with the window of a release.
func Archive(t testing.TB, members []Member) []byte {
	t.Helper()
	var out bytes.Buffer
	compressed, err := zstd.NewWriter(&out, zstd.WithWindowSize(128<<20), zstd.WithEncoderConcurrency(1))
	check(t, err)
	w := tar.NewWriter(compressed)
	for _, m := range members {
		check(t, w.WriteHeader(&m.Header))
		_, err := w.Write([]byte(m.Content))
		check(t, err)
	}
	check(t, w.Close())
	check(t, compressed.Close())
	return out.Bytes()
}

// Release describes a release. Its zero version is v1.0.0, with sequence 1.
type Release struct {
	Version  string
	Sequence uint64
	Expires  *time.Time
	Members  []Member         // nil for Members
	Contents []manifest.Entry // nil for the contents of the members
	Archive  []byte           // nil for an archive of the members
	More     []Member         // of another archive, machineadm-more
	Key      manifest.PrivateKey
}

// Name returns the file name of the archive.
func (r *Release) Name() string {
	return "machineadm-" + r.Version + "-" + runtime.GOOS + "-" + runtime.GOARCH + ".tar.zst"
}

// Write writes the files of the release into a directory, which is made.
func (r *Release) Write(t testing.TB, dir string) {
	t.Helper()
	if r.Version == "" {
		r.Version, r.Sequence = "v1.0.0", 1
	}
	if r.Members == nil {
		r.Members = Members(r.Version)
	}
	if r.Contents == nil {
		r.Contents = Contents(r.Members)
	}
	if r.Archive == nil {
		r.Archive = Archive(t, r.Members)
	}
	files := map[string][]byte{r.Name(): r.Archive, "machineadm-" + r.Version + ".spdx.json": []byte("{}\n")}
	m := &manifest.Manifest{
		Format: manifest.Format, Name: "machineadm", Version: r.Version, Sequence: r.Sequence, Expires: r.Expires,
		Files: []manifest.File{{
			Name: r.Name(), Kind: manifest.KindArchive, OS: runtime.GOOS, Arch: runtime.GOARCH,
			Size: int64(len(r.Archive)), SHA256: Digest(r.Archive), Contents: r.Contents,
		}, {Name: "machineadm-" + r.Version + ".spdx.json", Kind: manifest.KindSBOM, Size: 3, SHA256: Digest([]byte("{}\n"))}},
	}
	if r.More != nil {
		name := strings.Replace(r.Name(), "machineadm", "machineadm-more", 1)
		files[name] = Archive(t, r.More)
		m.Files = append(m.Files, manifest.File{
			Name: name, Kind: manifest.KindArchive, OS: runtime.GOOS, Arch: runtime.GOARCH,
			Size: int64(len(files[name])), SHA256: Digest(files[name]), Contents: Contents(r.More),
		})
	}
	text, err := m.Encode()
	check(t, err)
	signature, err := manifest.Sign(text, r.Key)
	check(t, err)
	check(t, os.MkdirAll(dir, 0o755))
	files[manifest.FileName], files[manifest.SignatureName] = text, signature
	for name, data := range files {
		check(t, os.WriteFile(filepath.Join(dir, name), data, 0o644)) //nolint:gosec // for a web server
	}
}

// NewKey makes a key.
func NewKey(t testing.TB) manifest.PrivateKey {
	t.Helper()
	_, private, err := minisign.GenerateKey(nil)
	check(t, err)
	text, err := private.MarshalText()
	check(t, err)
	key, err := manifest.ParsePrivateKey(text)
	check(t, err)
	return key
}

// Digest returns the SHA-256 in lower-case hex.
func Digest(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
