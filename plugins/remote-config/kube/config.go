package main

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"regexp"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/sdk"
)

// config is spec.providerConfig.
type config struct {
	// Token is a bootstrap token or the token of a service account.
	Token v1alpha1.Secret `json:"token"`
	// CA holds the certificates of the cluster's authorities, as PEM.
	CA string `json:"ca,omitempty"`
	// CAPins are digests of the public keys of authorities, in the form of kubeadm: sha256:HEX.
	CAPins []string `json:"caPins,omitempty"`
	// Read are the credentials of the machines, of a storage.
	Read *reader `json:"read,omitempty"`
}

// reader is what authenticates a machine.
type reader struct {
	Token v1alpha1.Secret `json:"token"`
}

// tls returns which servers are accepted. Its pins are those that have the form of kubeadm.
func (c config) tls() cloud.TLS {
	t := cloud.TLS{CA: c.CA}
	for _, pin := range c.CAPins {
		if digest, ok := decodePin(pin); ok {
			t.Pins = append(t.Pins, base64.StdEncoding.EncodeToString(digest))
		}
	}
	return t
}

func decodePin(pin string) ([]byte, bool) {
	text, ok := strings.CutPrefix(pin, "sha256:")
	digest, err := hex.DecodeString(text)
	return digest, ok && err == nil && len(digest) == 32
}

const (
	storageField = "uriPrefix"   // of the location of an object of a storage
	valueKey     = "value"       // of a stored stream
	reportKey    = "report.json" // of a report beside a stream
)

// place is a key of an object in a namespace.
type place struct {
	server               *url.URL
	namespace, name, key string
}

// validate returns all violations of a location.
func validate(l sdk.Location) []sdk.Violation {
	c, decoding := sdk.ProviderConfig[config](l.ProviderConfig)
	_, all := parse(l.Field, l.URI)
	all.Credential(cloud.Config.Field("token"), c.Token)
	if c.Read != nil {
		all.Credential(cloud.Config.Field("read").Field("token"), c.Read.Token)
	} else if l.Access == sdk.AccessRole {
		all.Add(cloud.Config.Field("read"), "is missing", "give the token with which machines get the Secrets, as {token: {value: ...}}")
	}
	all = append(all, c.tls().Validate(cloud.Config)...)
	for i, pin := range c.CAPins {
		if _, ok := decodePin(pin); !ok {
			all.Add(cloud.Config.Field("caPins").Index(i), "is not sha256: and 64 hexadecimal digits", "write it like the option --discovery-token-ca-cert-hash of kubeadm")
		}
	}
	if len(c.CAPins) > 0 && c.CA == "" {
		all.Add(cloud.Config.Field("ca"), "is missing, and caPins is not enough: API servers do not send the certificate of their authority",
			"give certificate-authority-data of a kubeconfig, decoded; caPins is checked in addition")
	}
	return document.Join(decoding, all)
}

// parse splits kube://HOST:PORT/NAMESPACE/NAME/KEY, the value of a field. Nothing in it is escaped. A stored stream
// and the report beside it have no KEY in their URI.
func parse(field, uri string) (place, cloud.Violations) {
	var all cloud.Violations
	rest, isKube := strings.CutPrefix(uri, "kube://")
	parts := strings.Split(rest, "/")
	switch isReport := strings.HasSuffix(uri, sdk.ReportSuffix); {
	case len(parts) == 3 && isReport:
		parts = append(parts, reportKey)
	case len(parts) == 3 && field == storageField:
		parts = append(parts, valueKey)
	}
	if !isKube || len(parts) != 4 {
		all.Add(document.Path(field), "is not kube://HOST:PORT/NAMESPACE/NAME/KEY", "name a key of one Secret; for a report, of one ConfigMap")
		return place{}, all
	}
	server, isServer := cloud.ParseServer(parts[0])
	if !isServer {
		all.Add(document.Path(field), "does not name a server as HOST:PORT", "credentials belong into spec.providerConfig")
	}
	const label = `[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?`
	for i, rule := range []string{`^` + label + `$`, `^` + label + `(\.` + label + `)*$`, `^[A-Za-z0-9_-][A-Za-z0-9._-]*$`} {
		if len(parts[i+1]) > 253 || !regexp.MustCompile(rule).MatchString(parts[i+1]) {
			all.Add(document.Path(field), "has "+[]string{"a namespace", "a name", "a key"}[i]+" that Kubernetes does not permit", "nothing in this URI is escaped")
		}
	}
	return place{server, parts[1], parts[2], parts[3]}, all
}

// beside returns where the report of a stream goes whose document names no destination. A name that Kubernetes does not permit is Unsupported.
func (p place) beside() (place, error) {
	to := place{p.server, p.namespace, p.name + "-" + p.key + ".report", reportKey}
	if _, violations := parse("", to.String()); len(violations) > 0 {
		return to, sdk.Unsupported("spec.report", "the name of the Secret and its key are no name of a ConfigMap", "name the destination in spec.report.uri")
	}
	return to, nil
}

// String returns the URI.
func (p place) String() string {
	return "kube://" + p.server.Host + "/" + p.namespace + "/" + p.name + "/" + p.key
}

// url returns the URL of the object, of a resource such as secrets.
func (p place) url(resource string) string {
	return p.server.String() + "/api/v1/namespaces/" + p.namespace + "/" + resource + "/" + p.name
}
