package testcase

import "github.com/machineadm/machineadm/contract/v1alpha1"

// Role is the type of plugin that a document is for.
type Role uint8

// The types of plugins, and those that get what a document refers to.
const (
	Configurator Role = 1 << iota
	Source
	KeyProvider

	Remote   = Source | KeyProvider
	Everyone = Configurator | Remote
)

// Call is the call that answers what is wrong with a document.
func (r Role) Call() string {
	return map[Role]string{Configurator: "Plan", Source: "Fetch", KeyProvider: "Passphrase"}[r]
}

// Answer is the clause of what an object or a passphrase is.
func (r Role) Answer() string { return map[Role]string{Source: "P-42", KeyProvider: "P-45"}[r] }

// Harmless is the clause that call breaks if it changes something: this one for a configurator.
func (r Role) Harmless(clause string) string {
	if r == Configurator {
		return clause
	}
	return "P-41"
}

// Header is what a document says about its kind.
type Header struct{ APIVersion, Kind string }

// HeaderOf returns the apiVersion and the kind of a document.
func HeaderOf(document []byte) (Header, error) {
	root, err := Parse(document)
	if err != nil {
		return Header{}, err
	}
	version, _ := root["apiVersion"].(string)
	kind, _ := root["kind"].(string)
	return Header{version, kind}, nil
}

// Role returns the type of plugin that serves documents of this kind.
func (h Header) Role() Role {
	switch {
	case h.APIVersion == v1alpha1.APIVersion && (h.Kind == v1alpha1.KindRemoteConfig || h.Kind == v1alpha1.KindReportTarget):
		return Source
	case h.APIVersion == v1alpha1.APIVersion && h.Kind == v1alpha1.KindEncryptedConfig:
		return KeyProvider
	}
	return Configurator
}
