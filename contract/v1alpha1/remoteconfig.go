package v1alpha1

import "encoding/json"

// RemoteConfig refers to a stream that is elsewhere. The documents of that stream take its place.
type RemoteConfig struct {
	Header
	// Spec names the stream.
	Spec RemoteConfigSpec `json:"spec"`
}

// RemoteConfigSpec names a stream that is elsewhere. Source: the Cluster API proposal for machineadm, remote configuration.
type RemoteConfigSpec struct {
	// Provider names the plugin that fetches the stream, such as http.
	Provider DNSLabel `json:"provider"`
	// URI is the location of the stream, in the form of the provider. It holds no secret.
	URI string `json:"uri"`
	// SHA256 is the digest of the stream, as 64 hexadecimal digits in lower case. A stream with another digest is refused.
	//
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	SHA256 string `json:"sha256,omitempty"`
	// Report says where the report of the run goes. By default it goes beside the stream, if the provider supports that.
	Report *RemoteReport `json:"report,omitempty"`
	// ProviderConfig holds what only one provider supports, such as credentials; the README of the plugin lists its fields.
	ProviderConfig json.RawMessage `json:"providerConfig,omitempty"`
}

// RemoteReport says where the report of a run goes.
type RemoteReport struct {
	// URI is the destination, in the form of the provider. It holds no secret.
	URI string `json:"uri,omitempty"`
	// Disabled keeps the report on the machine.
	Disabled bool `json:"disabled,omitempty"`
}

// ReportTarget says where the report of a run goes whose stream comes with the machine. It changes nothing on the machine.
type ReportTarget struct {
	Header
	// Spec names the destination.
	Spec ReportTargetSpec `json:"spec"`
}

// ReportTargetSpec names the destination of a report.
type ReportTargetSpec struct {
	// Provider names the plugin of RemoteConfig that keeps the report.
	Provider DNSLabel `json:"provider"`
	// URI is the destination, in the form of the provider. It holds no secret.
	URI string `json:"uri"`
	// ProviderConfig holds what only one provider supports, such as credentials; the README of the plugin lists its fields.
	ProviderConfig json.RawMessage `json:"providerConfig,omitempty"`
}
