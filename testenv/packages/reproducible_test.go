package packages

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/installer/manifest"
	"github.com/machineadm/machineadm/installer/release"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/tools"
)

func output(t *testing.T, program string, arguments ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, arguments...)
	cmd.Env = append(os.Environ(), "TZ=UTC", "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// explain returns the beginning of what diffoscope, which is large and so optional, finds in two files that differ.
func explain(t *testing.T, a, b string) string {
	t.Helper()
	diffoscope, err := exec.LookPath("diffoscope")
	if err != nil {
		return "install diffoscope to see in what"
	}
	out, _ := exec.CommandContext(t.Context(), diffoscope, a, b).CombinedOutput() // it exits with 1
	return string(out[:min(len(out), 1<<14)])
}

// remake is the variable that has the description of a release, for TestMake in another process.
const remake = "MACHINEADM_TEST_RELEASE"

// TestMake makes the release of the environment: a part of TestReproducible.
func TestMake(t *testing.T) {
	t.Parallel()
	text := os.Getenv(remake)
	if text == "" {
		return
	}
	var r release.Release
	require.NoError(t, json.Unmarshal([]byte(text), &r))
	require.NoError(t, r.Make(t.Context(), t.Output()))
}

// TestReproducible makes every artifact of a release twice: the second time in another directory and, of another user, umask,
// locale, time zone and clock, and with a time of the source that is another build's.
func TestReproducible(t *testing.T) {
	t.Parallel()
	needs.Tier(t, needs.System)
	needs.Root(t)
	for _, program := range []string{"mksquashfs", "wixl", "msibuild", "faketime", "setpriv"} {
		needs.Tool(t, program)
	}
	first := newRelease(t, oldVersion)
	first.Platform = release.Platforms()
	all, err := programs()
	require.NoError(t, err)
	for _, name := range first.Names { // programs of Go, for the SBOM
		write(t, filepath.Join(first.Binaries, "linux-arm64", name), all[conformance], 0o755)
		write(t, filepath.Join(first.Binaries, "windows-amd64", name+".exe"), all[conformance], 0o755)
	}
	require.NoError(t, first.Make(t.Context(), t.Output()))

	other, err := os.MkdirTemp("", "other directory-") //nolint:usetesting // another user cannot enter t.TempDir
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(other) })
	second := *first
	second.Binaries, second.Share, second.Nfpm, second.Out = filepath.Join(other, "bin"), filepath.Join(other, "share"), filepath.Join(other, "nfpm"), filepath.Join(other, "out")
	output(t, "cp", "-r", first.Binaries, second.Binaries)
	output(t, "cp", "-r", first.Share, second.Share)
	output(t, "cp", first.Nfpm, second.Nfpm)
	self := filepath.Join(other, "packages.test")
	output(t, "cp", os.Args[0], self)
	output(t, "chown", "-R", "65534:65534", other)
	text, err := json.Marshal(second)
	require.NoError(t, err)
	const script = `umask 077; cd "$1" && exec setpriv --reuid 65534 --regid 65534 --clear-groups faketime -f '+400d' "$2" -test.run '^TestMake$'`
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script, "sh", other, self)
	cmd.Env = append(os.Environ(), remake+"="+string(text), "HOME="+other, "TMPDIR="+other, "TZ=Asia/Kathmandu", "LC_ALL=tr_TR.UTF-8",
		"SOURCE_DATE_EPOCH=1234567890")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)

	names, err := os.ReadDir(first.Out)
	require.NoError(t, err)
	const linux, windows = 1 + 5 + 1 + 7*4, 1 + 5 + 1 // the program, archives, one more, and packages in four formats
	assert.Len(t, names, 2*(2*linux+windows)+1, "each artifact and its bill, and the manifest")
	for _, entry := range names {
		want, err := os.ReadFile(filepath.Join(first.Out, entry.Name()))
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join(second.Out, entry.Name()))
		require.NoError(t, err)
		if !assert.Equal(t, len(want), len(got), entry.Name()) || string(want) != string(got) {
			t.Errorf("%s differs: %s", entry.Name(), explain(t, filepath.Join(first.Out, entry.Name()), filepath.Join(second.Out, entry.Name())))
		}
	}
	archive := filepath.Join(first.Out, "machineadm-"+oldVersion+"-linux-amd64.tar.zst")
	plugins := []string{scripted, plugin} // the others have archives of their own
	slices.Sort(plugins)
	assert.Equal(t, "bin/ plugins/ share/ share/man/ share/man/man8/ share/zsh/ share/zsh/site-functions/ bin/machineadm plugins/"+
		strings.Join(plugins, " plugins/")+" share/man/man8/machineadm.8.gz share/zsh/site-functions/_machineadm",
		strings.Join(strings.Fields(output(t, "tar", "--list", "--zstd", "--file", archive)), " "))
	bill, err := os.ReadFile(archive + ".spdx.json")
	require.NoError(t, err)
	for _, want := range []string{`"pkg:golang/google.golang.org/grpc@v1.`, `"pkg:golang/stdlib@1.`, `"name": "` + plugin + `"`} {
		assert.Contains(t, string(bill), want)
	}
	reader := exec.CommandContext(t.Context(), tools.For(t, "spdx"))
	reader.Stdin = bytes.NewReader(bill)
	read, err := reader.Output()
	require.NoError(t, err)
	assert.JSONEq(t, string(bill), string(read), "the library of SPDX reads every field")
	text, err = os.ReadFile(filepath.Join(first.Out, manifest.FileName))
	require.NoError(t, err)
	assert.NotContains(t, string(text), first.Binaries)
}
