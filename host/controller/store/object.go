package store

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/emit"
)

// Object is what a source plugin stores. It is written before the first call, so that no object is without a record of it.
type Object struct {
	// Storage is the name of the MachineBootstrapStorage, whose credentials every call needs.
	Storage string `json:"storage"`
	// Provider, URIPrefix and Access are what the storage had when the data was made.
	Provider  string `json:"provider"`
	URIPrefix string `json:"uriPrefix"`
	Access    string `json:"access"`
	// Name follows the prefix.
	Name string `json:"name"`
	// Stored is when the object was last stored, zero before.
	Stored time.Time `json:"stored,omitzero"`
	// Until is when the reference that was handed out stops to admit, zero for never.
	Until time.Time `json:"until,omitzero"`
}

// NewObject is the object of a config. Its name is derived as a token is: it cannot be guessed, and is the same when a reconciliation is repeated.
func NewObject(storage string, source *bootstrap.SourceStorage, key []byte, namespace, name, uid string) *Object {
	return &Object{
		Storage: storage, Provider: source.Provider, URIPrefix: source.URIPrefix, Access: cmp.Or(source.Access, bootstrap.AccessRole),
		Name: hex.EncodeToString(derived(key, "object", namespace, name, uid)),
	}
}

// reportSuffix follows the name of an object in the name of its report.
const reportSuffix = ".report.json"

// ReportDocument is the document by which the manager fetches the report of the machine, with the settings of the storage, as JSON.
func (o *Object) ReportDocument(providerConfig []byte) ([]byte, error) {
	text, err := json.Marshal(contract.RemoteConfig{
		Header: contract.Header{APIVersion: contract.APIVersion, Kind: contract.KindRemoteConfig, Metadata: contract.Metadata{Name: "report"}},
		Spec:   contract.RemoteConfigSpec{Provider: o.Provider, URI: o.URIPrefix + o.Name + reportSuffix, ProviderConfig: providerConfig},
	})
	if err != nil {
		return nil, errors.New("the settings of the storage cannot be encoded") // not err, which may quote them
	}
	return text, nil
}

// Renewal is when the reference has to be made anew: when a third of its time is left. It is zero for never.
func (o *Object) Renewal() time.Time {
	if o.Until.IsZero() {
		return time.Time{}
	}
	return o.Until.Add(-o.Until.Sub(o.Stored) / 3)
}

// Reference returns the document that a machine gets in place of the stream that a plugin has stored.
func (o *Object) Reference(name string, stored pluginv1.Stored, stream []byte) emit.Document {
	sum := sha256.Sum256(stream)
	return emit.Document{
		Header: contract.Header{APIVersion: contract.APIVersion, Kind: contract.KindRemoteConfig, Metadata: contract.Metadata{Name: name}},
		Spec: &contract.RemoteConfigSpec{
			Provider: cmp.Or(stored.Provider, o.Provider), URI: stored.URI, SHA256: hex.EncodeToString(sum[:]),
			Report:         &contract.RemoteReport{URI: stored.ReportURI, Disabled: stored.ReportURI == ""},
			ProviderConfig: stored.ProviderConfig,
		},
	}
}
