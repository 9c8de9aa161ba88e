package controller

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// object names an object of a kind of machineadm.
func object(kind, name string) *unstructured.Unstructured {
	var o unstructured.Unstructured
	o.SetAPIVersion(contract.APIVersion)
	o.SetKind(kind)
	o.SetNamespace("default")
	o.SetName(name)
	return &o
}

// config is one without documents.
func config(name string) *bootstrap.MachineBootstrapConfig {
	return &bootstrap.MachineBootstrapConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

func contains(names []string, name string) bool { return slices.Contains(names, name) }

func containsText(message, text string) bool { return strings.Contains(message, text) }

// names are the names of the objects that documents come from, all of which are ready.
func names(plugins []bootstrap.PluginStatus) []string {
	all := make([]string, len(plugins))
	for i, p := range plugins {
		all[i] = p.Kind + " " + p.Name
		if !p.Ready {
			all[i] += " is not ready"
		}
	}
	return all
}
