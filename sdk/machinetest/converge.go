package machinetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk"
)

// Converge applies a document, as JSON, to an image with these files and links (those whose content begins with "-> "), and returns the
// error of its plan. It requires that a plan changes nothing, and that after one apply nothing is left but what needs the live machine.
func Converge(t testing.TB, files map[string]string, document string, kinds ...sdk.Kind) error {
	t.Helper()
	root := Root(t)
	for name, content := range files {
		at := filepath.Join(root, name)
		err := os.MkdirAll(filepath.Dir(at), 0o755)
		if target, link := strings.CutPrefix(content, "-> "); err == nil && link {
			err = os.Symlink(target, at)
		} else if err == nil {
			err = os.WriteFile(at, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	plugin := sdk.NewConfigurator(sdk.Plugin{Name: "test", Version: "1", OS: []string{Target().OS}, Kinds: kinds}, Target().OS)
	r := pluginv1.Request{Document: []byte(document), Root: root, Target: Target(), ClaimKey: []byte("key"), ListFiles: true}
	before := Tree(t, root)
	if _, err := plugin.Plan(t.Context(), r); err != nil {
		return err
	}
	if after := Tree(t, root); after != before {
		t.Errorf("the plan changed files: %s", Diff(before, after))
	}
	if _, err := plugin.Apply(t.Context(), r, 0, func(pluginv1.Event) error { return nil }); err != nil {
		t.Fatal(err)
	}
	again, err := plugin.Plan(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range again.Changes {
		if !c.NeedsLive {
			t.Errorf("after the apply is left: %s\n%s", c.Summary, c.Diff)
		}
	}
	return nil
}
