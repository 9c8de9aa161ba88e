// Package settings validates Timesync documents and resolves their profiles, for every provider of the kind.
package settings

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

// Settings is a valid document with its profile resolved.
type Settings struct {
	// Sources are the servers, then the pools; the profile's come first.
	Sources   []Source
	Fallback  []string
	RefClocks []RefClock
	// Lines are the directives of providerConfig that name no source by its address.
	Lines    []Line
	MakeStep *MakeStep
	RTCSync  *bool
	// Wait is nil when the document does not wait for synchronization.
	Wait                    *Wait
	DisableOthers           bool
	KeepDistributionSources bool
	// Smeared reports that sources spread leap seconds over a day, so that the daemon must not insert them itself.
	Smeared bool
	// Warnings are for the operator.
	Warnings []sdk.Warning
	// unnamed reports that Lines have sources.
	unnamed bool
}

// Source is a server, or the name of several.
type Source struct {
	Address          string
	Pool             bool
	IBurst           *bool // nil means the default, true
	Prefer           bool
	MinPoll, MaxPoll *int
	MaxSources       *int
	NTS              bool
	Key              *Key
	// Line is the directive of a source that providerConfig has, which then is written as it is.
	Line          string
	authenticated bool
	// Field is the field of the document, such as spec.servers[0].
	Field string
}

// Line is a directive that providerConfig adds to the configuration of chronyd or ntpd.
type Line struct {
	Text  string
	Field document.Path
}

// Words returns the line split at its blanks, the name of the directive in lower case, or nil for a comment.
func (l Line) Words() []string { return Words(l.Text) }

// Words returns a line of a configuration split at its blanks, the name of the directive in lower case, or nil for a comment.
func Words(line string) []string {
	words := strings.Fields(line)
	if len(words) == 0 || strings.ContainsRune("#!;%", rune(words[0][0])) {
		return nil
	}
	words[0] = strings.ToLower(words[0])
	return words
}

// Key is a symmetric key.
type Key struct {
	ID   int
	Type string
	// Value is HEX: and hexadecimal digits, or the characters of the key.
	Value v1alpha1.Secret
	Field string
}

// Bytes returns the key itself. It is an error if the value has no valid form; the error does not quote it.
func (k Key) Bytes() ([]byte, error) { return v1alpha1.TimeKey{Value: k.Value}.Bytes() }

// RefClock is a clock of the machine.
type RefClock struct {
	Driver, Device string
	Prefer         bool
	Poll           *int
	Offset         time.Duration
	// Options are further options of chrony's refclock directive, which only profiles have.
	Options string
	// Line is the directive of a clock that providerConfig has, which then is written as it is.
	Line  string
	Field string
}

// MakeStep says when the clock is stepped. Limit is -1 for no limit, and 0 for no step.
type MakeStep struct {
	Threshold time.Duration
	Limit     int
}

// Wait is the condition for synchronization.
type Wait struct {
	Timeout, MaxOffset time.Duration
}

// HasSources reports whether the document names what the clock is synchronized with.
func (s Settings) HasSources() bool { return len(s.Sources)+len(s.RefClocks) > 0 || s.unnamed }

// Asked are the sources that this package can ask for the time: a directive can have a port or a key that is known to the
// daemon alone.
func (s Settings) Asked() []Source {
	return slices.DeleteFunc(slices.Clone(s.Sources), func(s Source) bool { return s.Line != "" })
}

// ReplacesSources reports whether only the sources of the document may be used.
func (s Settings) ReplacesSources() bool { return s.HasSources() && !s.KeepDistributionSources }

// Exclusive reports whether the daemon may have no other sources than those that the document names by an address.
func (s Settings) Exclusive() bool { return s.ReplacesSources() && !s.unnamed }

// Names reports whether a source of the document has this address, or this name.
func (s Settings) Names(address string) bool {
	return slices.ContainsFunc(s.Sources, func(o Source) bool {
		return v1alpha1.CanonicalTimeSource(o.Address) == v1alpha1.CanonicalTimeSource(address)
	})
}

// Keys returns the symmetric keys, each once, by ID.
func (s Settings) Keys() []Key {
	var keys []Key
	for _, source := range s.Sources {
		if source.Key != nil && !slices.ContainsFunc(keys, func(k Key) bool { return k.ID == source.Key.ID }) {
			keys = append(keys, *source.Key)
		}
	}
	slices.SortFunc(keys, func(a, b Key) int { return cmp.Compare(a.ID, b.ID) })
	return keys
}

// Authenticated reports whether the daemon verifies who answers.
func (s Source) Authenticated() bool { return s.NTS || s.Key != nil || s.authenticated }

// Burst reports whether the first requests are sent in short intervals.
func (s Source) Burst() bool { return s.IBurst == nil || *s.IBurst }
