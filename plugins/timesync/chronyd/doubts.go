package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/internal/lazyregexp"
	"github.com/machineadm/machineadm/plugins/timesync/internal/directives"
	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// defaultRefID is the identifier of a clock without refid: the beginning of its driver and its number.
var defaultRefID = lazyregexp.New(`^(PPS|SHM|SOC|PHC|RTC)[0-9]+$`)

// leastNumber is a number below which a line of chronyd does nothing that it is for, and what chronyd does then.
type leastNumber struct {
	number  float64
	message string
}

func leastNumbers() map[string]leastNumber {
	return map[string]leastNumber{
		"maxdistance":   {0.001, "chronyd ignores every source that is farther away, which is all of a network: use seconds, such as 3"},
		"maxjitter":     {0.000001, "chronyd ignores every source with more jitter, which is all of a network: use seconds, such as 1"},
		"maxslewrate":   {1, "chronyd corrects the clock so slowly that it never arrives: use parts per million, such as 83333"},
		"maxupdateskew": {0.001, "chronyd ignores every estimate of the frequency: use parts per million, such as 1000"},
	}
}

// doubts warns of lines that chronyd takes and that do not do what they are written for. Source: chrony.conf(5), and sources.c, refclock.c,
// reference.c and ntp_core.c of chrony.
func doubts(want settings.Settings) (all []sdk.Warning) {
	lines := want.Directives()
	has := func(names ...string) bool {
		return slices.ContainsFunc(lines, func(l settings.Line) bool { return len(l.Words()) > 0 && slices.Contains(names, l.Words()[0]) })
	}
	var refIDs []string
	pulse := len(want.Sources) == 0 && len(want.RefClocks) > 0
	for _, l := range lines {
		words := l.Words()
		if len(words) > 0 && words[0] == "refclock" {
			refIDs = append(refIDs, option(words, "refid"))
			pulse = pulse && len(words) > 1 && strings.EqualFold(words[1], "PPS") && option(words, "lock") == ""
		}
	}
	pulse = pulse && !slices.ContainsFunc(want.RefClocks, func(c settings.RefClock) bool { return c.Line == "" })
	for _, l := range lines {
		words := l.Words()
		if len(words) == 0 {
			continue
		}
		warn := func(bad bool, message string) {
			if bad {
				all = append(all, sdk.Warning{Field: string(l.Field), Message: message})
			}
		}
		number := func(otherwise float64) float64 {
			if len(words) < 2 {
				return otherwise
			}
			return directives.Number(words[1], otherwise)
		}
		if limit, is := leastNumbers()[words[0]]; is {
			warn(number(limit.number) < limit.number, "with this "+words[0]+" "+limit.message)
		}
		switch words[0] {
		case "server", "pool", "peer":
			offset := directives.Number(option(words, "offset"), 0)
			warn(offset >= 1 || offset <= -1, "offset moves the clock by a second or more from this source: it is in seconds, for an asymmetric network or a clock that is known to be off")
			warn(option(words, "minstratum") == "16", "minstratum 16 is the stratum of a source that is not synchronized, so that chronyd never uses it")
		case "refclock":
			lock := option(words, "lock")
			warn(lock != "" && !slices.Contains(refIDs, lock) && !defaultRefID().MatchString(lock), "lock names a clock that no line has as its refid, without which chronyd uses no pulse: add its refclock line")
			warn(pulse, "a pulse per second does not number the seconds, and no other source of the document does: add servers, or a clock with lock")
			warn(len(words) > 2 && slices.Contains([]string{"PPS", "SOCK"}, strings.ToUpper(words[1])) && !strings.HasPrefix(words[2], "/"), words[1]+" needs an absolute path, with which chronyd finds it from every directory")
		case "port":
			warn(words[len(words)-1] == "0" && has("allow"), "port 0 serves no clients, so that allow has no effect: remove one of the two")
		case "bindaddress":
			warn(has("allow") && len(words) > 1 && slices.Contains([]string{"127.0.0.1", "::1"}, words[1]), "bindaddress is a loopback address, at which the clients of allow do not reach chronyd: remove one of the two")
		case "local":
			warn(option(words, "stratum") == "1", "stratum 1 makes clients prefer this clock, also when it is not synchronized, to servers: use 10")
		case "leapsectz":
			warn(len(words) > 1 && !strings.HasPrefix(words[1], "right/"), "chronyd ignores a time zone without leap seconds: use right/UTC")
		case "ratelimit", "ntsratelimit":
			warn(has("noclientlog"), words[0]+" needs the log of clients, which noclientlog turns off: remove one of the two")
		case "ntsserverkey":
			warn(!has("ntsservercert"), "a key without ntsservercert has no effect: add the certificate")
		case "ntsservercert":
			warn(!has("ntsserverkey"), "a certificate without ntsserverkey has no effect: add the key")
		case "driftfile", "dumpdir", "ntsdumpdir":
			warn(len(words) > 1 && regexp.MustCompile(`^(/var)?/(run|tmp)/`).MatchString(words[1]), "the directory is emptied at a boot, and with it what chronyd keeps there for the next start")
		case "pidfile":
			warn(len(words) > 1 && !strings.HasPrefix(words[1], "/run/chrony") && !strings.HasPrefix(words[1], "/var/run/chrony"), "systemd looks for the file at the place that the unit names, and ends chronyd where it is not there: remove it")
		}
	}
	return all
}

// option returns the value of an option of a line, "" for none.
func option(words []string, name string) string {
	for i := 2; i+1 < len(words); i++ {
		if strings.EqualFold(words[i], name) {
			return words[i+1]
		}
	}
	if len(words) > 2 && words[0] == "local" && strings.EqualFold(words[1], name) {
		return words[2]
	}
	return ""
}
