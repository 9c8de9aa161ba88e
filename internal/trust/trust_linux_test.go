package trust_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/internal/trust"
)

var update = flag.Bool("update", false, "write the golden files anew")

// jobVariable makes the test binary open files in the place of the test, as another user.
const jobVariable = "TRUST_TEST_JOB"

const (
	nobody   = 65534
	stranger = 1234
)

// cases are checked for root and for the user nobody, as a program and as a stream; the path is ~/x unless the case has another.
func cases() []struct{ name, setUp, ask string } {
	return []struct{ name, setUp, ask string }{
		{"root's own", "file ~/x 755", ""},
		{"in /tmp below a private directory", "dir ~/d 700 65534\nfile ~/d/x 700 65534", "~/d/x"},
		{"nobody's own", "dir ~/d 755 65534\nfile ~/d/x 755 65534", "~/d/x"},
		{"a stranger's", "file ~/x 755 1234", ""},
		{"written by its group", "file ~/x 775", ""},
		{"written by others", "file ~/x 757", ""},
		{"written by all", "file ~/x 777", ""},
		{"setuid, setgid and sticky say nothing", "file ~/x 7755", ""},
		{"a stranger's that all can write", "file ~/x 777 1234", ""},
		{"a hard link", "file ~/y 755\nhard ~/x ~/y", ""},
		{"a directory written by its group", "dir ~/d 775\nfile ~/d/x 755", "~/d/x"},
		{"a directory above written by others", "dir ~/d 757\ndir ~/d/e 755\nfile ~/d/e/x 755", "~/d/e/x"},
		{"a stranger's directory above", "dir ~/d 755 1234\ndir ~/d/e 755\nfile ~/d/e/x 755", "~/d/e/x"},
		{"right in a sticky directory", "dir ~/d 1777\nfile ~/d/x 755", "~/d/x"},
		{"a stranger's in a sticky directory", "dir ~/d 1777\nfile ~/d/x 755 1234", "~/d/x"},
		{"a sticky directory above", "dir ~/d 1777\ndir ~/d/e 755\nfile ~/d/e/x 755", "~/d/e/x"},
		{"a stranger's directory in a sticky one", "dir ~/d 1777\ndir ~/d/e 755 1234\nfile ~/d/e/x 755", "~/d/e/x"},
		{"a stranger's sticky directory", "dir ~/d 1777 1234\ndir ~/d/e 755\nfile ~/d/e/x 755", "~/d/e/x"},
		{"right in a stranger's sticky directory", "dir ~/d 1777 1234\nfile ~/d/x 755", "~/d/x"},
		{"sticky for a group", "dir ~/d 1775\nfile ~/d/x 755", "~/d/x"},
		{"sticky, but only its owner can write", "dir ~/d 1755\nfile ~/d/x 755", "~/d/x"},
		{"a link", "file ~/y 755\nlink ~/x ~/y", ""},
		{"a relative link", "dir ~/d 755\nfile ~/y 755\nlink ~/d/x ../y", "~/d/x"},
		{"a link above the root", "link ~/x ../../../../../.." + "~/y\nfile ~/y 755", ""},
		{"a link to a link", "file ~/z 755\nlink ~/y z\nlink ~/x y", ""},
		{"a stranger's link", "file ~/y 755\nlink ~/x ~/y 1234", ""},
		{"a link to a stranger's file", "file ~/y 755 1234\nlink ~/x ~/y", ""},
		{"a link into a directory that others can write", "dir ~/d 777\nfile ~/d/y 755\nlink ~/x ~/d/y", ""},
		{"a link through a directory that others can write", "dir ~/d 777\nfile ~/z 755\nlink ~/d/y ~/z\nlink ~/x ~/d/y", ""},
		{"a link that passes through one, and out", "dir ~/d 777\nfile ~/z 755\nlink ~/x ~/d/../z", ""},
		{"a link in a sticky directory", "dir ~/d 1777\nfile ~/y 755\nlink ~/d/x ~/y", "~/d/x"},
		{"a stranger's link in a sticky directory", "dir ~/d 1777\nfile ~/y 755\nlink ~/d/x ~/y 1234", "~/d/x"},
		{"a linked directory", "dir ~/d 755\nfile ~/d/x 755\nlink ~/e d", "~/e/x"},
		{"a stranger's linked directory", "dir ~/d 755\nfile ~/d/x 755\nlink ~/e d 1234", "~/e/x"},
		{"a linked directory that others can write", "dir ~/d 777\nfile ~/d/x 755\nlink ~/e d", "~/e/x"},
		{"a circle", "link ~/x y\nlink ~/y x", ""},
		{"a dangling link", "link ~/x y", ""},
		{"missing", "", ""},
		{"below a file", "file ~/y 755", "~/y/x"},
		{"a directory", "dir ~/x 755", ""},
		{"a link to a directory", "dir ~/y 755\nlink ~/x y", ""},
		{"a link to the root", "link ~/x /", ""},
		{"a link to its own directory", "link ~/x .", ""},
		{"a FIFO", "fifo ~/x 600", ""},
		{"a device", "", "/dev/null"},
		{"the root", "", "/"},
		{"may not be read", "dir ~/d 755\nfile ~/d/x 000", "~/d/x"},
		{"a remedy for the shell", "file ~/a_'b'_$c 777", "~/a_'b'_$c"},
	}
}

// TestOpen compares every answer with the golden file, which is meant to be read.
func TestOpen(t *testing.T) {
	require.Root(t)
	t.Parallel()
	var got strings.Builder
	for _, c := range cases() {
		base := bench(t)
		setUp(t, base, c.setUp)
		ask := strings.ReplaceAll(c.ask, "~", base)
		if ask == "" {
			ask = base + "/x"
		}
		ask = strings.ReplaceAll(ask, "_", " ")
		fmt.Fprintf(&got, "# %s\n", c.name)
		answers := map[string][]string{}
		var order []string
		for _, uid := range []uint32{0, nobody} {
			for _, stream := range []bool{false, true} {
				answer := strings.ReplaceAll(as(t, uid, job{Path: ask, Stream: stream}), base, "~")
				who := map[uint32]string{0: "root", nobody: "nobody"}[uid] + map[bool]string{false: " program", true: " stream"}[stream]
				if answers[answer] == nil {
					order = append(order, answer)
				}
				answers[answer] = append(answers[answer], who)
			}
		}
		for _, answer := range order {
			fmt.Fprintf(&got, "%s: %s\n", strings.Join(answers[answer], ", "), answer)
		}
		got.WriteByte('\n')
	}
	golden(t, "testdata/open.golden", got.String())
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil { //nolint:gosec // read by everyone
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wanted, gotten := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range max(len(wanted), len(gotten)) {
		if i >= len(wanted) || i >= len(gotten) || wanted[i] != gotten[i] {
			t.Fatalf("%s:%d: differs:\ngot  %s\nwant %s", path, i+1, line(gotten, i), line(wanted, i))
		}
	}
}

func line(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(nothing)"
}

// TestRemedies does what the refusals say, again and again, and arrives at a trusted file. Remedies that are not
// commands are for people.
func TestRemedies(t *testing.T) {
	require.Root(t)
	t.Parallel()
	fixed := 0
	for _, c := range cases() {
		base := bench(t)
		setUp(t, base, c.setUp)
		ask := strings.ReplaceAll(c.ask, "~", base)
		if ask == "" {
			ask = base + "/x"
		}
		ask = strings.ReplaceAll(ask, "_", " ")
		for range 5 {
			file, err := trust.Open(ask, trust.Program())
			if err == nil {
				if err := file.Close(); err != nil {
					t.Error(err)
				}
				break
			}
			var refused *trust.Error
			if !errors.As(err, &refused) || !isCommand(refused.Remedy) {
				break
			}
			fixed++
			if out, err := exec.CommandContext(t.Context(), "sh", "-c", refused.Remedy).CombinedOutput(); err != nil {
				t.Errorf("%s: %s: %v\n%s", c.name, refused.Remedy, err, out)
			}
			again, err := trust.Open(ask, trust.Program())
			if err == nil {
				err = again.Close()
			}
			if next := (*trust.Error)(nil); errors.As(err, &next) && *next == *refused {
				t.Errorf("%s: the remedy changes nothing: %s", c.name, refused.Remedy)
			}
		}
	}
	if fixed < 5 {
		t.Errorf("only %d remedies were tried", fixed)
	}
}

func isCommand(remedy string) bool {
	return slices.ContainsFunc([]string{"chmod ", "chown "}, func(p string) bool { return strings.HasPrefix(remedy, p) })
}
