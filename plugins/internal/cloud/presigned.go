package cloud

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

// maxValid is the longest time for which S3 and Google Cloud Storage accept a signature in a URL.
const maxValid = 7 * 24 * time.Hour

// Valid returns for how long the URL of an object is signed that is needed for some time, 0 for no end.
func Valid(expiry time.Duration) time.Duration { return min(cmp.Or(expiry, maxValid), maxValid) }

// Signed is the part of the providerConfig of the provider http for URLs whose query grants access.
type Signed struct {
	// Query follows the question mark of the URL of the object.
	Query v1alpha1.Secret `json:"query,omitzero"`
	// Report says how the report is sent.
	Report SignedReport `json:"report,omitzero"`
}

// SignedReport says how a report is sent.
type SignedReport struct {
	// Method is POST or PUT. Empty: POST.
	Method string `json:"method,omitempty"`
	// Query follows the question mark of the URL of the report.
	Query v1alpha1.Secret `json:"query,omitzero"`
}

// presigned is the providerConfig of the provider http for an object of a store.
type presigned struct {
	TLS
	Signed
	Headers map[string]v1alpha1.Secret `json:"headers,omitempty"`
}

// Public returns what is no credential of t.
func (t TLS) Public() TLS { return TLS{CA: t.CA, Pins: t.Pins} }

// Presigned returns the reference of an object and of its report by their signed URLs, for the provider http. The header is sent with
// both requests.
func Presigned(t TLS, object, report string, header map[string]string, expires time.Time) sdk.Reference {
	split := func(signed string) (string, v1alpha1.Secret) {
		uri, query, _ := strings.Cut(signed, "?")
		return uri, v1alpha1.NewSecret([]byte(query))
	}
	config := presigned{TLS: t.Public(), Signed: Signed{Report: SignedReport{Method: http.MethodPut}}}
	r := sdk.Reference{Provider: "http", Expires: expires}
	r.URI, config.Query = split(object)
	r.ReportURI, config.Report.Query = split(report)
	for name, value := range header {
		if config.Headers == nil {
			config.Headers = map[string]v1alpha1.Secret{}
		}
		config.Headers[name] = v1alpha1.NewSecret([]byte(value))
	}
	r.ProviderConfig = config
	return r
}
