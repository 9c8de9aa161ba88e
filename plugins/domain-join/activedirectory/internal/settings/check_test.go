package settings

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

// canary is in every secret that can have it.
const canary = "c4n4ry"

const domain = "domain: ad.example.com\n"

// parse decodes a spec in YAML. @CA@ is replaced by a certificate.
func parse(t testing.TB, spec string) v1alpha1.DomainJoin {
	t.Helper()
	ca, err := os.ReadFile("testdata/ca.pem")
	require.NoError(t, err)
	spec = strings.ReplaceAll(spec, "@CA@", strconv.Quote(string(ca)))
	data, err := document.JSON("", []byte("spec:\n  "+strings.ReplaceAll(spec, "\n", "\n  ")))
	require.NoError(t, err, spec)
	var doc v1alpha1.DomainJoin
	require.Empty(t, document.Unmarshal(data, &doc), spec)
	return doc
}

// shown joins violations, one a line.
func shown(all []sdk.Violation) string {
	var lines []string
	for _, v := range all {
		lines = append(lines, v.Field+": "+v.Message)
	}
	return strings.Join(lines, "\n")
}

// TestRefused: every fault of a document is reported at once, at its field, and no value is quoted.
func TestRefused(t *testing.T) {
	t.Parallel()
	const (
		path   = "must be an absolute path in its shortest form"
		secret = "{value: c4n4ry}"
		unit   = "spec.organizationalUnit: is not the distinguished name of a unit or container of the domain"
		user   = "spec.credentials.username: is not the name of an account without its domain"
	)
	for spec, want := range map[string]string{
		"domain: ''":             "spec.domain: is not the DNS name of a domain",
		"domain: example":        "spec.domain: is not the DNS name of a domain",
		"domain: 192.0.2.1":      "spec.domain: is not the DNS name of a domain",
		"domain: ad.example.com": "",
		"domain: " + strings.Repeat("a", 61) + ".com\norganizationalUnit: DC=x": "spec.domain: is not the DNS name of a domain",
		"domain: " + strings.Repeat("a", 60) + ".com":                           "",
		domain + "state: c4n4ry\nexistingAccount: c4n4ry\nleave: c4n4ry":        "spec.leave: is for a machine that leaves the domain",
		domain + "leave: disable":                                               "spec.leave: is for a machine that leaves the domain",
		domain + "state: present\nleave: delete":                                "spec.leave: is for a machine that leaves the domain",
		domain + "state: absent\noneTimePassword: " + secret:                    "spec.oneTimePassword: is for a machine that joins the domain",
		domain + "state: absent\nofflineJoinBlob: {value: YQ==}":                "spec.offlineJoinBlob: is for a machine that joins the domain",
		domain + "providerConfig: {a: 1}":                                       "spec.providerConfig.a: unknown field",
		domain + "providerConfig: [a]":                                          "spec.providerConfig: must be a mapping",
		domain + "providerConfig: {}":                                           "",
		domain + "computerName: sixteen-letters-\nfqdn: node":                   "spec.computerName: is not the name of a computer\nspec.fqdn: is not a DNS name with a domain",
		domain + "computerName: '123'\nfqdn: a_b.example.com":                   "spec.computerName: is not the name of a computer\nspec.fqdn: is not a DNS name with a domain",
		domain + "computerName: node$":                                          "spec.computerName: is not the name of a computer",
		domain + "organizationalUnit: OU=Nodes":                                 unit,
		domain + "organizationalUnit: 'OU=Nodes,DC=example,DC=com'":             unit,
		domain + "servers: [dc1.ad.example.com, 192.0.2.1, '::1', DC1.ad.example.com, '', 'dc:389']": "spec.servers[1]: is not a DNS name\n" +
			"spec.servers[2]: is not a DNS name\nspec.servers[3]: is the same as spec.servers[0]\nspec.servers[4]: is not a DNS name\nspec.servers[5]: is not a DNS name",
		domain + "transport: sealed\nca: @CA@": "spec.ca: is for ldaps and starttls, and spec.transport is sealed, which has no certificates",
		domain + "ca: a":                       "spec.ca: has something else than certificates in PEM format",
		domain + "ca: ' '":                     "spec.ca: has something else than certificates in PEM format",
		domain + "ca: |-\n  -----BEGIN PRIVATE KEY-----\n  YQ==\n  -----END PRIVATE KEY-----": "spec.ca: has something else than certificates in PEM format",
		domain + "ca: |-\n  -----BEGIN CERTIFICATE-----\n  YQ==\n  -----END CERTIFICATE-----": "spec.ca: has something else than certificates in PEM format",
		domain + "credentials: {username: a, password: " + secret + "}\noneTimePassword: " + secret + "\nofflineJoinBlob: {value: YQ==}": "spec.oneTimePassword: is given as well as spec.credentials\n" +
			"spec.offlineJoinBlob: is given as well as spec.credentials",
		domain + "oneTimePassword: " + secret + "\nofflineJoinBlob: {value: YQ==}":         "spec.offlineJoinBlob: is given as well as spec.oneTimePassword",
		domain + "credentials: {username: '', password: {value: ''}}":                      user + "\nspec.credentials.password: is empty",
		domain + "credentials: {username: AD\\c4n4ry, password: " + secret + "}":           user,
		domain + "credentials: {username: c4n4ry@example.com, password: " + secret + "}":   user,
		domain + "credentials: {username: 'CN=c4n4ry,CN=Users', password: " + secret + "}": user,
		domain + "credentials: {username: \"c4n4ry\\t\", password: " + secret + "}":        user,
		domain + "credentials: {username: 'c4n4ry ', password: " + secret + "}":            user,
		domain + "fqdn: AD.example.com":                                                    "spec.fqdn: is the name of the domain, which belongs to its controllers",
		domain + "fqdn: localhost.localdomain":                                             "spec.fqdn: is a name that every machine has, under which no other machine finds this one",
		domain + "computerName: LocalHost":                                                 "spec.computerName: is a name that every machine has, so that each join takes the account of another machine",
		domain + "credentials: {username: a, password: {value: \"c4n4ry\\n\"}}":            "spec.credentials.password: has a line break or a zero byte",
		domain + "oneTimePassword: {value: ''}":                                            "spec.oneTimePassword: is empty",
		domain + "offlineJoinBlob: {value: ''}":                                            "spec.offlineJoinBlob: is not base64",
		domain + "offlineJoinBlob: {value: c4n4ry!}":                                       "spec.offlineJoinBlob: is not base64",
		domain + "servicePrincipalNames: [HTTP, HTTP/a, http/A, HTTP/a@b, HOST/x]": "spec.servicePrincipalNames[0]: is not the name of a service\n" +
			"spec.servicePrincipalNames[2]: is the same as spec.servicePrincipalNames[1]\nspec.servicePrincipalNames[3]: is not the name of a service",
		domain + "encryptionTypes: [des-cbc-md5, rc4-hmac, rc4-hmac, '']":   "spec.encryptionTypes[2]: is the same as spec.encryptionTypes[1]",
		domain + "keytab: {path: a, mode: rw, owner: root}":                 "spec.keytab.path: " + path + "\nspec.keytab.mode: is not a mode\nspec.keytab.owner: is not USER:GROUP",
		domain + "keytab: {path: /a/../b, mode: '0644'}":                    "spec.keytab.path: " + path + "\nspec.keytab.mode: gives the keys of the machine to every user",
		domain + "keytab: {path: /, mode: '0604'}":                          "spec.keytab.path: " + path + "\nspec.keytab.mode: gives the keys of the machine to every user",
		domain + "keytab: {path: \"/a\\nb\", mode: '01600', owner: '0:-1'}": "spec.keytab.path: " + path + "\nspec.keytab.mode: is not a mode\nspec.keytab.owner: is not USER:GROUP",
		domain + "keytab: {mode: '0000'}":                                   "spec.keytab.mode: is not a mode",
		domain + "keytab: {path: /a, mode: '0640', owner: 'a:b-c'}":         "",
	} {
		violations := Validate(parse(t, spec))
		assert.Equal(t, want, shown(violations), spec)
		assert.NotContains(t, strings.ToLower(fmt.Sprint(violations)), canary, spec)
	}
}

// TestHintOfUnit: the hint has the suffix that is right for the domain.
func TestHintOfUnit(t *testing.T) {
	t.Parallel()
	violations := Validate(parse(t, "domain: AD.example.com\norganizationalUnit: OU=Nodes"))
	require.Len(t, violations, 1)
	assert.Equal(t, "write it like OU=Nodes,DC=ad,DC=example,DC=com", violations[0].Hint)
}

// TestFieldsOfAdministrators: what belongs to the administrators of the domain is refused by name.
func TestFieldsOfAdministrators(t *testing.T) {
	t.Parallel()
	var doc v1alpha1.DomainJoin
	violations := document.Unmarshal([]byte(`{"spec":{"domain":"ad.example.com","groups":["c4n4ry"],"groupManagedServiceAccount":"c4n4ry","gmsa":{}}}`), &doc)
	assert.Equal(t, "spec.groups: unknown field\nspec.groupManagedServiceAccount: unknown field\nspec.gmsa: unknown field", shown(violations))
	for _, v := range violations {
		assert.Contains(t, v.Hint, "belong to the administrators of the domain")
	}
}
