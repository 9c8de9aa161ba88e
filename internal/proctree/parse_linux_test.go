package proctree

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	const rest = " 0 0 0 0 0 0 0 0 0 0 0 "
	for line, want := range map[string]process{
		"7 (sh) S 1 2 3" + rest + "20 0 1 0 5 0":            {state: 'S', parent: 1, group: 2, session: 3, threads: 1},
		"7 (a) R 9 9) S 1 2 3" + rest + "20 0 1 0 5 0":      {state: 'S', parent: 1, group: 2, session: 3, threads: 1},
		"7 () (\n) Z 1 2 3" + rest + "20 0 4 0 5 0":         {state: 'Z', parent: 1, group: 2, session: 3, threads: 4},
		"7 (ns) S 0 -1 0" + rest + "20 0 1 0 5 0 4 4 4 4\n": {state: 'S', group: -1, threads: 1},
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
	for p, want := range map[process]bool{
		{}:                        true,
		{state: 'X', threads: 1}:  true,
		{state: 'Z', threads: 1}:  true,
		{state: 'Z', threads: 2}:  false, // its first thread alone is dead
		{state: 'S', threads: 1}:  false,
		{state: 'D', threads: 1}:  false,
		{state: 'T', threads: 12}: false,
	} {
		if got := p.dead(); got != want {
			t.Errorf("%+v: %v", p, got)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add("7 (sh) S 1 2 3 0 0 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0")
	f.Add("7 (a) b) S")
	f.Add(")")
	f.Fuzz(func(t *testing.T, line string) {
		if p, err := parseStat([]byte(line)); err == nil && (p.state == 0 || !strings.Contains(line, ")")) {
			t.Fatalf("%q: %+v", line, p)
		}
	})
}

func TestOrder(t *testing.T) {
	t.Parallel()
	for _, want := range []order{
		{program: -1, path: "/p", arguments: []string{"/p"}},
		{files: 2, program: 6, path: "/p", arguments: []string{"/p", "", "-1", "--", "a b"}},
	} {
		got, err := decodeOrder(want.encode())
		if err != nil || got.files != want.files || got.program != want.program || got.path != want.path || !slices.Equal(got.arguments, want.arguments) {
			t.Errorf("%+v %v, want %+v", got, err, want)
		}
	}
	for _, argv := range [][]string{
		nil,
		{guardName},
		{guardName, "0", "-1", "/p"},
		{guardName, "x", "-1", "/p", "/p"},
		{guardName, "-1", "-1", "/p", "/p"},
		{guardName, "0", "0", "/p", "/p"},
		{guardName, "1", "4", "/p", "/p"},
	} {
		if got, err := decodeOrder(argv); err == nil {
			t.Errorf("%q: %+v", argv, got)
		}
	}
}

func TestAbandoned(t *testing.T) {
	t.Parallel()
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(uintptr(pipe[0]), unix.F_SETFD, 0); err != nil { // as a guard gets it
		t.Fatal(err)
	}
	if abandoned(pipe[0]) {
		t.Error("while the host holds its end")
	}
	if err := unix.Close(pipe[1]); err != nil {
		t.Fatal(err)
	}
	// A test that starts a process just now may hold a copy of the end until the exec.
	eventually(t, "the host let go", func() bool { return abandoned(pipe[0]) })
	if err := unix.Close(pipe[0]); err != nil {
		t.Fatal(err)
	}
	if !abandoned(-1) {
		t.Error("no descriptor")
	}
}
