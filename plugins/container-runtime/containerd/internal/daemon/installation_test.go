package daemon

import (
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/containerdtest"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

func TestFindLive(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, argv, version string
		want                Installation
		fails               string
	}{
		{
			name: "Debian", argv: "/usr/bin/containerd", version: "1.6.20~ds1 1.6.20~ds1-1+deb12u3",
			want: Installation{Release: settings.Release{Major: 1, Minor: 6, Patch: 20}, binary: "/usr/bin/containerd", Config: "/etc/containerd/config.toml"},
		},
		{
			name: "another configuration", argv: "/usr/bin/containerd --config /etc/other.toml --log-level debug", version: "v2.1.9",
			want: Installation{Release: settings.Release{Major: 2, Minor: 1, Patch: 9}, binary: "/usr/bin/containerd", Config: "/etc/other.toml"},
		},
		{
			name: "joined", argv: "/usr/bin/containerd --config=/etc/other.toml", version: "v2.1.9",
			want: Installation{Release: settings.Release{Major: 2, Minor: 1, Patch: 9}, binary: "/usr/bin/containerd", Config: "/etc/other.toml"},
		},
		{
			name: "by a variable", argv: "/usr/bin/env PATH=/x containerd --config ${CONTAINERD_CONFIG}", version: "v2.1.9",
			want: Installation{Release: settings.Release{Major: 2, Minor: 1, Patch: 9}, binary: "/usr/bin/containerd", Config: "/etc/c.toml"},
		},
		{name: "a variable of elsewhere", argv: "/usr/bin/containerd --config ${OTHER}", version: "v2.1.9", fails: "by a variable"},
		{name: "of the system image", argv: "/usr/bin/containerd --config /usr/share/c.toml", version: "v2.1.9", fails: "belongs to the system image"},
		{name: "something else", argv: "/usr/bin/dockerd", version: "v2.1.9", fails: "does not start containerd"},
		{name: "too old", argv: "/usr/bin/containerd", version: "1.5.9", fails: "older than 1.6"},
		{name: "not a version", argv: "/usr/bin/containerd", version: "main", fails: "is not understood"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := containerdtest.Live(t, c.argv, c.version)
			got, err := Find(t.Context(), f.Machine, "9.9")
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("got %v, want %q", err, c.fails)
				}
				return
			}
			c.want.source, c.want.State = got.source, got.State
			if err != nil || !reflect.DeepEqual(got, c.want) || got.State.InvocationID != "1" {
				t.Errorf("got %+v, %v, want %+v", got, err, c.want)
			}
		})
	}
}

// TestLaunchOnWindows reads the program of a service of Windows, as its manager reports it.
func TestLaunchOnWindows(t *testing.T) {
	t.Parallel()
	got := launchOf(words(`"C:\Program Files\containerd\containerd.exe" --config "C:\x y\c.toml" --run-service`), nil)
	if want := (launch{binary: `C:\Program Files\containerd\containerd.exe`, config: `C:\x y\c.toml`}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestNotInstalled(t *testing.T) {
	t.Parallel()
	for distribution, want := range map[string]string{
		"debian": "the package containerd of", "rocky": "containerd.io", "opensuse-leap": "the package containerd", "flatcar": "system image", "x": "upstream",
	} {
		f := machinetest.New(t)
		m := f.Machine
		m.Target.Distribution = distribution
		m.Target.Like = map[string][]string{"rocky": {"rhel"}, "opensuse-leap": {"suse"}}[distribution]
		_, err := Find(t.Context(), m, "2.1")
		if known := pluginv1.AsError(err); known.Code != pluginv1.CodePrecondition || !strings.Contains(known.Hint, want) {
			t.Errorf("%s: %v (%s)", distribution, err, known.Hint)
		}
	}
}

func TestMasked(t *testing.T) {
	t.Parallel()
	f := machinetest.New(t)
	f.Services.Put("containerd", machine.ServiceState{Masked: true})
	_, err := Find(t.Context(), f.Machine, "2.1")
	if known := pluginv1.AsError(err); known.Code != pluginv1.CodePrecondition || !strings.Contains(known.Hint, "systemctl unmask") {
		t.Errorf("got %v (%s)", err, known.Hint)
	}
}

func TestFit(t *testing.T) {
	t.Parallel()
	f := machinetest.New(t)
	expect := func(want sdk.Fitness) {
		t.Helper()
		if got, why, err := Fit(t.Context(), f.Machine); err != nil || got != want || why == "" {
			t.Errorf("got %v, %q, %v, want %v", got, why, err, want)
		}
	}
	expect(sdk.FitnessAbsent)
	f.Services.Put("containerd", machine.ServiceState{Active: "inactive"})
	expect(sdk.FitnessInstalled)
	f.Services.Put("containerd", machine.ServiceState{Active: "active"})
	expect(sdk.FitnessActive)
}

const dpkgOf16 = "Package: other\nStatus: install ok installed\nVersion: 9\n\nPackage: containerd\nStatus: install ok installed\n" +
	"Architecture: amd64\nVersion: 1:1.6.20~ds1-1+deb12u3\nDescription: x\n Version: 8\n\nPackage: containerd.io\nStatus: deinstall ok config-files\nVersion: 2.2\n"

func TestFindInImage(t *testing.T) {
	t.Parallel()
	built := filepath.Join(t.TempDir(), "containerd")
	// With -trimpath a program does not record the flags of the linker.
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath=false",
		"-ldflags", "-s -w -X github.com/containerd/containerd/v2/version.Version=v2.1.4", "-o", built, ".")
	build.Dir = "../../testdata/program"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const unitFile = "/usr/lib/systemd/system/containerd.service"
	unitOf := func(binary string) string { return "[Unit]\n[Service]\nExecStart=" + binary + "\n" }
	for _, c := range []struct {
		name, assumed string
		files         map[string]string
		program       string // where it is put
		want          string
		binary        string
		fails         string
	}{
		{name: "Debian", files: map[string]string{unitFile: unitOf("/usr/bin/containerd"), dpkgStatus: dpkgOf16}, want: "1.6.20", binary: "/usr/bin/containerd"},
		{name: "no unit", files: map[string]string{dpkgStatus: dpkgOf16}, want: "1.6.20"},
		{
			name: "upstream beside Debian's", files: map[string]string{
				unitFile: unitOf("/usr/bin/containerd"), dpkgStatus: dpkgOf16,
				"/etc/systemd/system/containerd.service.d/x.conf": "[Service]\nExecStart=\nExecStart=/usr/local/bin/containerd\n",
			},
			program: "/usr/local/bin/containerd", want: "2.1.4", binary: "/usr/local/bin/containerd",
		},
		{name: "nothing, and assumed", assumed: "2.3", want: "2.3.0"},
		{name: "installed overrides assumed", assumed: "2.3", files: map[string]string{dpkgStatus: dpkgOf16}, want: "1.6.20"},
		{name: "nothing", fails: "not installed in the image"},
		{name: "unknown", files: map[string]string{unitFile: unitOf("/usr/bin/containerd")}, fails: "nothing in the image has the version of /usr/bin/containerd"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m, root := machinetest.NewImage(t)
			for path, text := range c.files {
				if err := m.FS.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if c.program != "" {
				if err := m.FS.MkdirAll(filepath.Dir(c.program), 0o755); err != nil {
					t.Fatal(err)
				}
				if out, err := exec.CommandContext(t.Context(), "cp", built, root+c.program).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			got, err := Find(t.Context(), m, c.assumed)
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("got %v, want %q", err, c.fails)
				}
				return
			}
			if err != nil || got.Release.String() != c.want || got.binary != c.binary {
				t.Errorf("got %+v, %v, want %s", got, err, c.want)
			}
		})
	}
}
