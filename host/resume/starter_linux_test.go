package resume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// image is a file system with some units in it.
func image(t *testing.T, files, links map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for path, text := range files {
		at := filepath.Join(root, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for path, to := range links {
		at := filepath.Join(root, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.Symlink(to, at)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// below lists the files and links of an image.
func below(t *testing.T, root string) string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		if to, linkErr := os.Readlink(path); linkErr == nil {
			name += " -> " + to
		}
		out = append(out, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, "\n")
}

const (
	adminUnit  = adminUnits + "/" + UnitName
	adminLink  = adminUnits + "/" + wants + "/" + UnitName
	vendorUnit = vendorUnits + "/" + UnitName
	vendorLink = vendorUnits + "/" + wants + "/" + UnitName
)

func TestInstallAndRemoveUnit(t *testing.T) {
	t.Parallel()
	own := unitMark + "\n[Service]\nExecStart=/old\n"
	link := "etc/systemd/system/multi-user.target.wants/machineadm-resume.service -> /etc/systemd/system/machineadm-resume.service"
	both := "etc/systemd/system/machineadm-resume.service\n" + link
	tests := map[string]struct {
		files, links map[string]string
		special      bool   // the run uses directories that a shipped unit does not know
		with         string // what is there while it is installed, after what was there before
		err          string
	}{
		"nothing there":                 {with: both},
		"one that a killed run left":    {files: map[string]string{adminUnit: own}, links: map[string]string{adminLink: adminUnit}, with: both},
		"half of one":                   {files: map[string]string{adminUnit: own}, with: both},
		"shipped and enabled":           {files: map[string]string{vendorUnit: "x"}, links: map[string]string{vendorLink: "../" + UnitName}, with: "usr/lib/systemd/system/machineadm-resume.service\nusr/lib/systemd/system/multi-user.target.wants/machineadm-resume.service -> ../machineadm-resume.service"},
		"shipped, enabled by the admin": {files: map[string]string{vendorUnit: "x"}, links: map[string]string{adminLink: vendorUnit}, with: "etc/systemd/system/multi-user.target.wants/machineadm-resume.service -> /usr/lib/systemd/system/machineadm-resume.service\nusr/lib/systemd/system/machineadm-resume.service"},
		"shipped, but not for this run": {
			files: map[string]string{vendorUnit: "x"}, links: map[string]string{vendorLink: "../" + UnitName}, special: true,
			with: both + "\nusr/lib/systemd/system/machineadm-resume.service\nusr/lib/systemd/system/multi-user.target.wants/machineadm-resume.service -> ../machineadm-resume.service",
		},
		"shipped and not enabled":   {files: map[string]string{vendorUnit: "x"}, with: both + "\nusr/lib/systemd/system/machineadm-resume.service"},
		"the admin's own, enabled":  {files: map[string]string{adminUnit: "x"}, links: map[string]string{adminLink: adminUnit}, with: both},
		"the admin's own, disabled": {files: map[string]string{adminUnit: "x"}, with: "etc/systemd/system/machineadm-resume.service", err: "does not start at boot"},
		"masked":                    {links: map[string]string{adminUnit: os.DevNull, adminLink: adminUnit}, with: "etc/systemd/system/machineadm-resume.service -> /dev/null\n" + link, err: "enable it, or remove it"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := image(t, tt.files, tt.links)
			before := below(t, root)
			u := &unit{root: root, name: UnitName, wants: wants, text: unitMark + "\nnew\n", vendor: !tt.special}
			for range 2 {
				err := u.Install(t.Context())
				if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("%v, want %q", err, tt.err)
				}
				if got := below(t, root); got != tt.with {
					t.Errorf("installed:\n%s\nwant\n%s", got, tt.with)
				}
			}
			for range 2 {
				if err := u.Remove(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			want := before
			for _, ours := range []string{both + "\n", both, "etc/systemd/system/machineadm-resume.service"} {
				if tt.files[adminUnit] == own {
					want = strings.Replace(want, ours, "", 1)
				}
			}
			if got := below(t, root); got != want {
				t.Errorf("removed:\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestUnitCannotBeWritten(t *testing.T) {
	t.Parallel()
	root := image(t, map[string]string{"/etc/systemd": "a file where a directory should be"}, nil)
	if err := (&unit{root: root, name: UnitName, wants: wants, text: "x"}).Install(t.Context()); err == nil {
		t.Error("installed below a file")
	}
}

// TestReportUnits: the timer is enabled, the service is not, and a unit of the administrator stays.
func TestReportUnits(t *testing.T) {
	t.Parallel()
	const all = "etc/systemd/system/machineadm-report.service\netc/systemd/system/machineadm-report.timer\n" +
		"etc/systemd/system/timers.target.wants/machineadm-report.timer -> /etc/systemd/system/machineadm-report.timer"
	timedIn := func(root string) *timed {
		starter, ok := NewReportStarter([]string{"/usr/bin/machineadm", "report", "send"}, "/var/lib/machineadm").(*timed)
		if !ok {
			t.Fatal("not a timer")
		}
		starter.service.root, starter.timer.root = root, root
		return starter
	}
	root := image(t, nil, nil)
	starter := timedIn(root)
	for range 2 {
		if err := starter.write(t.Context()); err != nil || below(t, root) != all {
			t.Errorf("%v, installed:\n%s", err, below(t, root))
		}
	}
	for range 2 {
		if err := starter.Remove(t.Context()); err != nil || below(t, root) != "" {
			t.Errorf("%v, removed:\n%s", err, below(t, root))
		}
	}
	masked := image(t, nil, map[string]string{adminUnits + "/" + reportTimer: os.DevNull})
	before := below(t, masked)
	starter = timedIn(masked)
	if err := starter.write(t.Context()); err == nil || !strings.Contains(err.Error(), "was not written by machineadm") {
		t.Errorf("a masked timer: %v", err)
	}
	if err := starter.Remove(t.Context()); err != nil || below(t, masked) != before {
		t.Errorf("%v, removed:\n%s", err, below(t, masked))
	}
}
