// Package settings validates a DomainJoin document and completes it for one machine. It reads nothing but the machine's names and
// owners.
package settings

import (
	"crypto/x509"
	"io/fs"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

// Transport protects the connection to the directory.
type Transport string

// The transports.
const (
	LDAPS    Transport = "ldaps"
	StartTLS Transport = "starttls"
	Sealed   Transport = "sealed"
)

// Settings are the settings of a document, with the defaults filled in.
type Settings struct {
	// Domain is in lower case, Realm is the same in upper case.
	Domain, Realm string
	// Computer is the name of the account in upper case, without $. FQDN is in lower case. Both are empty in an image that has
	// no host name.
	Computer, FQDN string
	// Unit is the distinguished name of the organizational unit, empty for the domain's default.
	Unit string
	// Servers are domain controllers in lower case; empty for the ones in the DNS.
	Servers   []string
	Transport Transport
	// CA is nil for the authorities of the system.
	CA *x509.CertPool
	// Credentials, OneTimePassword and OfflineJoinBlob: at most one is not nil.
	Credentials                      *v1alpha1.DomainCredentials
	OneTimePassword, OfflineJoinBlob *v1alpha1.Secret
	// Services are the servicePrincipalName values of the account: HOST and RestrictedKrbHost with both names, then the values of the
	// document.
	Services []string
	// EncryptionTypes are numbers of RFC 3961's registry, the strongest first: 18, 17, 23.
	EncryptionTypes []int32
	// Reuse allows to reset the password of an account that the machine has no key of.
	Reuse bool
	// Absent ends the membership, with Disable instead of deleting the account.
	Absent, Disable bool
	Keytab          Keytab
	// Krb5Conf and SSSD say which files are managed, Rename whether Windows may be renamed.
	Krb5Conf, SSSD, Rename bool
	Warnings               []sdk.Warning
}

// Keytab is the file with the keys of the machine.
type Keytab struct {
	Path  string
	Owner sdk.Owner
	Mode  fs.FileMode
}
