package packages

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/installer/manifest"
	"github.com/machineadm/machineadm/installer/release"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/tools"
)

// standIns returns a release of texts in the place of programs, for all platforms. It is not made yet.
func standIns(t *testing.T, version string, kinds ...string) *release.Release {
	t.Helper()
	needs.Tier(t, needs.System)
	for _, program := range []string{"zstd", "xz", "mksquashfs", "wixl", "msibuild", "faketime"} {
		needs.Tool(t, program)
	}
	nfpm := tools.For(t, "nfpm")
	dir := t.TempDir()
	r := &release.Release{
		Version: version, Time: commit(), Binaries: dir, Share: filepath.Join(dir, "share"), Platform: release.Platforms(),
		Names: []string{"machineadm", conformance, plugin, "machineadm-timesync-plugin-w32time"}, Kinds: kinds, Nfpm: nfpm,
		Out: filepath.Join(dir, "out"), Quick: true,
	}
	for _, p := range r.Platform {
		for _, name := range r.Names {
			suffix := map[string]string{"windows": ".exe"}[p.OS]
			write(t, filepath.Join(dir, p.OS+"-"+p.Arch, name+suffix), []byte(name+" of "+version), 0o755)
		}
	}
	write(t, filepath.Join(r.Share, "man/man8/machineadm.8"), []byte(".TH MACHINEADM 8\n"), 0o644)
	return r
}

// TestContents unpacks every artifact with a program that is not ours, and compares what is in it with the manifest: the digest of
// each file that is listed, and the architecture that the format has a name of its own for.
func TestContents(t *testing.T) {
	t.Parallel()
	needs.Tier(t, needs.System)
	const unpack, info = `bsdtar --extract --file "$1" --directory "$2"`, `; sed -n 's/^arch = //p' "$2/.PKGINFO"`
	formats := map[string]struct{ script, amd64, arm64, root string }{
		manifest.KindArchive:   {script: unpack},
		manifest.KindDeb:       {`dpkg-deb --extract "$1" "$2"; dpkg-deb --field "$1" Architecture`, "amd64", "arm64", ""},
		manifest.KindRPM:       {unpack + `; grep -aoEm 1 'x86_64|aarch64' "$1" | sort -u`, "x86_64", "aarch64", ""},
		manifest.KindArchLinux: {unpack + info, "x86_64", "aarch64", ""},
		manifest.KindAPK:       {unpack + info, "x86_64", "aarch64", ""},
		manifest.KindSysext: {
			`unsquashfs -quiet -no-progress -force -dest "$2" "$1"; sed -n s/ARCHITECTURE=//p "$2"/usr/lib/extension-release.d/*`, "x86-64", "arm64", "",
		},
		manifest.KindMSI: {script: `msiextract --directory "$2" "$1" >&2`, root: "machineadm"},
	}
	var kinds []string
	for kind := range formats {
		kinds = append(kinds, kind)
	}
	for _, program := range []string{"bsdtar", "dpkg-deb", "unsquashfs", "msiextract"} {
		needs.Tool(t, program)
	}
	r := standIns(t, oldVersion, kinds...)
	require.NoError(t, r.Make(t.Context(), t.Output()))
	text, err := os.Open(filepath.Join(r.Out, manifest.FileName))
	require.NoError(t, err)
	defer func() { _ = text.Close() }()
	m, err := manifest.Decode(text)
	require.NoError(t, err)
	for _, f := range m.Files {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			format, dir := formats[f.Kind], t.TempDir()
			cmd := exec.CommandContext(t.Context(), "sh", "-ec", format.script, "sh", filepath.Join(r.Out, f.Name), dir) //nolint:gosec // ours
			cmd.Stderr = t.Output()
			arch, err := cmd.Output()
			require.NoError(t, err)
			assert.Equal(t, map[string]string{"amd64": format.amd64, "arm64": format.arm64}[f.Arch], strings.TrimSpace(string(arch)))
			require.NotEmpty(t, f.Contents)
			for _, e := range f.Contents {
				data, err := os.ReadFile(filepath.Join(dir, format.root, filepath.FromSlash(e.Path)))
				require.NoError(t, err)
				sum := sha256.Sum256(data)
				assert.Equal(t, e.SHA256, hex.EncodeToString(sum[:]), e.Path)
				assert.Equal(t, e.Size, int64(len(data)), e.Path)
			}
		})
	}
}
