package conformance

import "github.com/machineadm/machineadm/contract/v1alpha1"

// role is the type of plugin that a document is for.
type role uint8

const (
	configurator role = 1 << iota
	source
	keyProvider

	remote   = source | keyProvider
	everyone = configurator | remote
)

// call is the call that answers what is wrong with a document.
func (r role) call() string {
	return map[role]string{configurator: "Plan", source: "Fetch", keyProvider: "Passphrase"}[r]
}

// answer is the clause of what an object or a passphrase is.
func (r role) answer() string { return map[role]string{source: "P-42", keyProvider: "P-45"}[r] }

// harmless is the clause that call breaks if it changes something: this one for a configurator.
func (r role) harmless(clause string) string {
	if r == configurator {
		return clause
	}
	return "P-41"
}

// header is what a document says about its kind.
type header struct{ apiVersion, kind string }

func headerOf(document []byte) (header, error) {
	root, err := parse(document)
	if err != nil {
		return header{}, err
	}
	version, _ := root["apiVersion"].(string)
	kind, _ := root["kind"].(string)
	return header{version, kind}, nil
}

// role returns the type of plugin that serves documents of this kind.
func (h header) role() role {
	switch {
	case h.apiVersion == v1alpha1.APIVersion && (h.kind == v1alpha1.KindRemoteConfig || h.kind == v1alpha1.KindReportTarget):
		return source
	case h.apiVersion == v1alpha1.APIVersion && h.kind == v1alpha1.KindEncryptedConfig:
		return keyProvider
	}
	return configurator
}
