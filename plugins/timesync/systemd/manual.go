package main

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// defaultRootDistance is the root distance beyond which timesyncd ignores the answer of a server. Source: timesyncd.conf(5).
const defaultRootDistance = 5 * time.Second

// manual has every setting of timesyncd.conf(5) of systemd 240 to 258, and reports whether a value of another author defeats a
// document with sources: with it timesyncd does not use them. Nil is a setting that is ours if the document has it, because
// timesyncd uses the last value, or harmless.
func manual() map[string]func(value string) bool {
	return map[string]func(value string) bool{
		"NTP": nil, "FallbackNTP": nil, "PollIntervalMinSec": nil, "PollIntervalMaxSec": nil, // ours
		"RootDistanceMaxSec": func(value string) bool {
			distance, err := span(value)
			return err == nil && distance < defaultRootDistance
		},
		"ConnectionRetrySec": nil, "SaveIntervalSec": nil, // harmless: how soon it tries again, and when it keeps the time
	}
}

// span parses a time span, of one number and a unit. Source: systemd.time(7).
func span(text string) (time.Duration, error) {
	number := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzµ ")
	unit, known := map[string]string{
		"": "s", "s": "s", "sec": "s", "second": "s", "seconds": "s", "ms": "ms", "msec": "ms", "us": "us", "usec": "us", "µs": "us",
		"m": "m", "min": "m", "minute": "m", "minutes": "m", "h": "h", "hr": "h", "hour": "h", "hours": "h",
	}[strings.TrimSpace(text[len(number):])]
	if !known {
		return 0, errors.New("is no time span of one unit")
	}
	return time.ParseDuration(strings.TrimSpace(number) + unit)
}

// withDefaults adds the default of each setting that files of others give a value which defeats the document.
func withDefaults(m sdk.Machine, own []assignment, want settings.Settings) ([]assignment, error) {
	if !want.HasSources() || slices.ContainsFunc(own, func(a assignment) bool { return a.key == rootDistance }) {
		return own, nil
	}
	files, err := others(m)
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		text, err := optional(m, name)
		if err != nil {
			return nil, err
		}
		for _, a := range parse(text) {
			if defeats := manual()[a.key]; defeats != nil && defeats(a.value) {
				return append(own, assignment{rootDistance, seconds(defaultRootDistance)}), nil
			}
		}
	}
	return own, nil
}
