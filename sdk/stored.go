package sdk

import (
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// The values of Location.Access.
const (
	AccessRole      = pluginv1.AccessRole      // by rights of its own
	AccessPresigned = pluginv1.AccessPresigned // by what Store returns
)

// NewObject is an object to be stored.
type NewObject struct {
	Data []byte // a document stream
	// Expiry is how long the object is needed; 0: until Remove. A store that cannot expire objects ignores it.
	Expiry time.Duration
	// Report means that the machine keeps its report beside the object.
	Report bool
}

// Reference is what the RemoteConfig document of a stored object says.
type Reference struct {
	// Provider is the provider that fetches the object; empty for this one.
	Provider string
	// URI is the location of the object. It holds no secret.
	URI string
	// ProviderConfig is encoded as JSON, with its secrets. It has no credentials of the storage. Nil: there is none.
	ProviderConfig any
	// ReportURI is where the machine sends its report; empty if it keeps none.
	ReportURI string
	// Expires is when the reference stops to grant access; zero for never.
	Expires time.Time
}

// ReportSuffix follows the name of an object in the name of the report beside it.
const ReportSuffix = ".report.json"
