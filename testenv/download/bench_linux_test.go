package download

import (
	"archive/tar"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	machine "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/bench"
	"github.com/machineadm/machineadm/testenv/tools"
)

// take runs a command under measure.
func take(b *testing.B, measure string, command ...string) bench.Usage {
	b.Helper()
	out, err := exec.CommandContext(b.Context(), measure, command...).Output()
	require.NoError(b, err)
	u, err := bench.ParseUsage(out)
	require.NoError(b, err)
	return u
}

// suite writes a release of all programs of a node, compressed by zstd --long=27.
func suite(b *testing.B) (_ *bed, program, measure string) {
	b.Helper()
	machine.Tool(b, "zstd")
	dir := b.TempDir()
	root, err := tools.Root(".")
	require.NoError(b, err)
	sources := map[string]string{"bin/machineadm": "host/cmd/machineadm"}
	mains, err := fs.Glob(os.DirFS(root), "plugins/*/*/main.go")
	require.NoError(b, err)
	for _, main := range mains {
		step := strings.Split(main, "/")
		sources["plugins/machineadm-"+step[1]+"-plugin-"+step[2]] = filepath.Dir(main)
	}
	require.NoError(b, tools.Products(b.Context(), dir, sources))
	require.NoError(b, tools.Products(b.Context(), dir, map[string]string{"measure": "testenv/bench/cmd/measure"}))
	members := []Member{
		{Header: tar.Header{Typeflag: tar.TypeDir, Name: "bin/", Mode: 0o755}}, {Header: tar.Header{Typeflag: tar.TypeDir, Name: "plugins/", Mode: 0o755}},
	}
	for name := range sources {
		data, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(b, err)
		members = append(members, Regular(name, string(data)))
	}
	out, err := exec.CommandContext(b.Context(), "sh", "-c", `cd "$1" && tar --owner=0 --group=0 --numeric-owner --mode=755 -cf - bin plugins | zstd -q -9 --long=27`, "sh", dir).Output()
	require.NoError(b, err)
	return newBed(b).write(Release{Members: members, Archive: out}), filepath.Join(dir, "bin/machineadm"), filepath.Join(dir, "measure")
}

// BenchmarkInstall compares an installation from a local server with curl, sha256sum and tar, and with the same made durable:
// most of the time is spent by the disk.
func BenchmarkInstall(b *testing.B) {
	for _, tool := range []string{"curl", "sha256sum", "tar"} {
		machine.Tool(b, tool)
	}
	r, program, measure := suite(b)
	server := httptest.NewServer(http.FileServer(http.Dir(r.from)))
	b.Cleanup(server.Close)
	archive := (&Release{Version: "v1.0.0"}).Name()
	data, err := os.ReadFile(filepath.Join(r.from, archive))
	require.NoError(b, err)
	floor := fmt.Sprintf(`set -e; mkdir %[1]s; cd %[1]s; curl -sSf -o a %[2]s/%[3]s; echo "%[4]s  a" | sha256sum -c --quiet; tar -I "zstd -d --long=27" -xf a; rm a`,
		r.to, server.URL, archive, Digest(data))
	var ours, theirs, durable bench.Samples
	for b.Loop() {
		require.NoError(b, os.RemoveAll(r.to))
		theirs = append(theirs, take(b, measure, "sh", "-c", floor))
		require.NoError(b, exec.CommandContext(b.Context(), "sync", "-f", r.to).Run()) // not in the time of the next one
		require.NoError(b, os.RemoveAll(r.to))
		durable = append(durable, take(b, measure, "sh", "-c", floor+"; find . -exec sync {} +"))
		require.NoError(b, os.RemoveAll(r.to))
		ours = append(ours, take(b, measure, program, "install", "--manifest", server.URL, "--to", r.to, "--key", r.key.Public().String()))
	}
	b.ReportMetric(theirs.Wall(), "tar-wall-ms")
	b.ReportMetric(durable.Wall(), "sync-wall-ms")
	b.ReportMetric(ours.Wall(), "wall-ms")
	b.ReportMetric(theirs.CPU(), "tar-cpu-ms")
	b.ReportMetric(ours.CPU(), "cpu-ms")
	b.ReportMetric(ours.MaxRSS(), "RSS-MiB")
}

// BenchmarkVerification compares the check of a complete copy of a release with sha256sum.
func BenchmarkVerification(b *testing.B) {
	machine.Tool(b, "sha256sum")
	r, program, measure := suite(b)
	archive := filepath.Join(r.from, (&Release{Version: "v1.0.0"}).Name())
	mirror := []string{"mirror", "--from", r.from, "--to", r.from, "--key", r.key.Public().String()}
	var ours, theirs bench.Samples
	for b.Loop() {
		theirs = append(theirs, take(b, measure, "sha256sum", archive))
		ours = append(ours, take(b, measure, append([]string{program}, mirror...)...))
	}
	b.ReportMetric(theirs.CPU(), "sha256sum-cpu-ms")
	b.ReportMetric(ours.CPU(), "cpu-ms")
}
