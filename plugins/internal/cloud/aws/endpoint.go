package aws

import (
	"errors"
	"io"
	"io/fs"
	"net/url"
	"regexp"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/internal/trust"
	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/sdk"
)

// maxEndpoints bounds the file of permitted endpoints, in bytes.
const maxEndpoints = 64 << 10

// checkEndpoint refuses an endpoint of a document that is neither a host of the service in the region nor permitted by the machine:
// it would receive a session token and a valid signature of the role.
func (m Machine) checkEndpoint(endpoint, region string) error {
	u, err := url.Parse(endpoint)
	if endpoint == "" || err == nil && isHostOf(u, strings.TrimPrefix(m.Provider, "aws"), region) {
		return nil
	}
	permitted, errFile := m.permitted()
	if errFile != nil {
		return errFile
	}
	for _, text := range permitted {
		one, violations := cloud.ParseURL("", text, false, true)
		if len(violations) > 0 || strings.Trim(one.Path, "/") != "" || one.RawQuery != "" {
			return sdk.Precondition(m.Endpoints+" has an endpoint that is not https://HOST[:PORT]", "write "+m.Provider+": https://HOST:PORT")
		}
		if err == nil && cloud.SameServer(u, one) {
			return nil
		}
	}
	return sdk.Precondition("spec.providerConfig.endpoint is not a host of AWS, and would get the credentials of the instance's role",
		"give accessKeyID and secretAccessKey in spec.providerConfig; or permit the server on this machine: write "+m.Provider+": https://HOST:PORT to "+m.Endpoints)
}

// isHostOf reports whether a URL names a host of a service in a region: a public or dual-stack endpoint, or one of a VPC. Other names
// below the domain can belong to a customer of AWS.
func isHostOf(u *url.URL, service, region string) bool {
	domain := suffix(region)
	if _, ok := cloud.Domain(u, domain, "api.aws"); !ok {
		return false
	}
	q := regexp.QuoteMeta
	at := q(service) + `(-fips)?(\.dualstack)?\.` + q(region)
	form := `^(` + at + `\.(` + q(domain) + `|api\.aws)|((bucket|accesspoint)\.)?vpce-[a-z0-9-]+\.` + at + `\.vpce\.` + q(domain) + `)$`
	return (u.Port() == "" || u.Port() == "443") && regexp.MustCompile(form).MatchString(strings.ToLower(u.Hostname()))
}

// permitted returns the endpoints that the file of the machine permits for the provider.
func (m Machine) permitted() ([]string, error) {
	file, err := trust.Open(m.Endpoints, trust.Settings())
	if errors.Is(err, fs.ErrNotExist) || m.Endpoints == "" {
		return nil, nil
	}
	if untrusted, ok := errors.AsType[*trust.Error](err); ok {
		return nil, sdk.Precondition(untrusted.Error(), untrusted.Remedy)
	}
	var data []byte
	if err == nil {
		defer func() { _ = file.Close() }() // only read from
		data, err = io.ReadAll(io.LimitReader(file, maxEndpoints))
	}
	if err != nil {
		return nil, sdk.WithDetail(sdk.Precondition(m.Endpoints+" cannot be read", "see details.json"), err.Error())
	}
	all, err := document.Strings(m.Endpoints, data)
	if err != nil {
		return nil, sdk.WithDetail(sdk.Precondition(m.Endpoints+" is not valid", "write PROVIDER: https://HOST:PORT, and several with a space between them"), err.Error())
	}
	return strings.Fields(all[m.Provider]), nil
}
