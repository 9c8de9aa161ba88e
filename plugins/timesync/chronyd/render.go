package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
)

// render returns the directives of a document. Source: chrony.conf(5).
func render(want settings.Settings, keyFile string, extra []string) string {
	lines := []string{"# Written by machineadm for a Timesync document. Changes are overwritten."}
	for _, s := range want.Sources {
		lines = append(lines, source(s))
	}
	for _, c := range want.RefClocks {
		lines = append(lines, refClock(c))
	}
	if len(want.Keys()) > 0 {
		lines = append(lines, "keyfile "+keyFile)
	}
	if step := want.MakeStep; step != nil {
		lines = append(lines, fmt.Sprintf("makestep %s %d", seconds(step.Threshold), step.Limit))
	}
	if want.RTCSync != nil && *want.RTCSync {
		lines = append(lines, "rtcsync")
	}
	return strings.Join(slices.Concat(lines, extra), "\n") + "\n"
}

func source(s settings.Source) string {
	words := []string{"server", s.Address}
	if s.Pool {
		words[0] = "pool"
	}
	flag := func(on bool, word string) {
		if on {
			words = append(words, word)
		}
	}
	number := func(value *int, word string) {
		if value != nil {
			words = append(words, word, strconv.Itoa(*value))
		}
	}
	flag(s.Burst(), "iburst")
	flag(s.Prefer, "prefer")
	number(s.MinPoll, "minpoll")
	number(s.MaxPoll, "maxpoll")
	number(s.MaxSources, "maxsources")
	flag(s.NTS, "nts")
	if s.Key != nil {
		number(&s.Key.ID, "key")
	}
	return strings.Join(words, " ")
}

func refClock(c settings.RefClock) string {
	words := []string{"refclock", strings.ToUpper(c.Driver), c.Device}
	if c.Poll != nil {
		words = append(words, "poll", strconv.Itoa(*c.Poll))
	}
	if c.Offset != 0 {
		words = append(words, "offset", seconds(c.Offset))
	}
	if c.Options != "" {
		words = append(words, c.Options)
	}
	if c.Prefer {
		words = append(words, "prefer")
	}
	return strings.Join(words, " ")
}

// seconds is a duration as a decimal number without exponent.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }

// renderKeys returns the key file. Source: keyfile in chrony.conf(5).
func renderKeys(keys []settings.Key) string {
	var b strings.Builder
	b.WriteString("# Written by machineadm for a Timesync document. Changes are overwritten.\n")
	for _, k := range keys {
		fmt.Fprintf(&b, "%d %s %s\n", k.ID, k.Type, k.Value.Reveal())
	}
	return b.String()
}
