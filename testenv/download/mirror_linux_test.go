package download

import (
	"context"
	"encoding/pem"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/installer/install"
	"github.com/machineadm/machineadm/installer/manifest"
	machine "github.com/machineadm/machineadm/internal/require"
)

func encodePEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// mirror copies the release to the other directory.
func (b *bed) mirror(location string) (install.Copied, error) {
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	return install.Mirror(ctx, install.Options{
		Locations: []string{location}, Keys: []manifest.Key{b.key.Public()}, To: b.to, Warn: func(string) {},
	})
}

func TestMirrorOfAServer(t *testing.T) {
	t.Parallel()
	b := newBed(t).write(Release{})
	url := serve(t, b.files)
	copied, err := b.mirror(url)
	require.NoError(t, err)
	assert.Equal(t, install.Copied{Version: "v1.0.0", Directory: b.to, Files: 2, Copied: 2}, copied)
	assert.Equal(t, strings.ReplaceAll(tree(t, b.from), "from", "to"), tree(t, b.to))
	copied, err = b.mirror(url)
	require.NoError(t, err)
	assert.Zero(t, copied.Copied)

	require.NoError(t, os.WriteFile(filepath.Join(b.to, "machineadm-v1.0.0.spdx.json"), []byte("{!\n"), 0o600))
	copied, err = b.mirror(b.from)
	require.NoError(t, err)
	assert.Equal(t, 1, copied.Copied, "a damaged file is copied again")
	second := &bed{t: t, key: b.key, from: b.to, to: b.to + "-installed"}
	assert.True(t, second.installed().Changed, "the copy is a release")
}

// TestMirrorResumes: the server fails in the middle of the release, and later has what is missing.
func TestMirrorResumes(t *testing.T) {
	t.Parallel()
	b := newBed(t).write(Release{})
	var fail atomic.Bool
	fail.Store(true)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".spdx.json") && fail.Load() {
			http.NotFound(w, r)
			return
		}
		b.files(w, r)
	})
	_, err := b.mirror(url)
	require.ErrorContains(t, err, url+"/machineadm-v1.0.0.spdx.json: the server answers 404")
	assert.NoFileExists(t, filepath.Join(b.to, manifest.FileName), "the manifest is last")
	assert.NotContains(t, tree(t, b.to), ".part-")
	fail.Store(false)
	for _, version := range []string{"v1.0.0", "v0.9.0"} { // of killed runs
		require.NoError(t, os.WriteFile(filepath.Join(b.to, ".part-machineadm-"+version+".spdx.json"), []byte("{"), 0o600))
	}
	copied, err := b.mirror(url)
	require.NoError(t, err)
	assert.Equal(t, 1, copied.Copied)
	assert.Equal(t, tree(t, b.from), tree(t, b.to))
}

func TestMirrorRefuses(t *testing.T) {
	t.Parallel()
	b := newBed(t).write(Release{Version: "v1.1.0", Sequence: 2})
	_, err := b.mirror(b.from)
	require.NoError(t, err)
	before := tree(t, b.to)
	b.write(Release{})
	_, err = b.mirror(b.from)
	require.ErrorContains(t, err, "the release v1.0.0 has sequence 1, and v1.1.0 in "+b.to+" has sequence 2")
	b.write(Release{Version: "v1.0.9", Sequence: 2})
	_, err = b.mirror(b.from)
	require.ErrorContains(t, err, "the release v1.0.9 has sequence 2, and v1.1.0 in "+b.to+" has sequence 2", "which is newer is not known")
	b.write(Release{Version: "v1.2.0", Sequence: 3})
	b.change("machineadm-v1.2.0.spdx.json", func([]byte) []byte { return []byte("{-\n") })
	b.change(strings.Replace(archiveName, "v1.1.0", "v1.2.0", 1), func(d []byte) []byte { d[9]++; return d })
	_, err = b.mirror(b.from)
	failed := new(install.Error)
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, report.ExitUntrusted, failed.Code)
	assert.Equal(t, before, tree(t, b.to))
}

// TestMinisign compares with Debian's minisign: keys, signatures and comments, in both directions.
func TestMinisign(t *testing.T) {
	t.Parallel()
	minisign := machine.Tool(t, "minisign")
	b := newBed(t).write(Release{})
	at := func(name string) string { return filepath.Join(b.from, name) }
	run := func(arguments ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), minisign, arguments...).CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	out := run("-V", "-P", b.key.Public().String(), "-m", at(manifest.FileName))
	assert.Contains(t, out, "Trusted comment: name:machineadm version:v1.0.0 sequence:1\n")

	run("-G", "-W", "-p", at("release.pub"), "-s", at("release.key"))
	run("-S", "-W", "-s", at("release.key"), "-t", "name:machineadm version:v1.0.0 sequence:1", "-m", at(manifest.FileName))
	keys, err := install.Keys([]string{at("release.pub")}, "")
	require.NoError(t, err)
	b.installed(func(o *install.Options) { o.Keys = append(o.Keys, keys...) })

	secret, err := os.ReadFile(at("release.key"))
	require.NoError(t, err)
	b.key, err = manifest.ParsePrivateKey(secret)
	require.NoError(t, err)
	assert.Equal(t, keys[0].String(), b.key.Public().String())
	b.write(Release{Version: "v1.1.0", Sequence: 2})
	run("-V", "-p", at("release.pub"), "-m", at(manifest.FileName))
	b.installed()

	run("-S", "-W", "-s", at("release.key"), "-t", "name:machineadm version:v1.1.0 sequence:1", "-m", at(manifest.FileName))
	b.refused(report.ExitUntrusted, `is of "name:machineadm version:v1.1.0 sequence:1", and manifest.json is of `)
}

func TestKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := NewKey(t).Public(), NewKey(t).Public()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, errorsOf(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)))
		return path
	}
	file := write("a.pub", "untrusted comment: a\n"+a.String()+"\n", 0o644)
	write("keys/b.pub", b.String(), 0o644)
	write("keys/README", "", 0o644)
	names := func(keys []manifest.Key, err error) (all []string) {
		require.NoError(t, err)
		for _, k := range keys {
			all = append(all, k.String())
		}
		return all
	}
	assert.Equal(t, []string{a.String(), b.String()}, names(install.Keys([]string{file, b.String()}, "")))
	assert.Equal(t, []string{a.String()}, names(install.Keys([]string{a.String()}, dir+"/keys")), "not the keys of the directory")
	assert.Equal(t, []string{b.String()}, names(install.Keys(nil, dir+"/keys")))

	fails := func(code int, text string, given []string, at string) {
		t.Helper()
		_, err := install.Keys(given, at)
		failed := new(install.Error)
		require.ErrorAs(t, err, &failed)
		assert.Contains(t, failed.Problem, text)
		assert.Equal(t, code, failed.Code)
		assert.NotEmpty(t, failed.Remedy)
	}
	fails(report.ExitUsage, "there is no key to verify the release with", nil, dir+"/none")
	fails(report.ExitUsage, `"RWQ" is neither a minisign public key nor a file`, []string{"RWQ"}, "")
	fails(report.ExitUsage, "is not a minisign public key", []string{write("c.pub", "x", 0o644)}, "")
	fails(report.ExitUntrusted, "d.pub can be written by its group and everyone", []string{write("d.pub", a.String(), 0o666)}, "")
	write("keys/e.pub", a.String(), 0o664)
	fails(report.ExitUntrusted, "can be written by its group", nil, dir+"/keys")
	require.NoError(t, os.Chmod(dir+"/keys", 0o777)) //nolint:gosec // the fault
	fails(report.ExitUntrusted, "keys can be written by its group and everyone", nil, dir+"/keys")
}
