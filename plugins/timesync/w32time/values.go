package main

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

const (
	serviceKey = `SYSTEM\CurrentControlSet\Services\W32Time\`

	// leastPoll and mostPoll limit the intervals, as exponents of 2: the first is the shortest that W32Time keeps, the second
	// that of RFC 5905.
	leastPoll, mostPoll = 4, 17

	// promptUpdates corrects the clock every second (in units of 10 ms). By default W32Time does so once an hour, too late for
	// waitForSync.
	promptUpdates = 100
)

// desired returns the values of the registry for a document. Source: Windows Time service tools and settings.
func desired(want settings.Settings) []sdk.RegistryValue {
	var all []sdk.RegistryValue
	set := func(key, name string, data machine.RegistryData) {
		all = append(all, sdk.RegistryValue{Key: serviceKey + key, Name: name, Data: data})
	}
	if len(want.Sources) > 0 {
		set("Parameters", "NtpServer", machine.RegistryText(peers(want)))
		set("Parameters", "Type", machine.RegistryText("NTP"))
		set(`TimeProviders\NtpClient`, "Enabled", machine.RegistryNumber(1))
		set("Config", "UpdateInterval", machine.RegistryNumber(promptUpdates))
		if first := want.Sources[0]; first.MinPoll != nil { // as in all sources: see unsupported
			set("Config", "MinPollInterval", machine.RegistryNumber(uint32(*first.MinPoll)))
			set("Config", "MaxPollInterval", machine.RegistryNumber(uint32(*first.MaxPoll)))
		}
	}
	if step := want.MakeStep; step != nil {
		set("Config", "MaxAllowedPhaseOffset", machine.RegistryNumber(uint32(step.Threshold/time.Second)))
		set("Config", "MaxPosPhaseCorrection", machine.RegistryNumber(math.MaxUint32)) // no limit
		set("Config", "MaxNegPhaseCorrection", machine.RegistryNumber(math.MaxUint32))
	}
	return all
}

// peers returns the list of servers with their flags: 0x8 makes W32Time a client of the server, 0x2 uses it only when all others
// fail. Without 0x1, which SpecialPollInterval belongs to, the intervals adapt to the clock.
func peers(want settings.Settings) string {
	var all []string
	for _, s := range want.Sources {
		all = append(all, s.Address+",0x8")
	}
	for _, address := range want.Fallback {
		all = append(all, address+",0xa")
	}
	return strings.Join(all, " ")
}

// unsupported returns what W32Time cannot express.
func unsupported(want settings.Settings) []sdk.Violation {
	var all []sdk.Violation
	refuse := func(unable bool, field, message, hint string) {
		if hint = cmp.Or(hint, "remove it; metadata.when limits a document to Linux"); unable {
			all = append(all, sdk.Violation{Field: field, Message: message, Hint: hint})
		}
	}
	sources := len(want.Sources) > 0
	for _, s := range want.Sources {
		refuse(s.NTS, s.Field+".nts", "W32Time has no Network Time Security", "")
		refuse(s.Key != nil, s.Field+".key", "W32Time authenticates no servers but its domain controllers", "")
		refuse(s.MaxSources != nil, s.Field+".maxSources", "W32Time uses one server of a name", "")
		refuse(s.IBurst != nil && *s.IBurst, s.Field+".iburst", "W32Time sends no bursts of requests", "")
		first := want.Sources[0]
		refuse(s.Prefer != first.Prefer, s.Field, "W32Time prefers no server, and either this one or "+first.Field+" is preferred",
			"list the other one in fallback, or remove prefer")
		refuse((s.MinPoll == nil) != (s.MaxPoll == nil), s.Field+".minPoll",
			"W32Time needs both minPoll and maxPoll", "set both, or none")
		refuse(s.MinPoll != nil && *s.MinPoll < leastPoll || s.MaxPoll != nil && *s.MaxPoll > mostPoll, s.Field+".minPoll",
			"the intervals of W32Time are from 16 s to 36 h", fmt.Sprintf("set %d to %d", leastPoll, mostPoll))
		refuse(differ(s.MinPoll, first.MinPoll) || differ(s.MaxPoll, first.MaxPoll), s.Field+".minPoll",
			"W32Time has one interval for all sources, and that of "+first.Field+" differs", "set the same on every source, or none")
	}
	for _, c := range want.RefClocks {
		refuse(true, c.Field, "W32Time has no reference clocks; the clock of a Hyper-V or Azure host is a source by default", "")
	}
	refuse(len(want.Fallback) > 0 && !sources, "spec.fallback",
		"W32Time has one list of servers, so these would replace all others", "list them in servers")
	refuse(want.KeepDistributionSources && sources, "spec.keepDistributionSources",
		"W32Time has one list of servers and does not record who added one", "list in servers those to be kept")
	refuse(want.RTCSync != nil, "spec.rtcSync", "Windows itself sets the real-time clock", "")
	if step := want.MakeStep; step != nil {
		refuse(step.Limit != -1, "spec.makeStep.limit", "W32Time does not count its updates", "set -1")
		refuse(step.Threshold%time.Second != 0 || step.Threshold/time.Second > math.MaxUint32, "spec.makeStep.threshold",
			"W32Time has a threshold in whole seconds", "set 1s or more")
	}
	return all
}

func differ(a, b *int) bool { return (a == nil) != (b == nil) || a != nil && *a != *b }
