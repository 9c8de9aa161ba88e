package timesync

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/timeservers"
)

// values are directives of which chronyd uses one, with the administrator's value and the document's.
var values = [][3]string{
	{"maxupdateskew", "0.01", "1000"},
	{"maxdistance", "16", "2"},
	{"makestep", "9 9", "1 3"},
	{"driftfile", "/var/lib/chrony/a", "/var/lib/chrony/b"},
	{"logdir", "/var/log/a", "/var/log/chrony"},
	{"leapsectz", "right/UTC", "right/Europe/Berlin"},
	{"clientloglimit", "1000", "2000"},
	{"combinelimit", "9", "2"},
	{"corrtimeratio", "9", "2"},
	{"dscp", "9", "2"},
	{"cmdport", "0", "323"},
	{"bindaddress", "127.0.0.1", "0.0.0.0"},
	{"maxslewrate", "9", "2"},
	{"maxdrift", "9", "500000"},
	{"minsamples", "9", "2"},
	{"maxsamples", "99", "9"},
	{"logchange", "9", "2"},
	{"hwtimestamp", "* minpoll 9", "* minpoll 2"},
	{"port", "0", "123"},
	{"reselectdist", "9", "0.0001"},
	{"stratumweight", "9", "0.001"},
	{"ratelimit", "burst 9", "interval 2"},
}

// TestDirectives: chronyd reads the value of the document alone, in every layout, and follows the server of its directives alone.
// It refuses no name of the list of directives but names of later releases.
func TestDirectives(t *testing.T) {
	t.Parallel()
	needs.Root(t)
	names := []string{"time", "other"}
	layouts := map[string]string{
		"first":   "confdir /etc/chrony/conf.d\nLINES",
		"last":    "LINESconfdir /etc/chrony/conf.d\n",
		"none":    "LINES",
		"nested":  "include /etc/chrony/site.conf\n",
		"drop-in": "confdir /etc/chrony/conf.d\n",
	}
	for layout := range layouts {
		names = append(names, layout)
	}
	network := nodes.NewNetwork(t, names...)
	timeservers.Chronyd(t, network, "time", timeservers.Options{})
	timeservers.Chronyd(t, network, "other", timeservers.Options{})
	var lines, directives []string
	for _, v := range values {
		lines, directives = append(lines, v[0]+" "+v[1]), append(directives, fmt.Sprintf("%q", v[0]+" "+v[2]))
	}
	const defeating = "minsources 2\nauthselectmode require\nserver other iburst\nkeyfile /etc/chrony/chrony.keys\n"
	spec := "{providerConfig: {directives: [\"server time iburst port 123\", " + strings.Join(directives, ", ") + "]}, waitForSync: {timeout: 1m}}"
	for layout, text := range layouts {
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			suite := nodes.Suites()[len(text)%len(nodes.Suites())]
			n := start(t, suite, timeservers.Chrony, network, layout, func(root string) error {
				all := defeating + strings.Join(lines, "\n") + "\n"
				for file, text := range map[string]string{
					"/etc/chrony/chrony.conf": strings.ReplaceAll(text, "LINES", all), "/etc/chrony/site.conf": "include /etc/chrony/below.conf\n",
					"/etc/chrony/below.conf": all,
				} {
					if err := write(root, file, text, 0o644); err != nil {
						return err
					}
				}
				if layout != "drop-in" {
					return nil
				}
				return write(root, "/etc/chrony/conf.d/zzz.conf", all, 0o644)
			})
			n.apply(t, spec)
			n.follows(t, network, "time")
			read := strings.Split(n.sh(t, "chronyd -p"), "\n")
			for _, v := range values {
				got := slices.DeleteFunc(slices.Clone(read), func(line string) bool { return !strings.HasPrefix(line, v[0]+" ") })
				require.Equal(t, []string{v[0] + " " + v[2]}, got)
			}
			known, err := os.ReadFile("../../plugins/timesync/chronyd/testdata/directives.txt")
			require.NoError(t, err)
			unknown := n.sh(t, `for d in "$@"; do chronyd -p "$d" 2>&1 | grep -o 'Invalid directive.*'; done; true`, strings.Fields(string(known))...)
			require.Less(t, strings.Count(unknown, "\n"), 10, "only directives of later releases: %s", unknown)
			arguments, err := os.ReadFile("../../plugins/timesync/chronyd/testdata/arguments.txt")
			require.NoError(t, err)
			for line := range strings.Lines(string(arguments)) {
				if result, directive, _ := strings.Cut(strings.TrimSpace(line), " "); result != "#" {
					starts := strings.TrimSpace(n.sh(t, `if chronyd -p "$1" >/dev/null 2>&1; then echo yes; else echo no; fi`, directive)) == "yes"
					require.Equal(t, result != "no", starts, line)
				}
			}
		})
	}
}

// TestRootDistance: timesyncd that is configured to ignore every server follows the document's, with the limit of the
// document.
func TestRootDistance(t *testing.T) {
	t.Parallel()
	needs.Root(t)
	network := nodes.NewNetwork(t, "time", "timesyncd")
	timeservers.Chronyd(t, network, "time", timeservers.Options{})
	n := start(t, nodes.Bookworm, timeservers.Timesyncd, network, "timesyncd", func(root string) error {
		return write(root, "/etc/systemd/timesyncd.conf", "[Time]\nRootDistanceMaxSec=1us\nPollIntervalMinSec=4096\n", 0o644)
	})
	const spec = "{servers: [{address: time, maxPoll: 10}], waitForSync: {timeout: 1m}"
	n.apply(t, spec+"}")
	n.follows(t, network, "time")
	require.Contains(t, n.sh(t, "timedatectl show-timesync"), "RootDistanceMaxUSec=5s\nPollIntervalMinUSec=32s\nPollIntervalMaxUSec=17min 4s\n")
	n.apply(t, spec+", providerConfig: {rootDistanceMaxSec: 30}}")
	require.Contains(t, n.sh(t, "timedatectl show-timesync"), "RootDistanceMaxUSec=30s\n")
}

// TestDefeated: ntpd that is configured to leave its servers alone follows the document's, or the plan names the line.
func TestDefeated(t *testing.T) {
	t.Parallel()
	needs.Root(t)
	network := nodes.NewNetwork(t, "time", "ntpd")
	timeservers.Chronyd(t, network, "time", timeservers.Options{})
	const main = "/etc/ntpsec/ntp.conf"
	n := start(t, nodes.Bookworm, timeservers.NTPsec, network, "ntpd", func(root string) error {
		return write(root, main, "disable ntp\nunpeer time\ntos floor 9\ntos maxdist 0.001\ntos minclock 4 minsane 3\nrestrict default nomodify noquery\nrestrict 127.0.0.1\nrestrict ::1\nLINE\n", 0o644)
	})
	const spec = "{servers: [{address: time}], waitForSync: {timeout: 1m}}"
	line := regexp.MustCompile(`^[a-z ]+`)
	for _, refused := range []string{"restrict default ignore", "interface ignore all", "disable ntp monitor"} {
		n.sh(t, `sed -i "\$s/.*/$1/" `+main, refused)
		said := n.refused(t, spec, report.ExitPrecondition)
		require.Contains(t, said, main+` has the line "`+line.FindString(refused)+`"`)
	}
	n.sh(t, `sed -i '$s/.*/# none/' `+main)
	n.apply(t, spec)
	n.follows(t, network, "time")
	n.takesArguments(t)
}

// takesArguments: ntpd accepts and refuses the lines of the table of arguments as the table says, when it reads all of them at once. After an
// error it skips three words without a report.
func (n node) takesArguments(t *testing.T) {
	t.Helper()
	table, err := os.ReadFile("../../plugins/timesync/ntpd/testdata/arguments.txt")
	require.NoError(t, err)
	var lines []string
	var config strings.Builder
	for line := range strings.Lines(string(table)) {
		if result, directive, _ := strings.Cut(line, " "); result != "#" {
			lines = append(lines, line)
			config.WriteString(directive + "tos minclock 3 maxclock 6\n")
		}
	}
	said := n.sh(t, `printf %s "$1" >/tmp/arguments.conf; timeout 10 ntpd -n -c /tmp/arguments.conf 2>&1; true`, config.String())
	for i, line := range lines {
		result, _, _ := strings.Cut(line, " ")
		refused := regexp.MustCompile(fmt.Sprintf(`syntax error in \S+ line %d,`, 2*i+1)).MatchString(said)
		require.Equal(t, result == "no" || result == "reference", refused, "%s%s", line, said)
	}
}
