package download

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/installer/install"
	"github.com/machineadm/machineadm/installer/manifest"
)

const archiveName = "machineadm-v1.1.0-linux-" + runtime.GOARCH + ".tar.zst"

// attacked returns a bed with v1.0.0 installed, and a good v1.1.0 to attack.
func attacked(t *testing.T) (*bed, Release) {
	t.Helper()
	b := newBed(t).write(Release{})
	b.installed()
	r := Release{Version: "v1.1.0", Sequence: 2}
	b.write(r)
	r.Members = Members(r.Version)
	return b, r
}

// change writes a file of the release anew, changed.
func (b *bed) change(name string, how func([]byte) []byte) {
	b.t.Helper()
	path := filepath.Join(b.from, name)
	data, err := os.ReadFile(path)
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(path, how(bytes.Clone(data)), 0o644)) //nolint:gosec // for a web server
}

// TestEveryByteOfTheManifest changes one byte of the manifest or of its signature. That each of their bits is checked is
// shown beside manifest.Verify.
func TestEveryByteOfTheManifest(t *testing.T) {
	t.Parallel()
	b, _ := attacked(t)
	for _, name := range []string{manifest.FileName, manifest.SignatureName} {
		good, err := os.ReadFile(filepath.Join(b.from, name))
		require.NoError(t, err)
		for i := range good {
			b.change(name, func(data []byte) []byte { data[i] ^= 1; return data })
			b.refused(report.ExitUntrusted, manifest.SignatureName)
			require.NoError(t, os.WriteFile(filepath.Join(b.from, name), good, 0o644)) //nolint:gosec // for a web server
		}
	}
	b.installed()
}

func TestEveryByteOfTheArchive(t *testing.T) {
	t.Parallel()
	b, r := attacked(t)
	good := Archive(t, r.Members)
	for i := range good {
		b.change(archiveName, func(data []byte) []byte { data[i] ^= 0x10; return data })
		b.refused(report.ExitUntrusted, "has the SHA-256 ")
		b.change(archiveName, func([]byte) []byte { return good })
	}
	b.installed()
}

// TestEveryByteOfASignedArchive has a publisher that signs a damaged archive: the files within are compared too. A bit that
// zstd does not use changes nothing.
func TestEveryByteOfASignedArchive(t *testing.T) {
	t.Parallel()
	b, r := attacked(t)
	good := Archive(t, r.Members)
	before := tree(t, b.to)
	undamaged, _ := attacked(t)
	undamaged.installed()
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x10
		b.write(Release{Version: r.Version, Sequence: r.Sequence, Archive: bad})
		if _, err := b.install(); err != nil {
			require.Equal(t, before, tree(t, b.to), "byte %d", i)
			continue
		}
		require.Equal(t, tree(t, undamaged.to), tree(t, b.to), "byte %d", i)
		b, _ = attacked(t)
	}
}

func TestManifests(t *testing.T) {
	t.Parallel()
	for name, attack := range map[string]struct {
		do   func(b *bed)
		code int
		err  string
	}{
		"truncated manifest": {func(b *bed) {
			b.change(manifest.FileName, func(d []byte) []byte { return d[:len(d)-1] })
		}, report.ExitUntrusted, "does not fit manifest.json"},
		"empty signature": {func(b *bed) {
			b.change(manifest.SignatureName, func([]byte) []byte { return nil })
		}, report.ExitUntrusted, "is not a signature of minisign"},
		"no signature": {func(b *bed) {
			require.NoError(b.t, os.Remove(filepath.Join(b.from, manifest.SignatureName)))
		}, report.ExitPrecondition, "manifest.json.minisig: no such file or directory"},
		"the signature of another manifest": {func(b *bed) {
			good, err := os.ReadFile(filepath.Join(b.from, manifest.FileName))
			require.NoError(b.t, err)
			b.write(Release{Version: "v1.2.0", Sequence: 3})
			b.change(manifest.FileName, func([]byte) []byte { return good })
		}, report.ExitUntrusted, "does not fit manifest.json"},
		"an old signed manifest": {func(b *bed) {
			b.write(Release{Version: "v1.0.0", Sequence: 1})
			b.installed()
			b.write(Release{Version: "v1.1.0", Sequence: 2})
			b.installed()
			b.write(Release{})
		}, report.ExitUntrusted, "has sequence 1, and one of sequence 2 was installed here"},
		"the key of the server": {func(b *bed) {
			key := b.key
			b.key = NewKey(b.t)
			b.write(Release{Version: "v1.1.0", Sequence: 2})
			b.key = key
		}, report.ExitUntrusted, "which is not trusted; trusted: "},
		"a huge manifest": {func(b *bed) {
			b.change(manifest.FileName, func(d []byte) []byte { return append(d, make([]byte, manifest.MaxSize)...) })
		}, report.ExitUntrusted, "is larger than 1048576 bytes"},
		"a huge signature": {func(b *bed) {
			b.change(manifest.SignatureName, func(d []byte) []byte { return append(d, make([]byte, manifest.MaxSize)...) })
		}, report.ExitUntrusted, "is larger than 8192 bytes"},
		"a truncated archive": {func(b *bed) {
			b.change(archiveName, func(d []byte) []byte { return d[:len(d)-1] })
		}, report.ExitUntrusted, "the copy is incomplete"},
		"a longer archive": {func(b *bed) {
			b.change(archiveName, func(d []byte) []byte { return append(d, 0) })
		}, report.ExitUntrusted, "bytes that the manifest lists"},
		"the archive of another release": {func(b *bed) {
			b.change(archiveName, func([]byte) []byte {
				return Archive(b.t, append(Members("v1.0.0"), Regular("share/x", "")))
			})
		}, report.ExitUntrusted, "the manifest lists"},
		"a FIFO as archive": {func(b *bed) {
			name := filepath.Join(b.from, archiveName)
			require.NoError(b.t, errorsOf(os.Remove(name), unix.Mkfifo(name, 0o644)))
		}, report.ExitPrecondition, "is not a regular file"},
		"a directory as archive": {func(b *bed) {
			name := filepath.Join(b.from, archiveName)
			require.NoError(b.t, errorsOf(os.Remove(name), os.Mkdir(name, 0o755)))
		}, report.ExitPrecondition, "is not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, _ := attacked(t)
			attack.do(b)
			b.refused(attack.code, attack.err)
			b.to += "-empty"
			if name != "an old signed manifest" {
				b.refused(attack.code, attack.err) // where nothing is installed, nothing is made
			}
		})
	}
}

// TestSignedArchives has a publisher whose key is used for a hostile archive.
func TestSignedArchives(t *testing.T) {
	t.Parallel()
	entry := func(h tar.Header) Member { return Member{Header: h} }
	listed := Members("v1.1.0")
	bomb := Regular("share/bomb", strings.Repeat("\x00", 64<<20))
	for name, attack := range map[string]struct {
		members  []Member
		contents []manifest.Entry
		err      string
	}{
		"link":          {members: []Member{entry(tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/x", Linkname: "/etc/shadow", Mode: 0o777})}, err: `"bin/x" is neither`},
		"hard link":     {members: []Member{entry(tar.Header{Typeflag: tar.TypeLink, Name: "bin/x", Linkname: "/etc/shadow", Mode: 0o644})}, err: "is neither"},
		"device":        {members: []Member{entry(tar.Header{Typeflag: tar.TypeBlock, Name: "bin/sda", Devmajor: 8, Mode: 0o644})}, err: "is neither"},
		"FIFO":          {members: []Member{entry(tar.Header{Typeflag: tar.TypeFifo, Name: "bin/x", Mode: 0o644})}, err: "is neither"},
		"dots":          {members: []Member{Regular("../../x", "x")}, err: "is not a plain relative path"},
		"absolute":      {members: []Member{Regular("/etc/x", "x")}, err: "is not a plain relative path"},
		"unlisted":      {[]Member{Regular("bin/x", "x")}, Contents(listed), `"bin/x" is not listed`},
		"unlisted dots": {[]Member{Regular("../../x", "x")}, Contents(listed), `"../../x" is not listed`},
		"unlisted root": {[]Member{Regular("/etc/x", "x")}, Contents(listed), `"/etc/x" is not listed`},
		"unlisted dir":  {[]Member{entry(tar.Header{Typeflag: tar.TypeDir, Name: "../x/", Mode: 0o755})}, Contents(listed), "is a directory without listed files"},
		"writable dir":  {[]Member{entry(tar.Header{Typeflag: tar.TypeDir, Name: "share/", Mode: 0o777})}, Contents(listed), "its mode is not 0755"},
		"twice":         {[]Member{Regular("bin/machineadm", "x")}, Contents(listed), "twice in the archive"},
		"set-uid":       {members: []Member{{tar.Header{Typeflag: tar.TypeReg, Name: "bin/su", Mode: 0o4755, Size: 1}, "x"}}, err: `"bin/su" has mode 4755`},
		"writable":      {members: []Member{{tar.Header{Typeflag: tar.TypeReg, Name: "bin/x", Mode: 0o777, Size: 1}, "x"}}, err: "has mode 0777, and must have 0755"},
		"another user":  {members: []Member{{tar.Header{Typeflag: tar.TypeReg, Name: "bin/x", Mode: 0o755, Size: 1, Uid: 1000}, "x"}}, err: "does not belong to root"},
		"missing":       {nil, append(Contents(listed), manifest.Entry{Path: "bin/x", Size: 1, SHA256: Digest([]byte("x"))}), `"bin/x" is listed in the manifest, and not in the archive`},
		"other size":    {[]Member{Regular("share/x", "xx")}, append(Contents(listed), manifest.Entry{Path: "share/x", Size: 1, SHA256: Digest([]byte("x"))}), "has 2 bytes, and the manifest lists 1"},
		"other content": {[]Member{Regular("share/x", "y")}, append(Contents(listed), manifest.Entry{Path: "share/x", Size: 1, SHA256: Digest([]byte("x"))}), "has the SHA-256 " + Digest([]byte("y"))},
		"bomb":          {[]Member{bomb}, append(Contents(listed), manifest.Entry{Path: "share/bomb", Size: 1, SHA256: Digest(nil)}), "bytes, and the manifest lists 1"},
		"unlisted bomb": {[]Member{bomb}, Contents(listed), "is not listed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, r := attacked(t)
			members := append(Members(r.Version), attack.members...)
			contents := attack.contents
			if contents == nil {
				contents = Contents(members)
			}
			if strings.Contains(attack.err, "plain relative path") { // Encode refuses it, and so does Decode
				_, err := (&manifest.Manifest{Format: 1, Name: "machineadm", Version: "v1.1.0", Sequence: 2, Files: []manifest.File{{
					Name: "x", Kind: manifest.KindArchive, OS: "linux", Arch: runtime.GOARCH, SHA256: Digest(nil), Contents: contents,
				}}}).Encode()
				require.ErrorContains(t, err, attack.err)
				return
			}
			b.write(Release{Version: r.Version, Sequence: r.Sequence, Members: members, Contents: contents})
			b.refused(report.ExitUntrusted, attack.err)
		})
	}
}

// TestBombs has archives that expand without end, and frames that ask for too much memory.
func TestBombs(t *testing.T) {
	t.Parallel()
	b, r := attacked(t)
	var zeros bytes.Buffer // behind the end of the tar archive
	w, err := zstd.NewWriter(&zeros)
	require.NoError(t, err)
	for range 64 {
		_, err := w.Write(make([]byte, 1<<20))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	good := Archive(t, r.Members)
	b.write(Release{Version: r.Version, Sequence: r.Sequence, Archive: append(bytes.Clone(good), zeros.Bytes()...)})
	b.refused(report.ExitUntrusted, "is larger than its list of files")

	huge := binary.LittleEndian.AppendUint32(nil, 0xFD2FB528) // RFC 8878: a frame with a window of 2 GiB
	huge = append(huge, 0x00, 21<<3, 0x01, 0x00, 0x00)
	b.write(Release{Version: r.Version, Sequence: r.Sequence, Archive: huge})
	b.refused(report.ExitUntrusted, "window")

	b.write(Release{Version: r.Version, Sequence: r.Sequence, Archive: []byte("#!/bin/sh\n")})
	b.refused(report.ExitUntrusted, archiveName+": ")
}

// TestAServerThatChanges serves another release, with a good signature, from the second or the third request on.
func TestAServerThatChanges(t *testing.T) {
	t.Parallel()
	for first, file := range []string{manifest.SignatureName, archiveName} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			b, _ := attacked(t)
			other := &bed{t: t, key: b.key, from: b.from + "-other"}
			other.write(Release{Version: "v1.1.0", Sequence: 2, Members: append(Members("v1.1.0"), Regular("bin/other", "x"))})
			var requests atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				dir := b.from
				if int(requests.Add(1)) > first+1 {
					dir = other.from
				}
				http.ServeFile(w, r, filepath.Join(dir, filepath.Base(r.URL.Path)))
			}))
			t.Cleanup(server.Close)
			b.refused(report.ExitUntrusted, server.URL+"/"+file+": ", func(o *install.Options) { o.Locations = []string{server.URL} })
		})
	}
}
