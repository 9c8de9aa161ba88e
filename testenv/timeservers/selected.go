package timeservers

import (
	"strings"
	"testing"

	"github.com/machineadm/machineadm/testenv/nodes"
)

// Selected returns the address of the source that the daemon on the node follows, as the daemon reports it; empty for none,
// and while the daemon does not answer.
func (d Daemon) Selected(t testing.TB, n *nodes.Node) string {
	t.Helper()
	var ask []string
	var read func(line string) string
	switch d {
	case Chrony:
		ask, read = []string{"chronyc", "-n", "-c", "sources"}, chronySource
	case NTPsec:
		ask, read = []string{"ntpq", "-pn"}, ntpsecSource
	case Timesyncd:
		ask = []string{"timedatectl", "show-timesync", "--property=ServerAddress", "--property=NTPMessage"}
		read = timesyncdSource
	}
	got, err := n.Exec(t.Context(), ask...)
	if err != nil {
		t.Fatal(err)
	}
	if d == Timesyncd && !strings.Contains(got.Stdout, "NTPMessage=") {
		return "" // it has an address, but no answer yet
	}
	for line := range strings.Lines(got.Stdout) {
		if address := read(strings.TrimSpace(line)); address != "" {
			return address
		}
	}
	return ""
}

// chronySource reads a line such as ^,*,10.77.0.1,5,6,17,6,0.000001,0.000001,0.0001.
func chronySource(line string) string {
	if fields := strings.Split(line, ","); len(fields) > 2 && fields[1] == "*" {
		return fields[2]
	}
	return ""
}

// ntpsecSource reads a line such as *10.77.0.1 .LOCL. 5 u 2 64 1 0.1 0.1 0.1.
func ntpsecSource(line string) string {
	if selected, ok := strings.CutPrefix(line, "*"); ok {
		return strings.Fields(selected + " ")[0]
	}
	return ""
}

func timesyncdSource(line string) string {
	address, _ := strings.CutPrefix(line, "ServerAddress=")
	if address == line {
		return ""
	}
	return address
}
