package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
)

func withLines(text string) settings.Settings {
	want := settings.Settings{Sources: []settings.Source{{Address: "ntp1.example.com"}, {Address: "ntp2.example.com", Pool: strings.Contains(text, "nopeer")}}}
	for line := range strings.SplitSeq(text, "\n") {
		want.Lines = append(want.Lines, settings.Line{Text: line, Field: "spec.providerConfig.directives[0]"})
	}
	return want
}

// TestImplementations: a line that one of the two implementations does not have is Unsupported with that one alone.
func TestImplementations(t *testing.T) {
	t.Parallel()
	for text, has := range map[string]struct{ ntpsec, reference bool }{
		"server 192.0.2.1 iburst # nts": {true, true}, "crypto pw a": {false, true}, "broadcastclient": {false, true}, "enable mode7": {false, true},
		"server 192.0.2.1 xleave": {false, true}, "server 192.0.2.1 nts": {true, false}, "nts ca /etc/ca.pem": {true, false}, "refclock shm": {true, false},
		"restrict 192.0.2.0/24 nomodify": {true, false}, "restrict 192.0.2.0 mask 255.255.255.0": {true, true}, "tos beacon 60": {false, true},
		"enable monitor": {true, true}, "statistics loopstats usestats": {true, false},
	} {
		assert.Equal(t, has.ntpsec, otherImplementation(withLines(text), true) == nil, text)
		assert.Equal(t, has.reference, otherImplementation(withLines(text), false) == nil, text)
	}
}

func TestAssignments(t *testing.T) {
	t.Parallel()
	for text, right := range map[string]bool{
		"setvar site = lab default": true, "setvar site=lab": true, `setvar site = "a b" # comment`: true, "setvar site": false, "setvar site = ": false, "setvar site = a b": false,
	} {
		assert.Equal(t, right, len(assignments(withLines(text))) == 0, text)
	}
}

// TestDoubts: a line that does not do what it is written for is one warning, and the right form of it none.
func TestDoubts(t *testing.T) {
	t.Parallel()
	for text, doubtful := range map[string]bool{
		"server 127.127.1.0": true, "refclock local": true, "fudge 127.127.20.0 stratum 5": true, "server 127.127.20.0\nfudge 127.127.20.0 stratum 5": false,
		"restrict default nopeer": true, "restrict default nopeer\nrestrict source nomodify": false, "restrict default nomodify": false,
		"tinker panic 0.001": true, "tinker panic 0": false, "tos minsane 10": true, "tos minsane 2": false, "tos maxdist 0.001": true, "tos maxdist 16": false,
		"tos floor 10": true, "tos ceiling 1": true, "tos ceiling 15": false, "peer 192.0.2.1": true, "requestkey 5": true,
	} {
		assert.Len(t, doubts(withLines(text)), map[bool]int{true: 1}[doubtful], text)
	}
}
