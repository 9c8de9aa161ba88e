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
	With           []string // the plugins to install, with or without the prefix machineadm-; empty for all
	Version        string   // the version that the release must have, or empty for any
	AllowDowngrade string   // the version that may be older than what was installed, or empty
	OS, Arch       string   // as GOOS and GOARCH

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

// admit decides whether the release may be used, given the highest sequence seen.
func admit(m *manifest.Manifest, o Options, seen uint64) error {
	now, right := clock()
	if m.Expires != nil && !right {
		if !now.Before(*m.Expires) {
			o.Warn("the manifest of release " + m.Version + " expired at " + m.Expires.UTC().Format(time.RFC3339) +
				", which is not checked: the clock of this machine is not synchronized")
		}
		now = time.Time{}
	}
	err := m.Admit(manifest.Policy{Version: o.Version, AllowDowngrade: o.AllowDowngrade, Seen: seen, Now: now})
	var refused *manifest.RefusedError
	switch {
	case errors.As(err, &refused):
		return &Error{Code: report.ExitUntrusted, Problem: refused.Problem, Remedy: refused.Remedy, elsewhere: true}
	case m.Name != product:
		return &Error{
			Code: report.ExitUntrusted, Problem: fmt.Sprintf("the manifest is of %q, and not of %s", m.Name, product),
			Remedy: "give the location of a release of " + product, elsewhere: true,
		}
	}
	return err
}
