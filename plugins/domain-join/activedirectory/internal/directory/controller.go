// Package directory reads and writes accounts of an Active Directory domain over a protected LDAP connection. It finds a domain
// controller, stays with it, and authenticates with Kerberos alone, so that no password crosses the network.
package directory

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/internal/netfault"
)

// candidates is how many controllers are tried at most.
const candidates = 8

// ErrNoController says that the DNS lists no controller of the domain.
var ErrNoController = errors.New("the DNS has no domain controllers of the domain")

// Open connects to the first controller that is reachable and can be written to. Without Servers the DNS lists them, and those
// of the site that the controllers count the machine to go first.
func Open(ctx context.Context, o Options) (*Session, error) {
	names := o.Servers
	if len(names) == 0 {
		var err error
		if names, err = listed(ctx, "dc._msdcs."+o.Domain); err != nil {
			return nil, err
		}
	}
	if slices.Contains(names, o.Preferred) {
		names = []string{o.Preferred}
	}
	s, err := first(ctx, o, names)
	if err != nil || len(o.Servers) > 0 || s.Name == o.Preferred {
		return s, err
	}
	site, near, err := s.site(ctx, o.Domain)
	if err != nil || near || site == "" {
		return s, nil //nolint:nilerr // without an answer any controller is as good
	}
	if names, err = listed(ctx, site+"._sites.dc._msdcs."+o.Domain); err != nil {
		return s, nil //nolint:nilerr // a site without controllers of its own
	}
	nearest, err := first(ctx, o, names)
	if err != nil {
		return s, nil //nolint:nilerr // the distant one answers
	}
	s.Close()
	return nearest, nil
}

// first returns a session with the first controller that is usable.
func first(ctx context.Context, o Options, names []string) (*Session, error) {
	var failures []error
	for _, name := range names[:min(len(names), candidates)] {
		s, err := connect(ctx, o, name)
		if err == nil {
			return s, nil
		}
		failures = append(failures, fmt.Errorf("%s: %w", name, err))
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(failures...)
}

// listed returns the targets of the records of LDAP below a name, by priority and weight. A network that drops UDP is asked
// over TCP.
func listed(ctx context.Context, below string) ([]string, error) {
	_, records, err := resolver("").LookupSRV(ctx, "ldap", "tcp", below)
	var failure *net.DNSError
	if errors.As(err, &failure) && failure.IsTimeout && ctx.Err() == nil {
		_, records, err = resolver("tcp").LookupSRV(ctx, "ldap", "tcp", below)
	}
	if netfault.Is(err, netfault.UnknownName) {
		return nil, ErrNoController
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, r := range records {
		names = append(names, strings.ToLower(strings.TrimSuffix(r.Target, ".")))
	}
	if len(names) == 0 {
		return nil, ErrNoController
	}
	return names, nil
}
