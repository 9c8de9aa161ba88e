package pluginv1

import (
	"time"

	"github.com/machineadm/machineadm/contract/target"
)

// The values of Storage.Access: by what the machine that fetches a stored object has access to it.
const (
	AccessRole      = "role"      // by rights of its own
	AccessPresigned = "presigned" // by what Store returns
)

// Storage is where objects are kept. Violations name its fields uriPrefix, access and providerConfig.
type Storage struct {
	URIPrefix string // in the form of the provider; the name of an object is put behind it
	Access    string // AccessRole or AccessPresigned
	// ProviderConfig has the settings and credentials of the process that stores, as JSON; empty for none.
	ProviderConfig []byte
	Target         target.Target // the machine of the process that stores
}

// StoreRequest is the request of Store.
type StoreRequest struct {
	Storage Storage
	Name    string // 1 to 200 characters of a-z, 0-9 and "-"; may be empty with ValidateOnly
	Data    []byte
	Expiry  time.Duration // how long the object is needed, for destinations that expire objects; 0: until Remove
	Report  bool          // the machine keeps its report beside the object
	// ValidateOnly requests the errors of the storage alone, without a connection.
	ValidateOnly bool
	// RetryFor is how long the plugin may try again by itself before it answers Retry; 0 for one try.
	RetryFor time.Duration
}

// Stored is the answer of Store: the spec of a RemoteConfig that fetches the object.
type Stored struct {
	Provider       string    // empty for the provider that answers
	URI            string    // it holds no secret
	ProviderConfig []byte    // as JSON, with secrets as {"value": ...}; empty for none
	ReportURI      string    // where the machine sends its report; empty if it is not kept
	Expires        time.Time // when the answer stops to grant access; zero for never
}

// RemoveRequest is the request of Remove.
type RemoveRequest struct {
	Storage  Storage
	Name     string
	RetryFor time.Duration // as in StoreRequest
}
