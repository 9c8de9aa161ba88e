package sdk_test

import (
	"context"
	"fmt"
	"os"
	"runtime"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

// Motd is the whole document of a plugin that keeps /etc/motd.
type Motd struct {
	v1alpha1.Header
	Spec struct {
		Provider string `json:"provider,omitempty"`
		Text     string `json:"text"`
	} `json:"spec"`
}

func planMotd(_ context.Context, m sdk.Machine, want Motd) (sdk.Plan, error) {
	var plan sdk.Plan
	if want.Spec.Text == "" {
		return plan, sdk.InvalidConfig(sdk.Violation{Field: "spec.text", Message: "is required", Hint: "write one line"})
	}
	change, err := sdk.File(m, sdk.FileSpec{Path: "/etc/motd", Content: []byte(want.Spec.Text + "\n"), Mode: 0o644})
	plan.Add(change)
	return plan, err
}

func motdPlugin() sdk.Plugin {
	return sdk.Plugin{
		Name: "plain", Version: "1.0.0", OS: []string{runtime.GOOS},
		Kinds: []sdk.Kind{sdk.For("example.com/v1", "Motd", sdk.PhasePreparation, planMotd)},
	}
}

// This is a whole plugin, in the file machineadm-motd-plugin-plain. Its main is
//
//	func main() { sdk.Main(motdPlugin()) }
//
// Here it plans for an image root instead.
func Example() {
	root, err := os.MkdirTemp("", "image")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(root) }()

	plugin := sdk.NewConfigurator(motdPlugin(), runtime.GOOS)
	plan, err := plugin.Plan(context.Background(), pluginv1.Request{
		Document: []byte(`{"apiVersion":"example.com/v1","kind":"Motd","metadata":{"name":"x"},"spec":{"text":"hello"}}`),
		Root:     root, Target: sdk.Target{OS: runtime.GOOS},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, change := range plan.Changes {
		fmt.Printf("%s\n%s", change.Summary, change.Diff)
	}
	// Output:
	// create /etc/motd
	// --- /dev/null
	// +++ b/etc/motd
	// @@ -0,0 +1 @@
	// +hello
}
