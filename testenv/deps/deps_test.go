package deps

import (
	"errors"
	"strings"
	"testing"
)

func TestTheListIsValid(t *testing.T) {
	t.Parallel()
	list, err := Packages()
	if err != nil {
		t.Fatal(err)
	}
	short, err := Packages("test")
	if err != nil {
		t.Fatal(err)
	}
	if len(short) == 0 || len(short) >= len(list) {
		t.Errorf("%d packages, %d of them of the first tier", len(list), len(short))
	}
	if _, err := Packages("tset"); err == nil {
		t.Error("a tier that no package has is accepted")
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ list, want, fails string }{
		"names and reasons":  {list: "# head\n[test]\nzstd # small\n\n[vm]\n  g++   # C++\n", want: "zstd=small/test g++=C++/vm"},
		"no reason":          {list: "[test]\nok # fine\nzstd\n", fails: "line 3: say after #"},
		"no heading":         {list: "zstd # small\n", fails: "line 1: no heading"},
		"an option":          {list: "--force-yes # no\n", fails: "line 1: not the name"},
		"two names":          {list: "zstd xz # no\n", fails: "line 1: not the name"},
		"a version is extra": {list: "zstd=1.5 # no\n", fails: "line 1: not the name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list, err := Parse(c.list)
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Fatalf("error %v, want one with %q", err, c.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range list {
				got = append(got, p.Name+"="+p.Why+"/"+p.Tier)
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestMissing(t *testing.T) {
	t.Parallel()
	wanted := []Package{{Name: "installed"}, {Name: "removed"}, {Name: "absent"}, {Name: "half"}, {Name: "provided"}, {Name: "versioned"}}
	got := Missing(wanted, "installed ii  \nremoved rc  \nhalf iU  absent\nother ii  provided, versioned (= 1)\n")
	var names []string
	for _, p := range got {
		names = append(names, p.Name)
	}
	if want := "removed absent half"; strings.Join(names, " ") != want {
		t.Errorf("missing %q, want %q", names, want)
	}
}

func TestWhereNothingCanBeInstalledOnlyCIFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		machine Machine
		says    string
		fails   bool
	}{
		"not Debian":           {Machine{Root: true}, "this machine is not Debian", false},
		"not Debian, under CI": {Machine{Root: true, CI: true}, "this machine is not Debian", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log strings.Builder
			err := Install(t.Context(), &log, c.machine)
			if errors.Is(err, ErrMissing) != c.fails || (err != nil) != c.fails {
				t.Errorf("error %v, want a failure: %v", err, c.fails)
			}
			for _, want := range []string{c.says, "systemd-container", "testenv/nodes"} {
				if !strings.Contains(log.String(), want) {
					t.Errorf("the log does not say %q:\n%s", want, &log)
				}
			}
		})
	}
}

func TestIsDebian(t *testing.T) {
	t.Parallel()
	for release, want := range map[string]bool{
		"NAME=\"Debian GNU/Linux\"\nID=debian\n":   true,
		"ID=\"debian\"\n":                          true,
		"ID=ubuntu\nID_LIKE=debian\n":              false,
		"VERSION_ID=12\nPRETTY_NAME=debian\n":      false,
		"ID_LIKE=debian\nID=raspbian\nNAME=debian": false,
	} {
		if got := isDebian(release); got != want {
			t.Errorf("isDebian(%q) = %v", release, got)
		}
	}
}
