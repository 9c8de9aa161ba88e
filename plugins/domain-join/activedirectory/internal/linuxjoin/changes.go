package linuxjoin

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/kerberos"
	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/keytab"
	"github.com/machineadm/machineadm/sdk"
)

// shared is the change after which the domain and this machine share a password, by the credentials of the document.
func (j *join) shared(summary string, tell func(ctx context.Context, password string) error) *sdk.Change {
	return &sdk.Change{ID: "account", Summary: summary, Do: func(ctx context.Context, _ sdk.Progress) error {
		if err := j.open(ctx); err != nil {
			return err
		}
		if err := j.logOn(ctx); err != nil {
			return err
		}
		return j.tell(ctx, tell)
	}}
}

// tell stores a new password before the domain learns it: whenever the process ends, either the old keys still work, or a later
// run finds the new password.
func (j *join) tell(ctx context.Context, tell func(ctx context.Context, password string) error) error {
	record := newPassword{Domain: j.s.Domain, Computer: j.s.Computer, Password: random(), Controller: j.session.Name}
	if err := j.unfinished.Begin(record); err != nil {
		return err
	}
	j.begun = &record
	return tell(ctx, record.Password)
}

// replace changes the password with the account's own secret: a one-time password, or the keys of a member.
func (j *join) replace(id kerberos.Identity) *sdk.Change {
	return &sdk.Change{ID: "account", Summary: "change the password of " + id.Name, Do: func(ctx context.Context, _ sdk.Progress) error {
		if err := j.open(ctx); err != nil {
			return err
		}
		return j.tell(ctx, func(ctx context.Context, password string) error {
			ticket, err := j.kdc.Authenticate(ctx, id, kerberos.PasswordService)
			if err == nil {
				err = j.kdc.ChangePassword(ctx, ticket, password)
			}
			return explain(err, "change the password of "+id.Name, "spec.oneTimePassword")
		})
	}}
}

// random is a password of 120 characters, the longest that every controller accepts.
func random() string {
	data := make([]byte, 90)
	_, _ = rand.Read(data) // it never fails
	return base64.RawURLEncoding.EncodeToString(data)
}

// complete makes the machine a member whose domain has its new password: attributes, keytab, proof.
func (j *join) complete() *sdk.Change {
	return &sdk.Change{
		ID: "file:" + j.s.Keytab.Path, Summary: "write the keys of " + j.s.Computer + "$ to " + j.s.Keytab.Path,
		Do: func(ctx context.Context, p sdk.Progress) error {
			if err := j.load(); err != nil {
				return err
			}
			if j.begun == nil {
				return errors.New("the password of the account is not stored")
			}
			if err := j.open(ctx); err != nil {
				return err
			}
			id := kerberos.Identity{Name: j.s.Computer + "$", Password: []byte(j.begun.Password)}
			ticket, err := j.kdc.Authenticate(ctx, id, "")
			if err != nil {
				return explain(err, "authenticate as "+id.Name+" with its new password", "spec.domain")
			}
			if err := j.bind(ctx, ticket, "spec.domain"); err != nil {
				return err
			}
			version, err := j.update(ctx)
			if err != nil {
				return err
			}
			keys, err := j.kdc.Keys(ctx, id.Name, j.begun.Password)
			if err != nil {
				return explain(err, "ask for the salts of "+id.Name, "spec.domain")
			}
			if err := j.write(ctx, p, keys, version); err != nil {
				return err
			}
			if err := j.prove(ctx); err != nil {
				return err
			}
			return j.unfinished.End()
		},
	}
}

// keytabFile is the keytab with these keys of the account under all of its names. They go first, because some programs take the
// realm of the first entry. Keys of the version before stay, for tickets that were issued with them, and so do the keys of other
// accounts.
func (j *join) keytabFile(keys []kerberos.Key, version uint32) sdk.FileSpec {
	own, _ := keytab.Split(j.entries, j.principal())
	entries := slices.DeleteFunc(slices.Clone(j.entries), func(e keytab.Entry) bool {
		right := e.Version+1 == version || e.Version == version && slices.ContainsFunc(keys, e.Key.Equal)
		return !right && slices.ContainsFunc(own, func(o keytab.Entry) bool { return o.Key.Equal(e.Key) })
	})
	var missing []keytab.Entry
	for _, principal := range j.principals() {
		for _, key := range keys {
			if !slices.ContainsFunc(entries, func(e keytab.Entry) bool {
				return e.Principal == principal && e.Version == version && e.Key.Equal(key)
			}) {
				missing = append(missing, keytab.New(principal, version, time.Now(), key))
			}
		}
	}
	entries = append(missing, entries...)
	return sdk.FileSpec{
		Path: j.s.Keytab.Path, Content: keytab.Marshal(entries), Mode: j.s.Keytab.Mode, Owner: &j.s.Keytab.Owner, Sensitive: true,
		Outside: sdk.HostDirectories(),
	}
}

// principals are the names under which services look up the keys. Unlike names in the directory they depend on case.
func (j *join) principals() []string {
	names := []string{j.principal()}
	for _, service := range j.s.Services {
		class, rest, _ := strings.Cut(service, "/")
		if class == "HOST" {
			class = "host" // as programs of Unix write it
		}
		names = append(names, class+"/"+rest+"@"+j.s.Realm)
	}
	return names
}

func (j *join) write(ctx context.Context, p sdk.Progress, keys []kerberos.Key, version uint32) error {
	for _, etype := range j.s.EncryptionTypes {
		if !slices.ContainsFunc(keys, func(k kerberos.Key) bool { return k.Type == etype }) {
			return sdk.Preconditions(sdk.Violation{
				Field: "spec.encryptionTypes", Message: fmt.Sprintf("the domain has no key of encryption type %d for the account", etype),
				Hint: "allow the type in the domain, or leave it out",
			})
		}
	}
	change, err := sdk.File(j.m, j.keytabFile(keys, version))
	if err == nil && change != nil {
		err = change.Do(ctx, p)
	}
	return sdk.At(err, "spec.keytab")
}

// prove authenticates with what is in the file, and opens a ticket that the domain issues for the machine with it.
func (j *join) prove(ctx context.Context) error {
	if err := j.load(); err != nil {
		return err
	}
	keys, _ := keytab.Keys(j.entries, j.principal())
	ticket, err := j.kdc.Authenticate(ctx, kerberos.Identity{Name: j.s.Computer + "$", Keys: keys}, "")
	if err != nil {
		return explain(err, "authenticate with the keys in "+j.s.Keytab.Path, "spec.domain")
	}
	service := "host/" + j.s.FQDN
	own, err := j.kdc.Service(ctx, ticket, service)
	if err != nil {
		return explain(err, "get a ticket for "+service, "spec.domain")
	}
	if keys, _ := keytab.Keys(j.entries, service+"@"+j.s.Realm); !own.Opens(keys) {
		return sdk.Precondition("the keys in "+j.s.Keytab.Path+" do not open tickets for "+service,
			"find the other account of this name in the domain, and remove the service there")
	}
	return nil
}
