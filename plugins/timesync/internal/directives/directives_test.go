package directives_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/plugins/timesync/internal/directives"
	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
)

func sources(words []string) bool { return words[0] == "server" || words[0] == "pool" }

func nothing([]string) bool { return false }

const (
	text  = "# a comment\r\n  Pool 2.debian.pool.ntp.org iburst\nmakestep 1 3\n! server old\n\nserver a # last"
	off   = "# a comment\r\n#machineadm#   Pool 2.debian.pool.ntp.org iburst\nmakestep 1 3\n! server old\n\n#machineadm# server a # last"
	block = "# BEGIN machineadm\nserver b\n# END machineadm\n"
)

func TestEdit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text, block, want string
		off                     func([]string) bool
	}{
		{"turned off", text, "", off, sources},
		{"again", off, "", off, sources},
		{"restored", off, "", text, nothing},
		{"block added", text, "server b\n", off + "\n" + block, sources},
		{"block again", off + "\n" + block, "server b\n", off + "\n" + block, sources},
		{"block replaced", block + "makestep 1 3\n", "server b\n", "makestep 1 3\n" + block, sources},
		{"block removed", off + "\n" + block, "", text + "\n", nothing},
		{"block without an end", "# BEGIN machineadm\nmakestep 1 3\n", "", "# BEGIN machineadm\nmakestep 1 3\n", sources},
		{"two blocks", block + "makestep 1 3\n" + block, "server c\n", "makestep 1 3\n# BEGIN machineadm\nserver c\n# END machineadm\n", sources},
		{"empty", "", "server b\n", block, sources},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, string(directives.Edit([]byte(c.text), c.off, c.block)))
		})
	}
	require.Equal(t, [][]string{{"makestep", "1", "3"}}, directives.Parse([]byte(off+"\n"+block)))
}

func FuzzEdit(f *testing.F) {
	f.Add(text)
	f.Add("# BEGIN machineadm\nserver x\n")
	f.Add("#machineadm# # END machineadm\n#machineadm# server y")
	f.Fuzz(func(t *testing.T, text string) {
		once := directives.Edit([]byte(text), sources, "server z\n")
		require.Equal(t, string(once), string(directives.Edit(once, sources, "server z\n")), "a second time changes nothing")
		for _, words := range directives.Parse(once) {
			require.False(t, sources(words), "%q is left", words)
		}
	})
}

func TestSource(t *testing.T) {
	t.Parallel()
	no, four, two := false, 4, 2
	require.Equal(t, "server a iburst", directives.Source(settings.Source{Address: "a"}))
	require.Equal(t, "pool b prefer minpoll 4 maxpoll 4 maxsources 2 nts key 7", directives.Source(settings.Source{
		Address: "b", Pool: true, IBurst: &no, Prefer: true, MinPoll: &four, MaxPoll: &four, MaxSources: &two, NTS: true, Key: &settings.Key{ID: 7},
	}))
	require.Equal(t, "-0.0005", directives.Seconds(-500*time.Microsecond))
	require.Equal(t, "0.000000001", directives.Seconds(1))
}
