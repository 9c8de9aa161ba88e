// Package outbox delivers the report of a run: where it goes, what of it is sent, and when a failed try is repeated. host/state
// keeps the report, and host/resume starts the next try.
package outbox

import (
	"encoding/json"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/host/resolve"
)

// Destination is the document that says where a report goes.
type Destination struct {
	Document json.RawMessage // the whole RemoteConfig or ReportTarget; it can contain secrets
	Binary   string          // the name of its plugin
}

// Find returns the destination in the stream of a run: its first ReportTarget, else its first RemoteConfig that does not disable
// the report. Documents for other machines do not count, nor do documents with errors; errors of the others do not matter, so that
// a machine that cannot apply its stream reports it. The streams of references are not searched: a destination never comes from
// the network.
func Find(stream *document.Stream, t target.Target) (Destination, bool) {
	for _, kind := range []string{v1alpha1.KindReportTarget, v1alpha1.KindRemoteConfig} {
		for _, d := range stream.Documents {
			if d.APIVersion != v1alpha1.APIVersion || d.Kind != kind || !d.When.Matches(t) {
				continue
			}
			text, err := d.JSON()
			if err != nil {
				continue
			}
			want, err := resolve.Check(kind, text)
			if err != nil {
				continue
			}
			if remote, ok := want.(*v1alpha1.RemoteConfig); ok && remote.Spec.Report != nil && remote.Spec.Report.Disabled {
				continue
			}
			return Destination{Document: text, Binary: naming.Binary(kind, d.Provider)}, true
		}
	}
	return Destination{}, false
}

// named reports whether the document names the destination. Otherwise it is beside the stream, where the provider supports that.
func named(text json.RawMessage) bool {
	var d struct {
		Kind string `json:"kind"`
		Spec struct {
			Report v1alpha1.RemoteReport `json:"report"`
		} `json:"spec"`
	}
	err := json.Unmarshal(text, &d)
	return err == nil && (d.Kind == v1alpha1.KindReportTarget || d.Spec.Report.URI != "")
}
