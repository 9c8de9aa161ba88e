// Package linuxjoin makes a Linux machine a member of a domain: it creates or takes over the account of the machine, writes its
// keys to a keytab, and configures the programs that use them.
package linuxjoin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/directory"
	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/kerberos"
	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/keytab"
	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// maxSkew is less than the 5 min that Kerberos accepts, so that a slow drift does not break a member soon after.
const maxSkew = 2 * time.Minute

// join is the membership of this machine, current and desired.
type join struct {
	m sdk.Machine
	s settings.Settings
	// unfinished has the new password from before the domain learns it until the keytab has its keys.
	unfinished sdk.Intent[newPassword]
	begun      *newPassword
	// entries are the entries of the keytab.
	entries []keytab.Entry

	session  *directory.Session
	kdc      *kerberos.Client
	fallback bool // see directory.Session
	// controller is the one of the first session. Others can lag behind it.
	controller string
}

// newPassword is a password of the account that the domain may or may not have.
type newPassword struct {
	Domain, Computer, Password string
	// Controller is the one that has learned it first.
	Controller string
}

// membership says which secret of the machine the domain accepts.
type membership int

const (
	stranger membership = iota // the machine has no secret that the domain accepts
	learned                    // the domain has the new password, the keytab has not
	member                     // the domain accepts the keys of the keytab
)

func (j *join) principal() string { return j.s.Computer + "$@" + j.s.Realm }

// load reads what the machine has.
func (j *join) load() error {
	data, err := j.m.FS.ReadFile(j.s.Keytab.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return sdk.At(err, "spec.keytab.path")
	}
	if j.entries, err = keytab.Parse(data); err != nil {
		return sdk.Final(sdk.Preconditions(sdk.Violation{
			Field: "spec.keytab.path", Message: j.s.Keytab.Path + ": " + err.Error(), Hint: "remove the file, then run again",
		}))
	}
	j.begun, err = j.unfinished.Load()
	if j.begun != nil && (j.begun.Domain != j.s.Domain || j.begun.Computer != j.s.Computer) {
		j.begun = nil // that of another document, which the next one replaces
	}
	return err
}

// open connects to a controller and compares the clocks.
func (j *join) open(ctx context.Context) error {
	if j.session != nil {
		j.session.Close()
		j.session = nil
	}
	o := directory.Options{Domain: j.s.Domain, Servers: j.s.Servers, Preferred: j.controller}
	if j.begun != nil {
		o.Preferred = j.begun.Controller
	}
	if j.s.Transport != settings.Sealed {
		o.TLS = &directory.TLS{CA: j.s.CA, Start: j.s.Transport == settings.StartTLS}
	}
	field := "spec.domain"
	if len(j.s.Servers) > 0 {
		field = "spec.servers"
	}
	session, err := directory.Open(ctx, o)
	if err != nil {
		return explain(err, "connect to a domain controller of "+j.s.Domain, field)
	}
	j.session, j.controller = session, session.Name
	j.kdc = &kerberos.Client{Realm: j.s.Realm, Host: session.Host, EncryptionTypes: j.s.EncryptionTypes}
	if skew := session.Read.Sub(session.Time); skew.Abs() > maxSkew {
		word := "ahead of"
		if skew < 0 {
			word = "behind"
		}
		return sdk.Needs(sdk.Precondition(
			fmt.Sprintf("the clock of this machine is %s %s the clock of the domain controller %s", skew.Abs().Round(time.Second), word, session.Name),
			"synchronize it first, with a Timesync document before this one"), "clock:")
	}
	return nil
}

// observe finds out which secret of the machine the domain accepts. Why is what the domain says of a keytab that it refuses.
func (j *join) observe(ctx context.Context) (have membership, ticket *kerberos.Ticket, why error, err error) {
	account := j.s.Computer + "$"
	try := func(id kerberos.Identity) (*kerberos.Ticket, error) {
		ticket, err := j.kdc.Authenticate(ctx, id, "")
		if err != nil && !refuses(err) {
			return nil, explain(err, "authenticate as "+account, "spec.domain")
		}
		if err != nil {
			why = err
		}
		return ticket, nil
	}
	if keys, _ := keytab.Keys(j.entries, j.principal()); len(keys) > 0 {
		if ticket, err = try(kerberos.Identity{Name: account, Keys: keys}); ticket != nil || err != nil {
			return member, ticket, nil, err
		}
	}
	if j.begun != nil {
		refused := why
		if ticket, err = try(kerberos.Identity{Name: account, Password: []byte(j.begun.Password)}); ticket != nil || err != nil {
			return learned, ticket, nil, err
		}
		why = refused
	}
	return stranger, nil, why, nil
}

// bind authenticates the session as the account of a ticket.
func (j *join) bind(ctx context.Context, ticket *kerberos.Ticket, field string) error {
	service, err := j.kdc.Service(ctx, ticket, j.session.Service())
	if err == nil {
		err = j.session.Bind(ctx, service)
		j.fallback = j.fallback || j.session.Fallback
	}
	return explain(err, "log on to the domain controller "+j.session.Name, field)
}

// logOn authenticates with the credentials of the document.
func (j *join) logOn(ctx context.Context) error {
	c := j.s.Credentials
	ticket, err := j.kdc.Authenticate(ctx, kerberos.Identity{Name: c.Username, Password: c.Password.Reveal()}, "")
	if err != nil {
		field := "spec.credentials.password"
		if isCode(err, unknownAccount) {
			field = "spec.credentials.username"
		}
		return explain(err, "authenticate with the credentials", field)
	}
	return j.bind(ctx, ticket, "spec.credentials")
}
