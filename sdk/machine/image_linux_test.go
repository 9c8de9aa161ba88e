package machine_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// units are the unit files of the images in these tests.
func units() map[string]string {
	return map[string]string{
		"/usr/lib/systemd/system/plain.service":     "[Unit]\nDescription=x\n[Install]\nWantedBy=multi-user.target\n",
		"/usr/lib/systemd/system/full.service":      "[Install]\nWantedBy=multi-user.target graphical.target\nRequiredBy=network.target\nAlias=other.service another.service\n",
		"/usr/lib/systemd/system/cleared.service":   "[Install]\nWantedBy=sysinit.target\nWantedBy=\nWantedBy=basic.target\n",
		"/usr/lib/systemd/system/continued.service": "[Install]\nWantedBy=a.target \\\n# comment\n  b.target\n; WantedBy=c.target\n",
		"/usr/lib/systemd/system/windows.service":   "\ufeff[Install]\r\nWantedBy=a.target \\\r\n  b.target\r\n",
		"/usr/lib/systemd/system/also.service":      "[Install]\nWantedBy=multi-user.target\nAlso=also.socket static.service\n",
		"/usr/lib/systemd/system/also.socket":       "[Install]\nWantedBy=sockets.target\n",
		"/usr/lib/systemd/system/static.service":    "[Service]\nExecStart=/bin/true\n",
		"/usr/lib/systemd/system/only.service":      "[Install]\nAlso=also.socket\n",
		"/usr/lib/systemd/system/specifier.service": "[Install]\nWantedBy=%i.target\n",
		"/usr/lib/systemd/system/empty.service":     "",
		"/usr/lib/systemd/system/template@.service": "[Install]\nWantedBy=multi-user.target\n",
		"/usr/lib/systemd/system/vendor.service":    "[Install]\nWantedBy=multi-user.target\n",
		"/etc/systemd/system/admin.service":         "[Install]\nWantedBy=multi-user.target\n",
		"/usr/lib/systemd/system/admin.service":     "[Install]\nWantedBy=wrong.target\n",
	}
}

func imageWithUnits(t *testing.T) (machine.Machine, string) {
	t.Helper()
	m, root := machinetest.NewImage(t)
	for name, contents := range units() {
		must(t, m.FS.WriteFile(name, []byte(contents), 0o644))
	}
	must(t, m.FS.Symlink("/dev/null", "/etc/systemd/system/masked.service"),
		m.FS.Symlink("/usr/lib/systemd/system/plain.service", "/usr/lib/systemd/system/alias.service"),
		m.FS.Symlink("../vendor.service", "/usr/lib/systemd/system/multi-user.target.wants/vendor.service"))
	return m, root
}

// TestImageAgreesWithSystemctl compares the links with those that systemctl creates in a second image.
func TestImageAgreesWithSystemctl(t *testing.T) {
	t.Parallel()
	systemctl := require.Tool(t, "systemctl")
	for _, unit := range []string{"plain", "full", "cleared", "continued", "windows", "also", "admin"} {
		t.Run(unit, func(t *testing.T) {
			t.Parallel()
			ours, root := imageWithUnits(t)
			_, oracle := imageWithUnits(t)
			unit := unit + ".service"
			for _, enable := range []bool{true, true, false, false, true} {
				action := map[bool]string{true: "enable", false: "disable"}[enable]
				must(t, ours.Services.SetEnabled(context.Background(), unit, enable))
				if output, err := exec.Command(systemctl, "--root="+oracle, action, unit).CombinedOutput(); err != nil {
					t.Fatalf("systemctl %s: %v: %s", action, err, output)
				}
				if diff := machinetest.Diff(linkTree(t, oracle), linkTree(t, root)); diff != "" {
					t.Errorf("%s: systemctl (-) and image (+) differ:\n%s", action, diff)
				}
				state, err := ours.Services.State(context.Background(), unit)
				if err != nil || state.Enabled != enable || !state.Exists || state.Masked {
					t.Errorf("after %s the state is %+v, %v", action, state, err)
				}
				output, _ := exec.Command(systemctl, "--root="+oracle, "is-enabled", unit).Output() // its exit code is 1 for a disabled one
				if want := strings.TrimSpace(string(output)); state.FileState != want {
					t.Errorf("after %s systemctl reports %q, the image %q", action, want, state.FileState)
				}
			}
		})
	}
}

// linkTree omits the modes of directories: systemctl uses the umask.
func linkTree(t *testing.T, root string) string {
	var b strings.Builder
	for line := range strings.Lines(machinetest.Tree(t, root)) {
		if !strings.HasPrefix(line, "d") || strings.Contains(line, ".wants") || strings.Contains(line, ".requires") {
			b.WriteString("-" + line[1:2] + strings.TrimPrefix(line, line[:strings.IndexByte(line, ' ')]))
		}
	}
	return b.String()
}

func TestImageState(t *testing.T) {
	t.Parallel()
	m, root := imageWithUnits(t)
	must(t, m.FS.Symlink("circle2.service", "/etc/systemd/system/circle1.service"),
		m.FS.Symlink("circle1.service", "/etc/systemd/system/circle2.service"))
	before := machinetest.Tree(t, root)
	for unit, want := range map[string]machine.ServiceState{
		"plain":        {ID: "plain.service", FileState: "disabled", Exists: true, Fragment: "/usr/lib/systemd/system/plain.service"},
		"alias":        {ID: "plain.service", FileState: "disabled", Exists: true, Fragment: "/usr/lib/systemd/system/plain.service"},
		"admin":        {ID: "admin.service", FileState: "disabled", Exists: true, Fragment: "/etc/systemd/system/admin.service"},
		"vendor":       {ID: "vendor.service", FileState: "enabled", Exists: true, Enabled: true, Fragment: "/usr/lib/systemd/system/vendor.service"},
		"masked":       {ID: "masked.service", FileState: "masked", Exists: true, Masked: true, Fragment: "/etc/systemd/system/masked.service"},
		"empty":        {ID: "empty.service", FileState: "masked", Exists: true, Masked: true, Fragment: "/usr/lib/systemd/system/empty.service"},
		"static":       {ID: "static.service", FileState: "static", Exists: true, Fragment: "/usr/lib/systemd/system/static.service"},
		"absent":       {},
		"plain.socket": {},
	} {
		if want.Exists {
			want.Names = []string{want.ID}
		}
		if got, err := m.Services.State(context.Background(), unit); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: state %+v, %v, want %+v", unit, got, err, want)
		}
	}
	for unit, want := range map[string]string{
		"specifier": "the specifier in WantedBy=", "circle1": "circle", "template@x": "templates",
	} {
		if _, err := m.Services.State(context.Background(), unit); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one that says %q", unit, err, want)
		}
	}
	if diff := machinetest.Diff(before, machinetest.Tree(t, root)); diff != "" {
		t.Errorf("a query changed the tree:\n%s", diff)
	}
}

func TestImageEnableRefusals(t *testing.T) {
	t.Parallel()
	m, root := imageWithUnits(t)
	must(t, m.FS.Symlink("/usr/lib/systemd/system/plain.service", "/etc/systemd/system/another.service"))
	before := machinetest.Tree(t, root)
	for unit, want := range map[string]string{
		"masked": "masked.service", "empty": "masked by", "static": "nothing in [Install]", "only": "also.socket",
		"alias": "name the unit itself, plain.service", "absent": "no unit file in", "specifier": "the specifier in WantedBy=",
	} {
		err := m.Services.SetEnabled(context.Background(), unit, true)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), unit+".service") {
			t.Errorf("enable %s: error %v, want one that says %q", unit, err, want)
		}
	}
	if err := m.Services.SetEnabled(context.Background(), "vendor", false); err == nil || !strings.Contains(err.Error(), "mask it") {
		t.Errorf("disable vendor: error %v", err)
	}
	if diff := machinetest.Diff(before, machinetest.Tree(t, root)); diff != "" {
		t.Errorf("a refusal changed the tree:\n%s", diff)
	}
	if err := m.Services.SetEnabled(context.Background(), "full", true); err == nil || !strings.Contains(err.Error(), "another.service") {
		t.Errorf("enable full: error %v, want one that names the alias that is taken", err)
	}
}

func TestImageEnableAfterACrash(t *testing.T) {
	t.Parallel()
	m, root := imageWithUnits(t)
	ctx := context.Background()
	must(t, m.Services.SetEnabled(ctx, "full", true))
	for _, link := range []string{"other.service", "another.service", "multi-user.target.wants/full.service", "network.target.requires/full.service"} {
		must(t, os.Remove(filepath.Join(root, "etc/systemd/system", link)))
		if state, err := m.Services.State(ctx, "full"); err != nil || state.Enabled {
			t.Errorf("enabled without %s (%v)", link, err)
		}
		must(t, m.Services.SetEnabled(ctx, "full", true))
		if state, err := m.Services.State(ctx, "full"); err != nil || !state.Enabled {
			t.Errorf("not enabled after %s was due (%v)", link, err)
		}
	}
}

func TestImageHasNothingRunning(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	m, _ := imageWithUnits(t)
	_, run := m.Commands.Run(ctx, machine.Command{Name: "true"})
	_, find := m.Commands.Find("true")
	_, parameter := m.Kernel.Parameter("vm/swappiness")
	_, module := m.Kernel.Module("overlay")
	for _, err := range []error{
		run, find, parameter, module, m.Kernel.SetParameter("vm/swappiness", "1"), m.Kernel.LoadModule(ctx, "overlay"),
		m.Services.Do(ctx, "plain", machine.Start), m.Services.DaemonReload(ctx),
	} {
		if !errors.Is(err, machine.ErrOffline) {
			t.Errorf("error %v, want ErrOffline", err)
		}
	}
}

func TestNewLive(t *testing.T) {
	t.Parallel()
	for _, root := range []string{"", "/"} {
		m, closeMachine, err := machine.New(root, "", machinetest.Target())
		must(t, err)
		if m.Offline() {
			t.Errorf("root %q counts as an image", root)
		}
		if _, err := m.FS.ReadFile("/proc/self/status"); err != nil {
			t.Error(err)
		}
		if _, err := m.Kernel.Parameter("kernel/ostype"); err != nil {
			t.Error(err)
		}
		must(t, closeMachine())
	}
	if _, _, err := machine.New(filepath.Join(t.TempDir(), "absent"), "", machinetest.Target()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v for a root that is absent, want os.ErrNotExist", err)
	}
}

func FuzzParseInstall(f *testing.F) {
	for _, contents := range units() {
		f.Add([]byte(contents))
	}
	f.Add([]byte("[Install]\r\nWantedBy = a.target\r\n[Other]\nWantedBy=b.target\n\\\n\\"))
	f.Fuzz(func(t *testing.T, data []byte) {
		links, err := machine.ParseInstall(data, "unit.service")
		if err != nil && len(links) > 0 {
			t.Error("both links and an error")
		}
		for _, link := range links {
			directory, name := filepath.Split(link)
			if strings.Count(link, "/") > 1 || strings.Contains(link, "..") && strings.HasPrefix(link, ".") || name == "" ||
				directory != "" && name != "unit.service" {
				t.Errorf("link %q leads elsewhere", link)
			}
		}
	})
}
