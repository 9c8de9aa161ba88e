package settings

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

// Resolve returns the settings of a document for one machine. Its errors are InvalidConfig with all violations, Unsupported with
// all fields that the machine's operating system decides by itself, or Precondition with what the machine lacks. An image has
// neither a host name nor the owner of the keytab yet, so that both stay as they are.
func Resolve(m sdk.Machine, doc v1alpha1.DomainJoin) (Settings, error) {
	c := check(doc.Spec)
	if len(c.violations) > 0 {
		return Settings{}, sdk.InvalidConfig(c.violations...)
	}
	if err := sdk.UnsupportedFields(unsupported(doc.Spec, m.Target.OS)...); err != nil {
		return Settings{}, err
	}
	s := c.result
	var missing []sdk.Violation
	if !m.Offline() {
		missing = completeNames(&s, m.Target.Hostname)
		pending, err := lookupOwner(m, doc.Spec.Keytab, &s.Keytab.Owner)
		if err != nil {
			return Settings{}, err
		}
		missing = append(missing, pending...)
	}
	if len(missing) > 0 {
		return Settings{}, sdk.Preconditions(missing...)
	}
	s.Services = services(s, doc.Spec.ServicePrincipalNames)
	s.Warnings = traps(s, doc.Spec)
	return s, nil
}

// traps returns warnings of values with which the join succeeds and something else does not.
func traps(s Settings, spec v1alpha1.DomainJoinSpec) (all []sdk.Warning) {
	warn := func(is bool, field, message string) {
		if is && !s.Absent {
			all = append(all, sdk.Warning{Field: field, Message: message})
		}
	}
	short, _, _ := strings.Cut(s.FQDN, ".")
	warn(spec.ComputerName != "" && spec.FQDN != "" && len(short) <= maxAccount && !strings.EqualFold(short, s.Computer), "spec.fqdn",
		"begins with another name than spec.computerName, so that a client which asks for the one gets a ticket for the other: make them equal, unless the site has two names on purpose")
	warn(slices.Equal(spec.EncryptionTypes, []string{"rc4-hmac"}), "spec.encryptionTypes",
		"has RC4 alone, which domain controllers of today refuse by default: add aes256-cts-hmac-sha1-96")
	for i, name := range s.Servers {
		warn(!strings.HasSuffix(name, "."+s.Domain), string(document.Path("spec.servers").Index(i)),
			"is not below "+s.Domain+": a controller of another domain has no account of this one; leave it if the controllers have names of another domain")
	}
	return all
}

// unsupported returns the fields that mean nothing on an operating system.
func unsupported(spec v1alpha1.DomainJoinSpec, goos string) []sdk.Violation {
	type part struct {
		field document.Path
		given bool
	}
	parts, message := []part{
		{"spec.offlineJoinBlob", spec.OfflineJoinBlob != nil}, {"spec.windows", spec.Windows != nil},
	}, "is for Windows only"
	if goos == "windows" {
		parts, message = []part{
			{"spec.transport", spec.Transport != ""},
			{"spec.ca", spec.CA != ""},
			{"spec.servicePrincipalNames", spec.ServicePrincipalNames != nil},
			{"spec.encryptionTypes", spec.EncryptionTypes != nil},
			{"spec.keytab", spec.Keytab != nil},
			{"spec.krb5Conf", spec.Krb5Conf != nil},
			{"spec.sssd", spec.SSSD != nil},
		}, "is not for Windows, which decides it by itself"
	}
	var all []sdk.Violation
	for _, p := range parts {
		if p.given {
			all = append(all, sdk.Violation{Field: string(p.field), Message: message, Hint: "use a document of its own for each operating system, with metadata.when"})
		}
	}
	return all
}

// completeNames takes the names that the document does not have from the host name. It returns what is wrong with that.
func completeNames(s *Settings, hostname string) (missing []sdk.Violation) {
	host := strings.ToLower(strings.TrimSpace(hostname))
	short, _, qualified := strings.Cut(host, ".")
	problem := ""
	switch {
	case host == "":
		problem = "is empty"
	case short == "localhost":
		problem = "is localhost, as on any machine without a name of its own"
	}
	refuse := func(field, otherwise string) {
		missing = append(missing, sdk.Violation{
			Field: field, Message: "the host name of this machine " + cmp.Or(problem, otherwise), Hint: "set another host name, or give " + field,
		})
	}
	derived := s.FQDN == ""
	if derived && qualified {
		s.FQDN = host
	} else if derived {
		s.FQDN = short + "." + s.Domain
	}
	if s.Computer == "" {
		if s.Computer = accountOf(short, s.FQDN); problem != "" || !isAccount(s.Computer) {
			refuse("spec.computerName", "cannot be the name of an account")
		}
	}
	if derived && (problem != "" || !isQualified(s.FQDN)) {
		refuse("spec.fqdn", "is not a DNS name")
	}
	return missing
}

func lookupOwner(m sdk.Machine, want *v1alpha1.Keytab, into *sdk.Owner) ([]sdk.Violation, error) {
	const field = "spec.keytab.owner"
	if want == nil || want.Owner == "" {
		return nil, nil
	}
	found, err := sdk.LookupOwner(m.FS, want.Owner)
	if errors.Is(err, fs.ErrNotExist) {
		return []sdk.Violation{{Field: field, Message: "this machine has no such user or group", Hint: "create them first, or name others"}}, nil
	}
	*into = found
	return nil, sdk.At(err, field)
}

// services returns the names that every computer has, and then the document's that are not among them.
func services(s Settings, further []string) (all []string) {
	for _, class := range []string{"HOST/", "RestrictedKrbHost/"} {
		for _, name := range []string{s.Computer, s.FQDN} {
			if name != "" {
				all = append(all, class+name)
			}
		}
	}
	for _, name := range further {
		if !slices.ContainsFunc(all, func(known string) bool { return strings.EqualFold(known, name) }) {
			all = append(all, name)
		}
	}
	return all
}
