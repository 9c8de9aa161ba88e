// Package install fetches, verifies and installs releases, and copies them for machines without a route to their source.
package install

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/installer/manifest"
	"github.com/machineadm/machineadm/internal/trust"
)

// location is stamped by the linker: -X github.com/machineadm/machineadm/installer/install.location=https://example.com/releases.
//
//nolint:gochecknoglobals // The linker can stamp only package variables; the program never writes it.
var location string

// DefaultLocation returns the location of releases of this build, or "".
func DefaultLocation() string { return location }

// product is the name in the manifest of every release.
const product = "machineadm"

// Options are the inputs of Install and Mirror.
type Options struct {
	// Locations are URLs (http, https) or paths of manifest.json, or of its directory. They are tried in turn.
	Locations []string
	Keys      []manifest.Key // one of them must have signed the manifest
	To        string         // the directory to install or to copy to

	// The others are for Install alone.
	With           []string // the plugins to install, with or without the prefix machineadm-; "node", or nothing, for those that prepare a node
	Version        string   // the version that the release must have, or empty for any
	AllowDowngrade string   // the version that may be older than what was installed, or empty

	// Switch, if not nil, calls do, which makes a complete release the current one. An error of its own is an *Error.
	Switch func(do func() error) error

	// Warn receives messages about what is retried or not checked.
	Warn func(string)
}

// Result is the outcome of Install.
type Result struct {
	Version   string   `json:"version"`
	Directory string   `json:"directory"`          // of --to
	Changed   bool     `json:"changed"`            // false if the release was installed and complete
	Previous  string   `json:"previous,omitempty"` // the release that is kept besides
	Plugins   []string `json:"plugins"`
}

// Copied is the outcome of Mirror.
type Copied struct {
	Version   string `json:"version"`
	Directory string `json:"directory"`
	Files     int    `json:"files"`  // of the release
	Copied    int    `json:"copied"` // the others were complete
}

// Error is a failure of this package.
type Error struct {
	Code    int // an exit code of contract/report
	Problem string
	Remedy  string

	elsewhere bool // another location may succeed
	temporary bool // the same location may succeed later
}

// Error returns the problem.
func (e *Error) Error() string { return e.Problem }

// localError returns the error for a failure of the local disk. An *Error stays.
func localError(err error) error {
	var known *Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	if refused, ok := errors.AsType[*trust.Error](err); ok {
		return &Error{Code: report.ExitUntrusted, Problem: refused.Error(), Remedy: refused.Remedy}
	}
	remedy := "check that the directory is writable and not full, and run again, which is safe"
	if errors.Is(err, fs.ErrPermission) {
		remedy = "run as root, or give another directory with --to"
	}
	return &Error{Code: report.ExitState, Problem: err.Error(), Remedy: remedy}
}

// newest is the release with the highest sequence that was installed or mirrored. The version is empty if it is not known.
type newest struct {
	sequence uint64
	version  string
}

// admit returns an *Error if the release must not be used: another one than the operator asked for, one older than seen, the
// highest sequence here, or an expired one. right says whether now is known to be right; otherwise an expired release is a warning.
func admit(m *manifest.Manifest, o Options, seen newest, now time.Time, right bool) error {
	refused := &Error{Code: report.ExitUntrusted, elsewhere: true}
	expired := ""
	if m.Expires != nil && !now.Before(*m.Expires) {
		expired = "the manifest of release " + m.Version + " expired at " + m.Expires.UTC().Format(time.RFC3339)
	}
	switch {
	case m.Name != product:
		refused.Problem = fmt.Sprintf("the manifest is of %q, and not of %s", m.Name, product)
		refused.Remedy = "give the location of a release of " + product
	case o.Version != "" && o.Version != m.Version:
		refused.Problem = "the location has the release " + m.Version + ", and not " + o.Version
		refused.Remedy = "give the location of " + o.Version + " with --manifest, or another --version"
	case m.Sequence < seen.sequence && o.AllowDowngrade != m.Version:
		refused.Problem = fmt.Sprintf(
			"the release %s has sequence %d, and one of sequence %d was installed here: an old release can have known faults", m.Version, m.Sequence, seen.sequence)
		refused.Remedy = "use a location with a newer release; if the older one is intended, add --allow-downgrade " + m.Version
	case m.Sequence == seen.sequence && seen.version != "" && seen.version != m.Version && o.AllowDowngrade != m.Version:
		refused.Problem = fmt.Sprintf("the release %s has sequence %d, which is that of %s, installed here: which of the two is newer is not known", m.Version, m.Sequence, seen.version)
		refused.Remedy = "ask the publisher for a release with a higher sequence; if this one is intended, add --allow-downgrade " + m.Version
	case expired != "" && right:
		refused.Problem, refused.Remedy = expired, "use a location with a newer release"
	default:
		if expired != "" {
			o.Warn(expired + ", which is not checked: the clock of this machine is not synchronized")
		}
		return nil
	}
	return refused
}
