package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
)

// TestDoubts: a line that does not do what it is written for is one warning, and the right form of it none.
func TestDoubts(t *testing.T) {
	t.Parallel()
	for text, doubtful := range map[string]bool{
		"server 192.0.2.1 offset 3600": true, "server 192.0.2.1 offset -0.001": false,
		"server 192.0.2.1 minstratum 16": true, "server 192.0.2.1 minstratum 2": false,
		"maxdistance 0.0001": true, "maxdistance 0.1": false, "maxjitter 0": true, "maxjitter 0.01": false,
		"maxslewrate 0": true, "maxslewrate 500": false, "maxupdateskew 0": true, "maxupdateskew 5": false,
		"refclock PPS /dev/pps0 lock NMEA": true, "refclock PPS /dev/pps0 lock SHM0": false, "refclock SOCK a.sock": true, "refclock SOCK /run/a.sock": false,
		"port 0\nallow 192.0.2.0/24": true, "port 0": false, "bindaddress ::1\nallow": true, "bindaddress ::1": false,
		"local stratum 1": true, "local stratum 10 orphan": false, "leapsectz UTC": true, "leapsectz right/UTC": false,
		"ratelimit\nnoclientlog": true, "ratelimit": false, "ntsserverkey /etc/a.key": true, "ntsserverkey /etc/a.key\nntsservercert /etc/a.crt": false,
		"driftfile /run/drift": true, "driftfile /var/lib/chrony/drift": false, "pidfile /run/other.pid": true, "pidfile /run/chrony/chronyd.pid": false,
		"refclock SHM 0 refid NMEA noselect\nrefclock PPS /dev/pps0 lock NMEA": false,
	} {
		want := settings.Settings{Sources: []settings.Source{{Address: "ntp1.example.com"}}}
		for line := range strings.SplitSeq(text, "\n") {
			want.Lines = append(want.Lines, settings.Line{Text: line, Field: "spec.providerConfig.directives[0]"})
		}
		found := doubts(want)
		assert.Len(t, found, map[bool]int{true: 1}[doubtful], text)
	}
	pulse := settings.Settings{RefClocks: []settings.RefClock{{Line: "refclock PPS /dev/pps0", Field: "spec.providerConfig.directives[0]"}}}
	assert.Len(t, doubts(pulse), 1)
}
