package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// The limits of ntpd. Source: NTPsec, include/ntp.h and ntpd/ntp_loopfilter.c.
const (
	minPoll, maxPoll = 0, 17
	// minReferencePoll is the limit of the reference implementation.
	minReferencePoll = 3
	// maxKernelStep is the largest step threshold with which ntpd lets the kernel discipline the clock.
	maxKernelStep = 500 * time.Millisecond
)

// refusals collects what is Unsupported. The first one is the answer.
type refusals []error

func (r *refusals) add(refused bool, field, message, hint string) {
	if refused {
		*r = append(*r, sdk.Unsupported(field, message, hint))
	}
}

func (r *refusals) poll(field string, value *int, least int) {
	r.add(value != nil && (*value < least || *value > maxPoll), field,
		fmt.Sprintf("ntpd accepts exponents from %d to %d", least, maxPoll), "")
}

func (r *refusals) first() error { return append(*r, nil)[0] }

// unsupported refuses what no ntpd can express.
func unsupported(want settings.Settings) error {
	var r refusals
	step, rtc := want.MakeStep, want.RTCSync
	r.add(len(want.Fallback) > 0, "spec.fallback", "ntpd has no fallback servers: it uses the best of all sources",
		"list them in servers, or remove them")
	r.add(step != nil && step.Limit > 0, "spec.makeStep.limit", "ntpd cannot limit the number of updates in which it steps the clock",
		"use -1, 0 for no step, or remove makeStep: by default ntpd steps the clock once, at its start")
	r.add(rtc != nil && step != nil && step.Limit == 0, "spec.rtcSync",
		"an ntpd that never steps the clock does not let the kernel copy the time to the real-time clock", "remove rtcSync, or set a makeStep.limit of -1")
	r.add(rtc != nil && !*rtc, "spec.rtcSync",
		"the kernel copies the time to the real-time clock as soon as ntpd has synchronized it", "remove rtcSync")
	r.add(rtc != nil && step != nil && step.Threshold > maxKernelStep, "spec.rtcSync",
		"with a step threshold of more than 500ms ntpd does not let the kernel copy the time to the real-time clock",
		"use a makeStep.threshold of at most 500ms, or remove rtcSync")
	for _, s := range want.Sources {
		r.add(s.MaxSources != nil, s.Field+".maxSources", "ntpd cannot limit the servers of one pool",
			"remove maxSources; the line \"tos maxclock N\" in providerConfig.directives limits all sources together")
		r.add(s.Pool && s.NTS, s.Field+".nts", "ntpd uses NTS only with single servers", "list the servers of the pool in servers")
		r.poll(s.Field+".minPoll", s.MinPoll, minPoll)
		r.poll(s.Field+".maxPoll", s.MaxPoll, minPoll)
	}
	preferred := slices.ContainsFunc(want.Sources, func(s settings.Source) bool { return s.Prefer })
	for _, c := range want.RefClocks {
		if c.Line != "" {
			continue
		}
		r.add(c.Driver != "pps", c.Field, "ntpd has no driver "+c.Driver, "use the provider chronyd, or remove the clock")
		r.poll(c.Field+".poll", c.Poll, minPoll)
		r.add(!preferred, c.Field, "ntpd uses a pulse per second only beside a preferred server, which numbers the seconds",
			"set prefer of a server")
	}
	if _, err := renderKeys(want.Keys()); err != nil {
		r = append(r, err)
	}
	return r.first()
}

// unsupportedByReference refuses what not every release of the reference implementation since 4.2.6 can express.
func unsupportedByReference(want settings.Settings) error {
	const (
		subject = "ntpd of the NTP reference implementation "
		hint    = "install NTPsec, or use the provider chronyd"
	)
	var r refusals
	for _, c := range want.RefClocks {
		r.add(true, c.Field, subject+"takes no path of a clock", hint)
	}
	for _, s := range want.Sources {
		r.add(s.NTS, s.Field+".nts", subject+"has no NTS", hint)
		r.poll(s.Field+".minPoll", s.MinPoll, minReferencePoll)
		r.poll(s.Field+".maxPoll", s.MaxPoll, minReferencePoll)
	}
	for _, k := range want.Keys() {
		value, err := k.Bytes()
		r.add(k.Type != "MD5" && k.Type != "SHA1", k.Field+".type",
			"not every "+subject+"has keys of type "+k.Type, "use SHA1, or "+hint)
		r.add(err != nil || len(value) > maxTextKey, k.Field+".value",
			"not every "+subject+"has keys of more than 20 bytes", "use a shorter key, or "+hint)
	}
	return r.first()
}
