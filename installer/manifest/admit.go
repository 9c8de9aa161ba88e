package manifest

import (
	"fmt"
	"strconv"
	"time"
)

// Policy is what an operator and earlier installations allow.
type Policy struct {
	Version        string // the version that the operator asked for, or empty for any
	AllowDowngrade string // the version that may have a lower sequence than Seen, or empty
	Seen           uint64 // the highest sequence that was installed, or 0
	// Now is the time, or zero if the clock is possibly wrong; then an expired manifest is not an error.
	Now time.Time
}

// RefusedError reports a release that is signed but not the one to install.
type RefusedError struct{ Problem, Remedy string }

// Error returns the problem.
func (e *RefusedError) Error() string { return e.Problem }

// Admit returns a *RefusedError if the policy does not allow to install the release.
func (m *Manifest) Admit(p Policy) error {
	switch {
	case p.Version != "" && p.Version != m.Version:
		return &RefusedError{
			"the location has the release " + m.Version + ", and not " + p.Version,
			"give the location of " + p.Version + " with --manifest, or another --version",
		}
	case m.Sequence < p.Seen && p.AllowDowngrade != m.Version:
		return &RefusedError{
			fmt.Sprintf("the release %s has sequence %d, and one of sequence %d was installed here: an old release can have known faults", m.Version, m.Sequence, p.Seen),
			"use a location with a newer release; if the older one is intended, add --allow-downgrade " + m.Version,
		}
	case m.Expires != nil && !p.Now.IsZero() && !p.Now.Before(*m.Expires):
		return &RefusedError{
			"the manifest of release " + m.Version + " expired at " + strconv.Quote(m.Expires.UTC().Format(time.RFC3339)),
			"use a location with a newer release",
		}
	}
	return nil
}
