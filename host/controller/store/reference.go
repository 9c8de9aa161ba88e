package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/emit"
)

// The paths of the endpoint, each followed by NAMESPACE/NAME of a config.
const (
	DataPath   = "/v1/data/"
	ReportPath = "/v1/report/"
)

// Endpoint is where machines reach the manager.
type Endpoint struct {
	// URL is https://HOST[:PORT], without a path.
	URL string
	// Trust is the authority of the endpoint's certificates as PEM; nil for those that a machine trusts by itself.
	Trust []byte
}

// provider is the plugin that fetches, and settings are what it gets.
const provider = "http"

type settings struct {
	CA     string      `json:"ca,omitempty"`
	Bearer secretValue `json:"bearer"`
}

// secretValue is the form of a secret in a document.
type secretValue struct {
	Value string `json:"value"`
}

// Reference returns the documents that a machine gets in place of the stream: a RemoteConfig with its digest, which also says where the
// report goes.
func (e *Endpoint) Reference(namespace, name, bearer string, stream []byte, reports bool) (emit.Document, error) {
	config, err := json.Marshal(settings{CA: string(e.Trust), Bearer: secretValue{bearer}})
	if err != nil {
		return emit.Document{}, fmt.Errorf("encode the settings of the RemoteConfig: %w", err)
	}
	of := url.PathEscape(namespace) + "/" + url.PathEscape(name)
	sum := sha256.Sum256(stream)
	report := &contract.RemoteReport{Disabled: true}
	if reports {
		report = &contract.RemoteReport{URI: e.URL + ReportPath + of}
	}
	return emit.Document{
		Header: contract.Header{APIVersion: contract.APIVersion, Kind: contract.KindRemoteConfig, Metadata: contract.Metadata{Name: name}},
		Spec: &contract.RemoteConfigSpec{
			Provider: provider, URI: e.URL + DataPath + of, SHA256: hex.EncodeToString(sum[:]), Report: report, ProviderConfig: config,
		},
	}, nil
}
