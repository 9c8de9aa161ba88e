package release

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/installer/linux"
	"github.com/machineadm/machineadm/installer/manifest"
	needs "github.com/machineadm/machineadm/internal/require"
)

func at() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// small is a release of stand-ins that needs no tool.
func small(t *testing.T) *Release {
	t.Helper()
	dir := t.TempDir()
	r := &Release{
		Version: "v1.2.3", Time: at(), Binaries: dir, Share: filepath.Join(dir, "share"), Platform: Platforms(),
		Kinds: []string{manifest.KindBinary}, Out: filepath.Join(dir, "out"),
		Names: []string{"machineadm", "machineadm-conformance", "machineadm-timesync-plugin-chronyd", "machineadm-timesync-plugin-w32time"},
	}
	for _, p := range Platforms() {
		for _, name := range r.Names {
			put(t, filepath.Join(dir, p.OS+"-"+p.Arch, name+p.suffix()), name)
		}
	}
	put(t, filepath.Join(r.Share, "man/man8/machineadm.8"), ".TH")
	put(t, filepath.Join(r.Share, "machineadm/installed"), "bin/machineadm")
	return r
}

func put(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
}

func paths(files []File) string {
	var all []string
	for _, f := range files {
		all = append(all, f.Path)
	}
	return strings.Join(all, " ")
}

func TestLayout(t *testing.T) {
	t.Parallel()
	r := small(t)
	linuxFiles := r.programs(Platform{"linux", "arm64"}, roleCommand, rolePlugin)
	assert.Equal(t, "bin/machineadm plugins/machineadm-timesync-plugin-chronyd", paths(linuxFiles))
	assert.Equal(t, "usr/bin/machineadm usr/libexec/machineadm/machineadm-timesync-plugin-chronyd", paths(installed(linuxFiles)))
	assert.Equal(t, "bin/machineadm.exe plugins/machineadm-timesync-plugin-w32time.exe",
		paths(r.programs(Platform{"windows", "amd64"}, roleCommand, rolePlugin)))
	assert.Equal(t, "conformance/machineadm-conformance.exe", paths(r.programs(Platform{"windows", "amd64"}, roleConformance)))
	share, err := r.shared()
	require.NoError(t, err)
	assert.Equal(t, "share/man/man8/machineadm.8.gz", paths(share))
	services, err := units()
	require.NoError(t, err)
	assert.Equal(t, "../machineadm-resume.service", services[0].Link)
	assert.Len(t, services, 4)
}

// TestPackages: every program that is built is in one package, a provider in the one that is named here.
func TestPackages(t *testing.T) {
	t.Parallel()
	providers := map[string]string{"": plugins} // plugins of a node
	for name, all := range map[string]string{
		remotePlugins: "file http kube vault", awsPlugins: "awskms s3 secretsmanager ssm", googlePlugins: "gcpkms gcs", azurePlugins: "azblob azurekeyvault",
	} {
		for _, provider := range strings.Fields(all) {
			providers[provider] = name
		}
	}
	_, err := filepath.Glob("../../plugins/*/*") // go test repeats this test after a change of what it reads itself
	require.NoError(t, err)
	names, err := exec.CommandContext(t.Context(), needs.Tool(t, "bash"), "../../testenv/tools/build.sh", "names").Output() //nolint:gosec // ours
	require.NoError(t, err)
	for line := range strings.Lines(string(names)) {
		program, _, _ := strings.Cut(line, " ")
		_, provider, _ := strings.Cut(program, "-provider-")
		want, known := providers[provider]
		assert.True(t, known, "%s: decide in holds and here which package has it", program)
		if role(program) != rolePlugin {
			want = program
		}
		var in []string
		for _, k := range packs() {
			if k.holds(program) {
				in = append(in, k.name)
			}
		}
		assert.Equal(t, []string{want}, in, program)
	}
}

// TestResumeUnit compares the unit of the packages with the one that the host writes.
func TestResumeUnit(t *testing.T) {
	t.Parallel()
	shipped, err := linux.Files.ReadFile("system/machineadm-resume.service")
	require.NoError(t, err)
	own, err := os.ReadFile("../../host/resume/testdata/plain.service")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(own), "\n") // the mark of the host, which removes its unit
	rest, _, _ = strings.Cut(rest, "\n[Install]")
	assert.Equal(t, rest, string(shipped))
}

func TestArchives(t *testing.T) {
	t.Parallel()
	files := []File{{Path: "a/b/program", Mode: 0o755, Data: []byte("text")}, {Path: "a/link", Link: "b/program", Mode: 0o777}}
	var packed bytes.Buffer
	require.NoError(t, writeTar(&packed, files, at()))
	var got []string
	for in := tar.NewReader(&packed); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		assert.Equal(t, []any{0, 0, "root", "root", at().Unix()}, []any{h.Uid, h.Gid, h.Uname, h.Gname, h.ModTime.Unix()}, h.Name)
		got = append(got, h.FileInfo().Mode().String()+" "+h.Name+h.Linkname)
	}
	assert.Equal(t, []string{"drwxr-xr-x a/", "drwxr-xr-x a/b/", "-rwxr-xr-x a/b/program", "Lrwxrwxrwx a/linkb/program"}, got)

	packed.Reset()
	require.NoError(t, writeZip(&packed, files[:1], at()))
	in, err := zip.NewReader(bytes.NewReader(packed.Bytes()), int64(packed.Len()))
	require.NoError(t, err)
	require.Len(t, in.File, 1)
	assert.Equal(t, "-rwxr-xr-x a/b/program", in.File[0].Mode().String()+" "+in.File[0].Name)
	assert.True(t, in.File[0].Modified.Equal(at()))
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	assert.Regexp(t, "^[0-9A-F]{8}-[0-9A-F]{4}-5[0-9A-F]{3}-[89AB][0-9A-F]{3}-[0-9A-F]{12}$", identity("product", "v1.2.3"))
	assert.NotEqual(t, identity("product", "v1.2.3"), identity("product", "v1.2.4"))
	assert.NotEqual(t, identity("product", "v1.2.3"), identity("package", "v1.2.3"))
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	r := small(t)
	text, err := r.describe(r.programs(Platform{"windows", "amd64"}, roleCommand, rolePlugin))
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(text, `Source="bin/machineadm.exe"`))
	assert.Less(t, strings.Index(text, "PLUGINDIR"), strings.Index(text, `Source="plugins/machineadm-timesync-plugin-w32time.exe"`))
	made, err := (&Release{Version: "v1.2.3-rc.1"}).msi(t.Context(), Platform{"windows", "amd64"})
	require.NoError(t, err)
	assert.Empty(t, made, "an installer of a pre-release")
}

func TestRepack(t *testing.T) {
	t.Parallel()
	xz := needs.Tool(t, "xz")
	header := "debian-binary   0           0     0     100644  4         `\n2.0\n"
	member := "data.tar        1767323045  0     0     100644  5         `\n"
	got, err := repack([]byte(header+member+"hello\n"), exec.CommandContext(t.Context(), xz, "-c"))
	require.NoError(t, err)
	assert.True(t, bytes.HasPrefix(got, []byte(header+"data.tar.xz     1767323045  0     0     100644  ")), "%q", got)
	assert.Zero(t, len(got)%2)
	unpacked := exec.CommandContext(t.Context(), xz, "-dc")
	unpacked.Stdin = bytes.NewReader(got[len(header)+arHeader:])
	out, _ := unpacked.Output() // xz complains of the padding
	assert.Equal(t, "hello", string(out))
	for name, deb := range map[string]string{
		"no member": header, "no length": header + "data.tar        1767323045  0     0     100644  x         `\n", "truncated": header + member + "he",
	} {
		_, err := repack([]byte(deb), exec.CommandContext(t.Context(), xz, "-c"))
		assert.Error(t, err, name)
	}
}

func TestSigned(t *testing.T) {
	t.Parallel()
	public, private, err := minisign.GenerateKey(nil)
	require.NoError(t, err)
	secret, err := private.MarshalText()
	require.NoError(t, err)
	r := small(t)
	r.Key = filepath.Join(t.TempDir(), "key")
	put(t, r.Key, string(secret))
	r.Expires = time.Date(2027, 1, 31, 1, 0, 0, 0, time.FixedZone("", 3600))
	var log strings.Builder
	require.NoError(t, r.Make(t.Context(), &log))
	assert.Equal(t, 3, strings.Count(log.String(), ": signed by "), log.String())
	text, err := os.ReadFile(filepath.Join(r.Out, manifest.FileName))
	require.NoError(t, err)
	signature, err := os.ReadFile(filepath.Join(r.Out, manifest.SignatureName))
	require.NoError(t, err)
	key, err := manifest.ParseKey([]byte(public.String()))
	require.NoError(t, err)
	m, err := manifest.Verify(text, signature, []manifest.Key{key})
	require.NoError(t, err)
	assert.Equal(t, uint64(at().Unix()), m.Sequence)
	assert.Equal(t, time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC), *m.Expires)
	assert.Equal(t, "machineadm-v1.2.3-windows-amd64.exe", m.Files[2].Name)
	info, err := os.Stat(filepath.Join(r.Out, m.Files[0].Name))
	require.NoError(t, err)
	assert.Equal(t, "-rw-r--r--", info.Mode().String())

	r.Key, r.Expires = "", time.Time{}
	log.Reset()
	require.NoError(t, r.Make(t.Context(), &log))
	assert.Equal(t, 3, strings.Count(log.String(), ": unsigned\n"), log.String())
	text, err = os.ReadFile(filepath.Join(r.Out, manifest.FileName))
	require.NoError(t, err)
	assert.NotContains(t, string(text), "expires")
	assert.NoFileExists(t, filepath.Join(r.Out, manifest.SignatureName), "the signature of the release before")
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*Release)
		err    string
	}{
		"a version of no tag": {func(r *Release) { r.Version = "v0.0.0-devel+c0ffee" }, "set VERSION=v1.2.3"},
		"no key":              {func(r *Release) { r.Key = "/absent/key" }, "read the signing key: open /absent/key"},
		"no secret key":       {func(r *Release) { r.Key = filepath.Join(r.Share, "machineadm/installed") }, "is not a minisign secret key"},
		"no program":          {func(r *Release) { r.Binaries = "/absent" }, "binary for linux/amd64: open /absent/linux-amd64/machineadm"},
		"no module data":      {func(r *Release) { r.Kinds = append(r.Kinds, manifest.KindSBOM) }, "read the modules of"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := small(t)
			test.change(r)
			require.ErrorContains(t, r.Make(context.Background(), io.Discard), test.err)
		})
	}
}
