package v1alpha1

import "encoding/json"

// Timesync makes one time daemon of the machine synchronize its clock, and proves that it does.
type Timesync struct {
	Header
	// Spec is the desired state.
	Spec TimesyncSpec `json:"spec"`
}

// TimesyncSpec is the desired state of a Timesync document. An absent field is not managed: the value of the distribution or
// of the administrator stays. Source: RFC 5905 (NTP), RFC 8915 (NTS), chrony.conf(5), ntp.conf(5), timesyncd.conf(5).
type TimesyncSpec struct {
	// Provider names the plugin: systemd, ntpd, chronyd or w32time. By default the host chooses.
	Provider DNSLabel `json:"provider,omitempty"`
	// Profile adds the sources that the operator of a platform recommends: aws, gcp, azure or vmware.
	//
	// +kubebuilder:validation:Enum=aws;gcp;azure;vmware
	Profile string `json:"profile,omitempty"`
	// Servers are single NTP servers.
	//
	// +kubebuilder:validation:MaxItems=1000
	Servers []TimeServer `json:"servers,omitempty"`
	// Pools are names that resolve to several servers.
	//
	// +kubebuilder:validation:MaxItems=1000
	Pools []TimePool `json:"pools,omitempty"`
	// Fallback are the addresses of servers that are used only if nothing else names a server, such as DHCP.
	Fallback []string `json:"fallback,omitempty"`
	// RefClocks are clocks of the machine itself.
	RefClocks []RefClock `json:"refClocks,omitempty"`
	// MakeStep says when the clock is stepped. By default the daemon decides. An offset that is not stepped is slewed.
	MakeStep *MakeStep `json:"makeStep,omitempty"`
	// RTCSync copies the time to the real-time clock regularly.
	RTCSync *bool `json:"rtcSync,omitempty"`
	// WaitForSync makes the document succeed only when the clock is synchronized. Without it the document succeeds when the
	// daemon runs with its configuration.
	WaitForSync *WaitForSync `json:"waitForSync,omitempty"`
	// DisableOthers stops every other time daemon and keeps it from starting: the services of systemd-timesyncd, chrony, ntpsec, ntp, OpenNTPD and
	// ntpd-rs. Default true.
	DisableOthers *bool `json:"disableOthers,omitempty"`
	// KeepDistributionSources keeps the sources that the distribution, DHCP or the administrator configured beside the
	// sources of this document. By default only the document's own are used, if it has any.
	KeepDistributionSources bool `json:"keepDistributionSources,omitempty"`
	// MixedLeapSeconds accepts servers that spread leap seconds over a day beside sources that insert them. Their times differ by up to half a
	// second around a leap second, so that such a mixture is refused otherwise. Known to spread them are the public servers of Google, Amazon and
	// Meta, known to insert them pool.ntp.org, nist.gov and time.cloudflare.com; any other server is neither.
	MixedLeapSeconds bool `json:"mixedLeapSeconds,omitempty"`
	// ProviderConfig holds what only one provider supports; the README of the plugin lists its fields.
	ProviderConfig json.RawMessage `json:"providerConfig,omitempty"`
}

// TimeSource has the settings of a server and of the servers of a pool.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.key) && ((has(self.nts) && self.nts)))",message="key excludes nts",fieldPath=".key"
// +kubebuilder:validation:XValidation:rule="!(has(self.minPoll) && has(self.maxPoll)) || self.minPoll <= self.maxPoll",message="maxPoll must be at least minPoll",fieldPath=".maxPoll"
type TimeSource struct {
	// Address is an IP address or a DNS name, without port.
	Address string `json:"address"`
	// IBurst sends the first requests in short intervals, so that the clock is synchronized sooner. Default true.
	IBurst *bool `json:"iburst,omitempty"`
	// Prefer uses this source before the others as long as it is correct.
	Prefer bool `json:"prefer,omitempty"`
	// MinPoll is the shortest interval between two requests, as an exponent of 2 in seconds: 6 is 64 s.
	//
	// +kubebuilder:validation:Minimum=-6
	// +kubebuilder:validation:Maximum=24
	MinPoll *int `json:"minPoll,omitempty"`
	// MaxPoll is the longest interval between two requests, as an exponent of 2 in seconds, at least minPoll.
	//
	// +kubebuilder:validation:Minimum=-6
	// +kubebuilder:validation:Maximum=24
	MaxPoll *int `json:"maxPoll,omitempty"`
	// NTS authenticates the server with Network Time Security, against the certificate authorities of the system.
	NTS bool `json:"nts,omitempty"`
	// Key authenticates the server with a symmetric key. A source has nts or key, not both.
	Key *TimeKey `json:"key,omitempty"`
}

// TimeServer is a single NTP server.
type TimeServer struct {
	TimeSource
}

// TimePool is a name that resolves to several NTP servers.
type TimePool struct {
	TimeSource
	// MaxSources is the number of servers that are used at once, from 1 to 16.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	MaxSources *int `json:"maxSources,omitempty"`
}

// TimeKey is a symmetric key that the machine shares with a server.
type TimeKey struct {
	// ID identifies the key to the server, from 1 to 65535. Sources with the same id have the same key.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	ID int `json:"id"`
	// Type is the algorithm: MD5, SHA1, SHA256, SHA384, SHA512, AES128 or AES256.
	//
	// +kubebuilder:validation:Enum=MD5;SHA1;SHA256;SHA384;SHA512;AES128;AES256
	Type string `json:"type"`
	// Value is the key: HEX: and hexadecimal digits, or printable ASCII characters without blanks. It has 1 to 1000 bytes; of
	// type AES128 exactly 16, of type AES256 exactly 32. One of less than 8 bytes is a warning.
	Value Secret `json:"value"`
}

// RefClock is a clock of the machine: a PTP hardware clock (phc), a pulse per second (pps), or samples that a program sends
// to a socket (sock).
type RefClock struct {
	// Driver is phc, pps or sock.
	//
	// +kubebuilder:validation:Enum=phc;pps;sock
	Driver string `json:"driver"`
	// Device is the absolute path of the device or socket, such as /dev/ptp0.
	//
	// +kubebuilder:validation:Pattern=`^/[A-Za-z0-9._/:+-]+$`
	Device string `json:"device"`
	// Prefer uses this clock before the others as long as it is correct.
	Prefer bool `json:"prefer,omitempty"`
	// Poll is the interval between two updates, as an exponent of 2 in seconds.
	//
	// +kubebuilder:validation:Minimum=-6
	// +kubebuilder:validation:Maximum=24
	Poll *int `json:"poll,omitempty"`
	// Offset corrects a constant error of the clock, as a Go duration such as -500us.
	//
	// +kubebuilder:validation:Pattern=`^[-+]?(?:0|(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)$`
	Offset string `json:"offset,omitempty"`
}

// MakeStep steps the clock when its offset is larger than the threshold.
type MakeStep struct {
	// Threshold is an offset, as a Go duration such as 1s.
	Threshold Duration `json:"threshold"`
	// Limit is the number of updates after the start of the daemon in which the clock may be stepped; -1 means no limit, and 0 that it
	// is never stepped.
	//
	// +kubebuilder:validation:Minimum=-1
	Limit *int `json:"limit"`
}

// WaitForSync is the condition for success.
type WaitForSync struct {
	// Timeout bounds the wait, as metadata.timeout does, as a Go duration such as 3m. Default 3m.
	Timeout Duration `json:"timeout,omitempty"`
	// MaxOffset is the largest difference between the clock and the servers, as a Go duration such as 100ms. Default 1s.
	MaxOffset Duration `json:"maxOffset,omitempty"`
}
