package settings

import "github.com/machineadm/machineadm/contract/v1alpha1"

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
