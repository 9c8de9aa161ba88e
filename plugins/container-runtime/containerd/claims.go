package main

import (
	"bytes"
	"reflect"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// claim claims every field of the specification for the document, also those that it leaves out: a document removes what
// an earlier one wrote for such a field, so that two different documents would change the daemon in every run. A claim
// needs no containerd: validation gets the same answer.
func claim(m sdk.Machine, spec v1alpha1.ContainerRuntimeSpec) error {
	of := reflect.ValueOf(spec)
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Type().Field(i).Tag.Get("json"), ",")
		if name == "provider" {
			continue
		}
		var value []string
		if !of.Field(i).IsZero() {
			var one v1alpha1.ContainerRuntimeSpec
			reflect.ValueOf(&one).Elem().Field(i).Set(of.Field(i))
			var text bytes.Buffer
			if err := document.Encode(&text, one); err != nil {
				return err
			}
			value = []string{text.String()}
		}
		m.Claim("unit:"+settings.PathsOf(m.Target.OS).Unit+"#"+name, "spec."+name, value...)
	}
	return nil
}
