package v1alpha1

import (
	"net/netip"
	"strings"

	"github.com/machineadm/machineadm/internal/lazyregexp"
)

// LeapSecondsHint is the remedy for sources that differ around a leap second.
const LeapSecondsHint = "use sources of one kind: their times differ by up to half a second around a leap second; or accept that with spec.mixedLeapSeconds"

// leapSeconds refuses sources that differ by up to a second for a day when a leap second is inserted.
func (r *timesyncRules) leapSeconds(s TimesyncSpec, profile TimesyncProfile) {
	type source struct {
		address string
		field   []any
	}
	var sources []source
	for _, server := range profile.Servers {
		sources = append(sources, source{server.Address, []any{"spec", "profile"}})
	}
	for i, server := range s.Servers {
		sources = append(sources, source{server.Address, []any{"spec", "servers", i}})
	}
	for i, pool := range s.Pools {
		sources = append(sources, source{pool.Address, []any{"spec", "pools", i}})
	}
	smeared := ""
	for _, source := range sources {
		if SmearsLeapSeconds(source.address) {
			smeared = fieldOf(source.field)
		}
	}
	if smeared == "" {
		return
	}
	for _, source := range sources {
		if !SmearsLeapSeconds(source.address) && InsertsLeapSeconds(source.address) {
			r.refuse(source.field, "inserts leap seconds, and "+smeared+" spreads them over a day", LeapSecondsHint)
		}
	}
	clock := func(at []any) {
		r.refuse(at, "a clock of the machine inserts leap seconds, and "+smeared+" spreads them over a day", LeapSecondsHint)
	}
	if len(profile.RefClocks) > 0 {
		clock([]any{"spec", "profile"})
	}
	for i := range s.RefClocks {
		clock([]any{"spec", "refClocks", i})
	}
}

// smearedNames matches the public servers that spread leap seconds over a day. Sources: the documentation of Google Public
// NTP, Amazon Time Sync and Meta's time service.
var smearedNames = lazyregexp.New(`^(metadata\.google\.internal|time[1-4]?\.google\.com|time\.aws\.com|[0-9a-z.]+\.time\.aws\.com|time[1-5]?\.facebook\.com)$`)

// The addresses of these servers, and of others that do not spread leap seconds: Amazon Time Sync; the metadata server of
// Compute Engine, time1 to time4.google.com, time1 to time5.facebook.com; time.cloudflare.com.
const (
	smearedAddresses = "169.254.169.123 fd00:ec2::123 " +
		"169.254.169.254 216.239.35.0 216.239.35.4 216.239.35.8 216.239.35.12 " +
		"2001:4860:4806:: 2001:4860:4806:4:: 2001:4860:4806:8:: 2001:4860:4806:c:: " +
		"129.134.25.123 129.134.26.123 129.134.27.123 129.134.28.123 129.134.29.123"
	exactAddresses = "162.159.200.1 162.159.200.123 2606:4700:f1::1 2606:4700:f1::123"
)

// SmearsLeapSeconds reports whether the server at this address spreads leap seconds over a day.
func SmearsLeapSeconds(address string) bool {
	return isOneOf(address, smearedAddresses) || smearedNames().MatchString(strings.ToLower(address))
}

// InsertsLeapSeconds reports whether the server at this address is known not to spread leap seconds.
func InsertsLeapSeconds(address string) bool {
	name := strings.ToLower(address)
	return name == "pool.ntp.org" || strings.HasSuffix(name, ".pool.ntp.org") || strings.HasSuffix(name, ".nist.gov") ||
		name == "time.cloudflare.com" || isOneOf(address, exactAddresses)
}

// isOneOf reports whether an address is in a list, however it is written.
func isOneOf(address, list string) bool {
	ip, err := netip.ParseAddr(address)
	return err == nil && strings.Contains(" "+list+" ", " "+ip.Unmap().String()+" ")
}
