package containerd_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/containerd"
)

// TestContainerd checks the facts of FACTS.md with the oldest version and the newest, and in make campaign with every version. The
// tests of one version share its node and run one after the other; each sets its configuration.
func TestContainerd(t *testing.T) {
	t.Parallel()
	for _, v := range containerd.Versions() {
		if v == containerd.V17 && !needs.Everything() {
			continue
		}
		t.Run(string(v), func(t *testing.T) {
			t.Parallel()
			d := containerd.Start(t, v)
			for _, fact := range []struct {
				name string
				test func(*testing.T, *containerd.Daemon)
			}{
				{"shipped", shipped},
				{"dump", dumps},
				{"start", starts},
				{"restart", restarts},
				{"pull", pulls},
			} {
				t.Run(fact.name, func(t *testing.T) { fact.test(t, d) })
			}
		})
	}
}

// TestKeys records the path and the default of each setting, from the stored output of `config default`.
func TestKeys(t *testing.T) {
	t.Parallel()
	for _, v := range containerd.Versions() {
		tree := read(t, defaults(t, v))
		list := ""
		for _, s := range settings() {
			at, ok := s.at[fileVersion[v]]
			if !ok {
				continue
			}
			list += s.name + ": " + at.String() + " = " + value(t, tree, at) + "\n"
		}
		golden(t, "keys-"+string(v)+".txt", list)
	}
}

// TestFactsNameTheirTests: a test that is named in FACTS.md is one of this package.
func TestFactsNameTheirTests(t *testing.T) {
	t.Parallel()
	facts, err := os.ReadFile("FACTS.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	source := ""
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source += string(text)
	}
	named := regexp.MustCompile("`((?:shipped|dump|start|restart|pull)/[a-z0-9.-]+)`").FindAllStringSubmatch(string(facts), -1)
	if len(named) < 50 {
		t.Errorf("%d tests are named", len(named))
	}
	for _, name := range named {
		group, test, _ := strings.Cut(name[1], "/")
		if !strings.Contains(source, `"`+group+`"`) || !strings.Contains(source, `"`+test+`"`) {
			t.Errorf("there is no test %s", name[1])
		}
	}
	for line := range strings.Lines(string(facts)) {
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| fact") && !strings.Contains(line, "` |\n") {
			t.Errorf("a fact without a test: %s", line)
		}
	}
}
