package proctree

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	const rest = " 0 0 0 0 0 0 0 0 0 0 "
	for line, want := range map[string]stat{
		"7 (sh) S 1 2 3 0" + rest + "20 0 1 0 5 0":              {name: "sh", state: 'S', parent: 1, group: 2, session: 3, threads: 1},
		"7 (a) R 9 9) S 1 2 3 34816" + rest + "20 0 1 0 5 0":    {name: "a) R 9 9", state: 'S', parent: 1, group: 2, session: 3, terminal: 34816, threads: 1},
		"7 () (\n) Z 1 2 3 0" + rest + "20 0 4 0 5 0":           {name: ") (\n", state: 'Z', parent: 1, group: 2, session: 3, threads: 4},
		"7 (ns) S 0 -1 0 0" + rest + "20 0 1 0 5 0 4 4 4 4 4\n": {name: "ns", state: 'S', group: -1, threads: 1},
	} {
		got, err := parseStat(line)
		require.NoError(t, err, line)
		require.Equal(t, want, got, line)
	}
	for _, line := range []string{
		"", "7", "7 (sh", "7 (sh) S 1", "7 (sh) S x 2 3 0" + rest + "20 0 1 0", "7 (sh) SS 1 2 3 0" + rest + "20 0 1 0",
		"7 (sh) \x00 1 2 3 0" + rest + "20 0 1 0 5 0",
	} {
		_, err := parseStat(line)
		require.Error(t, err, line)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add("7 (sh) S 1 2 3 0 0 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0")
	f.Add("7 (a) b) S")
	f.Add(") \x00 1 2 3 0 0 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0")
	f.Fuzz(func(t *testing.T, line string) {
		if s, err := parseStat(line); err == nil && (s.state == 0 || !strings.Contains(line, ")")) {
			t.Fatalf("%q: %+v", line, s)
		}
	})
}

func TestDead(t *testing.T) {
	t.Parallel()
	for s, want := range map[stat]bool{
		{}:                        true,
		{state: 'X', threads: 1}:  true,
		{state: 'Z', threads: 1}:  true,
		{state: 'Z', threads: 2}:  false, // its first thread alone is dead
		{state: 'S', threads: 1}:  false,
		{state: 'D', threads: 1}:  false,
		{state: 'T', threads: 12}: false,
	} {
		require.Equal(t, want, s.dead(), "%+v", s)
	}
}

// TestChildren: the kernel's list and the long way agree, on a child that lives and on one that is dead.
func TestChildren(t *testing.T) {
	cmd := exec.Command("/bin/cat")
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	all, err := childrenOf(os.Getpid())
	require.NoError(t, err)
	require.Contains(t, all, cmd.Process.Pid)
	first, err := childrenOfThread(os.Getpid())
	require.NoError(t, err)
	require.False(t, slices.ContainsFunc(first, func(pid int) bool { return !slices.Contains(all, pid) }), "%v, want none but of %v", first, all)
	s, err := readStat(cmd.Process.Pid)
	require.NoError(t, err)
	require.Equal(t, os.Getpid(), s.parent)
	require.False(t, s.dead())
	require.NoError(t, stdin.Close())
	require.NoError(t, cmd.Wait())
	s, err = readStat(cmd.Process.Pid)
	require.NoError(t, err)
	require.True(t, s.dead())
}
