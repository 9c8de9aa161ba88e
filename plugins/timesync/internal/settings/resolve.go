package settings

import (
	"bytes"
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/internal/form"
	"github.com/machineadm/machineadm/sdk"
)

// shortKeyBytes is the length below which a key is easy to guess, maxKeyBytes the one whose digits fit in a line of chronyd.
const shortKeyBytes, maxKeyBytes = 8, 1000

// The defaults of waitForSync.
const (
	defaultTimeout   = 3 * time.Minute
	defaultMaxOffset = time.Second
)

var devicePath = regexp.MustCompile(`^/[A-Za-z0-9._/:+-]+$`)

// resolver collects the settings of a document and all of its violations.
type resolver struct {
	violations []sdk.Violation
	addresses  map[string]string // the field of each address
	keys       map[int]*Key
	result     Settings
}

func (r *resolver) refuse(field document.Path, message, hint string) {
	r.violations = append(r.violations, sdk.Violation{Field: string(field), Message: message, Hint: hint})
}

func (r *resolver) warn(field document.Path, message string) {
	r.result.Warnings = append(r.result.Warnings, sdk.Warning{Field: string(field), Message: message})
}

// Resolve returns the settings of a document, with the lines that its providerConfig adds, or all of its violations. Its result
// depends on the document alone.
func Resolve(doc v1alpha1.Timesync, lines ...Line) (Settings, []sdk.Violation) {
	spec, at := doc.Spec, document.Path("spec")
	r := resolver{addresses: map[string]string{}, keys: map[int]*Key{}}
	r.result = Settings{
		Fallback: spec.Fallback, RTCSync: spec.RTCSync, KeepDistributionSources: spec.KeepDistributionSources,
		DisableOthers: spec.DisableOthers == nil || *spec.DisableOthers,
	}
	r.profile(spec.Profile, at.Field("profile"))
	for i, server := range spec.Servers {
		r.source(Source{}, server.TimeSource, at.Field("servers").Index(i))
	}
	for i, pool := range spec.Pools {
		r.pool(pool, at.Field("pools").Index(i))
	}
	for i, address := range spec.Fallback {
		r.address(address, at.Field("fallback").Index(i))
	}
	for i, clock := range spec.RefClocks {
		r.refClock(clock, at.Field("refClocks").Index(i))
	}
	r.makeStep(spec.MakeStep, at.Field("makeStep"))
	r.wait(spec.WaitForSync, at.Field("waitForSync"), doc.Metadata.Limit())
	for _, l := range lines {
		r.line(l)
	}
	r.leapSeconds(spec.MixedLeapSeconds)
	if s := r.result; len(s.RefClocks) > 0 && len(s.Sources) == 0 && !s.unnamed && !s.KeepDistributionSources &&
		!slices.ContainsFunc(s.RefClocks, func(c RefClock) bool { return c.Driver != "pps" }) {
		r.refuse(document.Path(s.RefClocks[0].Field), "says when a second begins and not which one, so that the clock is never set", "name a server or another clock as well")
	}
	return r.result, r.violations
}

func (r *resolver) profile(name string, field document.Path) {
	p := profiles()[name]
	for _, s := range p.sources {
		s.Field = string(field)
		r.addresses[s.Address] = string(field)
		r.result.Sources = append(r.result.Sources, s)
	}
	for _, c := range p.clocks {
		c.Field = string(field)
		r.addresses[c.Device] = string(field)
		r.result.RefClocks = append(r.result.RefClocks, c)
	}
}

// address refuses a text that is no address, or one that another source has.
func (r *resolver) address(text string, field document.Path) {
	ip, err := netip.ParseAddr(text)
	canonical := strings.ToLower(text)
	switch {
	case err == nil && (ip.IsMulticast() || ip.IsUnspecified() || text == "255.255.255.255"):
		r.refuse(field, "is not the address of a server", "write the address or the name of a server, which daemons ask one by one")
		return
	case err == nil && ip.Zone() == "":
		if canonical = ip.String(); ip.IsLoopback() {
			r.warn(field, "is this machine, whose daemon takes no time from itself: remove it, unless another program serves time there")
		}
	case !form.IsHostName(text) || strings.Trim(text, "0123456789.") == "":
		r.refuse(field, "must be an IP address or a DNS name", "write the address alone, without port, scheme or zone")
		return
	}
	r.once(canonical, field)
}

// once refuses a source that another field names as well.
func (r *resolver) once(address string, field document.Path) {
	if other, ok := r.addresses[address]; ok {
		r.refuse(field, "is the same source as "+other, "remove one of the two")
		return
	}
	r.addresses[address] = string(field)
}

func (r *resolver) source(s Source, from v1alpha1.TimeSource, field document.Path) {
	r.address(from.Address, field.Field("address"))
	if from.MinPoll != nil && from.MaxPoll != nil && *from.MinPoll > *from.MaxPoll {
		r.refuse(field.Field("maxPoll"), "is less than minPoll", "")
	}
	if from.NTS && from.Key != nil {
		r.refuse(field.Field("key"), "a source is authenticated by nts or by a key, not by both", "remove nts or key")
	}
	s.Address, s.IBurst, s.Prefer, s.NTS = from.Address, from.IBurst, from.Prefer, from.NTS
	s.MinPoll, s.MaxPoll, s.Field = from.MinPoll, from.MaxPoll, string(field)
	if from.Key != nil {
		s.Key = r.key(*from.Key, field.Field("key"))
	}
	r.result.Sources = append(r.result.Sources, s)
}

func (r *resolver) pool(pool v1alpha1.TimePool, field document.Path) {
	if _, err := netip.ParseAddr(pool.Address); err == nil {
		r.refuse(field.Field("address"), "a pool is a DNS name that resolves to several servers", "list an IP address in servers")
	}
	r.source(Source{Pool: true, MaxSources: pool.MaxSources}, pool.TimeSource, field)
}

// line adds the source that a directive names, with the directive in place of what the other fields render. Directives that
// are no sources stay in Lines, as does a source that the daemon only watches.
func (r *resolver) line(l Line) {
	words := l.Words()
	if len(words) == 0 {
		words = []string{""}
	}
	has := func(option string) bool { return slices.Contains(words, option) }
	name := words[0]
	if has("noselect") {
		name = ""
	}
	switch name {
	case "server", "pool", "peer":
		s := Source{
			Pool: words[0] == "pool", Prefer: has("prefer"), NTS: has("nts"), Field: string(l.Field),
			Line: l.Text, authenticated: has("nts") || has("key"),
		}
		for _, word := range words[1:] {
			if s.Address == "" && word != "-4" && word != "-6" { // which ntpd accepts ahead of the address
				s.Address = word
			}
		}
		r.once(canonical(s.Address), l.Field)
		if has("offline") {
			r.warn(l.Field, "is not used before a program runs chronyc online: remove offline, unless one does when the network is up")
		}
		r.result.Sources = append(r.result.Sources, s)
	case "refclock":
		r.result.RefClocks = append(r.result.RefClocks, RefClock{Line: l.Text, Field: string(l.Field)})
	case "sourcedir", "broadcastclient", "multicastclient", "manycastclient":
		r.result.unnamed = true
		fallthrough
	default:
		r.result.Lines = append(r.result.Lines, l)
	}
}

// keyBytes returns the number of bytes of a key by its type; 0 means any up to maxKeyBytes.
func keyBytes() map[string]int { return map[string]int{"AES128": 16, "AES256": 32} }

func (r *resolver) key(k v1alpha1.TimeKey, field document.Path) *Key {
	key := &Key{ID: k.ID, Type: k.Type, Value: k.Value, Field: string(field)}
	length := keyBytes()[k.Type]
	value, err := key.Bytes()
	switch {
	case err != nil:
		r.refuse(field.Field("value"), err.Error(), "")
	case length > 0 && len(value) != length:
		r.refuse(field.Field("value"), fmt.Sprintf("a key of type %s has %d bytes", k.Type, length), "")
	case len(value) == 0 || len(value) > maxKeyBytes:
		r.refuse(field.Field("value"), fmt.Sprintf("must have from 1 to %d bytes", maxKeyBytes), "")
	case len(value) < shortKeyBytes:
		r.warn(field.Field("value"), fmt.Sprintf("is easy to guess: it has less than %d bytes; share a longer key with the server", shortKeyBytes))
	}
	if other, ok := r.keys[k.ID]; ok && (other.Type != k.Type || !bytes.Equal(other.Value.Reveal(), k.Value.Reveal())) {
		r.refuse(field.Field("id"), "is the id of another key at "+other.Field, "give each key an id of its own")
	}
	r.keys[k.ID] = key
	return key
}

func (r *resolver) refClock(c v1alpha1.RefClock, field document.Path) {
	switch other, twice := r.addresses[c.Device]; {
	case !devicePath.MatchString(c.Device) || path.Clean(c.Device) != c.Device:
		r.refuse(field.Field("device"), "must be an absolute path without blanks", "write it like /dev/ptp0")
	case twice:
		r.refuse(field.Field("device"), "is the same clock as "+other, "remove one of the two")
	default:
		r.addresses[c.Device] = string(field)
	}
	offset := time.Duration(0)
	if c.Offset != "" {
		offset = r.duration(c.Offset, field.Field("offset"))
	}
	r.result.RefClocks = append(r.result.RefClocks,
		RefClock{Driver: c.Driver, Device: c.Device, Prefer: c.Prefer, Poll: c.Poll, Offset: offset, Field: string(field)})
}

func (r *resolver) duration(text string, field document.Path) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		r.refuse(field, "must be a Go duration", "write it like 500us, 100ms, 1s or 3m")
	}
	return d
}

func (r *resolver) positive(text string, field document.Path) time.Duration {
	before := len(r.violations)
	d := r.duration(text, field)
	if d <= 0 && len(r.violations) == before {
		r.refuse(field, "must be more than 0", "")
	}
	return d
}

func (r *resolver) makeStep(m *v1alpha1.MakeStep, field document.Path) {
	if m == nil {
		return
	}
	limit := -1
	if m.Limit != nil {
		limit = *m.Limit
	} else {
		r.refuse(field.Field("limit"), "is required", "write 3 for the first updates alone, -1 for no limit, or 0 for no step at all")
	}
	r.result.MakeStep = &MakeStep{Threshold: r.positive(m.Threshold, field.Field("threshold")), Limit: limit}
}

func (r *resolver) wait(w *v1alpha1.WaitForSync, field document.Path, limit time.Duration) {
	if w == nil {
		return
	}
	result := Wait{Timeout: defaultTimeout, MaxOffset: defaultMaxOffset}
	if w.Timeout != "" {
		result.Timeout = r.positive(w.Timeout, field.Field("timeout"))
		if result.Timeout > limit {
			r.result.Warnings = append(r.result.Warnings, sdk.Warning{Field: string(field.Field("timeout")), Message: "is longer than metadata.timeout, by default 15m, which ends the document first: set that as well"})
		}
	}
	if w.MaxOffset != "" {
		result.MaxOffset = r.positive(w.MaxOffset, field.Field("maxOffset"))
	}
	r.result.Wait = &result
}

// leapSeconds refuses sources that differ by up to a second for a day when a leap second is inserted.
func (r *resolver) leapSeconds(mixed bool) {
	var smeared *Source
	for i, s := range r.result.Sources {
		if smears(s.Address) {
			smeared, r.result.Smeared = &r.result.Sources[i], true
		}
	}
	if smeared == nil || mixed {
		return
	}
	const hint = "use sources of one kind: their times differ by up to half a second around a leap second; or accept that with spec.mixedLeapSeconds"
	if r.result.KeepDistributionSources {
		r.warn("spec.keepDistributionSources", "keeps sources that may insert leap seconds, and "+smeared.Field+" spreads them over a day: "+
			"remove it, or set spec.mixedLeapSeconds")
	}
	for _, s := range r.result.Sources {
		switch {
		case smears(s.Address):
		case insertsLeapSeconds(s.Address):
			r.refuse(document.Path(s.Field), "inserts leap seconds, and "+smeared.Field+" spreads them over a day", hint)
		default:
			r.warn(document.Path(s.Field), "must spread leap seconds over a day as "+smeared.Field+" does, or both differ around a leap second; "+
				"spec.mixedLeapSeconds accepts that")
		}
	}
	for _, c := range r.result.RefClocks {
		r.refuse(document.Path(c.Field), "a clock of the machine inserts leap seconds, and "+smeared.Field+" spreads them over a day", hint)
	}
}
