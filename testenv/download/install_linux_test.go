package download

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/catalog"
	"github.com/machineadm/machineadm/installer/install"
	machine "github.com/machineadm/machineadm/internal/require"
)

const (
	sysctl   = "machineadm-sysctl-plugin-procfs"
	timesync = "machineadm-timesync-plugin-chronyd"
)

func (b *bed) read(name string) string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.to, name))
	require.NoError(b.t, err)
	return string(data)
}

func with(names ...string) func(*install.Options) {
	return func(o *install.Options) { o.With = names }
}

func TestInstall(t *testing.T) {
	t.Parallel()
	b := newBed(t).write(Release{})
	result := b.installed()
	assert.Equal(t, install.Result{Version: "v1.0.0", Directory: b.to, Changed: true, Plugins: []string{sysctl, timesync}}, result)
	assert.Contains(t, b.read("bin/machineadm"), "v1.0.0")
	assert.Contains(t, b.read("plugins/"+sysctl), "v1.0.0")
	assert.Equal(t, "1 v1.0.0\n", b.read("sequence"))
	first := tree(t, b.to)
	for _, line := range []string{
		"drwxr-xr-x .\n", "Lrwxrwxrwx bin -> current/bin\n", "Lrwxrwxrwx current -> releases/v1.0.0\n",
		"Lrwxrwxrwx plugins -> current/plugins\n", "drwxr-xr-x releases\n", "drwxr-xr-x releases/v1.0.0\n", "drwxr-xr-x releases/v1.0.0/bin\n",
		"-rwxr-xr-x releases/v1.0.0/bin/machineadm", "-rw-r--r-- releases/v1.0.0/share/man/man8/machineadm.8", "-rw-r--r-- sequence",
	} {
		assert.Contains(t, first, line)
	}

	plugins, err := catalog.New(catalog.Options{Fixed: []string{b.to + "/plugins"}})
	require.NoError(t, err)
	for _, name := range result.Plugins { // the host checks every link on the way
		p, err := plugins.Find(name)
		require.NoError(t, err)
		file, err := plugins.Open(p)
		require.NoError(t, err)
		require.NoError(t, file.Close())
	}

	require.NoError(t, os.Mkdir(b.to+"/releases/20260101", 0o755)) //nolint:gosec // of another program
	first = tree(t, b.to)
	result = b.installed()
	assert.False(t, result.Changed)
	assert.Equal(t, first, tree(t, b.to))

	b.write(Release{Version: "v1.1.0", Sequence: 2})
	result = b.installed()
	assert.Equal(t, install.Result{Version: "v1.1.0", Directory: b.to, Changed: true, Previous: "v1.0.0", Plugins: []string{sysctl, timesync}}, result)
	assert.Contains(t, b.read("bin/machineadm"), "v1.1.0")

	b.write(Release{Version: "v1.2.0", Sequence: 3})
	result = b.installed()
	assert.Equal(t, "v1.1.0", result.Previous)
	assert.NotContains(t, tree(t, b.to), "v1.0.0", "only the release before is kept")
	assert.Empty(t, b.warnings)
}

func TestRepair(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, current string){
		"changed": func(t *testing.T, current string) {
			require.NoError(t, os.WriteFile(current+"/bin/machineadm", []byte("#!/bin/sh\necho machineadm v6.6.6\n"), 0o755)) //nolint:gosec // a program
		},
		"removed": func(t *testing.T, current string) { require.NoError(t, os.Remove(current+"/plugins/"+sysctl)) },
		"added": func(t *testing.T, current string) {
			require.NoError(t, os.WriteFile(current+"/plugins/machineadm-x-plugin-y", nil, 0o755)) //nolint:gosec // a program
		},
		"directory": func(t *testing.T, current string) { require.NoError(t, os.Chmod(current+"/bin", 0o777)) },            //nolint:gosec // the fault
		"mode":      func(t *testing.T, current string) { require.NoError(t, os.Chmod(current+"/bin/machineadm", 0o777)) }, //nolint:gosec // the fault
		"a link":    func(t *testing.T, current string) { require.NoError(t, os.Symlink("machineadm", current+"/bin/other")) },
		"everything": func(t *testing.T, current string) {
			at, err := filepath.EvalSymlinks(current)
			require.NoError(t, err)
			require.NoError(t, os.RemoveAll(at))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t).write(Release{})
			b.installed()
			for range 2 { // the second repair uses the first name again
				damage(t, b.to+"/current")
				assert.True(t, b.installed().Changed)
				assert.False(t, b.installed().Changed)
				assert.Equal(t, "#!/bin/sh\necho machineadm v1.0.0\n", b.read("bin/machineadm"))
			}
			entries, err := os.ReadDir(b.to + "/releases")
			require.NoError(t, err)
			assert.Len(t, entries, 1)
		})
	}
}

func TestWith(t *testing.T) {
	t.Parallel()
	b := newBed(t).write(Release{})
	assert.Equal(t, []string{sysctl}, b.installed(with("sysctl-plugin-procfs")).Plugins)
	assert.NoFileExists(t, b.to+"/plugins/"+timesync)
	assert.FileExists(t, b.to+"/bin/machineadm")
	assert.False(t, b.installed(with(sysctl)).Changed)
	assert.Equal(t, []string{sysctl, timesync}, b.installed().Plugins)
	assert.FileExists(t, b.to+"/plugins/"+timesync)
	b.refused(report.ExitUsage, `no plugin "sysctl"; it has: `+sysctl+", "+timesync, with("sysctl"))
	b.refused(report.ExitUsage, `no plugin "../bin/machineadm"`, with("../bin/machineadm"))
}

// TestMoreArchives has a release with plugins that few machines need in an archive of their own, which is downloaded for them alone.
func TestMoreArchives(t *testing.T) {
	t.Parallel()
	const more, source = "machineadm-more-v1.0.0-linux-" + runtime.GOARCH + ".tar.zst", "machineadm-remote-configuration-provider-s3"
	b := newBed(t).write(Release{More: []Member{
		Regular("plugins/"+source, "#!/bin/sh\necho s3\n"),
		Regular("plugins/machineadm-remote-configuration-provider-ssm", "#!/bin/sh\necho ssm\n"),
	}})
	var good []byte
	b.change(more, func(data []byte) []byte { good = bytes.Clone(data); return data[:len(data)-1] })
	assert.Equal(t, []string{sysctl, timesync}, b.installed().Plugins, "without the other archive, which is damaged")
	b.refused(report.ExitUntrusted, more+": ", with("node", source))
	b.change(more, func([]byte) []byte { return good })
	assert.ElementsMatch(t, []string{sysctl, timesync, source}, b.installed(with("node", "remote-configuration-provider-s3")).Plugins)
	assert.Equal(t, "#!/bin/sh\necho s3\n", b.read("plugins/"+source))
	assert.NoFileExists(t, b.to+"/plugins/machineadm-remote-configuration-provider-ssm")
	assert.FileExists(t, b.to+"/current/share/man/man8/machineadm.8")
	assert.False(t, b.installed(with("node", source)).Changed)
	assert.Equal(t, []string{source}, b.installed(with(source)).Plugins)
	assert.FileExists(t, b.to+"/bin/machineadm")
}

func TestOldReleases(t *testing.T) {
	t.Parallel()
	b := newBed(t).write(Release{Version: "v1.1.0", Sequence: 5})
	b.installed()
	b.write(Release{Version: "v1.0.0", Sequence: 4})
	b.refused(report.ExitUntrusted, "has sequence 4, and one of sequence 5 was installed here")
	b.refused(report.ExitUntrusted, "has sequence 4", func(o *install.Options) { o.AllowDowngrade = "v0.9.0" })
	b.refused(report.ExitUntrusted, "has the release v1.0.0, and not v1.1.0", func(o *install.Options) { o.Version = "v1.1.0" })
	down := func(o *install.Options) { o.AllowDowngrade, o.Version = "v1.0.0", "v1.0.0" }
	assert.Equal(t, "v1.1.0", b.installed(down).Previous)
	assert.Equal(t, "5 v1.1.0\n", b.read("sequence"), "the highest")
	b.refused(report.ExitUntrusted, "has sequence 4")
	require.NoError(t, os.WriteFile(b.to+"/sequence", []byte("x"), 0o600))
	b.refused(report.ExitState, "sequence does not contain a number", down)
}

func TestExpired(t *testing.T) {
	t.Parallel()
	yesterday := time.Now().Add(-24 * time.Hour).Truncate(time.Second).UTC()
	b := newBed(t).write(Release{Version: "v1.0.0", Sequence: 1, Expires: &yesterday})
	_, err := b.install()
	if err == nil { // the clock of this machine is not synchronized
		assert.Contains(t, strings.Join(b.warnings, "\n"), "expired at")
		assert.Contains(t, strings.Join(b.warnings, "\n"), "not synchronized")
		return
	}
	require.ErrorContains(t, err, "expired at")
}

func TestLocked(t *testing.T) {
	t.Parallel()
	b := newBed(t).write(Release{})
	b.installed()
	b.write(Release{Version: "v1.1.0", Sequence: 2})
	flock := func(name string, flags int) *os.File {
		file, err := os.OpenFile(name, flags, 0o600)
		require.NoError(t, err)
		require.NoError(t, unix.Flock(int(file.Fd()), unix.LOCK_EX)) //nolint:gosec // a descriptor fits an int
		return file
	}
	lock := flock(b.to+"/.lock", os.O_RDWR|os.O_CREATE)
	b.refused(report.ExitLocked, "another process installs into "+b.to)
	require.NoError(t, lock.Close())
	others := flock(b.to, os.O_RDONLY) // any user can open and lock the directory
	b.installed(func(o *install.Options) {
		o.Switch = func(do func() error) error {
			assert.Contains(t, tree(t, b.to), "-rw------- .lock ")
			return do()
		}
	})
	installed := b.to
	b.to += "-copy"
	_, err := b.mirror(b.from)
	require.NoError(t, err)
	lock = flock(b.to+"/.lock", os.O_RDWR|os.O_CREATE)
	_, err = b.mirror(b.from)
	require.ErrorContains(t, err, "another process installs into "+b.to)
	require.NoError(t, errorsOf(lock.Close(), others.Close()))
	_, err = b.mirror(b.from)
	require.NoError(t, err)
	assert.NoFileExists(t, b.to+"/.lock")
	assert.NoFileExists(t, installed+"/.lock")
}

// TestFailureLeavesNothing: a first installation that fails removes the directories that it made, and no others.
func TestFailureLeavesNothing(t *testing.T) {
	t.Parallel()
	b := newBed(t).write(Release{})
	there := b.to
	require.NoError(t, os.Mkdir(there, 0o755)) //nolint:gosec // for programs
	b.to += "/a/b/c"
	b.change("machineadm-v1.0.0-linux-"+runtime.GOARCH+".tar.zst", func(d []byte) []byte { return d[1:] })
	_, err := b.install()
	require.ErrorContains(t, err, "the copy is incomplete")
	assert.Equal(t, "drwxr-xr-x .\n", tree(t, there))
	b.write(Release{})
	b.installed()
	assert.Contains(t, tree(t, there), "drwxr-xr-x a/b\n")
}

// TestSwitch: a caller can refuse the switch, which is when the release that is in use changes.
func TestSwitch(t *testing.T) {
	t.Parallel()
	b := newBed(t).write(Release{})
	b.installed()
	b.write(Release{Version: "v1.1.0", Sequence: 2})
	b.refused(report.ExitLocked, "a run is active", func(o *install.Options) {
		o.Switch = func(func() error) error {
			return &install.Error{Code: report.ExitLocked, Problem: "a run is active", Remedy: "wait"}
		}
	})
	b.installed(func(o *install.Options) {
		o.Switch = func(do func() error) error {
			assert.FileExists(t, b.to+"/releases/v1.1.0/bin/machineadm")
			assert.Contains(t, b.read("bin/machineadm"), "v1.0.0")
			defer func() { assert.Contains(t, b.read("bin/machineadm"), "v1.1.0") }()
			return do()
		}
	})
}

func TestForeignFilesStay(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(to string) error{
		"bin":     func(to string) error { return os.MkdirAll(to+"/bin", 0o755) },
		"plugins": func(to string) error { return os.Symlink("/usr/lib", to+"/plugins") },
		"current": func(to string) error { return os.Symlink("/usr", to+"/current") },
		"releases": func(to string) error {
			return errorsOf(os.MkdirAll(to+"/releases/v1.0.0", 0o755), os.Symlink("releases/v1.0.0", to+"/current"))
		},
		"dots": func(to string) error { return os.Symlink("releases/..", to+"/current") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t).write(Release{})
			require.NoError(t, os.MkdirAll(b.to, 0o755))
			require.NoError(t, prepare(b.to))
			b.refused(report.ExitPrecondition, "was not made by machineadm install")
		})
	}
}

func TestUntrustedDirectory(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(b *bed) error{
		"writable":          func(b *bed) error { return errorsOf(os.Mkdir(b.to, 0o755), os.Chmod(b.to, 0o777)) },
		"sticky":            func(b *bed) error { return errorsOf(os.Mkdir(b.to, 0o755), os.Chmod(b.to, 0o777|os.ModeSticky)) },
		"another's":         func(b *bed) error { return errorsOf(os.Mkdir(b.to, 0o755), os.Chown(b.to, 65534, 65534)) },
		"parent":            func(b *bed) error { return os.Chmod(filepath.Dir(b.to), 0o777) },                   //nolint:gosec // the fault
		"parent's parent":   func(b *bed) error { b.to += "/a/b"; return os.Chmod(filepath.Dir(b.from), 0o777) }, //nolint:gosec // the fault
		"writable by group": func(b *bed) error { return errorsOf(os.Mkdir(b.to, 0o755), os.Chmod(b.to, 0o775)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "another's" {
				machine.Root(t)
			}
			b := newBed(t).write(Release{})
			require.NoError(t, prepare(b))
			b.refused(report.ExitUntrusted, filepath.Dir(b.from))
		})
	}
}

func errorsOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
