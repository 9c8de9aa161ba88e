package v1alpha1

import (
	"encoding/json"
	"errors"
	"strconv"
)

// Sysctl sets kernel parameters and loads the modules that provide them, now and at every boot.
type Sysctl struct {
	Header
	// Spec is the desired state.
	Spec SysctlSpec `json:"spec"`
}

// SysctlSpec is the desired state of a Sysctl document. Source: sysctl.d(5), modules-load.d(5).
type SysctlSpec struct {
	// Provider names the plugin, for example procfs. By default the host chooses.
	Provider string `json:"provider,omitempty"`
	// Parameters maps a key to its value. A key has dots or slashes; its first separator determines which, as in
	// sysctl.d(5). A parameter here takes precedence over the same parameter of a profile.
	Parameters map[string]IntOrString `json:"parameters,omitempty"`
	// Profiles are named sets of parameters and modules: kubernetes, kubelet-protect-defaults.
	Profiles []string `json:"profiles,omitempty"`
	// Modules are kernel modules to load now and at boot. A module built into the kernel counts as loaded.
	Modules []string `json:"modules,omitempty"`
	// IgnoreMissing lists keys whose absence from the kernel is not an error.
	IgnoreMissing []string `json:"ignoreMissing,omitempty"`
	// ProviderConfig holds what only one provider supports; the README of the plugin lists its fields.
	ProviderConfig json.RawMessage `json:"providerConfig,omitempty"`
}

// IntOrString is an integer or a string.
type IntOrString string

// UnmarshalJSON reads a 64-bit integer or a string. Its errors never quote the value.
func (v *IntOrString) UnmarshalJSON(data []byte) error {
	shape := errors.New("must be a string or an integer")
	if len(data) > 0 && data[0] == '"' {
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return shape // not %w: encoding/json quotes the value
		}
		*v = IntOrString(text)
		return nil
	}
	_, signed := strconv.ParseInt(string(data), 10, 64)
	_, unsigned := strconv.ParseUint(string(data), 10, 64)
	if signed != nil && unsigned != nil {
		return shape
	}
	*v = IntOrString(data)
	return nil
}
