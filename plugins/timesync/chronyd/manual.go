package main

import (
	"slices"
	"strings"

	"github.com/machineadm/machineadm/plugins/timesync/internal/directives"
	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
)

// The defaults of chronyd. A smaller limit of another author is made for other sources than the document's.
const defaultMaxDistance, defaultMaxJitter, defaultMaxStratum = 3, 1, 15

// manual has every directive of chrony.conf(5) of chrony 3.2 to 4.8, and directives of later releases that the sources have. How
// lines of one directive count is that of conf.c: unless it says otherwise, the last one.
func manual() directives.Manual {
	m := directives.Manual{}

	// Ours if the document has sources.
	m.Set(directives.Directive{Source: true}, "server pool peer refclock sourcedir")
	m.Set(directives.Directive{Source: true, Value: true}, "initstepslew")
	m.Set(directives.Directive{Files: true}, "include confdir")

	// Ours if the document has the field, or the directive in providerConfig. Of each there is one value.
	m.Set(directives.Directive{Value: true}, "makestep keyfile user")
	m.Set(directives.Directive{Value: true, Opposes: rtcOpposes}, "rtcfile")
	m.Set(directives.Directive{Opposes: rtcOpposes}, "rtcsync")
	m.Set(directives.Directive{
		Value: true, Same: "leapsectz", Opposes: func(_ []string, want settings.Settings) bool { return want.Smeared },
	}, "leapsectz leapseclist") // chronyd must not insert leap seconds that the sources spread; it prefers the list

	// They defeat a document: with them chronyd does not use its sources, or gives up before it has corrected the clock.
	m.Set(directives.Directive{Value: true, Limits: demandsSources, Excludes: demandsSources}, "minsources")
	m.Set(directives.Directive{Value: true, Limits: demandsAuthentication, Excludes: demandsAllAuthentication}, "authselectmode")
	m.Set(directives.Directive{Value: true, Limits: directives.Below(defaultMaxDistance)}, "maxdistance")
	m.Set(directives.Directive{Value: true, Limits: directives.Below(defaultMaxJitter)}, "maxjitter")
	m.Set(directives.Directive{Value: true, Limits: directives.Below(defaultMaxStratum)}, "maxstratum")
	m.Set(directives.Directive{Value: true, Limits: func(words []string, want settings.Settings) bool {
		return want.HasSources() && len(words) > 1 && words[1] != "0"
	}}, "minstratum")
	m.Set(directives.Directive{Value: true, Limits: func(_ []string, want settings.Settings) bool { return want.MakeStep != nil }}, "maxchange")
	m.Set(directives.Directive{Value: true, Part: family, Limits: loopback, Excludes: loopback}, "bindacqaddress")
	m.Set(directives.Directive{Value: true, Limits: loopback, Excludes: loopback}, "bindacqdevice")

	// Harmless: how chronyd chooses between sources, measures and corrects the clock, which certificates it trusts, what it
	// serves to clients and to chronyc, where it keeps its state, and what it logs.
	m.Set(directives.Directive{Value: true}, `acquisitionport dscp dumpdir maxsamples minsamples ntsaeads ntsrefresh
		nocerttimecheck refresh combinelimit reselectdist stratumweight clockprecision corrtimeratio driftfile
		fallbackdrift leapsecmode maxclockerror maxdrift maxupdateskew maxslewrate tempcomp
		binddevice local ntpsigndsocket ntsport ntsprocesses maxntsconnections ntsntpserver ntsrotate
		port ratelimit ntsratelimit smoothtime bindcmddevice cmdport cmdratelimit opencommands
		rtcautotrim rtcdevice logbanner logchange logdir mailonchange
		hwtstimeout maxtxbuffers pidfile ptpport ptpdomain sched_priority`)
	m.Set(directives.Directive{Value: true, Same: "ntsdumpdir"}, "ntsdumpdir ntscachedir")
	m.Set(directives.Directive{Value: true, Same: "hwclockfile"}, "hwclockfile rtconutc")
	m.Set(directives.Directive{Value: true, Same: "noclientlog"}, "noclientlog clientloglimit")
	m.Set(directives.Directive{Value: true, Part: family}, "bindaddress bindcmdaddress")
	m.Set(directives.Directive{Value: true, Part: func(words []string) string { return words[1] }}, "hwtimestamp")
	m.Set(directives.Directive{}, "allow deny cmdallow cmddeny broadcast ntstrustedcerts ntsservercert ntsserverkey log")
	m.Set(directives.Directive{}, "lock_all manual nosystemcert") // without a value
	m.Set(directives.Directive{Gone: "chronyd does so always; remove it"}, "dumponexit")
	m.Set(directives.Directive{Gone: "chronyd has no keys of commands since 2.2; remove it"}, "commandkey generatecommandkey")
	m.Set(directives.Directive{Gone: "chronyd finds it out since 1.30; remove it"}, "linux_freq_scale linux_hz")

	arguments(m)
	return m
}

// arguments adds what a directive takes: the functions of conf.c and cmdparse.c, with the bounds of chrony 4.8. An earlier chronyd takes another
// value in place of one beyond them.
func arguments(m directives.Manual) {
	m.Take("", "lock_all manual noclientlog nosystemcert rtconutc rtcsync")
	m.Take("0..65535", "acquisitionport cmdport ntsport port ptpport")
	m.Take("0..", "clientloglimit logbanner maxsamples maxstratum minsamples minstratum nocerttimecheck ntsrefresh ntsrotate refresh")
	m.Take("1..", "maxntsconnections minsources")
	m.Take("0..63", "dscp")
	m.Take("0..100", "sched_priority")
	m.Take("0..255", "ptpdomain")
	m.Take("0..1000", "ntsprocesses")
	m.Take("0..1048576", "maxtxbuffers")
	m.Take("NUMBER", `clockprecision combinelimit corrtimeratio hwtstimeout logchange maxclockerror maxdistance maxdrift maxjitter maxslewrate
		maxupdateskew reselectdist rtcautotrim stratumweight`)
	m.Take("TEXT", "bindacqdevice bindcmddevice binddevice leapsectz ntsntpserver")
	m.Take("PATH", `dumpdir hwclockfile keyfile leapseclist logdir ntpsigndsocket ntscachedir ntsdumpdir ntsservercert ntsserverkey pidfile rtcdevice rtcfile
		sourcedir`)
	m.Take("ADDRESS|PATH", "bindcmdaddress")
	m.Take("NAME", "user")
	m.Take("PATH / PATH interval NUMBER", "driftfile")
	m.Take("ADDRESS", "bindacqaddress bindaddress")
	m.Take("all? NETWORK?", "allow deny cmdallow cmddeny")
	m.Take("measurements|rawmeasurements|statistics|tracking|rtc|refclocks|tempcomp|selection? ...", "log")
	m.Take("HOST", "server pool peer")
	m.TakeOptions("auto_offline burst copy iburst ipv4 ipv6 noselect nts offline prefer require trust xleave",
		`asymmetry certset=0.. extfield= filter=0.. key=1.. maxdelay maxdelaydevratio maxdelayquant maxdelayratio maxpoll=-7..24 maxsamples=0.. maxsources=1..16
		maxunreach=0.. mindelay minpoll=-7..24 minsamples=0.. minstratum=0..16 ntsport=0..65535 offset polltarget=1.. port=0..65535 presend=-32..32
		version=1..4`, "server pool peer")
	m.Take("PPS|SHM|SOCK|PHC|RTC DEVICE", "refclock")
	m.TakeOptions("local noselect pps prefer require tai trust", `delay dpoll=-32..32 filter=0.. lock= maxdispersion maxlockage=0.. maxsamples=0.. maxunreach=0..
		minsamples=0.. offset poll=-32..32 precision rate=1.. refid=REFID stratum=0..15 width`, "refclock")
	m.Take("TEXT", "hwtimestamp")
	m.TakeOptions("nocrossts", "maxpoll=-32..32 maxsamples=0.. minpoll=-32..32 minsamples=0.. precision rxcomp rxfilter=none|ntp|ptp|all txcomp", "hwtimestamp")
	m.Take("", "local ratelimit cmdratelimit ntsratelimit")
	m.TakeOptions("orphan", "activate distance stratum=1..15 waitsynced waitunsynced", "local")
	m.TakeOptions("", "burst=-32..32 interval=-32..32 kod=-32..32 leak=-32..32", "ratelimit cmdratelimit ntsratelimit")
	m.Take("NUMBER NUMBER leaponly?", "smoothtime")
	m.Take("PATH NUMBER PATH / PATH NUMBER NUMBER NUMBER NUMBER NUMBER", "tempcomp")
	m.Take("WHOLE ADDRESS 0..65535?", "broadcast")
	m.Take("NUMBER TEXT? ...", "initstepslew")
	m.Take("0..? TEXT", "ntstrustedcerts")
	m.Take("0.. ...", "ntsaeads")
	m.Take("NUMBER WHOLE", "makestep")
	m.Take("NUMBER WHOLE WHOLE", "maxchange")
	m.Take("WHOLE WHOLE", "fallbackdrift")
	m.Take("TEXT NUMBER", "mailonchange")
	m.Take("require|prefer|mix|ignore", "authselectmode")
	m.Take("system|slew|step|ignore", "leapsecmode")
}

// family distinguishes addresses of IPv4, of IPv6 and paths of sockets: chronyd has one value for each.
func family(words []string) string {
	switch address := words[1]; {
	case strings.HasPrefix(address, "/"):
		return "/"
	case strings.Contains(address, ":"):
		return "::"
	}
	return "0.0.0.0"
}

// rtcOpposes matches what contradicts spec.rtcSync: chronyd does not start with both rtcsync and rtcfile.
func rtcOpposes(words []string, want settings.Settings) bool {
	synchronized := want.RTCSync != nil && *want.RTCSync
	for _, l := range want.Lines {
		if other := l.Words(); len(other) > 0 && want.RTCSync == nil {
			synchronized = synchronized || other[0] == "rtcsync"
			if other[0] == "rtcfile" && words[0] == "rtcsync" {
				return true
			}
		}
	}
	if words[0] == "rtcfile" {
		return synchronized
	}
	return want.RTCSync != nil && !*want.RTCSync
}

// demandsSources matches a number of sources that the document does not have. A pool has four servers.
func demandsSources(words []string, want settings.Settings) bool {
	number := len(want.RefClocks)
	for _, s := range want.Sources {
		number++
		if s.Pool {
			number += 3
		}
	}
	return directives.Exceeds(words, number) && want.HasSources()
}

// demandsAuthentication matches the mode that leaves sources without authentication alone, if the document has such sources.
func demandsAuthentication(words []string, want settings.Settings) bool {
	return len(words) > 1 && strings.EqualFold(words[1], "require") &&
		slices.ContainsFunc(want.Sources, func(s settings.Source) bool { return !s.Authenticated() })
}

// demandsAllAuthentication matches that mode if no source of the document has authentication.
func demandsAllAuthentication(words []string, want settings.Settings) bool {
	return demandsAuthentication(words, want) && !slices.ContainsFunc(want.Sources, settings.Source.Authenticated)
}

// loopback matches an address or interface that reaches this machine alone.
func loopback(words []string, want settings.Settings) bool {
	return len(want.Sources) > 0 && len(words) > 1 && slices.Contains([]string{"127.0.0.1", "::1", "lo"}, words[1])
}
