// Command machineadm-files-plugin-bench writes the files that a document names. It is what the benchmarks measure: a plugin
// of the SDK that does little more than any plugin must.
package main

import (
	"context"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

// Files is a whole document.
type Files struct {
	v1alpha1.Header
	Spec struct {
		Provider string `json:"provider,omitempty"`
		Files    []struct {
			Path    string `json:"path"`
			Content string `json:"content"`
		} `json:"files"`
	} `json:"spec"`
}

func main() {
	sdk.Main(sdk.Plugin{
		Name: "bench", Version: "1.0.0", OS: []string{"linux"},
		Kinds: []sdk.Kind{sdk.For("bench.example.com/v1", "Files", sdk.PhasePreparation, plan)},
	})
}

func plan(_ context.Context, m sdk.Machine, want Files) (sdk.Plan, error) {
	var plan sdk.Plan
	for _, f := range want.Spec.Files {
		change, err := sdk.File(m, sdk.FileSpec{Path: f.Path, Content: []byte(f.Content), Mode: 0o644})
		if err != nil {
			return plan, err
		}
		plan.Add(change)
	}
	return plan, nil
}
