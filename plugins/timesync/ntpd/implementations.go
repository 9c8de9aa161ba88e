package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/internal/lazyregexp"
	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// What the grammar of one implementation alone has: NAME for a directive, NAME WORD for a word of its line. ntpd logs a syntax error at the line of
// the other one, and starts without it. Sources: ntpd/ntp_parser.y of NTPsec 1.2 and of the reference implementation 4.2.8.
const (
	onlyReference = `broadcast,broadcastclient,multicastclient,manycastclient,manycastserver,crypto,keysdir,revoke,automax,broadcastdelay,device,pollskewlist,
		simulate,trap,ttl,delrestrict,server autokey,server preempt,server xleave,server ident,pool autokey,pool preempt,pool xleave,pool ident,peer autokey,
		peer preempt,peer xleave,peer ident,tos beacon,restrict lowpriotrap,enable auth,enable bclient,enable mode7,enable unpeer_crypto_early,
		enable unpeer_crypto_nak_early,enable unpeer_digest_early,disable auth,disable bclient,disable mode7,statistics cryptostats,filegen cryptostats`
	onlyNTPsec = `nts,extra,limit,refclock,unrestrict,server nts,server aead,server ask,server ca,server cert,server expire,server noval,server require,server bias,
		pool bias,tos maxdisp,mru minage,statistics usestats,statistics ntsstats,statistics ntskestats,statistics ntskelog,filegen usestats,filegen ntsstats,
		filegen ntskestats,filegen ntskelog`
)

// otherImplementation refuses lines that the installed ntpd does not have.
func otherImplementation(want settings.Settings, ntpsec bool) error {
	table, has, other := onlyNTPsec, "the NTP reference implementation", "NTPsec"
	if ntpsec {
		table, has, other = onlyReference, "NTPsec", "the NTP reference implementation"
	}
	var entries []string
	for entry := range strings.SplitSeq(table, ",") {
		entries = append(entries, strings.TrimSpace(entry))
	}
	var r refusals
	for _, l := range want.Directives() {
		words := l.Words()
		if i := slices.IndexFunc(words, func(word string) bool { return strings.HasPrefix(word, "#") }); i >= 0 {
			words = words[:i]
		}
		for i := range words {
			name := words[0]
			if i > 0 {
				name += " " + strings.ToLower(words[i])
			}
			r.add(slices.Contains(entries, name), string(l.Field), "ntpd of "+has+" has no "+name+", and ignores the line", "remove it, or install "+other)
		}
		cidr := len(words) > 1 && (words[0] == "restrict") && strings.Contains(words[1], "/")
		r.add(cidr && !ntpsec, string(l.Field), "ntpd of "+has+" takes a network with its mask", "write it like restrict 192.0.2.0 mask 255.255.255.0")
	}
	return r.first()
}

// assignment is the form of setvar. Source: variable_assign of ntp_parser.y.
var assignment = lazyregexp.New(`(?i)^setvar\s+[^\s=]+\s*=\s*(?:"[^"]*"|[^\s="]+)(?:\s+default)?\s*(?:#.*)?$`)

// assignments refuses lines setvar that are none.
func assignments(want settings.Settings) (all []sdk.Violation) {
	for _, l := range want.Lines {
		if words := l.Words(); len(words) > 0 && words[0] == "setvar" && !assignment().MatchString(strings.TrimSpace(l.Text)) {
			all = append(all, sdk.Violation{Field: string(l.Field), Message: "setvar is no assignment, and ntpd ignores the line", Hint: "write it like setvar NAME = VALUE, with default behind it for what ntpq prints by default"})
		}
	}
	return all
}

// doubts warns of lines that ntpd takes and that do not do what they are written for. Sources: ntp.conf(5), and the pages of its access control,
// of the local clock and of pools.
func doubts(want settings.Settings) (all []sdk.Warning) {
	var clocks []string
	pools, source := slices.ContainsFunc(want.Sources, func(s settings.Source) bool { return s.Pool }), false
	for _, l := range want.Directives() {
		if words := l.Words(); len(words) > 1 {
			source = source || words[0] == "restrict" && words[1] == "source"
			pools = pools || words[0] == "pool"
			if words[0] == "server" || words[0] == "peer" {
				clocks = append(clocks, words[1])
			}
		}
	}
	for _, l := range want.Directives() {
		words := l.Words()
		if len(words) < 2 {
			continue
		}
		warn := func(bad bool, message string) {
			if bad {
				all = append(all, sdk.Warning{Field: string(l.Field), Message: message})
			}
		}
		local := words[0] == "server" && strings.HasPrefix(words[1], "127.127.1.") || words[0] == "refclock" && strings.EqualFold(words[1], "local")
		warn(local, "is the machine's own clock, which ntpd counts as a source when no server answers, and as synchronized: remove it, or use tos orphan")
		warn(words[0] == "fudge" && strings.HasPrefix(words[1], "127.127.") && !slices.Contains(clocks, words[1]) && !strings.HasPrefix(words[1], "127.127.22."), "changes a clock that no server line of the document has, and ntpd ignores the line: add server "+words[1])
		warn(words[0] == "restrict" && slices.Contains(words, "default") && slices.Contains(words, "nopeer") && pools && !source, "nopeer keeps ntpd from using the servers of a pool: add the line restrict source nomodify notrap noquery")
		options(words, func(option string, value float64) {
			warn(words[0] == "tinker" && option == "panic" && value > 0 && value < 1, "panic ends ntpd at an offset of less than a second: use 1000, or 0 for none")
			warn(words[0] == "tos" && option == "minsane" && int(value) > len(want.Sources)+len(want.RefClocks) && !pools && want.HasSources(), "minsane is more than the sources of the document, so that ntpd never synchronizes: use at most their number")
			warn(words[0] == "tos" && option == "maxdist" && value > 0 && value < 0.01, "maxdist is in seconds, and ntpd ignores every source that is farther away, which is all of a network: use 1.5")
			warn(words[0] == "tos" && option == "floor" && value > 5, "floor makes ntpd ignore servers of a lower stratum, which is nearly all: remove it")
			warn(words[0] == "tos" && option == "ceiling" && value < 3, "ceiling makes ntpd ignore servers of this stratum and above, which is nearly all: use 15")
		})
		warn(words[0] == "requestkey", "has an effect for ntpdc alone, which NTPsec does not have")
		warn(words[0] == "peer", "NTPsec takes a peer as a server: write server")
	}
	return all
}

// options calls f with each option of a line and its number.
func options(words []string, f func(option string, value float64)) {
	for i := 1; i+1 < len(words) && !strings.HasPrefix(words[i], "#"); i += 2 {
		if value, err := strconv.ParseFloat(words[i+1], 64); err == nil {
			f(words[i], value)
		}
	}
}
