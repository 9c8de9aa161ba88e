package linuxjoin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/kerberos"
	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/keytab"
	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// planning bounds all that a plan asks the network.
const planning = 10 * time.Second

// Plan returns what is left to do.
func Plan(ctx context.Context, m sdk.Machine, s settings.Settings) (sdk.Plan, error) {
	m.Claim("machine:domain", "spec.domain", fmt.Sprint(s.Domain, !s.Absent))
	if !s.Absent { // before the account gets a password that only the keytab has
		if err := sdk.Outside(m, s.Keytab.Path, sdk.HostDirectories()...); err != nil {
			return sdk.Plan{}, sdk.At(err, "spec.keytab.path")
		}
	}
	j := &join{m: m, s: s, unfinished: sdk.Intent[newPassword]{State: m.State, Name: "password"}}
	if m.Offline() {
		return j.inImage()
	}
	limited, cancel := context.WithTimeout(ctx, planning)
	defer cancel()
	result := sdk.Plan{Warnings: s.Warnings}
	err := j.load()
	if err == nil && s.Absent {
		err = j.planLeave(limited, &result)
	} else if err == nil {
		err = j.planJoin(limited, &result)
	}
	if j.session != nil {
		j.session.Close() // a change connects again: it can come much later, and is planned for another identity
	}
	if err != nil {
		return sdk.Plan{}, err
	}
	multicast, err := j.multicastOnly()
	if err != nil {
		return sdk.Plan{}, err
	}
	if !s.Absent && strings.HasSuffix(strings.ToLower(s.Domain), ".local") && multicast {
		result.Warnings = append(result.Warnings, sdk.Warning{
			Field:   "spec.domain",
			Message: "ends with .local, and /etc/nsswitch.conf looks such names up by multicast alone, so that programs do not find the domain: put dns before mdns4_minimal in its line hosts",
		})
	}
	if j.fallback {
		result.Warnings = append(result.Warnings, sdk.Warning{
			Field:   "spec.transport",
			Message: "the domain controller refuses Kerberos over TLS, so Kerberos itself seals the connection, on port 389",
		})
	}
	return result, j.planFiles(ctx, &result)
}

// multicastOnly reports whether the machine looks up names below .local by multicast DNS alone. Source: nsswitch.conf(5) and the documentation
// of nss-mdns.
func (j *join) multicastOnly() (bool, error) {
	text, err := j.m.FS.ReadFile("/etc/nsswitch.conf")
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // without the file dns is the default
		return false, err
	}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		name, services, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name != "hosts" {
			continue
		}
		before, _, _ := strings.Cut(services+" ", " dns ")
		return strings.Contains(before, "mdns") && strings.Contains(strings.ToUpper(before), "[NOTFOUND=RETURN]"), nil
	}
	return false, nil
}

// inImage leaves the account for the first boot.
func (j *join) inImage() (sdk.Plan, error) {
	result := sdk.Plan{Warnings: j.s.Warnings}
	if !j.s.Absent {
		never := func(context.Context, sdk.Progress) error { return errors.New("an image is no member of a domain") }
		result.Add(&sdk.Change{ID: "account", Summary: "join " + j.s.Domain, NeedsLive: true, Do: never})
	}
	return result, j.planKrb5Conf(&result)
}

// planJoin adds what is left of a join. A member needs no credentials.
func (j *join) planJoin(ctx context.Context, result *sdk.Plan) error {
	if err := j.open(ctx); err != nil {
		return err
	}
	have, ticket, why, err := j.observe(ctx)
	if err != nil {
		return err
	}
	switch have {
	case member:
		return j.planMember(ctx, result, ticket)
	case learned:
		if err := j.bind(ctx, ticket, "spec.domain"); err != nil {
			return err
		}
		if err := j.checkServices(ctx); err != nil {
			return err
		}
		result.Add(j.complete())
		return nil
	}
	account, err := j.planAccount(ctx, why)
	if err != nil {
		return err
	}
	result.Add(account, j.complete())
	return nil
}

// planMember compares the account and the keytab of a member with the document.
func (j *join) planMember(ctx context.Context, result *sdk.Plan, ticket *kerberos.Ticket) error {
	if err := j.bind(ctx, ticket, "spec.domain"); err != nil {
		return err
	}
	account, err := j.session.Account(ctx, j.s.Computer)
	if err == nil && account == nil {
		err = &kerberos.Error{Code: unknownAccount}
	}
	if err != nil {
		return explain(err, "read the account "+j.s.Computer+"$", "spec.computerName")
	}
	if differences := j.differences(*account); len(differences) > 0 {
		if err := j.checkServices(ctx); err != nil {
			return err
		}
		result.Add(&sdk.Change{
			ID: "attributes", Summary: "set " + strings.Join(attributes(differences), ", ") + " of " + account.DN,
			Do: func(ctx context.Context, _ sdk.Progress) error { return j.setAttributes(ctx) },
		})
	}
	keys, version := keytab.Keys(j.entries, j.principal())
	for _, etype := range j.s.EncryptionTypes {
		if !slices.ContainsFunc(keys, func(k kerberos.Key) bool { return k.Type == etype }) {
			result.Add(j.replace(kerberos.Identity{Name: j.s.Computer + "$", Keys: keys}), j.complete())
			return nil
		}
	}
	if version != account.Version && account.Version != 0 {
		version = account.Version // services look a key up by this number
	}
	change, err := sdk.File(j.m, j.keytabFile(keys, version))
	if err != nil {
		return sdk.At(err, "spec.keytab")
	}
	result.Add(change)
	if j.begun != nil {
		result.Add(&sdk.Change{
			ID: "password", Summary: "remove the stored password of the account, whose keys are in " + j.s.Keytab.Path,
			Do: func(context.Context, sdk.Progress) error { return j.unfinished.End() },
		})
	}
	return nil
}

// planAccount returns the change after which the domain and this machine share a password.
func (j *join) planAccount(ctx context.Context, why error) (*sdk.Change, error) {
	switch {
	case j.s.OneTimePassword != nil:
		id := kerberos.Identity{Name: j.s.Computer + "$", Password: j.s.OneTimePassword.Reveal()}
		if _, err := j.kdc.Authenticate(ctx, id, kerberos.PasswordService); err != nil {
			return nil, explain(err, "authenticate as "+id.Name, "spec.oneTimePassword")
		}
		return j.replace(id), nil
	case j.s.Credentials != nil:
		return j.planCredentials(ctx)
	case why != nil:
		return nil, explain(why, "the domain does not accept the keys in "+j.s.Keytab.Path+", and the document has no credentials", "spec.credentials")
	}
	return nil, sdk.Preconditions(sdk.Violation{
		Field: "spec.credentials", Message: "the machine is not a member of " + j.s.Domain + ", and the document has no credentials to join it",
		Hint: "add credentials, or oneTimePassword for an account that exists",
	})
}

// planCredentials finds out whether the account is to be created or reset, and what the domain would refuse.
func (j *join) planCredentials(ctx context.Context) (*sdk.Change, error) {
	if err := j.logOn(ctx); err != nil {
		return nil, err
	}
	if err := j.checkServices(ctx); err != nil {
		return nil, err
	}
	account, err := j.session.Account(ctx, j.s.Computer)
	if err != nil {
		return nil, explain(err, "look for the account "+j.s.Computer+"$", "spec.computerName")
	}
	if account != nil {
		if !j.s.Reuse {
			return nil, sdk.Preconditions(sdk.Violation{
				Field: "spec.existingAccount", Message: "the account " + j.s.Computer + "$ exists: " + account.DN,
				Hint: "set existingAccount: reuse if this machine replaces the one that used it, or choose another computerName",
			})
		}
		return j.shared("reset the password of "+account.DN, func(ctx context.Context, password string) error {
			return explain(j.session.Reset(ctx, *account, password), "reset the password of "+account.DN, "spec.credentials")
		}), nil
	}
	unit, may, err := j.session.Unit(ctx, j.s.Unit)
	if err != nil {
		return nil, explain(err, "look for the organizational unit", "spec.organizationalUnit")
	}
	if !may {
		return nil, sdk.WithFacts(sdk.Preconditions(sdk.Violation{
			Field: "spec.credentials", Message: "the account lacks the right to create computers in " + unit,
			Hint: "grant it on the organizational unit, or set another spec.organizationalUnit",
		}), map[string]string{"ldapResult": "50"})
	}
	return j.shared("create the account "+j.s.Computer+"$ in "+unit, func(ctx context.Context, password string) error {
		return explain(j.session.Create(ctx, j.s.Computer, unit, password), "create the account "+j.s.Computer+"$ in "+unit, "spec.credentials")
	}), nil
}

// checkServices refuses services that other accounts have: Kerberos would not find the account of this machine by them.
func (j *join) checkServices(ctx context.Context) error {
	holders, err := j.session.Holders(ctx, j.s.Computer, j.s.Services)
	if err != nil {
		return explain(err, "look for other accounts with the services of this machine", "spec.servicePrincipalNames")
	}
	var violations []sdk.Violation
	for _, service := range j.s.Services {
		if holder := holders[service]; holder != "" {
			violations = append(violations, sdk.Violation{
				Field: "spec.servicePrincipalNames", Message: "the service " + service + " belongs to another account: " + holder,
				Hint: "remove it there, or choose another name",
			})
		}
	}
	if len(violations) > 0 {
		return sdk.Preconditions(violations...)
	}
	return nil
}
