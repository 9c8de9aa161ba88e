package infrastructure

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/machineadm/machineadm/installer/manifest"
	"github.com/machineadm/machineadm/installer/release"
	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/tools"
)

// Packages makes the Debian packages machineadm, machineadm-plugins and machineadm-remote of the checkout, of which the last has the providers
// http and file, and returns the step that unpacks them in the image of a machine. Their scripts start nothing, and reload a systemd that
// runs.
func Packages(t testing.TB) func(root string) error {
	t.Helper()
	require.Tool(t, "xz")
	dir := t.TempDir()
	programs := filepath.Join(dir, runtime.GOOS+"-"+runtime.GOARCH)
	if err := os.MkdirAll(filepath.Join(dir, "share"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := tools.All(t.Context(), programs); err != nil {
		t.Fatal(err)
	}
	r := &release.Release{
		Version: "v0.0.1", Time: time.Unix(1, 0), Binaries: dir, Share: filepath.Join(dir, "share"),
		Platform: []release.Platform{{OS: runtime.GOOS, Arch: runtime.GOARCH}}, Kinds: []string{manifest.KindDeb},
		Nfpm: tools.For(t, "nfpm"), Out: filepath.Join(dir, "out"), Quick: true,
	}
	files, err := os.ReadDir(programs)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Name() == "machineadm" || strings.HasSuffix(f.Name(), "-provider-http") || strings.HasSuffix(f.Name(), "-provider-file") ||
			strings.Contains(f.Name(), "-plugin-") && !strings.Contains(f.Name(), "-provider-") {
			r.Names = append(r.Names, f.Name())
		}
	}
	if err := r.Make(t.Context(), t.Output()); err != nil {
		t.Fatal(err)
	}
	debs, err := filepath.Glob(filepath.Join(r.Out, "*.deb"))
	if err != nil || len(debs) != 3 {
		t.Fatalf("the release has %q, and not three packages: %v", debs, err)
	}
	return func(root string) error {
		for _, deb := range debs {
			if out, err := exec.CommandContext(t.Context(), "dpkg-deb", "--extract", deb, root).CombinedOutput(); err != nil {
				return fmt.Errorf("unpack %s: %w: %s", deb, err, out)
			}
		}
		return nil
	}
}
