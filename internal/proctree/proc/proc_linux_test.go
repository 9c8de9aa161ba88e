package proc

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	const rest = " 0 0 0 0 0 0 0 0 0 0 0 "
	for line, want := range map[string]Process{
		"7 (sh) S 1 2 3" + rest + "20 0 1 0 5 0":            {State: 'S', Parent: 1, Group: 2, Session: 3, Threads: 1},
		"7 (a) R 9 9) S 1 2 3" + rest + "20 0 1 0 5 0":      {State: 'S', Parent: 1, Group: 2, Session: 3, Threads: 1},
		"7 () (\n) Z 1 2 3" + rest + "20 0 4 0 5 0":         {State: 'Z', Parent: 1, Group: 2, Session: 3, Threads: 4},
		"7 (ns) S 0 -1 0" + rest + "20 0 1 0 5 0 4 4 4 4\n": {State: 'S', Group: -1, Threads: 1},
	} {
		got, err := parseStat([]byte(line))
		if err != nil || got != want {
			t.Errorf("%q: %+v %v, want %+v", line, got, err, want)
		}
	}
	for _, line := range []string{"", "7", "7 (sh", "7 (sh) S 1", "7 (sh) S x 2 3" + rest + "20 0 1 0", "7 (sh) SS 1 2 3" + rest + "20 0 1 0"} {
		if got, err := parseStat([]byte(line)); err == nil {
			t.Errorf("%q: %+v", line, got)
		}
	}
}

func TestDead(t *testing.T) {
	t.Parallel()
	for p, want := range map[Process]bool{
		{}:                        true,
		{State: 'X', Threads: 1}:  true,
		{State: 'Z', Threads: 1}:  true,
		{State: 'Z', Threads: 2}:  false, // its first thread alone is dead
		{State: 'S', Threads: 1}:  false,
		{State: 'D', Threads: 1}:  false,
		{State: 'T', Threads: 12}: false,
	} {
		if got := p.Dead(); got != want {
			t.Errorf("%+v: %v", p, got)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add("7 (sh) S 1 2 3 0 0 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0")
	f.Add("7 (a) b) S")
	f.Add(")")
	f.Fuzz(func(t *testing.T, line string) {
		if p, err := parseStat([]byte(line)); err == nil && (p.State == 0 || !strings.Contains(line, ")")) {
			t.Fatalf("%q: %+v", line, p)
		}
	})
}

// TestChildren: the list of the kernel and the long way agree, on a child that lives and on one that is dead and not
// waited for.
func TestChildren(t *testing.T) {
	cmd := exec.Command("/bin/cat")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	all, err := ChildrenByParent(os.Getpid())
	if err != nil || !slices.Contains(all, cmd.Process.Pid) {
		t.Errorf("children %d (%v), want %d among them", all, err, cmd.Process.Pid)
	}
	first, err := Children(os.Getpid())
	if err != nil || slices.ContainsFunc(first, func(pid int) bool { return !slices.Contains(all, pid) }) {
		t.Errorf("children of the first thread %d (%v), want none but of %d", first, err, all)
	}
	p, err := Read(cmd.Process.Pid)
	if err != nil || p.Parent != os.Getpid() || p.Dead() {
		t.Errorf("the child is %+v (%v)", p, err)
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if p, err := Read(cmd.Process.Pid); err != nil || !p.Dead() {
		t.Errorf("the child that is gone is %+v (%v)", p, err)
	}
}

// TestReadFileOfAnyLength: /proc gives no sizes, and a list of children can be long.
func TestReadFileOfAnyLength(t *testing.T) {
	t.Parallel()
	for _, length := range []int{0, 1, 511, 512, 513, 100_000} {
		path := t.TempDir() + "/" + strconv.Itoa(length)
		want := strings.Repeat("x", length)
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := readFile(path); err != nil || string(got) != want {
			t.Errorf("%d bytes (%v), want %d", len(got), err, length)
		}
	}
}
