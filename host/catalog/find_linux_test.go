package catalog_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	testify "github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/host/catalog"
	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/internal/trust"
)

func TestFind(t *testing.T) {
	t.Parallel()
	base := install(t, "a/"+sysctl, "b/"+sysctl, "c/"+sysctl, "empty/", "file")
	path := strings.Join([]string{"", ".", "relative", base + "/missing", base + "/empty", base + "/c", base + "/b"}, string(os.PathListSeparator))
	for _, test := range []struct {
		name string
		o    catalog.Options
		want string
	}{
		{"the first of --plugin-dir wins", catalog.Options{First: below(base, "b", "a")}, "b"},
		{"--plugin-dir goes before the fixed", catalog.Options{First: below(base, "b"), Fixed: below(base, "a", "c")}, "b"},
		{"missing and empty directories", catalog.Options{First: below(base, "missing", "empty"), Fixed: below(base, "missing", "empty", "c")}, "c"},
		{"a fixed one", catalog.Options{Fixed: below(base, "empty", "a", "missing")}, "a"},
		{"fixed goes before PATH", catalog.Options{Fixed: below(base, "a"), Path: path, PluginsOnPath: true}, "a"},
		{"PATH", catalog.Options{Fixed: below(base, "empty"), Path: path, PluginsOnPath: true}, "c"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			want := "found: " + filepath.Join(base, test.want, naming.File(runtime.GOOS, sysctl))
			if got := find(test.o); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestErrorMessages(t *testing.T) {
	t.Parallel()
	base := install(t, "a/"+sysctl, "b/"+sysctl, "c/"+sysctl, "empty/", "file", "loose/"+sysctl, "open/"+sysctl, "directory/"+sysctl+"/x", "dangling/")
	chmod(t, filepath.Join(base, "loose", sysctl), 0o775)
	chmod(t, filepath.Join(base, "open"), 0o777)
	if err := os.Symlink("nowhere", filepath.Join(base, "dangling", sysctl)); err != nil {
		t.Fatal(err)
	}
	path := strings.Join([]string{"", ".", "relative", filepath.Join(base, "c")}, string(os.PathListSeparator))
	var got strings.Builder
	for _, test := range []struct {
		name string
		o    catalog.Options
	}{
		{"not installed", catalog.Options{First: below(base, "empty"), Fixed: below(base, "missing", "empty")}},
		{"nowhere to look", catalog.Options{}},
		{"PATH without the option", catalog.Options{Fixed: below(base, "empty"), Path: path}},
		{"PATH is named too", catalog.Options{Fixed: below(base, "empty"), Path: base + "/empty:" + base + "/missing", PluginsOnPath: true}},
		{"twice", catalog.Options{Fixed: below(base, "a", "empty", "b")}},
		{"twice, with PATH", catalog.Options{Fixed: below(base, "a", "b"), Path: path, PluginsOnPath: true}},
		{"a file for a directory", catalog.Options{First: below(base, "file", "a")}},
		{"an untrusted first hit is not skipped", catalog.Options{First: below(base, "loose", "a"), Fixed: below(base, "b")}},
		{"an untrusted directory", catalog.Options{First: below(base, "open", "a")}},
		{"a directory for a plugin", catalog.Options{First: below(base, "directory", "a")}},
		{"a dangling link is not skipped", catalog.Options{First: below(base, "dangling", "a")}},
	} {
		fmt.Fprintf(&got, "# %s\n%s\n\n", test.name, strings.ReplaceAll(find(test.o), base, "~"))
	}
	golden(t, "testdata/refusals.golden", got.String())
}

func TestErrorTypes(t *testing.T) {
	t.Parallel()
	base := install(t, "a/"+sysctl, "b/"+sysctl, "loose/"+sysctl)
	chmod(t, filepath.Join(base, "loose", sysctl), 0o757)
	c := newCatalog(t, catalog.Options{Fixed: below(base, "a", "b")})
	_, err := c.Find(sysctl)
	var twice *catalog.DuplicateError
	if !errors.As(err, &twice) || !slices.Equal(twice.Paths, below(base, "a/"+sysctl, "b/"+sysctl)) {
		t.Errorf("twice: %v", err)
	}
	_, err = c.Find("machineadm-sysctl-plugin-other")
	var missing *catalog.NotFoundError
	if !errors.As(err, &missing) || missing.File != "machineadm-sysctl-plugin-other" || !slices.Equal(missing.Directories, below(base, "a", "b")) {
		t.Errorf("missing: %v", err)
	}
	_, err = c.Open(catalog.Plugin{Binary: sysctl, Path: filepath.Join(base, "loose", sysctl)})
	var refused *trust.Error
	if !errors.As(err, &refused) {
		t.Errorf("untrusted: %v", err)
	}
}

// TestFindRefusesOtherNames: only the name of a plugin becomes part of a path. naming.Binary returns "" for an invalid kind.
func TestFindRefusesOtherNames(t *testing.T) {
	t.Parallel()
	base := install(t, "a/"+sysctl, "file")
	c := newCatalog(t, catalog.Options{First: below(base, "a")})
	for _, name := range []string{"", ".", "..", "../file", "../a/" + sysctl, "/etc/passwd", "x"} {
		p, err := c.Find(name)
		var missing *catalog.NotFoundError
		if err == nil || errors.As(err, &missing) || strings.Contains(err.Error(), "file") {
			t.Errorf("%q: %v %v", name, p, err)
		}
	}
}

// TestRelativeDirectories: --plugin-dir is relative to the working directory at the start. Empty and relative entries of PATH
// are ignored, because they depend on the working directory.
func TestRelativeDirectories(t *testing.T) {
	base := install(t, "here/"+sysctl, sysctl)
	t.Chdir(base)
	c := newCatalog(t, catalog.Options{First: []string{"here"}})
	t.Chdir("/")
	if p, err := c.Find(sysctl); err != nil || p.Path != filepath.Join(base, "here", sysctl) {
		t.Errorf("%v %v", p, err)
	}
	t.Chdir(base)
	for _, path := range []string{"", ":", ".", "here", "./here", ":here:."} {
		if got := find(catalog.Options{Path: path, PluginsOnPath: true}); !strings.HasSuffix(got, "there are no plugin directories") {
			t.Errorf("%q: %s", path, got)
		}
	}
}

// TestUnreadableDirectory: an unreadable directory could hide the plugin, so the search fails.
func TestUnreadableDirectory(t *testing.T) {
	require.Root(t)
	t.Parallel()
	base, err := os.MkdirTemp("/tmp", "catalog-") //nolint:usetesting // others come this far, unlike into t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(base); err != nil {
			t.Error(err)
		}
	})
	chmod(t, base, 0o755)
	for _, d := range []string{"closed", "good"} {
		if err := os.Mkdir(filepath.Join(base, d), 0o755); err != nil { //nolint:gosec // as installed
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(base, d, sysctl), nil, 0o755); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	chmod(t, filepath.Join(base, "closed"), 0o700)
	text, err := json.Marshal(catalog.Options{First: below(base, "closed", "good")})
	if err != nil {
		t.Fatal(err)
	}
	// Under a strict umask the test binary is its builder's alone.
	if err := os.Chmod("/proc/self/exe", 0o755); err != nil { //nolint:gosec // that is the point
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = []string{jobVariable + "=" + string(text)}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := "find: search for plugins: lstat ~/closed/" + sysctl + ": permission denied"
	if got := strings.ReplaceAll(string(out), base, "~"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestBeside: plugins beside the program go before installed ones, after the ones of --plugin-dir.
func TestBeside(t *testing.T) {
	t.Parallel()
	base := install(t, "bin/"+sysctl, "bin/machineadm", "first/"+sysctl, "fixed/"+sysctl, "plain/machineadm", "commands/"+sysctl)
	testify.NoError(t, os.Symlink(base+"/bin/machineadm", base+"/link"))
	assert.Equal(t, base+"/bin", catalog.Beside(base+"/bin/machineadm"))
	assert.Equal(t, base+"/bin", catalog.Beside(base+"/link"))
	for _, none := range []string{base + "/plain/machineadm", base + "/missing", "/usr/bin/env", ""} {
		assert.Empty(t, catalog.Beside(none), none)
	}
	for name, test := range map[string]struct {
		options catalog.Options
		want    catalog.Plugin
	}{
		"alone":                 {catalog.Options{Beside: base + "/bin", Fixed: below(base, "missing")}, catalog.Plugin{Path: base + "/bin/" + sysctl}},
		"before installed ones": {catalog.Options{Beside: base + "/bin", Fixed: below(base, "fixed")}, catalog.Plugin{Path: base + "/bin/" + sysctl, Shadows: base + "/fixed/" + sysctl}},
		"after named ones":      {catalog.Options{First: below(base, "first"), Beside: base + "/bin"}, catalog.Plugin{Path: base + "/first/" + sysctl}},
		"named as well":         {catalog.Options{First: below(base, "bin"), Beside: base + "/bin", Fixed: below(base, "fixed")}, catalog.Plugin{Path: base + "/bin/" + sysctl}},
	} {
		c := newCatalog(t, test.options)
		test.want.Binary = sysctl
		got, err := c.Find(sysctl)
		assert.NoError(t, err, name)
		assert.Equal(t, test.want, got, name)
		all, err := c.ByType("Sysctl")
		assert.NoError(t, err, name)
		assert.Equal(t, []catalog.Plugin{test.want}, all, name)
	}
	c := newCatalog(t, catalog.Options{First: below(base, "plain"), Beside: base + "/bin", Fixed: below(base, "fixed")})
	assert.Equal(t, below(base, "plain", "bin", "fixed"), c.Directories())
	_, err := c.ByType("Timesync")
	assert.EqualError(t, err, "no plugin for Timesync is installed: there is no file machineadm-timesync-plugin-PROVIDER in any of "+
		strings.Join(below(base, "plain", "bin", "fixed"), ", "))
}
