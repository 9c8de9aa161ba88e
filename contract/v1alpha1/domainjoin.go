package v1alpha1

import (
	"encoding/json"
	"strings"
)

// DomainJoin makes the machine a member of an Active Directory domain, or ends its membership. Groups, group managed service
// accounts (gMSA) and the rights of the account belong to the administrators of the domain: this kind has no field for them.
type DomainJoin struct {
	Header
	// Spec is the desired state.
	Spec DomainJoinSpec `json:"spec"`
}

// DomainJoinSpec is the desired state of a DomainJoin document. Source: [MS-ADTS] (the directory), [MS-WKST] (NetJoinDomain),
// RFC 4120 and RFC 3244 (Kerberos and changes of passwords), RFC 4511 and RFC 4752 (LDAP and its GSSAPI mechanism).
//
// +kubebuilder:validation:XValidation:rule="!(has(self.oneTimePassword) && (has(self.credentials)))",message="oneTimePassword excludes credentials",fieldPath=".oneTimePassword"
// +kubebuilder:validation:XValidation:rule="!(has(self.offlineJoinBlob) && (has(self.credentials) || has(self.oneTimePassword)))",message="offlineJoinBlob excludes credentials and oneTimePassword",fieldPath=".offlineJoinBlob"
// +kubebuilder:validation:XValidation:rule="!(has(self.leave) && size(self.leave) > 0) || (has(self.state) && size(self.state) > 0) && self.state == 'absent'",message="leave is for state absent only",fieldPath=".leave"
// +kubebuilder:validation:XValidation:rule="!has(self.oneTimePassword) || !(has(self.state) && size(self.state) > 0) || self.state != 'absent'",message="oneTimePassword is for state present only",fieldPath=".oneTimePassword"
// +kubebuilder:validation:XValidation:rule="!has(self.offlineJoinBlob) || !(has(self.state) && size(self.state) > 0) || self.state != 'absent'",message="offlineJoinBlob is for state present only",fieldPath=".offlineJoinBlob"
// +kubebuilder:validation:XValidation:rule="!(has(self.ca) && size(self.ca) > 0) || !(has(self.transport) && size(self.transport) > 0) || self.transport != 'sealed'",message="ca is for the transports ldaps and starttls only",fieldPath=".ca"
type DomainJoinSpec struct {
	// Provider names the plugin: activedirectory. By default the host chooses.
	Provider DNSLabel `json:"provider,omitempty"`
	// State selects what the machine is: present, a member of the domain, or absent, no member any more. Default present.
	//
	// +kubebuilder:validation:Enum=present;absent
	State string `json:"state,omitempty"`
	// Leave says what happens to the account of a machine that leaves: delete or disable. Default delete.
	//
	// +kubebuilder:validation:Enum=delete;disable
	Leave string `json:"leave,omitempty"`
	// Domain is the DNS name of the domain, such as ad.example.com.
	Domain QualifiedDNSName `json:"domain"`
	// ComputerName is the name of the account, without $: 1 to 15 letters, digits and hyphens. By default it is made from the
	// host name: a name of more than 15 characters becomes its first 10, a hyphen and 4 base32 characters of the SHA-256 of the
	// fqdn.
	//
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9](?:[A-Za-z0-9-]{0,13}[A-Za-z0-9])?$`
	ComputerName string `json:"computerName,omitempty"`
	// FQDN is the DNS name of the machine. By default the host name, followed by the domain unless it has dots.
	FQDN QualifiedDNSName `json:"fqdn,omitempty"`
	// OrganizationalUnit is the distinguished name of the unit in which the account is created, such as
	// OU=Nodes,DC=ad,DC=example,DC=com. By default the domain's container for computers. An account that exists is not moved.
	OrganizationalUnit string `json:"organizationalUnit,omitempty"`
	// Servers are the DNS names of domain controllers, in order of preference. By default those that the DNS of the domain
	// lists, the nearest site first.
	Servers []DNSName `json:"servers,omitempty"`
	// Transport protects the connection: ldaps, starttls or sealed (by Kerberos, without certificates). There is no unprotected
	// connection. Linux only. Default ldaps with ca, otherwise sealed.
	//
	// +kubebuilder:validation:Enum=ldaps;starttls;sealed
	Transport string `json:"transport,omitempty"`
	// CA holds the certificates, PEM, of the authorities that sign the domain controllers' own. The certificate of a
	// domain controller must carry its DNS name as a subject alternative name. It is for ldaps and starttls. Linux only. By
	// default the system's.
	CA string `json:"ca,omitempty"`
	// Credentials belong to an account that may create the computer's account, or reset it. A document has at most one of
	// credentials, oneTimePassword and offlineJoinBlob; a machine that is a member already needs none.
	Credentials *DomainCredentials `json:"credentials,omitempty"`
	// OneTimePassword is the password of an account that was created ahead of the machine. The join replaces it.
	OneTimePassword *Secret `json:"oneTimePassword,omitempty"`
	// OfflineJoinBlob is the provisioning data of djoin.exe /provision, base64. Windows only.
	OfflineJoinBlob *Secret `json:"offlineJoinBlob,omitempty"`
	// ServicePrincipalNames are further names of services, such as HTTP/node.example.com, beside HOST and RestrictedKrbHost.
	// SERVICE/HOST, with :PORT and /NAME where the service has them. Linux only.
	ServicePrincipalNames []string `json:"servicePrincipalNames,omitempty"`
	// EncryptionTypes are the types of the account's keys: aes256-cts-hmac-sha1-96, aes128-cts-hmac-sha1-96 and rc4-hmac, which is
	// weak. Linux only. Default both of AES.
	//
	// +kubebuilder:validation:items:Enum=aes256-cts-hmac-sha1-96;aes128-cts-hmac-sha1-96;rc4-hmac
	// +kubebuilder:validation:MinItems=1
	EncryptionTypes []string `json:"encryptionTypes,omitempty"`
	// ExistingAccount says what happens if credentials find an account of this name that the machine has no key of: refuse, or
	// reuse, which resets its password and so ends the membership of the machine that used it. Default refuse.
	//
	// +kubebuilder:validation:Enum=refuse;reuse
	ExistingAccount string `json:"existingAccount,omitempty"`
	// Keytab is the file with the keys of the machine. Linux only.
	Keytab *Keytab `json:"keytab,omitempty"`
	// Krb5Conf configures the Kerberos library. Linux only.
	Krb5Conf *Krb5Conf `json:"krb5Conf,omitempty"`
	// SSSD configures the daemon that makes the users of the domain users of the machine. Linux only.
	SSSD *SSSD `json:"sssd,omitempty"`
	// Windows has what only Windows supports.
	Windows *WindowsJoin `json:"windows,omitempty"`
	// ProviderConfig holds what only one provider supports; the README of the plugin lists its fields.
	ProviderConfig json.RawMessage `json:"providerConfig,omitempty"`
}

// NoField returns why the kind does not have a field that other tools have; "" for any other name.
func (DomainJoinSpec) NoField(name string) string {
	switch strings.ToLower(name) {
	case "group", "groups", "memberof", "gmsa", "gmsas", "groupmanagedserviceaccount", "groupmanagedserviceaccounts":
		return "remove it: groups and service accounts belong to the administrators of the domain, and no document changes them"
	}
	return ""
}

// Refused returns the parts of the document that no node accepts.
func (s DomainJoinSpec) Refused() (all []Refusal) {
	refuse := func(bad bool, field, message, hint string) {
		if bad {
			all = append(all, Refusal{[]any{"spec", field}, message, hint})
		}
	}
	absent := s.State == "absent"
	refuse(s.Leave != "" && !absent, "leave", "is for a machine that leaves the domain", "remove it, or set spec.state to absent")
	const joins, present = "is for a machine that joins the domain", "remove it, or set spec.state to present"
	refuse(s.OneTimePassword != nil && absent, "oneTimePassword", joins, present)
	refuse(s.OfflineJoinBlob != nil && absent, "offlineJoinBlob", joins, present)
	refuse(s.CA != "" && s.Transport == "sealed", "ca", "is for ldaps and starttls, and spec.transport is sealed, which has no certificates", "remove one of the two")
	first := ""
	for _, given := range []struct {
		field string
		is    bool
	}{{"credentials", s.Credentials != nil}, {"oneTimePassword", s.OneTimePassword != nil}, {"offlineJoinBlob", s.OfflineJoinBlob != nil}} {
		if refuse(given.is && first != "", given.field, "is given as well as spec."+first, "remove one of the two"); given.is && first == "" {
			first = given.field
		}
	}
	return all
}

// DomainCredentials are the credentials of an account of the domain.
type DomainCredentials struct {
	// Username is the name of the account, without the domain.
	//
	// +kubebuilder:validation:Pattern=`^[^\\@]+$`
	Username string `json:"username"`
	// Password is its password.
	Password Secret `json:"password"`
}

// Keytab is the file with the keys of the machine. Keys of other accounts stay in it.
type Keytab struct {
	// Path is the absolute path of the file. Default /etc/krb5.keytab.
	//
	// +kubebuilder:validation:Pattern=`^/.+$`
	Path string `json:"path,omitempty"`
	// Owner is USER:GROUP, each a name of this machine or a number. Default root:root.
	Owner FileOwner `json:"owner,omitempty"`
	// Mode is the file mode, as an octal string, without permissions for others. Default 0600.
	//
	// +kubebuilder:validation:Pattern=`^0*[1-7][0-7]?0$`
	Mode string `json:"mode,omitempty"`
}

// Krb5Conf configures the Kerberos library.
type Krb5Conf struct {
	// Manage writes the realm to /etc/krb5.conf.d/machineadm.conf and includes that directory in /etc/krb5.conf. Default true.
	Manage *bool `json:"manage,omitempty"`
}

// SSSD configures sssd.
type SSSD struct {
	// Manage writes the domain to /etc/sssd/conf.d/machineadm.conf, and enables and starts sssd. Default false.
	Manage bool `json:"manage,omitempty"`
}

// WindowsJoin has what only Windows supports.
type WindowsJoin struct {
	// Rename renames the machine to computerName. Without it a computerName other than the machine's name is refused. Default
	// false.
	Rename bool `json:"rename,omitempty"`
}
