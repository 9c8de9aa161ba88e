package settings

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/internal/form"
	"github.com/machineadm/machineadm/sdk"
)

// Validate returns the errors of a document that do not depend on the machine, all at once.
func Validate(doc v1alpha1.DomainJoin) []sdk.Violation {
	c := check(doc.Spec)
	return c.violations
}

// checker collects every violation of a document, and what it has read meanwhile. Its messages never quote a value.
type checker struct {
	spec       v1alpha1.DomainJoinSpec
	result     Settings // without the names of the machine, and the owner of the keytab
	violations []sdk.Violation
}

func check(spec v1alpha1.DomainJoinSpec) checker {
	c := checker{spec: spec}
	_, c.violations = sdk.ProviderConfig[struct{}](spec.ProviderConfig)
	c.violations = append(c.violations, document.Refused(spec)...)
	c.result.Absent, c.result.Disable, c.result.Reuse = spec.State == "absent", spec.Leave == "disable", spec.ExistingAccount == "reuse"
	c.names()
	c.connection()
	c.secrets()
	c.attributes()
	c.files()
	return c
}

// refuse records a violation where bad is true. It returns bad.
func (c *checker) refuse(bad bool, field document.Path, message, hint string) bool {
	if bad {
		c.violations = append(c.violations, sdk.Violation{Field: string(field), Message: message, Hint: hint})
	}
	return bad
}

// unique refuses an entry of a list that is there twice, in any case.
func (c *checker) unique(field document.Path, seen map[string]document.Path, value string) {
	key := strings.ToLower(value)
	c.refuse(seen[key] != "", field, "is the same as "+string(seen[key]), "remove one of the two")
	seen[key] = cmp.Or(seen[key], field)
}

func (c *checker) names() {
	s := &c.result
	s.Domain, s.Realm = strings.ToLower(c.spec.Domain), strings.ToUpper(c.spec.Domain)
	s.Computer, s.FQDN, s.Unit = strings.ToUpper(c.spec.ComputerName), strings.ToLower(c.spec.FQDN), c.spec.OrganizationalUnit
	unknown := c.refuse(len(s.Domain) > 64 || !isQualified(c.spec.Domain), "spec.domain", "is not the DNS name of a domain",
		"write it like ad.example.com, with at most 64 characters")
	c.refuse(c.spec.ComputerName != "" && !isAccount(c.spec.ComputerName), "spec.computerName", "is not the name of a computer",
		"use 1 to 15 letters, digits and hyphens: not digits alone, and no hyphen at either end")
	c.refuse(c.spec.FQDN != "" && !isQualified(c.spec.FQDN), "spec.fqdn", "is not a DNS name with a domain", "write it like node-1.ad.example.com")
	c.refuse(s.FQDN != "" && s.FQDN == s.Domain, "spec.fqdn", "is the name of the domain, which belongs to its controllers", "write it like node-1."+s.Domain)
	c.refuse(isLocalhost(s.FQDN), "spec.fqdn", "is a name that every machine has, under which no other machine finds this one", "write it like node-1."+s.Domain)
	c.refuse(isLocalhost(s.Computer), "spec.computerName", "is a name that every machine has, so that each join takes the account of another machine", "name this machine")
	c.refuse(s.Unit != "" && !unknown && !isUnitOf(s.Unit, s.Domain), "spec.organizationalUnit",
		"is not the distinguished name of a unit or container of the domain", "write it like OU=Nodes,"+suffixOf(s.Domain))
}

func (c *checker) connection() {
	servers := map[string]document.Path{}
	for i, name := range c.spec.Servers {
		at := document.Path("spec.servers").Index(i)
		c.refuse(!isDNSName(name), at, "is not a DNS name", "write the name of a domain controller: Kerberos and certificates have names, no addresses")
		c.unique(at, servers, name)
		c.result.Servers = append(c.result.Servers, strings.ToLower(name))
	}
	c.result.Transport = Transport(cmp.Or(c.spec.Transport, string(Sealed)))
	if c.spec.CA == "" {
		return
	}
	c.result.Transport = Transport(cmp.Or(c.spec.Transport, string(LDAPS)))
	c.result.CA = certificates(c.spec.CA)
	c.refuse(c.result.CA == nil, "spec.ca", "has something else than certificates in PEM format", "give the certificates of the authorities, and no keys")
}

// certificates returns nil unless text has certificates, and nothing else in PEM format.
func certificates(text string) *x509.CertPool {
	pool, rest := x509.NewCertPool(), []byte(text)
	for more := true; more; more = len(bytes.TrimSpace(rest)) > 0 {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil || block.Type != "CERTIFICATE" {
			return nil
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil
		}
		pool.AddCert(certificate)
	}
	return pool
}

func (c *checker) secrets() {
	c.result.Credentials, c.result.OneTimePassword, c.result.OfflineJoinBlob = c.spec.Credentials, c.spec.OneTimePassword, c.spec.OfflineJoinBlob
	if user := c.spec.Credentials; user != nil {
		const at = document.Path("spec.credentials")
		c.refuse(user.Username == "" || strings.TrimSpace(user.Username) != user.Username || strings.ContainsAny(user.Username, `\@"/[]:;|=,+*?<>`) || form.HasControl(user.Username), at+".username",
			"is not the name of an account without its domain", "write it like joiner: the domain is spec.domain")
		c.password(at+".password", user.Password)
	}
	if password := c.spec.OneTimePassword; password != nil {
		c.password("spec.oneTimePassword", *password)
	}
	if blob := c.spec.OfflineJoinBlob; blob != nil {
		data, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(blob.Reveal())))
		c.refuse(err != nil || len(data) == 0, "spec.offlineJoinBlob", "is not base64", // not %w: secret
			"give the text that djoin.exe /provision has written to its file, as UTF-8")
	}
}

// password refuses what can only be a mistake. A domain controller locks the account after some of them.
func (c *checker) password(field document.Path, secret v1alpha1.Secret) {
	text := secret.Reveal()
	c.refuse(len(text) == 0, field, "is empty", "")
	c.refuse(bytes.ContainsAny(text, "\r\n\x00"), field, "has a line break or a zero byte", "remove it: most editors end a file with a line break")
}

func (c *checker) attributes() {
	services, types := map[string]document.Path{}, map[string]document.Path{}
	for i, name := range c.spec.ServicePrincipalNames {
		at := document.Path("spec.servicePrincipalNames").Index(i)
		c.refuse(!isPrincipal(name), at, "is not the name of a service", "write SERVICE/HOST, SERVICE/HOST:PORT or SERVICE/HOST:PORT/NAME")
		c.unique(at, services, name)
	}
	const at = document.Path("spec.encryptionTypes")
	known, numbers := []string{"aes256-cts-hmac-sha1-96", "aes128-cts-hmac-sha1-96", "rc4-hmac"}, []int32{18, 17, 23}
	for i, name := range c.spec.EncryptionTypes {
		c.unique(at.Index(i), types, name)
	}
	wanted := c.spec.EncryptionTypes
	if wanted == nil {
		wanted = known[:2]
	}
	for i, name := range known {
		if slices.Contains(wanted, name) {
			c.result.EncryptionTypes = append(c.result.EncryptionTypes, numbers[i])
		}
	}
}

func (c *checker) files() {
	var want v1alpha1.Keytab
	if c.spec.Keytab != nil {
		want = *c.spec.Keytab
	}
	const at = document.Path("spec.keytab")
	name, mode := cmp.Or(want.Path, "/etc/krb5.keytab"), cmp.Or(want.Mode, "0600")
	c.refuse(!form.IsPath(name, false), at+".path",
		"must be an absolute path in its shortest form", "write it like /etc/krb5.keytab, without . and .. and doubled or trailing slashes")
	bits, err := v1alpha1.ParseMode(mode)
	if err != nil {
		c.refuse(true, at+".mode", err.Error(), `write permission bits in octal, such as "0640", which is 416 in decimal`)
	}
	c.refuse(bits&0o007 != 0, at+".mode", "gives the keys of the machine to every user", `use "0600" or "0640"`)
	c.refuse(want.Owner != "" && !sdk.ValidOwner(want.Owner), at+".owner", "is not USER:GROUP", "write it like root:root or 65532:65532")
	c.result.Keytab = Keytab{Path: name, Mode: bits}
	c.result.Krb5Conf = c.spec.Krb5Conf == nil || c.spec.Krb5Conf.Manage == nil || *c.spec.Krb5Conf.Manage
	c.result.SSSD = c.spec.SSSD != nil && c.spec.SSSD.Manage
	c.result.Rename = c.spec.Windows != nil && c.spec.Windows.Rename
}
