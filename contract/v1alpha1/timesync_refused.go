package v1alpha1

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"strings"
	"time"
)

// longestTimeKey is the number of bytes of a key whose digits fit in a line of chronyd.
const longestTimeKey = 1000

// Bytes returns the key itself. It is an error if the value has no valid form; the error does not quote it.
func (k TimeKey) Bytes() ([]byte, error) {
	text := k.Value.Reveal()
	if digits, ok := bytes.CutPrefix(text, []byte("HEX:")); ok {
		key, err := hex.DecodeString(string(digits))
		if err != nil { // never %w: it quotes a digit
			return nil, errors.New("must have an even number of hexadecimal digits after the prefix HEX")
		}
		return key, nil
	}
	for _, c := range text {
		if c <= ' ' || c > '~' {
			return nil, errors.New("must have printable ASCII characters without blanks, or HEX: and hexadecimal digits")
		}
	}
	if bytes.HasPrefix(text, []byte("ASCII:")) {
		return nil, errors.New("must be written without the prefix ASCII")
	}
	return text, nil
}

// CanonicalTimeSource is the address of a source in its shortest form, or its name in lower case: two sources with the same one are the same.
func CanonicalTimeSource(address string) string {
	if ip, err := netip.ParseAddr(address); err == nil {
		return ip.String()
	}
	return strings.ToLower(address)
}

// Refused returns the parts of the document that no node accepts. What providerConfig asks for is up to the provider.
func (s TimesyncSpec) Refused() []Refusal {
	r := timesyncRules{sources: map[string][]any{}, keys: map[int]keyAt{}}
	spec := []any{"spec"}
	profile := TimesyncProfiles()[s.Profile]
	for _, server := range profile.Servers {
		r.sources[CanonicalTimeSource(server.Address)] = below(spec, "profile")
	}
	for _, clock := range profile.RefClocks {
		r.sources[clock.Device] = below(spec, "profile")
	}
	for i, server := range s.Servers {
		r.source(server.TimeSource, below(spec, "servers", i))
	}
	for i, pool := range s.Pools {
		at := below(spec, "pools", i)
		if _, err := netip.ParseAddr(pool.Address); err == nil {
			r.refuse(below(at, "address"), "a pool is a DNS name that resolves to several servers", "list an IP address in servers")
		}
		r.source(pool.TimeSource, at)
	}
	for i, address := range s.Fallback {
		r.address(address, below(spec, "fallback", i))
	}
	for i, clock := range s.RefClocks {
		r.clock(clock, below(spec, "refClocks", i))
	}
	if m := s.MakeStep; m != nil {
		if m.Limit == nil {
			r.refuse(below(spec, "makeStep", "limit"), "is required", "write 3 for the first updates alone, -1 for no limit, or 0 for no step at all")
		}
		r.duration(m.Threshold, true, below(spec, "makeStep", "threshold"))
	}
	if w := s.WaitForSync; w != nil && w.Timeout != "" {
		r.duration(w.Timeout, true, below(spec, "waitForSync", "timeout"))
	}
	if w := s.WaitForSync; w != nil && w.MaxOffset != "" {
		r.duration(w.MaxOffset, true, below(spec, "waitForSync", "maxOffset"))
	}
	if !s.MixedLeapSeconds {
		r.leapSeconds(s, profile)
	}
	return r.all
}

// address refuses a text that is no address, or one that another source has.
func (r *timesyncRules) address(text string, at []any) {
	ip, err := netip.ParseAddr(text)
	switch {
	case err == nil && (ip.IsMulticast() || ip.IsUnspecified() || text == "255.255.255.255"):
		r.refuse(at, "is not the address of a server", "write the address or the name of a server, which daemons ask one by one")
	case err == nil && ip.IsLinkLocalUnicast() && ip.Is6() && ip.Zone() == "":
		r.refuse(at, "is an address of one link, which no daemon can ask", "write another address of the server, or its name")
	case err == nil && ip.Zone() == "", err != nil && IsHostName(text) && strings.Trim(text, "0123456789.") != "":
		r.once(CanonicalTimeSource(text), at, "is the same source as ")
	default:
		r.refuse(at, "must be an IP address or a DNS name", "write the address alone, without port, scheme or zone")
	}
}

// once refuses a source that another field names as well.
func (r *timesyncRules) once(source string, at []any, message string) {
	if other, ok := r.sources[source]; ok {
		r.refuse(at, message+fieldOf(other), "remove one of the two")
		return
	}
	r.sources[source] = at
}

func (r *timesyncRules) source(s TimeSource, at []any) {
	r.address(s.Address, below(at, "address"))
	if s.MinPoll != nil && s.MaxPoll != nil && *s.MinPoll > *s.MaxPoll {
		r.refuse(below(at, "maxPoll"), "is less than minPoll", "")
	}
	if s.Key == nil {
		return
	}
	if s.NTS {
		r.refuse(below(at, "key"), "a source is authenticated by nts or by a key, not by both", "remove nts or key")
	}
	r.key(*s.Key, below(at, "key"))
}

func (r *timesyncRules) key(k TimeKey, at []any) {
	length := map[string]int{"AES128": 16, "AES256": 32}[k.Type]
	value, err := k.Bytes()
	switch {
	case err != nil:
		r.refuse(below(at, "value"), err.Error(), "")
	case length > 0 && len(value) != length:
		r.refuse(below(at, "value"), fmt.Sprintf("a key of type %s has %d bytes", k.Type, length), "")
	case len(value) == 0 || len(value) > longestTimeKey:
		r.refuse(below(at, "value"), fmt.Sprintf("must have from 1 to %d bytes", longestTimeKey), "")
	}
	other, known := r.keys[k.ID]
	if known && (other.key.Type != k.Type || !bytes.Equal(other.key.Value.Reveal(), k.Value.Reveal())) {
		r.refuse(below(at, "id"), "is the id of another key at "+fieldOf(other.field), "give each key an id of its own")
	}
	r.keys[k.ID] = keyAt{k, at}
}

func (r *timesyncRules) clock(c RefClock, at []any) {
	if !regexp.MustCompile(`^/[A-Za-z0-9._/:+-]+$`).MatchString(c.Device) || path.Clean(c.Device) != c.Device {
		r.refuse(below(at, "device"), "must be an absolute path without blanks", "write it like /dev/ptp0")
	} else {
		r.once(c.Device, below(at, "device"), "is the same clock as ")
	}
	for driver, device := range map[string]string{"phc": "/dev/pps", "pps": "/dev/ptp"} {
		if c.Driver == driver && strings.HasPrefix(c.Device, device) {
			r.refuse(below(at, "device"), "is a device of another driver, and the daemon does not start", "set driver to pps for /dev/pps0, and to phc for /dev/ptp0")
		}
	}
	if c.Offset != "" {
		r.duration(c.Offset, false, below(at, "offset"))
	}
}

func (r *timesyncRules) duration(text string, positive bool, at []any) {
	switch d, err := time.ParseDuration(text); {
	case err != nil:
		r.refuse(at, "must be a Go duration", "write it like 500us, 100ms, 1s or 3m")
	case positive && d <= 0:
		r.refuse(at, "must be more than 0", "")
	}
}
