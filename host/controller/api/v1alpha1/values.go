package v1alpha1

import (
	"encoding/json"
	"strconv"

	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// SecretValue is a confidential value. It is in a Secret, never in a custom resource.
type SecretValue struct {
	// ValueFrom is where the value is.
	// +required
	ValueFrom SecretValueSource `json:"valueFrom"`
}

// SecretValueSource is where a confidential value is.
type SecretValueSource struct {
	// SecretKeyRef names a key of a Secret in the namespace of the object.
	// +required
	SecretKeyRef SecretKeyReference `json:"secretKeyRef"`
}

// SecretKeyReference names a key of a Secret.
type SecretKeyReference struct {
	// Name is the name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
	// Key is the key in the Secret. Its value is UTF-8 text.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key"`
}

// IntOrString is an integer or a string. An integer above 9223372036854775807 is written as a string, because the API server does
// not keep it exactly.
//
// +kubebuilder:validation:Type=""
// +kubebuilder:validation:XIntOrString
type IntOrString string

// UnmarshalJSON reads an integer or a string.
func (v *IntOrString) UnmarshalJSON(data []byte) error {
	return (*v1alpha1.IntOrString)(v).UnmarshalJSON(data)
}

// MarshalJSON writes an integer as a number, and any other text as a string.
func (v IntOrString) MarshalJSON() ([]byte, error) {
	signed, errSigned := strconv.ParseInt(string(v), 10, 64)
	unsigned, errUnsigned := strconv.ParseUint(string(v), 10, 64)
	if errSigned == nil && strconv.FormatInt(signed, 10) == string(v) || errUnsigned == nil && strconv.FormatUint(unsigned, 10) == string(v) {
		return []byte(v), nil
	}
	return json.Marshal(string(v))
}
