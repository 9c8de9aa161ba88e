package sdk

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/contract/v1alpha1/schema"
)

// about is the part that every plugin has: who it is, and where it runs.
type about struct {
	name, version string
	os            []string
	goos          string // of this build
}

// supports refuses a machine of another operating system, on which success would be wrong.
func (a about) supports(t target.Target) error {
	switch {
	case t.OS != a.goos:
		return Unsupported("", fmt.Sprintf("the plugin was built for %s, the target is %s", a.goos, t.OS), "")
	case !slices.Contains(a.os, t.OS):
		return Unsupported("", fmt.Sprintf("provider %s does not serve %s", a.name, t.OS), "")
	}
	return nil
}

// describe returns the description of a plugin that serves kinds of the contract.
func (a about) describe(r pluginv1.DescribeRequest, secrets, capabilities []string, kinds ...string) pluginv1.Description {
	d := pluginv1.Description{
		Name: a.name, Version: a.version, Capabilities: capabilities,
		Fitness: FitnessInstalled, FitnessReason: "serves " + r.Target.OS,
	}
	if err := a.supports(r.Target); err != nil {
		d.Fitness, d.FitnessReason = FitnessUnsupported, pluginv1.AsError(err).Message
	}
	for _, name := range kinds {
		kind := pluginv1.Kind{APIVersion: v1alpha1.APIVersion, Kind: name, Phase: PhasePreparation, SecretFields: secrets}
		if r.JSONSchema {
			kind.JSONSchema = schema.For(v1alpha1.APIVersion, name)
		}
		d.Kinds = append(d.Kinds, kind)
	}
	return d
}

// kindOf returns the kind of a document that is one of these kinds of the contract.
func (a about) kindOf(doc []byte, kinds ...string) (string, error) {
	header, err := headerOf(doc)
	if err != nil {
		return "", err
	}
	if header.APIVersion != v1alpha1.APIVersion || !slices.Contains(kinds, header.Kind) {
		return "", unserved(a.name, header)
	}
	return header.Kind, nil
}

// header is the part of a document that names its kind.
type header struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

func headerOf(doc []byte) (header, error) {
	var h header
	if err := json.Unmarshal(doc, &h); err != nil {
		// never %w: encoding/json may quote the document
		return header{}, internal("the document that machineadm sent is not JSON")
	}
	return h, nil
}

func unserved(name string, h header) error {
	return Unsupported("kind", fmt.Sprintf("provider %s does not serve %s of %s", name, h.Kind, h.APIVersion), "")
}
