package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

const (
	// leastPoll is the shortest interval of timesyncd, 16 s. defaultLeastPoll and defaultMostPoll are those without
	// PollIntervalMinSec, 32 s, and PollIntervalMaxSec, 2048 s. All are exponents of 2. Source: timesyncd.conf(5).
	leastPoll, defaultLeastPoll, defaultMostPoll = 4, 5, 11

	rootDistance = "RootDistanceMaxSec"
)

// assignment is a line of the section [Time]. The keys NTP and FallbackNTP have lists: an assignment appends to them, and an
// empty one resets them.
type assignment struct{ key, value string }

func render(all []assignment) string {
	var b strings.Builder
	b.WriteString("# Written by machineadm for a Timesync document. Changes are overwritten.\n[Time]\n")
	for _, a := range all {
		b.WriteString(a.key + "=" + a.value + "\n")
	}
	return b.String()
}

// desired returns the assignments of a document. Source: timesyncd.conf(5).
func desired(want settings.Settings) []assignment {
	var all []assignment
	list := func(key string, addresses []string) {
		if !want.KeepDistributionSources {
			all = append(all, assignment{key, ""})
		}
		if len(addresses) > 0 {
			all = append(all, assignment{key, strings.Join(addresses, " ")})
		}
	}
	if len(want.Sources) > 0 {
		list("NTP", addresses(want))
	}
	if want.ReplacesSources() || len(want.Fallback) > 0 {
		list("FallbackNTP", want.Fallback)
	}
	if len(want.Sources) == 0 {
		return all
	}
	shortest, longest := want.Sources[0].MinPoll, want.Sources[0].MaxPoll // as in all sources: see unsupported
	if shortest == nil && longest == nil {
		return all
	}
	// timesyncd ignores a longest interval that is below the shortest one, and another file can have either.
	least, most := defaultLeastPoll, defaultMostPoll
	if longest != nil {
		least, most = min(least, *longest), *longest
	}
	if shortest != nil {
		least, most = *shortest, max(most, *shortest)
	}
	return append(all, assignment{"PollIntervalMinSec", strconv.Itoa(1 << least)}, assignment{"PollIntervalMaxSec", strconv.Itoa(1 << most)})
}

// seconds is a duration as timesyncd.conf(5) has it.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }

// addresses returns the servers in the order in which timesyncd tries them: the preferred ones first.
func addresses(want settings.Settings) []string {
	var all []string
	for _, preferred := range []bool{true, false} {
		for _, s := range want.Sources {
			if s.Prefer == preferred {
				all = append(all, s.Address)
			}
		}
	}
	return all
}

// unsupported returns what timesyncd, a client of SNTP, cannot express.
func unsupported(want settings.Settings) []sdk.Violation {
	var all []sdk.Violation
	const other = "remove it, or use the provider chronyd"
	refuse := func(unable bool, field, message, hint string) {
		if unable {
			all = append(all, sdk.Violation{Field: field, Message: message, Hint: hint})
		}
	}
	poll := func(value, first *int, field string) {
		refuse(value != nil && *value < leastPoll, field, "the shortest interval of timesyncd is 16 s", "set 4 or more")
		refuse((value == nil) != (first == nil) || value != nil && *value != *first, field,
			"timesyncd has one interval for all sources, and that of "+want.Sources[0].Field+" differs",
			"set the same on every source, or none")
	}
	for _, s := range want.Sources {
		refuse(s.NTS, s.Field+".nts", "timesyncd has no Network Time Security", other)
		refuse(s.Key != nil, s.Field+".key", "timesyncd does not authenticate servers", other)
		refuse(s.MaxSources != nil, s.Field+".maxSources", "timesyncd uses one server at a time", "remove it")
		poll(s.MinPoll, want.Sources[0].MinPoll, s.Field+".minPoll")
		poll(s.MaxPoll, want.Sources[0].MaxPoll, s.Field+".maxPoll")
	}
	for _, c := range want.RefClocks {
		refuse(true, c.Field, "timesyncd has no reference clocks", other)
	}
	refuse(want.MakeStep != nil, "spec.makeStep", "timesyncd steps the clock at every offset of 400 ms or more", other)
	refuse(want.RTCSync != nil && !*want.RTCSync, "spec.rtcSync",
		"the kernel sets the real-time clock while timesyncd has synchronized the system clock", other)
	return all
}
