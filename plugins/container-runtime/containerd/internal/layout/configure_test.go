package layout

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/containerdtest"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings/settingstest"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

func showConfiguration(c Configuration, err error) string {
	if err != nil {
		known := pluginv1.AsError(err)
		return fmt.Sprintf("error: %s\nhint: %s\n", known.Error(), known.Hint)
	}
	var b strings.Builder
	for _, w := range c.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w.Message)
	}
	specs := []sdk.FileSpec{c.Main}
	if c.DropIn != nil {
		specs = append(specs, *c.DropIn)
	}
	for _, spec := range specs {
		fmt.Fprintf(&b, "== %s %04o sensitive=%v\n%s", spec.Path, spec.Mode, spec.Sensitive, spec.Content)
	}
	return b.String()
}

// TestConfigure is every kind of present configuration under every version.
func TestConfigure(t *testing.T) {
	t.Parallel()
	for _, r := range []settings.Release{{Major: 1, Minor: 6, Patch: 20}, {Major: 1, Minor: 7, Patch: 24}, {Major: 2, Minor: 0, Patch: 5}, {Major: 2, Minor: 1, Patch: 9}, {Major: 2, Minor: 3, Patch: 7}} {
		for _, present := range []string{"absent", "empty", "debian", "docker", "by-hand", "mirrors", "default-1.7", "default-2.1", "default-2.3"} {
			name := fmt.Sprintf("%s-%d.%d", present, r.Major, r.Minor)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f := machinetest.New(t)
				if present != "absent" {
					text, err := os.ReadFile(filepath.Join("../../testdata/present", present+".toml"))
					if err != nil {
						t.Fatal(err)
					}
					f.WriteFiles(t, map[string]string{"/etc/containerd/config.toml": string(text)})
				}
				c, err := configured(f.Machine, r, settingstest.Core(r))
				containerdtest.Golden(t, "config/"+name+".txt", showConfiguration(c, err))
				if err != nil {
					return
				}
				again := reconfigure(t, f, c, r, settingstest.Core(r))
				if showSpecs(c) != showSpecs(again) {
					t.Errorf("the second run differs:\n%s", showConfiguration(again, nil))
				}
			})
		}
	}
}

func showSpecs(c Configuration) string {
	c.Warnings = nil
	return showConfiguration(c, nil)
}

// reconfigure writes a configuration and makes it anew from what is then there.
func reconfigure(t *testing.T, f *machinetest.Fixture, c Configuration, r settings.Release, desired []settings.Setting) Configuration {
	t.Helper()
	specs := []sdk.FileSpec{c.Main}
	if c.DropIn != nil {
		specs = append(specs, *c.DropIn)
	}
	for _, spec := range specs {
		if err := f.Machine.FS.WriteFile(spec.Path, spec.Content, spec.Mode); err != nil {
			t.Fatal(err)
		}
	}
	again, err := configured(f.Machine, r, desired)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// TestUpgrade is one document while the daemon becomes another, and back.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	for _, present := range []string{"absent", "debian", "by-hand", "docker"} {
		t.Run(present, func(t *testing.T) {
			t.Parallel()
			f := machinetest.New(t)
			if present != "absent" {
				text, err := os.ReadFile(filepath.Join("../../testdata/present", present+".toml"))
				if err != nil {
					t.Fatal(err)
				}
				f.WriteFiles(t, map[string]string{"/etc/containerd/config.toml": string(text)})
			}
			var all strings.Builder
			v17, v21, v23 := settings.Release{Major: 1, Minor: 7, Patch: 24}, settings.Release{Major: 2, Minor: 1, Patch: 9}, settings.Release{Major: 2, Minor: 3, Patch: 7}
			c, err := configured(f.Machine, v17, settingstest.Core(v17))
			for _, r := range []settings.Release{v17, v21, v23, v17} {
				if err != nil {
					t.Fatal(err)
				}
				if r == v17 && present == "absent" && c.DropIn != nil {
					break
				}
				c = reconfigure(t, f, c, r, settingstest.Core(r))
				fmt.Fprintf(&all, "#### %s\n%s", r, showConfiguration(c, nil))
				c = reconfigure(t, f, c, r, settingstest.Core(r))
			}
			containerdtest.Golden(t, "upgrade/"+present+".txt", all.String())
		})
	}
}

// TestWithdraw: what an earlier run set goes when it is no longer wanted.
func TestWithdraw(t *testing.T) {
	t.Parallel()
	for _, r := range []settings.Release{{Major: 1, Minor: 7, Patch: 24}, {Major: 2, Minor: 1, Patch: 9}} {
		f := machinetest.New(t)
		text := "# by hand\nversion = 2\n\n[debug]\n  level = \"info\"\n"
		f.WriteFiles(t, map[string]string{"/etc/containerd/config.toml": text})
		c, err := configured(f.Machine, r, settingstest.Core(r))
		if err != nil {
			t.Fatal(err)
		}
		c = reconfigure(t, f, c, r, nil)
		c = reconfigure(t, f, c, r, nil)
		if got := string(c.Main.Content); r.Major == 1 && got != text {
			t.Errorf("containerd %s: left:\n%s", r, got)
		}
	}
}
