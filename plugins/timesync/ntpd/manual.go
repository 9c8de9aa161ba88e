package main

import (
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/timesync/internal/directives"
	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// The defaults of ntpd. A narrower limit of another author is made for other sources than the document's.
const (
	defaultMaxDistance         = 1.5
	leastFloor, defaultCeiling = 1, 15
)

// manual has every directive of ntp.conf(5) of NTPsec 1.2 and of the NTP reference implementation since 4.2.6. The lines of
// the document are the last, so others' defeat it only where order does not count.
func manual() directives.Manual {
	m := directives.Manual{}

	// Ours if the document has sources.
	m.Set(directives.Directive{Source: true}, "server pool peer refclock fudge broadcastclient multicastclient manycastclient")
	m.Set(directives.Directive{Files: true}, "includefile")

	// Ours if the document has the field, or the directive in providerConfig.
	m.Set(directives.Directive{Value: true}, "keys")
	m.Set(directives.Directive{Value: true, Opposes: func(_ []string, want settings.Settings) bool { return want.Smeared }},
		"leapfile") // ntpd must not insert leap seconds that the sources spread
	m.Set(directives.Directive{}, "trustedkey")

	// They defeat a document. ntpd turns off what is disabled after it has read every line, and removes sources last. For
	// restrict, interface and nic see blocked.
	m.Set(directives.Directive{Opposes: func(_ []string, want settings.Settings) bool { return want.HasSources() }}, "unpeer unconfig")
	m.Set(directives.Directive{Opposes: disables}, "disable")
	m.Set(directives.Directive{Limits: tosLimits}, "tos")
	m.Set(directives.Directive{Limits: tinkerLimits}, "tinker")
	m.Set(directives.Directive{}, "restrict unrestrict delrestrict interface nic")

	// Harmless: what ntpd serves to clients, remembers of them and logs, where it keeps its state, and options of sources and
	// of drivers.
	m.Set(directives.Directive{Value: true}, `driftfile logfile pidfile statsdir controlkey requestkey ntpsigndsocket mdnstries dscp
		leapsmearinterval saveconfigdir keysdir revoke automax broadcastdelay phone`)
	m.Set(directives.Directive{}, `enable statistics filegen logconfig nts rlimit mru discard limit setvar reset trap ttl crypto device
		pollskewlist broadcast manycastserver simulate extra end`)
	arguments(m)
	return m
}

// arguments adds what a directive takes in either implementation. Source: the grammars of both, ntp_parser.y. At a line with something else
// ntpd logs a syntax error and uses the rest of the file.
func arguments(m directives.Manual) {
	const family, host = "-4|-6?", "HOST"
	pairs := func(name, options string) {
		m.Take("", name)
		m.TakeSome(options, name)
	}
	m.Take("PATH", "keys keysdir leapfile logfile pidfile statsdir saveconfigdir ntpsigndsocket")
	m.Take("KEYS ...", "trustedkey")
	m.Take("EVENTS ...", "logconfig")
	m.Take("novolley?", "broadcastclient")
	m.Take("WHOLE ...", "ttl")
	m.Take("PATH? NUMBER?", "driftfile") // without a file it has none
	m.Take("WHOLE", "controlkey requestkey dscp mdnstries leapsmearinterval automax revoke")
	m.Take("NUMBER", "broadcastdelay")
	const flags, values = "autokey burst iburst noselect noval nts preempt prefer true xleave", `aead= ask= baud bias ca= cert= expire flag1= flag2= flag3= flag4= ident= key maxpoll=0..17
		minpoll=0..17 mode path= ppspath= refid=REFID require= stratum=0..16 subtype time1 time2 ttl version`
	m.Take(family+" "+host, "server pool peer broadcast manycastclient")
	m.TakeOptions(flags, values, "server pool peer broadcast manycastclient")
	m.Take("TEXT", "refclock")
	m.TakeOptions(flags, values+" unit", "refclock")
	m.Take(family+" CLOCK", "fudge")
	m.TakeSome("abbrev= flag1=0|1 flag2=0|1 flag3=0|1 flag4=0|1 refid=REFID stratum=0..16 time1 time2", "fudge")
	m.Take(family+" TEXT", "restrict unrestrict delrestrict")
	m.TakeOptions(`flake ignore kod limited lowpriotrap mssntp nomodify nomrulist nopeer noquery noserve notrap notrust ntpport version`, "mask=ADDRESS", "restrict unrestrict delrestrict")
	pairs("tinker", "allan dispersion freq huffpuff panic step stepback stepfwd stepout tick")
	pairs("tos", "beacon ceiling=1..16 floor=0..15 maxclock maxdisp maxdist minclock mindist minsane orphan=0..16 orphanwait cohort")
	pairs("mru", "incalloc incmem initalloc initmem maxage maxdepth maxmem minage mindepth")
	pairs("discard", "average minimum monitor")
	pairs("limit", "average burst kod")
	pairs("rlimit", "filenum memlock stacksize")
	pairs("extra", "port")
	m.Take("auth|bclient|calibrate|kernel|mode7|monitor|ntp|stats|unpeer_crypto_early|unpeer_crypto_nak_early|unpeer_digest_early ...", "enable disable")
	const records = "clockstats|cryptostats|loopstats|ntskelog|ntskestats|ntsstats|peerstats|protostats|rawstats|sysstats|timingstats|usestats"
	m.Take(records+" ...", "statistics")
	m.Take(records, "filegen")
	m.TakeOptions("disable enable link nolink", "file= type=age|day|month|none|pid|week|year", "filegen")
	m.Take("drop|ignore|listen IFACE", "interface nic")
	m.Take("", "crypto")
	m.TakeOptions("", "digest= host= ident= pw= randfile= revoke", "crypto")
	m.Take("allpeers|auth|ctl|io|mem|sys|timer ...", "reset")
	for name, d := range m {
		d.Comments = true
		m[name] = d
	}
}

// disables matches a line that turns off what the document asks for: the clock follows the sources, the kernel the clock, or what it
// enables itself.
func disables(words []string, want settings.Settings) bool {
	for _, l := range want.Lines {
		enable := l.Words()
		if len(enable) > 0 && enable[0] == "enable" && slices.ContainsFunc(enable[1:], func(flag string) bool { return slices.Contains(words[1:], flag) }) {
			return true
		}
	}
	return want.HasSources() && slices.Contains(words, "ntp") || want.RTCSync != nil && *want.RTCSync && slices.Contains(words, "kernel")
}

// tosLimits matches a line that excludes sources by their stratum or distance, or only says how many sources there must be:
// that of Debian requires three.
func tosLimits(words []string, want settings.Settings) bool {
	number, narrow := true, false
	options(words, func(option string, value float64) {
		number = number && (option == "minclock" || option == "minsane")
		narrow = narrow || option == "floor" && value > leastFloor || option == "ceiling" && value < defaultCeiling ||
			option == "maxdist" && value < defaultMaxDistance
	})
	return want.HasSources() && narrow || want.ReplacesSources() && number
}

// tinkerLimits matches a threshold with which ntpd does not let the kernel copy the time to the real-time clock.
func tinkerLimits(words []string, want settings.Settings) (off bool) {
	options(words, func(option string, value float64) {
		off = off || strings.HasPrefix(option, "step") && option != "stepout" && (value <= 0 || value > maxKernelStep.Seconds())
	})
	return off && want.RTCSync != nil && *want.RTCSync && want.MakeStep == nil
}

// more returns what a line that defeats the document says beside that, empty if nothing.
func more(words []string, want settings.Settings) string {
	step := 1
	if words[0] == "tos" || words[0] == "tinker" {
		step = 2
	}
	for i := 1; i < len(words) && !strings.HasPrefix(words[i], "#"); i += step {
		part := append([]string{words[0]}, words[i:min(i+step, len(words))]...)
		if step == 2 && words[0] == "tos" && slices.Contains([]string{"minclock", "minsane"}, words[i]) {
			continue
		}
		if d := manual()[words[0]]; d.Opposes != nil && !d.Opposes(part, want) || d.Limits != nil && !d.Limits(part, want) {
			return words[i]
		}
	}
	return ""
}

// resolve returns the settings of a document, or all of its violations.
func resolve(doc v1alpha1.Timesync) (settings.Settings, []sdk.Violation) {
	want, violations := directives.Resolve(doc)
	fields := want
	fields.Lines = nil
	want.Warnings = slices.Concat(want.Warnings, manual().Warn(want), doubts(want))
	violations = slices.Concat(violations, manual().Refuse(render(fields, "keys"), want), assignments(want))
	for _, l := range want.Lines {
		if words := l.Words(); len(words) > 0 && words[0] == "tinker" && want.MakeStep != nil && slices.Contains(words, "step") {
			violations = append(violations, sdk.Violation{
				Field: string(l.Field), Message: "tinker step is set by spec.makeStep as well, and the daemon uses one of the two", Hint: "remove one of the two",
			})
		}
	}
	return want, violations
}
