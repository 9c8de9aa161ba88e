package settings

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

// shortKeyBytes is the length below which a key is easy to guess.
const shortKeyBytes = 8

// The defaults of waitForSync.
const (
	defaultTimeout   = 3 * time.Minute
	defaultMaxOffset = time.Second
)

// resolver collects the settings of a document and all of its violations.
type resolver struct {
	violations []sdk.Violation
	addresses  map[string]string // the field of each address
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
	r := resolver{addresses: map[string]string{}}
	r.result = Settings{
		Fallback: spec.Fallback, RTCSync: spec.RTCSync, KeepDistributionSources: spec.KeepDistributionSources,
		DisableOthers: spec.DisableOthers == nil || *spec.DisableOthers,
	}
	r.violations = document.Refused(spec)
	r.profile(spec.Profile, "spec.profile")
	for i, server := range spec.Servers {
		r.source(Source{}, server.TimeSource, at.Field("servers").Index(i))
	}
	for i, pool := range spec.Pools {
		r.source(Source{Pool: true, MaxSources: pool.MaxSources}, pool.TimeSource, at.Field("pools").Index(i))
	}
	for i, address := range spec.Fallback {
		r.addresses[v1alpha1.CanonicalTimeSource(address)] = string(at.Field("fallback").Index(i))
	}
	for i, clock := range spec.RefClocks {
		r.refClock(clock, at.Field("refClocks").Index(i))
	}
	r.makeStep(spec.MakeStep)
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

// profile adds the sources of a profile.
func (r *resolver) profile(name, field string) {
	p := v1alpha1.TimesyncProfiles()[name] // another name is refused by the rule of the field
	for _, s := range p.Servers {
		r.addresses[v1alpha1.CanonicalTimeSource(s.Address)] = field
		r.result.Sources = append(r.result.Sources, Source{
			Address: s.Address, Prefer: s.Prefer, MinPoll: s.MinPoll, MaxPoll: s.MaxPoll, Field: field,
		})
	}
	for _, c := range p.RefClocks {
		r.result.RefClocks = append(r.result.RefClocks, RefClock{Driver: c.Driver, Device: c.Device, Poll: c.Poll, Options: c.Options, Field: field})
	}
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
	r.addresses[v1alpha1.CanonicalTimeSource(from.Address)] = string(field.Field("address"))
	if ip, err := netip.ParseAddr(from.Address); err == nil && ip.IsLoopback() || strings.EqualFold(from.Address, "localhost") {
		r.warn(field.Field("address"), "is this machine, whose daemon takes no time from itself: remove it, unless another program serves time there")
	}
	s.Address, s.IBurst, s.Prefer, s.NTS = from.Address, from.IBurst, from.Prefer, from.NTS
	s.MinPoll, s.MaxPoll, s.Field = from.MinPoll, from.MaxPoll, string(field)
	if k := from.Key; k != nil {
		s.Key = &Key{ID: k.ID, Type: k.Type, Value: k.Value, Field: string(field.Field("key"))}
		if value, err := s.Key.Bytes(); err == nil && len(value) < shortKeyBytes {
			r.warn(field.Field("key").Field("value"),
				fmt.Sprintf("is easy to guess: it has less than %d bytes; share a longer key with the server", shortKeyBytes))
		}
	}
	r.result.Sources = append(r.result.Sources, s)
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
		r.once(v1alpha1.CanonicalTimeSource(s.Address), l.Field)
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

func (r *resolver) refClock(c v1alpha1.RefClock, field document.Path) {
	offset, _ := time.ParseDuration(c.Offset) // what is none is refused
	r.result.RefClocks = append(r.result.RefClocks,
		RefClock{Driver: c.Driver, Device: c.Device, Prefer: c.Prefer, Poll: c.Poll, Offset: offset, Field: string(field)})
}

func (r *resolver) makeStep(m *v1alpha1.MakeStep) {
	if m == nil || m.Limit == nil {
		return
	}
	threshold, _ := time.ParseDuration(m.Threshold) // as above
	r.result.MakeStep = &MakeStep{Threshold: threshold, Limit: *m.Limit}
}

func (r *resolver) wait(w *v1alpha1.WaitForSync, field document.Path, limit time.Duration) {
	if w == nil {
		return
	}
	result := Wait{Timeout: defaultTimeout, MaxOffset: defaultMaxOffset}
	if w.Timeout != "" {
		result.Timeout, _ = time.ParseDuration(w.Timeout) // as above
		if result.Timeout > limit {
			r.warn(field.Field("timeout"), "is longer than metadata.timeout, by default 15m, which ends the document first: set that as well")
		}
	}
	if w.MaxOffset != "" {
		result.MaxOffset, _ = time.ParseDuration(w.MaxOffset) // as above
	}
	r.result.Wait = &result
}

// leapSeconds warns of sources that can differ by up to a second for a day when a leap second is inserted, and refuses those of providerConfig that
// do: the contract has the rule for the other fields.
func (r *resolver) leapSeconds(mixed bool) {
	var smeared *Source
	for i, s := range r.result.Sources {
		if v1alpha1.SmearsLeapSeconds(s.Address) {
			smeared, r.result.Smeared = &r.result.Sources[i], true
		}
	}
	if smeared == nil || mixed {
		return
	}
	if r.result.KeepDistributionSources {
		r.warn("spec.keepDistributionSources", "keeps sources that may insert leap seconds, and "+smeared.Field+" spreads them over a day: "+
			"remove it, or set spec.mixedLeapSeconds")
	}
	for _, s := range r.result.Sources {
		switch {
		case v1alpha1.SmearsLeapSeconds(s.Address):
		case v1alpha1.InsertsLeapSeconds(s.Address):
			r.inserts(s.Field, "inserts", smeared.Field)
		default:
			r.warn(document.Path(s.Field), "must spread leap seconds over a day as "+smeared.Field+" does, or both differ around a leap second; "+
				"spec.mixedLeapSeconds accepts that")
		}
	}
	for _, c := range r.result.RefClocks {
		r.inserts(c.Field, "a clock of the machine inserts", smeared.Field)
	}
}

// inserts refuses a source, unless the contract has.
func (r *resolver) inserts(field, what, smeared string) {
	if !slices.ContainsFunc(r.violations, func(v sdk.Violation) bool { return v.Field == field }) {
		r.refuse(document.Path(field), what+" leap seconds, and "+smeared+" spreads them over a day", v1alpha1.LeapSecondsHint)
	}
}
