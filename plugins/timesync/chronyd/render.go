package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/plugins/timesync/internal/directives"
	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
)

// render returns the directives of a document. Source: chrony.conf(5).
func render(want settings.Settings, keyFile string) string {
	lines := []string{directives.Header}
	for _, s := range want.Sources {
		lines = append(lines, directives.Source(s))
	}
	for _, c := range want.RefClocks {
		lines = append(lines, refClock(c))
	}
	if len(want.Keys()) > 0 {
		lines = append(lines, "keyfile "+keyFile)
	}
	if step := want.MakeStep; step != nil {
		lines = append(lines, fmt.Sprintf("makestep %s %d", directives.Seconds(step.Threshold), step.Limit))
	}
	if want.RTCSync != nil && *want.RTCSync {
		lines = append(lines, "rtcsync")
	}
	for _, l := range want.Lines {
		lines = append(lines, l.Text)
	}
	return strings.Join(lines, "\n") + "\n"
}

func refClock(c settings.RefClock) string {
	if c.Line != "" {
		return c.Line
	}
	words := []string{"refclock", strings.ToUpper(c.Driver), c.Device}
	if c.Poll != nil {
		words = append(words, "poll", strconv.Itoa(*c.Poll))
	}
	if c.Offset != 0 {
		words = append(words, "offset", directives.Seconds(c.Offset))
	}
	if c.Options != "" {
		words = append(words, c.Options)
	}
	if c.Prefer {
		words = append(words, "prefer")
	}
	return strings.Join(words, " ")
}

// renderKeys returns the key file. Source: keyfile in chrony.conf(5).
func renderKeys(keys []settings.Key) string {
	var b strings.Builder
	b.WriteString(directives.Header + "\n")
	for _, k := range keys {
		fmt.Fprintf(&b, "%d %s %s\n", k.ID, k.Type, k.Value.Reveal())
	}
	return b.String()
}
