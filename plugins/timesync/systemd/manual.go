package main

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/machineadm/machineadm/internal/lazyregexp"
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

// spanUnits are the units of a time span in seconds. Source: systemd.time(7).
func spanUnits() map[string]float64 {
	units := map[string]float64{}
	for seconds, names := range map[float64]string{
		1e-9: "ns nsec", 1e-6: "us usec µs μs", 1e-3: "ms msec", 1: "s sec second seconds", 60: "m min minute minutes", 3600: "h hr hour hours", 86400: "d day days",
		604800: "w week weeks", 2629800: "M month months", 31557600: "y year years",
	} {
		for name := range strings.FieldsSeq(names) {
			units[name] = seconds
		}
	}
	units[""] = 1
	return units
}

// spanPart is one number and its unit.
var spanPart = lazyregexp.New(`^\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([A-Za-zµμ]*)\s*`)

// span parses a time span, the sum of numbers with their units, such as 1min 30s.
func span(text string) (time.Duration, error) {
	const longest = 100 * 365 * 24 * time.Hour
	if strings.TrimSpace(text) == "infinity" {
		return longest, nil
	}
	total, units := 0.0, spanUnits()
	for rest := text; ; {
		part := spanPart().FindStringSubmatch(rest)
		if part == nil {
			return 0, errors.New("is no time span")
		}
		unit, known := units[part[2]]
		number, err := strconv.ParseFloat(part[1], 64)
		if !known || err != nil {
			return 0, errors.New("is no time span")
		}
		total += number * unit
		if rest = rest[len(part[0]):]; rest == "" {
			break
		}
	}
	return time.Duration(min(total*float64(time.Second), float64(longest))), nil
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
