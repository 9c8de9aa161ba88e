package settings

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// profile is what the operator of a platform recommends.
type profile struct {
	sources []Source
	clocks  []RefClock
}

// profiles returns the profiles by name. Sources: Amazon EC2, Set the time reference on your EC2 instance; Compute Engine,
// Configure NTP; Azure, Time sync for Linux VMs; VMware, driver ptp_vmw of the Precision Clock.
func profiles() map[string]profile {
	four, three := 4, 3
	return map[string]profile{
		"aws":    {sources: []Source{{Address: "169.254.169.123", Prefer: true, MinPoll: &four, MaxPoll: &four}}},
		"gcp":    {sources: []Source{{Address: "metadata.google.internal", Prefer: true}}},
		"azure":  {clocks: []RefClock{{Driver: "phc", Device: "/dev/ptp_hyperv", Poll: &three, Options: "dpoll -2 stratum 2"}}},
		"vmware": {clocks: []RefClock{{Driver: "phc", Device: "/dev/ptp0"}}},
	}
}

// smearedNames matches the public servers that spread leap seconds over a day. Sources: the documentation of Google Public
// NTP, Amazon Time Sync and Meta's time service.
var smearedNames = regexp.MustCompile(`^(metadata\.google\.internal|time[1-4]?\.google\.com|time\.aws\.com|[0-9a-z.]+\.time\.aws\.com|time[1-5]?\.facebook\.com)$`)

// The addresses of these servers, and of others that do not spread leap seconds: Amazon Time Sync; the metadata server of
// Compute Engine, time1 to time4.google.com, time1 to time5.facebook.com; time.cloudflare.com.
const (
	smearedAddresses = "169.254.169.123 fd00:ec2::123 " +
		"169.254.169.254 216.239.35.0 216.239.35.4 216.239.35.8 216.239.35.12 " +
		"2001:4860:4806:: 2001:4860:4806:4:: 2001:4860:4806:8:: 2001:4860:4806:c:: " +
		"129.134.25.123 129.134.26.123 129.134.27.123 129.134.28.123 129.134.29.123"
	exactAddresses = "162.159.200.1 162.159.200.123 2606:4700:f1::1 2606:4700:f1::123"
)

// smears reports whether the server at this address spreads leap seconds over a day.
func smears(address string) bool {
	return isOneOf(address, smearedAddresses) || smearedNames.MatchString(strings.ToLower(address))
}

// insertsLeapSeconds reports whether the server at this address is known not to spread leap seconds.
func insertsLeapSeconds(address string) bool {
	name := strings.ToLower(address)
	return name == "pool.ntp.org" || strings.HasSuffix(name, ".pool.ntp.org") || strings.HasSuffix(name, ".nist.gov") ||
		name == "time.cloudflare.com" || isOneOf(address, exactAddresses)
}

// isOneOf reports whether an address is in a list, however it is written.
func isOneOf(address, list string) bool {
	ip, err := netip.ParseAddr(address)
	return err == nil && slices.Contains(strings.Fields(list), ip.Unmap().String())
}
