package linuxjoin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-ldap/ldap/v3"

	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/directory"
	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/kerberos"
	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/keytab"
)

// difference is an attribute with the values that it lacks, and the field of the document that asks for them.
type difference struct {
	attribute, field string
	values           []string
}

func attributes(differences []difference) []string {
	var names []string
	for _, d := range differences {
		names = append(names, d.attribute)
	}
	return names
}

// differences are in the order in which a machine may write its own attributes: services only with the DNS name that it has.
func (j *join) differences(a directory.Account) []difference {
	var result []difference
	if !strings.EqualFold(a.DNSName, j.s.FQDN) {
		result = append(result, difference{directory.DNSName, "spec.fqdn", []string{j.s.FQDN}})
	}
	missing := slices.DeleteFunc(slices.Clone(j.s.Services), func(service string) bool {
		return slices.ContainsFunc(a.Services, func(has string) bool { return strings.EqualFold(has, service) })
	})
	if len(missing) > 0 {
		result = append(result, difference{directory.Services, "spec.servicePrincipalNames", missing})
	}
	if bits := j.encryptionBits(); a.EncryptionTypes != bits {
		result = append(result, difference{directory.EncryptionTypes, "spec.encryptionTypes", []string{fmt.Sprint(bits)}})
	}
	return result
}

// encryptionBits are the bits of [MS-KILE] section 2.2.7.
func (j *join) encryptionBits() (bits uint32) {
	for _, etype := range j.s.EncryptionTypes {
		bits |= map[int32]uint32{18: 0x10, 17: 0x8, 23: 0x4}[etype]
	}
	return bits
}

// setAttributes is the change of a member's attributes.
func (j *join) setAttributes(ctx context.Context) error {
	if err := j.open(ctx); err != nil {
		return err
	}
	keys, _ := keytab.Keys(j.entries, j.principal())
	ticket, err := j.kdc.Authenticate(ctx, kerberos.Identity{Name: j.s.Computer + "$", Keys: keys}, "")
	if err != nil {
		return explain(err, "authenticate as "+j.s.Computer+"$", "spec.domain")
	}
	if err := j.bind(ctx, ticket, "spec.domain"); err != nil {
		return err
	}
	_, err = j.update(ctx)
	return err
}

// update sets the attributes as the machine itself, and returns the version of its keys. It reads the account again after each
// one, because the directory derives services from the DNS name.
func (j *join) update(ctx context.Context) (uint32, error) {
	for set := map[string]bool{}; ; {
		account, err := j.session.Account(ctx, j.s.Computer)
		if err == nil && account == nil {
			err = &kerberos.Error{Code: unknownAccount}
		}
		if err != nil {
			return 0, explain(err, "read the account "+j.s.Computer+"$", "spec.computerName")
		}
		left := slices.DeleteFunc(j.differences(*account), func(d difference) bool { return set[d.attribute] })
		if len(left) == 0 {
			return account.Version, nil
		}
		d := left[0]
		set[d.attribute] = true
		err = j.session.Set(ctx, account.DN, d.attribute, d.values...)
		if err = j.asJoiner(ctx, err, func() error { return j.session.Set(ctx, account.DN, d.attribute, d.values...) }); err != nil {
			return 0, explain(err, "set "+d.attribute+" of "+account.DN, d.field)
		}
	}
}

// asJoiner repeats with the credentials of the document, if it has some, what the domain does not let a machine do itself: its
// own DNS name can only be the name of its account with the domain's.
func (j *join) asJoiner(ctx context.Context, err error, do func() error) error {
	if !ldap.IsErrorAnyOf(err, ldap.LDAPResultConstraintViolation, ldap.LDAPResultInsufficientAccessRights) || j.s.Credentials == nil {
		return err
	}
	own := j.session
	j.session = nil
	defer func() {
		if j.session != nil {
			j.session.Close()
		}
		j.session = own
	}()
	if err := j.open(ctx); err != nil {
		return err
	}
	if err := j.logOn(ctx); err != nil {
		return err
	}
	return do()
}
