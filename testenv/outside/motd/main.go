// Command machineadm-motd-plugin-file keeps the message of the day in /etc/motd. Source: motd(5).
package main

import (
	"context"
	"strings"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

// Motd is a whole document.
type Motd struct {
	v1alpha1.Header
	Spec struct {
		Provider string `json:"provider,omitempty"`
		Text     string `json:"text"`
	} `json:"spec"`
}

func main() {
	sdk.Main(sdk.Plugin{
		Name: "file", Version: "1.0.0", OS: []string{"linux"},
		Kinds: []sdk.Kind{sdk.For("example.com/v1", "Motd", sdk.PhasePreparation, plan)},
	})
}

func plan(_ context.Context, m sdk.Machine, want Motd) (sdk.Plan, error) {
	var plan sdk.Plan
	text := strings.TrimSpace(want.Spec.Text)
	if text == "" {
		return plan, sdk.InvalidConfig(sdk.Violation{Field: "spec.text", Message: "is required", Hint: "write a line for people"})
	}
	change, err := sdk.File(m, sdk.FileSpec{Path: "/etc/motd", Content: []byte(text + "\n"), Mode: 0o644})
	plan.Add(change)
	return plan, err
}
