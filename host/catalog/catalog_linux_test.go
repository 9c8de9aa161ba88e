package catalog_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
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

var update = flag.Bool("update", false, "write the golden files anew")

const sysctl = "machineadm-sysctl-plugin-procfs"

// jobVariable makes the test binary find a plugin as another user.
const jobVariable = "CATALOG_TEST_OPTIONS"

func TestMain(m *testing.M) {
	if text := os.Getenv(jobVariable); text != "" {
		var o catalog.Options
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			panic(err)
		}
		_, _ = fmt.Fprint(os.Stdout, find(o)) // the test misses it otherwise
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func find(o catalog.Options) string {
	c, err := catalog.New(o)
	if err != nil {
		return "new: " + err.Error()
	}
	p, err := c.Find(sysctl)
	if err != nil {
		return "find: " + err.Error()
	}
	file, err := c.Open(p)
	if err != nil {
		return "open: " + err.Error()
	}
	if err := file.Close(); err != nil {
		return "close: " + err.Error()
	}
	return "found: " + p.Path
}

// install puts files below a new directory; a name that ends with / is a directory.
func install(t *testing.T, paths ...string) string {
	t.Helper()
	base := t.TempDir()
	chmod(t, base, 0o700) // under any umask
	for _, p := range paths {
		path := filepath.Join(base, p)
		directory := filepath.Dir(path)
		if strings.HasSuffix(p, "/") {
			directory = path
		}
		if err := os.MkdirAll(directory, 0o755); err != nil { //nolint:gosec // as installed
			t.Fatal(err)
		}
		if directory == path {
			continue
		}
		path = filepath.Join(directory, naming.File(runtime.GOOS, filepath.Base(p)))
		if err := os.WriteFile(path, []byte(p), 0o755); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	return base
}

func below(base string, directories ...string) []string {
	var out []string
	for _, d := range directories {
		out = append(out, filepath.Join(base, d))
	}
	return out
}

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

// TestRefusals: what a person reads.
func TestRefusals(t *testing.T) {
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

func chmod(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil { //nolint:gosec // read by everyone
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got:\n%s", path, got)
	}
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

// TestFindRefusesOtherNames: no path is made of what is not a plugin's name. "" is what naming.Binary makes of an invalid kind.
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

func newCatalog(t *testing.T, o catalog.Options) *catalog.Catalog {
	t.Helper()
	c, err := catalog.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestList(t *testing.T) {
	t.Parallel()
	base := install(t,
		"a/machineadm-timesync-plugin-chronyd", "a/README", "a/machineadm", "a/machineadm-timesync-plugin-chronyd.bak",
		"b/machineadm-timesync-plugin-chronyd", "b/machineadm-timesync-plugin-ntpd", "b/"+sysctl,
		"c/"+sysctl, "c/machineadm-remote-configuration-provider-s3",
		"path/machineadm-plugin-encryption-provider-file", "path/ls", "file",
	)
	chmod(t, filepath.Join(base, "b/machineadm-timesync-plugin-ntpd"), 0o777) // listed all the same
	c := newCatalog(t, catalog.Options{
		First: below(base, "a", "file"), Fixed: below(base, "b", "c", "missing"),
		Path: filepath.Join(base, "path"), PluginsOnPath: true,
	})
	plugins, problems := c.List()
	if len(plugins) != 1 || plugins[0].Path != filepath.Join(base, "a/machineadm-timesync-plugin-chronyd") {
		t.Errorf("a directory that cannot be read hides what is behind it: %v", plugins)
	}
	if len(problems) == 0 || !errors.Is(problems[0], syscall.ENOTDIR) {
		t.Errorf("%v", problems)
	}

	c = newCatalog(t, catalog.Options{
		First: below(base, "a"), Fixed: below(base, "b", "c", "missing"),
		Path: filepath.Join(base, "path"), PluginsOnPath: true,
	})
	plugins, problems = c.List()
	want := []catalog.Plugin{
		{Binary: "machineadm-plugin-encryption-provider-file", Path: filepath.Join(base, "path/machineadm-plugin-encryption-provider-file")},
		{Binary: "machineadm-remote-configuration-provider-s3", Path: filepath.Join(base, "c/machineadm-remote-configuration-provider-s3")},
		{Binary: "machineadm-timesync-plugin-chronyd", Path: filepath.Join(base, "a/machineadm-timesync-plugin-chronyd")},
		{Binary: "machineadm-timesync-plugin-ntpd", Path: filepath.Join(base, "b/machineadm-timesync-plugin-ntpd")},
	}
	if !slices.Equal(plugins, want) {
		t.Errorf("%v", plugins)
	}
	var twice *catalog.DuplicateError
	if len(problems) != 1 || !errors.As(problems[0], &twice) || len(twice.Paths) != 2 {
		t.Errorf("%v", problems)
	}
}

func TestByType(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 60)
	base := install(t,
		"a/machineadm-timesync-plugin-systemd", "a/machineadm-timesync-plugin-chronyd", "a/machineadm-timesync-more-plugin-x",
		"a/machineadm-remote-configuration-provider-s3", "a/machineadm-plugin-encryption-provider-file",
		"a/machineadm-timesync-plugin-"+long+"-plugin-x", // of another kind: too long for a provider of this one
		"a/"+sysctl, "b/"+sysctl,
	)
	c := newCatalog(t, catalog.Options{Fixed: below(base, "a", "b")})
	for kind, want := range map[string][]string{
		"Timesync":        {"machineadm-timesync-plugin-chronyd", "machineadm-timesync-plugin-systemd"},
		"TimesyncMore":    {"machineadm-timesync-more-plugin-x"},
		"RemoteConfig":    {"machineadm-remote-configuration-provider-s3"},
		"EncryptedConfig": {"machineadm-plugin-encryption-provider-file"},
		"DomainJoin":      nil,
		"not a kind":      nil,
		"":                nil,
	} {
		plugins, err := c.ByType(kind)
		var missing *catalog.NotFoundError
		if errors.As(err, &missing) != (want == nil) {
			t.Errorf("%s: %v", kind, err)
		}
		var got []string
		for _, p := range plugins {
			got = append(got, p.Binary)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q", kind, got)
		}
	}
	var twice *catalog.DuplicateError
	if plugins, err := c.ByType("Sysctl"); !errors.As(err, &twice) {
		t.Errorf("the doubled one is chosen, or is missed: %v %v", plugins, err)
	}
}

// TestRelativeDirectories: --plugin-dir means what it meant when it was given. An empty or relative entry of PATH would
// mean whatever directory the caller happens to be in.
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

func TestDigest(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "abc")
	if err := os.WriteFile(path, []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Seek(2, 0); err != nil {
		t.Fatal(err)
	}
	for range 2 { // FIPS 180-4's own example
		got, err := catalog.Digest(file)
		if err != nil || got != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
			t.Errorf("%s %v", got, err)
		}
	}
	if at, err := file.Seek(0, 1); err != nil || at != 2 {
		t.Errorf("the offset is %d, %v", at, err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := catalog.Digest(file); err == nil {
		t.Errorf("of a closed file: %s", got)
	}
}

// TestBeside: plugins beside the program go before installed ones, after those of --plugin-dir.
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
