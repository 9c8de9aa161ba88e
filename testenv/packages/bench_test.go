package packages

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/installer/manifest"
	"github.com/machineadm/machineadm/installer/release"
	"github.com/machineadm/machineadm/testenv/nodes"
)

// BenchmarkDpkg installs both packages, beside packages of the same files without scripts.
func BenchmarkDpkg(b *testing.B) {
	n := bootWith(b, manifest.KindDeb, nodes.Options{Suite: nodes.Trixie})
	n.sh(b, `cd /srv && mkdir bare && for p in machineadm machineadm-plugins; do
dpkg-deb -R ${p}_`+oldDeb+`_amd64.deb x && rm -f x/DEBIAN/post* x/DEBIAN/pre* && dpkg-deb -z0 --root-owner-group -b x bare/$p.deb && rm -r x
dpkg-deb -R ${p}_`+oldDeb+`_amd64.deb x && mkdir -p ours && dpkg-deb -z0 --root-owner-group -b x ours/$p.deb && rm -r x; done`)
	spent := map[string]time.Duration{}
	for b.Loop() {
		for _, name := range []string{"bare", "ours"} {
			began := time.Now()
			n.sh(b, "dpkg -i /srv/"+name+"/*.deb")
			spent[name] += time.Since(began)
			n.sh(b, "dpkg --purge machineadm machineadm-plugins")
		}
	}
	for name, unit := range map[string]string{"bare": "bare-wall-ms", "ours": "wall-ms"} {
		b.ReportMetric(float64(spent[name].Milliseconds())/float64(b.N), unit)
	}
}

// BenchmarkRelease makes the archive and the packages of the real programs for linux/amd64, compressed as in a release. It measures
// sizes of what prepares a node.
func BenchmarkRelease(b *testing.B) {
	r := newRelease(b, newVersion, manifest.KindArchive, manifest.KindDeb)
	script, err := filepath.Abs("../tools/build.sh")
	require.NoError(b, err)
	r.Quick, r.Binaries = false, b.TempDir()
	build := exec.CommandContext(b.Context(), script, "all", filepath.Join(r.Binaries, "linux-amd64"))
	build.Env = append(build.Environ(), "GOOS=linux", "GOARCH=amd64")
	built, err := build.Output()
	require.NoError(b, err)
	r.Names = nil
	for name := range strings.Lines(string(built)) {
		r.Names = append(r.Names, filepath.Base(strings.TrimSpace(name)))
	}
	for b.Loop() {
		require.NoError(b, r.Make(b.Context(), b.Output()))
	}
	mb := map[string]float64{}
	for _, f := range manifestOf(b, r).Files {
		switch f.Name {
		case "machineadm-" + newVersion + "-linux-amd64.tar.zst":
			mb["archive-MB"] = float64(f.Size) / 1e6
			for _, e := range f.Contents {
				mb["installed-MB"] += float64(e.Size) / 1e6
			}
		case "machineadm_" + newDeb + "_amd64.deb", "machineadm-plugins_" + newDeb + "_amd64.deb":
			mb["deb-MB"] += float64(f.Size) / 1e6
		}
	}
	require.Len(b, mb, 3)
	for unit, value := range mb {
		b.ReportMetric(value, unit)
	}
}

func manifestOf(b *testing.B, r *release.Release) *manifest.Manifest {
	b.Helper()
	text, err := os.Open(filepath.Join(r.Out, manifest.FileName))
	require.NoError(b, err)
	defer func() { _ = text.Close() }() // only read
	m, err := manifest.Decode(text)
	require.NoError(b, err)
	return m
}
