package main

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/plugins/timesync/internal/directives"
	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// maxTextKey is the length up to which ntpd reads a key as text, and beyond which as hexadecimal digits; maxKey is the longest key in bytes.
const maxTextKey, maxKey = 20, 32

// render returns the directives of a document. Source: ntp.conf(5) of NTPsec and of the reference implementation.
func render(want settings.Settings, keyFile string) string {
	lines := []string{directives.Header}
	for _, s := range want.Sources {
		lines = append(lines, directives.Source(s))
	}
	for i, c := range want.RefClocks {
		lines = append(lines, refClock(i, c))
	}
	if want.ReplacesSources() {
		lines = append(lines, fmt.Sprintf("tos minsane %d", minSane(want)))
	}
	if keys := want.Keys(); len(keys) > 0 {
		trusted := "trustedkey"
		for _, k := range keys {
			trusted += " " + strconv.Itoa(k.ID)
		}
		lines = append(lines, "keys "+keyFile, trusted)
	}
	if step := want.MakeStep; step != nil {
		threshold := step.Threshold
		if step.Limit == 0 {
			threshold = 0 // never
		}
		lines = append(lines, "tinker step "+directives.Seconds(threshold)+" panic 0")
	}
	for _, l := range want.Lines {
		lines = append(lines, l.Text)
	}
	return strings.Join(lines, "\n") + "\n"
}

// minSane is the number of correct sources without which ntpd leaves the clock alone: half of them, so that the machine
// synchronizes when a server is down. More than three would not make it safer.
func minSane(want settings.Settings) int {
	number := 0
	for _, s := range want.Sources {
		number++
		if s.Pool {
			number += 3 // a pool has at least four servers
		}
	}
	return min(max((number+1)/2, 1), 3)
}

// refClock returns the line of a pulse per second.
func refClock(unit int, c settings.RefClock) string {
	if c.Line != "" {
		return c.Line
	}
	line := fmt.Sprintf("refclock pps unit %d ppspath %s", unit, c.Device)
	if c.Poll != nil {
		line += fmt.Sprintf(" minpoll %d maxpoll %d", *c.Poll, *c.Poll)
	}
	if c.Offset != 0 {
		line += " time1 " + directives.Seconds(c.Offset)
	}
	if c.Prefer {
		line += " prefer"
	}
	return line
}

// renderKeys returns the lines of the key file. Source: ntp.keys(5).
func renderKeys(keys []settings.Key) (string, error) {
	var b strings.Builder
	for _, k := range keys {
		text, err := keyText(k)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%d %s %s\n", k.ID, strings.Replace(k.Type, "AES", "AES-", 1), text)
	}
	return b.String(), nil
}

// keyText returns a key as the key file has it: hexadecimal digits if they are too long for a text, else the text itself.
func keyText(k settings.Key) (string, error) {
	value, err := k.Bytes()
	if err != nil {
		return "", err
	}
	if len(value) > maxKey {
		return "", sdk.Unsupported(k.Field+".value", "ntpd reads 32 bytes of a key at most", "use a key of at most 32 bytes, or the provider chronyd")
	}
	if digits := hex.EncodeToString(value); len(digits) > maxTextKey {
		return digits, nil
	}
	if slices.ContainsFunc(value, func(b byte) bool { return b <= ' ' || b > '~' || b == '#' }) {
		return "", sdk.Unsupported(k.Field+".value", "ntpd reads a key of less than 11 bytes as text without blanks and #",
			"use a key of at least 11 bytes")
	}
	return string(value), nil
}
