package v1alpha1

import (
	"encoding/json"
	"errors"
	"strconv"
)

// Sysctl sets kernel parameters and loads the modules that provide them, now and at every boot.
type Sysctl struct {
	Header
	// Spec says which parameters and modules.
	Spec SysctlSpec `json:"spec"`
}

// SysctlSpec is the desired state of a Sysctl document. Source: sysctl.d(5), modules-load.d(5).
type SysctlSpec struct {
	// Provider names the plugin, for example procfs. Left out, the host chooses.
	Provider string `json:"provider,omitempty"`
	// Parameters maps a key to its value. A key is written with dots or with slashes; its first separator decides, as
	// in sysctl.d(5). A parameter given here wins over the same parameter of a profile.
	Parameters map[string]IntOrString `json:"parameters,omitempty"`
	// Profiles are named sets of parameters and modules: kubernetes, kubelet-protect-defaults.
	Profiles []string `json:"profiles,omitempty"`
	// Modules are kernel modules, loaded now and at boot. A module that is built into the kernel counts as loaded.
	Modules []string `json:"modules,omitempty"`
	// IgnoreMissing lists keys that a kernel may lack without that being an error.
	IgnoreMissing []string `json:"ignoreMissing,omitempty"`
	// ProviderConfig is read by the provider alone.
	ProviderConfig json.RawMessage `json:"providerConfig,omitempty"`
}

// IntOrString is a value that a document may write as an integer or as a string.
type IntOrString string

// UnmarshalJSON reads an integer of 64 bits or a string. Its errors never quote what they read.
func (v *IntOrString) UnmarshalJSON(data []byte) error {
	shape := errors.New("must be a string or an integer")
	if len(data) > 0 && data[0] == '"' {
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return shape // never %w: encoding/json quotes what it read
		}
		*v = IntOrString(text)
		return nil
	}
	if _, err := strconv.ParseInt(string(data), 10, 64); err == nil {
		*v = IntOrString(data)
		return nil
	}
	if _, err := strconv.ParseUint(string(data), 10, 64); err == nil {
		*v = IntOrString(data)
		return nil
	}
	return shape
}
