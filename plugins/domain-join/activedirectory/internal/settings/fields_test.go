package settings

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// TestEveryField: each field of the specification changes the settings, or is refused with its path, on Linux and on Windows.
// A new field needs a line in the table.
func TestEveryField(t *testing.T) {
	t.Parallel()
	const user = "credentials: {username: joiner, password: {value: a}}"
	table := map[string][2]string{ // two specs that differ in the field
		"spec.state":                 {domain, domain + "state: absent"},
		"spec.leave":                 {domain + "state: absent", domain + "state: absent\nleave: disable"},
		"spec.domain":                {domain, "domain: other.example.com"},
		"spec.computerName":          {domain, domain + "computerName: other"},
		"spec.fqdn":                  {domain, domain + "fqdn: other.example.com"},
		"spec.organizationalUnit":    {domain, domain + "organizationalUnit: 'OU=a,DC=ad,DC=example,DC=com'"},
		"spec.servers":               {domain, domain + "servers: [dc1.example.com]"},
		"spec.transport":             {domain, domain + "transport: ldaps"},
		"spec.ca":                    {domain, domain + "ca: @CA@"},
		"spec.credentials.username":  {domain + user, domain + "credentials: {username: other, password: {value: a}}"},
		"spec.credentials.password":  {domain + user, domain + "credentials: {username: joiner, password: {value: b}}"},
		"spec.oneTimePassword":       {domain, domain + "oneTimePassword: {value: a}"},
		"spec.offlineJoinBlob":       {domain, domain + "offlineJoinBlob: {value: YQ==}"},
		"spec.servicePrincipalNames": {domain, domain + "servicePrincipalNames: [HTTP/a]"},
		"spec.encryptionTypes":       {domain, domain + "encryptionTypes: [rc4-hmac]"},
		"spec.existingAccount":       {domain, domain + "existingAccount: reuse"},
		"spec.keytab.path":           {domain, domain + "keytab: {path: /a}"},
		"spec.keytab.owner":          {domain, domain + "keytab: {owner: 'web:keys'}"},
		"spec.keytab.mode":           {domain, domain + "keytab: {mode: '0640'}"},
		"spec.krb5Conf.manage":       {domain, domain + "krb5Conf: {manage: false}"},
		"spec.sssd.manage":           {domain, domain + "sssd: {manage: true}"},
		"spec.windows.rename":        {domain, domain + "windows: {rename: true}"},
		"spec.providerConfig":        {domain, domain + "providerConfig: {a: b}"},
	}
	fields := leaves(reflect.TypeFor[v1alpha1.DomainJoinSpec](), "spec")
	assert.Len(t, fields, len(table)+1, "the table has a field that does not exist")
	for _, field := range fields {
		row, ok := table[field]
		if field == "spec.provider" { // the host's
			continue
		}
		if !assert.True(t, ok, "%s has no line in the table", field) {
			continue
		}
		for _, goos := range []string{"linux", "windows"} {
			before, err := resolve(t, goos, "node-1", row[0])
			assert.NoError(t, err, field)
			after, err := resolve(t, goos, "node-1", row[1])
			if err == nil {
				assert.NotEqual(t, revealed(before), revealed(after), "%s has no effect on %s", field, goos)
				continue
			}
			known := pluginv1.AsError(err)
			assert.Contains(t, []pluginv1.Code{pluginv1.CodeInvalidConfig, pluginv1.CodeUnsupported}, known.Code, field)
			if assert.Len(t, known.Violations, 1, field) {
				at := known.Violations[0].Field
				assert.True(t, strings.HasPrefix(field, at) || strings.HasPrefix(at, field), "%s of %s", at, field)
			}
		}
	}
}

// revealed adds the secrets, which a comparison of settings does not see.
func revealed(s Settings) []any {
	all := []any{s}
	if s.Credentials != nil {
		all = append(all, string(s.Credentials.Password.Reveal()))
	}
	return all
}

// leaves returns the fields of a struct that are not structs themselves.
func leaves(of reflect.Type, at string) (all []string) {
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		inner := of.Field(i).Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && inner != reflect.TypeFor[v1alpha1.Secret]() {
			all = append(all, leaves(inner, at+"."+name)...)
			continue
		}
		all = append(all, at+"."+name)
	}
	return all
}
