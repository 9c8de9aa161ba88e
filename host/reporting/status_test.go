package reporting

import (
	"errors"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/reporting/words"
)

func TestStatus(t *testing.T) {
	t.Parallel()
	for name, r := range reports() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, alive := range []bool{true, false} {
				var b strings.Builder
				if err := Status(&b, r, alive, false, 0); err != nil {
					t.Fatal(err)
				}
				file := "status/" + name + ".txt"
				if r.Outcome == report.RunRunning && !alive {
					file = "status/" + name + ", dead.txt"
				}
				golden(t, file, b.String())
				if first, _, _ := strings.Cut(b.String(), "\n"); first != words.Headline(r, alive) {
					t.Errorf("the first line is %q", first)
				}
			}
		})
	}
}

// TestHeadlineSaysEverything holds what a person at 3 a.m. looks for in the first line, apart from its wording.
func TestHeadlineSaysEverything(t *testing.T) {
	t.Parallel()
	for name, said := range map[string][]string{
		"failed":          {"Failed", "Sysctl/base", "applying", "node.yaml:7:5", "the kernel refuses", "mount /proc/sys writable", "running again is safe"},
		"crashed":         {"Failed", "Sysctl/base", "applying", "crashed", "details.json", "running again is safe"},
		"no plugin":       {"Failed", "Sysctl/base", "starting", "no plugin", "install one", "running again is safe"},
		"invalid":         {"Invalid", "Sysctl/base", "planning", "node.yaml:7:5", "empty segment", "1 more error", "nothing was changed", "running again is safe"},
		"unreadable":      {"Invalid", "reading", "others can write", "chmod go-w /tmp/node.yaml;", "nothing was changed"},
		"reboot required": {"Reboot required", "Sysctl/base", "applying", "must reboot", "reboot, then run", "safe after the reboot"},
		"interrupted":     {"Interrupted", "Sysctl/base", "applying", "run the same command again", "running again is safe"},
		"running":         {"Interrupted", "Timesync/site", "applying", "killed", "restart chrony", "run the same command again", "running again is safe"},
	} {
		r := reports()[name]
		line := words.Headline(r, false)
		for _, word := range said {
			if !strings.Contains(line, word) {
				t.Errorf("%s: %q does not say %q", name, line, word)
			}
		}
		if strings.Count(line, "running again is safe") > 1 {
			t.Errorf("%s: %q repeats itself", name, line)
		}
	}
}

// TestStatusColors: the first word of the status and of each warning is colored, and nothing else.
func TestStatusColors(t *testing.T) {
	t.Parallel()
	for name, r := range reports() {
		for _, alive := range []bool{true, false} {
			var plain, colored strings.Builder
			if err := errors.Join(Status(&plain, r, alive, false, 0), Status(&colored, r, alive, true, 0)); err != nil {
				t.Fatal(err)
			}
			got := strings.ReplaceAll(colored.String(), "\x1b[33mwarning\x1b[0m: ", "warning: ")
			word, rest, _ := strings.Cut(strings.TrimPrefix(got, "\x1b["), "\x1b[0m")
			_, word, _ = strings.Cut(word, "m")
			if word+rest != plain.String() || strings.Contains(plain.String(), "\x1b") || strings.ContainsAny(word, " :\n") || len(word) < 6 {
				t.Errorf("%s: coloured:\n%q\nplain:\n%q", name, colored.String(), plain.String())
			}
		}
	}
}

func TestStatusWriteError(t *testing.T) {
	t.Parallel()
	if err := Status(broken{}, reports()["failed"], false, false, 0); !errors.Is(err, errBroken) {
		t.Errorf("%v, want the error of the writer", err)
	}
}

var errBroken = errors.New("broken pipe")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }
