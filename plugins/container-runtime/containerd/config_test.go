package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// golden compares with a file of testdata, or writes it with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got:\n%s", name, got)
	}
}

// core are the settings of a small document, in the format of the release.
func core(r release) []setting {
	cri := func(keys ...string) []string { return append([]string{"plugins", criPlugin}, keys...) }
	if r.Major == 1 {
		return []setting{
			{path: cri("containerd", "runtimes", "runc", "options", "SystemdCgroup"), value: true, field: "spec.cgroupDriver"},
			{path: cri("sandbox_image"), value: "registry.example.com/pause:3.10", field: "spec.sandboxImage"},
			{path: cri("containerd", "snapshotter"), value: "native", field: "spec.snapshotter"},
			{path: cri("registry", "config_path"), value: "/etc/containerd/certs.d", field: "spec.registries"},
			{path: []string{"oom_score"}, value: int64(0), field: "spec.oomScore"},
		}
	}
	images := func(keys ...string) []string { return append([]string{"plugins", imagesPlugin}, keys...) }
	runtime := func(keys ...string) []string { return append([]string{"plugins", runtimePlugin}, keys...) }
	return []setting{
		{path: runtime("containerd", "runtimes", "runc", "options", "SystemdCgroup"), value: true, field: "spec.cgroupDriver"},
		{path: images("pinned_images", "sandbox"), value: "registry.example.com/pause:3.10", field: "spec.sandboxImage"},
		{path: images("snapshotter"), value: "native", field: "spec.snapshotter"},
		{path: images("registry", "config_path"), value: "/etc/containerd/certs.d", field: "spec.registries"},
		{path: []string{"oom_score"}, value: int64(0), field: "spec.oomScore"},
	}
}

func installed(r release) installation {
	return installation{release: r, binary: "/usr/bin/containerd", config: "/etc/containerd/config.toml", state: machine.ServiceState{Exists: true}, source: "a test"}
}

func showConfiguration(c configuration, err error) string {
	if err != nil {
		known := pluginv1.AsError(err)
		return fmt.Sprintf("error: %s\nhint: %s\n", known.Error(), known.Hint)
	}
	var b strings.Builder
	for _, w := range c.warnings {
		fmt.Fprintf(&b, "warning: %s\n", w.Message)
	}
	specs := []sdk.FileSpec{c.main}
	if c.dropIn != nil {
		specs = append(specs, *c.dropIn)
	}
	for _, spec := range specs {
		fmt.Fprintf(&b, "== %s %04o sensitive=%v\n%s", spec.Path, spec.Mode, spec.Sensitive, spec.Content)
	}
	return b.String()
}

// TestConfigure is every kind of present configuration under every version.
func TestConfigure(t *testing.T) {
	t.Parallel()
	for _, r := range []release{{1, 6, 20}, {1, 7, 24}, {2, 0, 5}, {2, 1, 9}, {2, 3, 7}} {
		for _, present := range []string{"absent", "empty", "debian", "docker", "by-hand", "mirrors", "default-1.7", "default-2.1", "default-2.3"} {
			name := fmt.Sprintf("%s-%d.%d", present, r.Major, r.Minor)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f := machinetest.New(t)
				if present != "absent" {
					text, err := os.ReadFile(filepath.Join("testdata/present", present+".toml"))
					if err != nil {
						t.Fatal(err)
					}
					f.WriteFiles(t, map[string]string{"/etc/containerd/config.toml": string(text)})
				}
				c, err := configured(f.Machine, r, core(r))
				golden(t, "config/"+name+".txt", showConfiguration(c, err))
				if err != nil {
					return
				}
				again := reconfigure(t, f, c, r, core(r))
				if showSpecs(c) != showSpecs(again) {
					t.Errorf("the second run differs:\n%s", showConfiguration(again, nil))
				}
			})
		}
	}
}

func showSpecs(c configuration) string {
	c.warnings = nil
	return showConfiguration(c, nil)
}

// reconfigure writes a configuration and makes it anew from what is then there.
func reconfigure(t *testing.T, f *machinetest.Fixture, c configuration, r release, settings []setting) configuration {
	t.Helper()
	specs := []sdk.FileSpec{c.main}
	if c.dropIn != nil {
		specs = append(specs, *c.dropIn)
	}
	for _, spec := range specs {
		if err := f.Machine.FS.WriteFile(spec.Path, spec.Content, spec.Mode); err != nil {
			t.Fatal(err)
		}
	}
	again, err := configured(f.Machine, r, settings)
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
				text, err := os.ReadFile(filepath.Join("testdata/present", present+".toml"))
				if err != nil {
					t.Fatal(err)
				}
				f.WriteFiles(t, map[string]string{"/etc/containerd/config.toml": string(text)})
			}
			var all strings.Builder
			v17, v21, v23 := release{1, 7, 24}, release{2, 1, 9}, release{2, 3, 7}
			c, err := configured(f.Machine, v17, core(v17))
			for _, r := range []release{v17, v21, v23, v17} {
				if err != nil {
					t.Fatal(err)
				}
				if r == v17 && present == "absent" && c.dropIn != nil {
					break
				}
				c = reconfigure(t, f, c, r, core(r))
				fmt.Fprintf(&all, "#### %s\n%s", r, showConfiguration(c, nil))
				c = reconfigure(t, f, c, r, core(r))
			}
			golden(t, "upgrade/"+present+".txt", all.String())
		})
	}
}

// TestWithdraw: what an earlier run set goes when it is no longer wanted.
func TestWithdraw(t *testing.T) {
	t.Parallel()
	for _, r := range []release{{1, 7, 24}, {2, 1, 9}} {
		f := machinetest.New(t)
		text := "# by hand\nversion = 2\n\n[debug]\n  level = \"info\"\n"
		f.WriteFiles(t, map[string]string{"/etc/containerd/config.toml": text})
		c, err := configured(f.Machine, r, core(r))
		if err != nil {
			t.Fatal(err)
		}
		c = reconfigure(t, f, c, r, nil)
		c = reconfigure(t, f, c, r, nil)
		if got := string(c.main.Content); r.Major == 1 && got != text {
			t.Errorf("containerd %s: left:\n%s", r, got)
		}
	}
}
