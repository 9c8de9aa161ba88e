package sysctld

import (
	"errors"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"testing"
)

// tree is a Source in memory: a path and its content; nil content is a link to /dev/null.
type tree map[string][]byte

func (t tree) ReadDir(name string) ([]string, error) {
	var names []string
	for file := range t {
		if path.Dir(file) == name {
			names = append(names, path.Base(file))
		}
	}
	if names == nil {
		return nil, fs.ErrNotExist
	}
	return names, nil
}

func (t tree) ReadFile(name string) ([]byte, error) { return t[name], nil }

func text(s string) []byte { return []byte(s) }

func TestEffective(t *testing.T) {
	t.Parallel()
	both := []Rules{Systemd, Procps}
	onlySystemd, onlyProcps := both[:1], both[1:]
	const none = "none"
	for _, c := range []struct {
		name  string
		rules []Rules
		tree  tree
		want  string // "FILE:LINE value", "FILE:LINE excluded" or none
	}{
		{"no files", both, tree{}, none},
		{"the later name wins, whatever the directory", both, tree{
			"/etc/sysctl.d/10-a.conf":     text("k.k=1"),
			"/usr/lib/sysctl.d/20-b.conf": text("\nk.k=2"),
		}, "/usr/lib/sysctl.d/20-b.conf:2 2"},
		{"the later name wins when its directory comes first", both, tree{
			"/usr/lib/sysctl.d/10-a.conf": text("k.k=1"),
			"/etc/sysctl.d/20-b.conf":     text("k.k=2"),
		}, "/etc/sysctl.d/20-b.conf:1 2"},
		{"names compare byte by byte", both, tree{
			"/etc/sysctl.d/9-a.conf":  text("k.k=1"),
			"/etc/sysctl.d/10-b.conf": text("k.k=2"),
		}, "/etc/sysctl.d/9-a.conf:1 1"},
		{"/etc hides /run", both, tree{
			"/etc/sysctl.d/a.conf": text("k.k=1"),
			"/run/sysctl.d/a.conf": text("k.k=2"),
		}, "/etc/sysctl.d/a.conf:1 1"},
		{"/run hides /usr/local/lib", both, tree{
			"/run/sysctl.d/a.conf":           text("k.k=1"),
			"/usr/local/lib/sysctl.d/a.conf": text("k.k=2"),
		}, "/run/sysctl.d/a.conf:1 1"},
		{"/usr/local/lib hides /usr/lib", both, tree{
			"/usr/local/lib/sysctl.d/a.conf": text("k.k=1"),
			"/usr/lib/sysctl.d/a.conf":       text("k.k=2"),
		}, "/usr/local/lib/sysctl.d/a.conf:1 1"},
		{"/usr/lib hides /lib", both, tree{
			"/usr/lib/sysctl.d/a.conf": text("k.k=1"),
			"/lib/sysctl.d/a.conf":     text("k.k=2"),
		}, "/usr/lib/sysctl.d/a.conf:1 1"},
		{"/lib is read where /usr is not merged", both, tree{"/lib/sysctl.d/a.conf": text("k.k=2")}, "/lib/sysctl.d/a.conf:1 2"},
		{"a link to /dev/null masks", both, tree{
			"/etc/sysctl.d/a.conf":     nil,
			"/usr/lib/sysctl.d/a.conf": text("k.k=2"),
		}, none},
		{"an empty file masks", both, tree{
			"/etc/sysctl.d/a.conf":     text(""),
			"/usr/lib/sysctl.d/a.conf": text("k.k=2"),
		}, none},
		{"only .conf counts", both, tree{"/etc/sysctl.d/a.conf.bak": text("k.k=1"), "/etc/sysctl.d/README": text("k.k=1")}, none},
		{"systemd skips hidden files", onlySystemd, tree{"/etc/sysctl.d/.a.conf": text("k.k=1")}, none},
		{"procps reads hidden files", onlyProcps, tree{"/etc/sysctl.d/.a.conf": text("k.k=1")}, "/etc/sysctl.d/.a.conf:1 1"},
		{"systemd does not read sysctl.conf", onlySystemd, tree{
			"/etc/sysctl.d/a.conf": text("k.k=1"), "/etc/sysctl.conf": text("k.k=2"),
		}, "/etc/sysctl.d/a.conf:1 1"},
		{"procps reads sysctl.conf last", onlyProcps, tree{
			"/etc/sysctl.d/a.conf": text("k.k=1"), "/etc/sysctl.conf": text("k.k=2"),
		}, "/etc/sysctl.conf:1 2"},
		{"a pattern applies to a key that no line names", both, tree{"/etc/sysctl.d/a.conf": text("k.*=1")}, "/etc/sysctl.d/a.conf:1 1"},
		{"the last pattern wins", both, tree{"/etc/sysctl.d/a.conf": text("k.*=1\nk.?=2")}, "/etc/sysctl.d/a.conf:2 2"},
		{"a later pattern does not override a set key", both, tree{
			"/etc/sysctl.d/a.conf": text("k.k=1"), "/etc/sysctl.d/b.conf": text("k.*=2"),
		}, "/etc/sysctl.d/a.conf:1 1"},
		{"an exclusion stops patterns", both, tree{"/etc/sysctl.d/a.conf": text("k.*=1\n-k.k")}, "/etc/sysctl.d/a.conf:2 excluded"},
		{"for systemd a later exclusion drops a set key", onlySystemd, tree{
			"/etc/sysctl.d/a.conf": text("k.k=1"), "/etc/sysctl.d/b.conf": text("-k.k"),
		}, "/etc/sysctl.d/b.conf:1 excluded"},
		{"for procps a later exclusion does not", onlyProcps, tree{
			"/etc/sysctl.d/a.conf": text("k.k=1"), "/etc/sysctl.d/b.conf": text("-k.k"),
		}, "/etc/sysctl.d/a.conf:1 1"},
		{"for systemd a value given again after an exclusion counts", onlySystemd, tree{
			"/etc/sysctl.d/a.conf": text("k.k=1\n-k.k\nk.k=1"),
		}, "/etc/sysctl.d/a.conf:3 1"},
		{"for systemd an excluded pattern drops the same pattern", onlySystemd, tree{
			"/etc/sysctl.d/a.conf": text("k.*=1\n-k.*"),
		}, none},
		{"for systemd an excluded pattern leaves other patterns", onlySystemd, tree{
			"/etc/sysctl.d/a.conf": text("k.?=1\n-k.*"),
		}, "/etc/sysctl.d/a.conf:1 1"},
		{"for procps an excluded pattern stops all patterns", onlyProcps, tree{
			"/etc/sysctl.d/a.conf": text("k.?=1\n-k.*"),
		}, "/etc/sysctl.d/a.conf:2 excluded"},
		{"a repeated pattern keeps its place for systemd", onlySystemd, tree{
			"/etc/sysctl.d/a.conf": text("k.*=1\nk.?=2\nk.*=1"),
		}, "/etc/sysctl.d/a.conf:2 2"},
		{"a changed pattern moves to the end for systemd", onlySystemd, tree{
			"/etc/sysctl.d/a.conf": text("k.*=1\nk.?=2\nk.*=3"),
		}, "/etc/sysctl.d/a.conf:3 3"},
		{"for procps a pattern applies to a key that is named in another spelling", onlyProcps, tree{
			"/etc/sysctl.d/a.conf": text("/k/k=1\nk.*=2"),
		}, "/etc/sysctl.d/a.conf:2 2"},
		{"for systemd all spellings are one key", onlySystemd, tree{
			"/etc/sysctl.d/a.conf": text("/k/k=1\nk.*=2"),
		}, "/etc/sysctl.d/a.conf:1 1"},
		{"slashes and dots are one key", both, tree{"/etc/sysctl.d/a.conf": text("k.k=1\nk/k=2")}, "/etc/sysctl.d/a.conf:2 2"},
	} {
		for _, rules := range c.rules {
			configuration, err := Load(c.tree, rules, nil)
			if err != nil {
				t.Errorf("%s (rules %d): %v", c.name, rules, err)
				continue
			}
			if got := show(configuration.Effective("k/k")); got != c.want {
				t.Errorf("%s (rules %d): got %s, want %s", c.name, rules, got, c.want)
			}
		}
	}
}

func show(s Setting, found bool) string {
	switch {
	case !found:
		return "none"
	case s.Exclude:
		return s.File + ":" + strconv.Itoa(s.Number) + " excluded"
	}
	return s.File + ":" + strconv.Itoa(s.Number) + " " + s.Value
}

func TestLoadReplaces(t *testing.T) {
	t.Parallel()
	files := tree{
		"/etc/sysctl.d/m.conf":     text("k.k=old"),
		"/usr/lib/sysctl.d/m.conf": text("k.k=vendor"),
		"/etc/sysctl.d/a.conf":     text("k.k=a"),
	}
	for data, want := range map[string]string{
		"k.k=new": "/etc/sysctl.d/m.conf:1 new",
		"":        "/usr/lib/sysctl.d/m.conf:1 vendor",
	} {
		configuration, err := Load(files, Systemd, map[string][]byte{"/etc/sysctl.d/m.conf": text(data)})
		if err != nil {
			t.Fatal(err)
		}
		if got := show(configuration.Effective("k/k")); got != want {
			t.Errorf("replaced by %q: got %s, want %s", data, got, want)
		}
	}
}

type broken struct{ tree }

func (broken) ReadFile(string) ([]byte, error) { return nil, errors.New("input/output error") }

func TestLoadReportsWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	_, err := Load(broken{tree{"/etc/sysctl.d/a.conf": text("k.k=1")}}, Procps, nil)
	if err == nil || !strings.Contains(err.Error(), "/etc/sysctl.d/a.conf") {
		t.Errorf("got %v, want an error that names the file", err)
	}
}
