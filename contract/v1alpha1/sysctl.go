package v1alpha1

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode"
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
	Provider DNSLabel `json:"provider,omitempty"`
	// Parameters maps a key to its value. A key has dots or slashes; its first separator determines which, as in
	// sysctl.d(5). A parameter here takes precedence over the same parameter of a profile.
	Parameters map[string]IntOrString `json:"parameters,omitempty"`
	// Profiles are named sets of parameters and modules: kubernetes for nodes of a cluster with IPv4, kubernetes-ipv6 for one with IPv6,
	// both for one with both, and kubelet-protect-defaults.
	//
	// +kubebuilder:validation:items:Enum=kubernetes;kubernetes-ipv6;kubelet-protect-defaults
	Profiles []string `json:"profiles,omitempty"`
	// Modules are kernel modules to load now and at boot. A module built into the kernel counts as loaded.
	//
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_][A-Za-z0-9_-]{0,54}$`
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

// SysctlKey is a kernel parameter as a slash path below /proc/sys, for example net/ipv4/conf/eth0.100/rp_filter. All spellings of one
// parameter are the same SysctlKey.
type SysctlKey string

// ParseSysctlKey parses a key of a document. It refuses keys that a file cannot contain, that are patterns, or that leave /proc/sys.
// Errors do not repeat the key.
func ParseSysctlKey(text string) (SysctlKey, error) {
	for _, rule := range []struct {
		broken  bool
		message string
	}{
		{strings.ContainsFunc(text, unicode.IsControl), "a key has no control characters"},
		{strings.ContainsFunc(text, unicode.IsSpace), "a key has no white space"},
		{strings.ContainsRune(text, '='), "a key has no = sign"},
		{strings.ContainsAny(text, "*?["), "a key names one parameter, without the wildcards * ? ["},
		{strings.ContainsAny(text[:min(1, len(text))], "-#;"), "a key does not begin with - # or ;"},
	} {
		if rule.broken {
			return "", errors.New(rule.message)
		}
	}
	path := SysctlPath(text)
	segments := strings.Split(path, "/")
	for _, segment := range segments {
		switch segment {
		case "":
			return "", errors.New("a key has no empty segment: no separator at an end and none repeated")
		case ".", "..":
			return "", errors.New("the segments . and .. are not allowed in a key")
		}
	}
	if len(segments) == 1 {
		return "", errors.New("a key has at least two segments, such as kernel.panic")
	}
	return SysctlKey(path), nil
}

// String returns the key as sysctl(8) prints it, with dots. ParseSysctlKey parses it to the same key, because the first segment contains
// no dot.
func (k SysctlKey) String() string { return interchange(string(k)) }

// SysctlPath converts a key with either separator to a slash path: after a first dot, dots and slashes are interchanged (sysctl.d(5)).
func SysctlPath(text string) string {
	if at := strings.IndexAny(text, "/."); at >= 0 && text[at] == '.' {
		return interchange(text)
	}
	return text
}

// interchange replaces each dot by a slash and each slash by a dot. It works on bytes, because keys in files need not be UTF-8.
func interchange(text string) string {
	swapped := []byte(text)
	for i, c := range swapped {
		switch c {
		case '.':
			swapped[i] = '/'
		case '/':
			swapped[i] = '.'
		}
	}
	return string(swapped)
}
