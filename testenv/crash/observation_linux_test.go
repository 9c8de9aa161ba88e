package crash

import (
	"fmt"
	"strings"

	"github.com/machineadm/machineadm/contract/report"
)

// killed is the exit code of a run that SIGKILL ended.
const killed = 128 + 9

// parameters prints the state that nodeStream describes, one line each: values, and files with their modes and contents.
const parameters = `set -eu
cd /proc/sys
for key in net/ipv4/ip_forward net/core/somaxconn net/ipv4/tcp_rmem net/ipv4/ip_local_port_range net/ipv4/tcp_fin_timeout; do
	echo "state $key $(tr '\t' ' ' <$key)"
done
find /etc/sysctl.d /etc/modules-load.d -name '*machineadm*' -printf 'state %p %M %l\n' -type f -exec sha256sum {} + | sed 's/^\([0-9a-f]\)/state \1/' | sort
`

// look prints what is the same for every stream: the sentinel, paths that can be leftovers, and the report on a line of its own.
// The script before it prints the state.
const look = `
! test -e /run/cluster-api/bootstrap-success.complete || echo sentinel
! test -e /var/lib/machineadm/resolved || echo resolved
find / /run /tmp /dev/shm -xdev \( -path /usr/share -o -path /usr/lib \) -prune -o \
	\( -name '*machineadm*' -o -name '.sockets-*' -o -name .pending -o -name '*.json' \) -printf 'path %p\n'
printf 'report '
tr -d '\n' </run/machineadm/report.json 2>/dev/null || true
echo
`

// observation is the output of look.
type observation struct {
	state    string
	sentinel bool
	resolved bool // the streams of references are kept
	left     []string
	report   string
}

func parseObservation(text string) observation {
	var s observation
	for line := range strings.Lines(text) {
		kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch kind {
		case "state":
			s.state += rest + "\n"
		case "sentinel":
			s.sentinel = true
		case "resolved":
			s.resolved = true
		case "path":
			if what := leftover(rest); what != "" {
				s.left = append(s.left, what)
			}
		case "report":
			s.report = rest
		}
	}
	return s
}

// afterKill returns what is wrong with the state after a killed run: a sentinel on a machine that is neither prepared nor as it
// was when the sentinel was written (hadSentinel), or a report that is not whole. A run that begins has none.
func afterKill(now, before, want observation, hadSentinel bool) error {
	if now.report != "" {
		if _, err := parseReport([]byte(now.report + "\n")); err != nil {
			return err
		}
	}
	if now.sentinel && now.state != want.state && (!hadSentinel || now.state != before.state) {
		return fmt.Errorf("there is a sentinel, and the machine is partly changed:\n%s", now.state)
	}
	return nil
}

// afterRerun returns what is wrong with the state after a rerun that ended with this code.
func afterRerun(now, want observation, code int) error {
	r, err := parseReport([]byte(now.report + "\n"))
	if err != nil {
		return err
	}
	switch {
	case code != report.ExitOK:
		return fmt.Errorf("the rerun ended with %d", code)
	case now.state != want.state:
		return fmt.Errorf("the rerun left\n%swant\n%s", now.state, want.state)
	case !now.sentinel:
		return fmt.Errorf("the rerun left no sentinel")
	case now.resolved:
		return fmt.Errorf("what was resolved is still there")
	}
	return checkReport(r, code)
}

// checkExit compares the report that a run left with its exit code, if the run ended by itself and could write a report.
func checkExit(now observation, a attack, code int) error {
	if code == killed && a.victim != victimCall || code == report.ExitState {
		return nil
	}
	r, err := parseReport([]byte(now.report + "\n"))
	if err != nil {
		return err
	}
	return checkReport(r, code)
}
