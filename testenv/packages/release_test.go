package packages

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/installer/release"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/tools"
)

const (
	oldVersion, newVersion = "v0.1.0", "v0.2.0-rc.1"
	oldDeb, newDeb         = "0.1.0", "0.2.0~rc.1"
	plugin                 = "machineadm-sysctl-plugin-procfs"
	scripted               = "machineadm-noop-plugin-test"
	conformance            = "machineadm-conformance"
	pinned                 = "pinned" // scripted as it was when v1alpha1 was new; it is not installed by this name
)

// commit is the time of every release of these tests.
func commit() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// programs builds the programs of a node once for all tests.
var programs = sync.OnceValues(func() (map[string][]byte, error) {
	dir, err := os.MkdirTemp("", "machineadm-packages-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	sources := map[string]string{
		"machineadm": "host/cmd/machineadm", plugin: "plugins/sysctl/procfs", scripted: "testenv/noop",
		conformance: "testenv/deps/cmd/deps", // a stand-in, because it is small
		pinned:      "testenv/legacy/v1alpha1",
	}
	if err := tools.Products(context.Background(), dir, sources); err != nil {
		return nil, err
	}
	all := map[string][]byte{}
	for name := range sources {
		if all[name], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	for _, name := range providers() {
		all[name] = all[conformance]
	}
	return all, nil
})

// providers are stand-ins for one program of each package that no node needs: machineadm-remote, -aws, -google and -azure.
func providers() []string {
	return []string{
		"machineadm-remote-configuration-provider-http", "machineadm-remote-configuration-provider-s3",
		"machineadm-remote-configuration-provider-gcs", "machineadm-plugin-encryption-provider-azurekeyvault",
	}
}

// newRelease returns a release for this machine that is not made yet. The old one has the pinned plugin, which every later host
// must run. All other programs differ in their last bytes: there is no older host as long as there was no release.
func newRelease(t testing.TB, version string, kinds ...string) *release.Release {
	t.Helper()
	needs.Tool(t, "zstd")
	needs.Tool(t, "xz")
	nfpm := tools.For(t, "nfpm")
	all, err := programs()
	require.NoError(t, err)
	dir := t.TempDir()
	p := release.Platform{OS: "linux", Arch: "amd64"}
	r := &release.Release{
		Version: version, Time: commit(), Binaries: dir, Share: filepath.Join(dir, "share"), Platform: []release.Platform{p},
		Kinds: kinds, Nfpm: nfpm, Out: filepath.Join(dir, "out"), Quick: true,
	}
	for _, name := range append(providers(), "machineadm", conformance, scripted, plugin) {
		r.Names = append(r.Names, name)
		program := all[name]
		if name == scripted && version == oldVersion {
			program = all[pinned]
		}
		write(t, filepath.Join(dir, "linux-amd64", name), append(bytes.Clone(program), version...), 0o755)
	}
	write(t, filepath.Join(r.Share, "man/man8/machineadm.8"), []byte(".TH MACHINEADM 8\n.SH NAME\nmachineadm \\- prepare a Kubernetes node\n"), 0o644)
	write(t, filepath.Join(r.Share, "zsh/site-functions/_machineadm"), []byte("#compdef machineadm\n"), 0o644)
	write(t, filepath.Join(r.Share, "machineadm/installed"), []byte("bin/machineadm\n"), 0o644)
	return r
}

// made are the parents of the releases of this test run, by version and kind.
var made = struct {
	sync.Mutex
	dirs map[string]func() string
}{dirs: map[string]func() string{}}

// TestMain removes what the tests share.
func TestMain(m *testing.M) {
	code := m.Run()
	for _, dir := range made.dirs {
		_ = os.RemoveAll(dir())
	}
	os.Exit(code)
}

// releaseOf makes a release once and returns its directory.
func releaseOf(t testing.TB, version, kind string) string {
	t.Helper()
	needs.Tier(t, needs.System)
	made.Lock()
	dir, ok := made.dirs[version+kind]
	if !ok {
		dir = sync.OnceValue(func() string {
			r := newRelease(t, version, kind)
			dir, err := os.MkdirTemp("", "machineadm-packages-") //nolint:usetesting // outlives the test
			require.NoError(t, err)
			r.Out = filepath.Join(dir, version)
			require.NoError(t, r.Make(t.Context(), t.Output()))
			return dir
		})
		made.dirs[version+kind] = dir
	}
	made.Unlock()
	return filepath.Join(dir(), version)
}

func write(t testing.TB, at string, content []byte, mode os.FileMode) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
	require.NoError(t, os.WriteFile(at, content, mode))
}
