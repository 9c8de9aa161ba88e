package render_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/render"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/settings"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/settings/settingstest"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// rendering is what a document leads to.
type rendering struct {
	settings settings.Settings
	render.Rendered
	refused []sdk.Violation
}

// rendered renders a document without the fields that this release cannot express.
func rendered(t testing.TB, m machine.Machine, kubeadm string, tree map[string]any) rendering {
	t.Helper()
	var all rendering
	for {
		s, violations, err := resolve(t, m, tree)
		require.NoError(t, err)
		require.Empty(t, violations)
		result, refused := render.Render(s, version(t, kubeadm))
		if len(refused) == 0 {
			all.settings, all.Rendered = s, result
			return all
		}
		all.refused = append(all.refused, refused...)
		for _, v := range slices.Backward(refused) { // the last item of a list first
			tree = without(t, tree, v.Field)
		}
	}
}

// TestGolden: every document for every release. testenv/kubernetesnode shows the files to kubeadm.
func TestGolden(t *testing.T) {
	t.Parallel()
	for _, kubeadm := range versions() {
		for _, name := range documents(t) {
			t.Run(kubeadm+"/"+name, func(t *testing.T) {
				t.Parallel()
				r := rendered(t, host(t, name), kubeadm, read(t, name, kubeadm))
				var patches, refused strings.Builder
				for _, p := range r.Patches {
					fmt.Fprintf(&patches, "%s\n%s", p.Name, p.Content)
				}
				for _, v := range r.refused {
					fmt.Fprintf(&refused, "%s: %s\n", v.Field, v.Message)
				}
				at := kubeadm + "/" + name
				golden(t, at+".yaml", string(r.Config))
				golden(t, at+".patches", patches.String())
				golden(t, at+".refused", refused.String())
				golden(t, at+".flags", strings.Join(r.Flags, "\n"))
				assert.NotContains(t, patches.String(), settingstest.Canary)
			})
		}
	}
}

func TestReleases(t *testing.T) {
	t.Parallel()
	for kubeadm, want := range map[string]string{
		"v1.29.9": "the installed kubeadm is v1.29.9, and this plugin supports 1.30 to 1.37",
		"v1.38.0": "the installed kubeadm is v1.38.0, and this plugin supports 1.30 to 1.37",
		"v2.31.0": "the installed kubeadm is v2.31.0, and this plugin supports 1.30 to 1.37",
	} {
		s, _, err := resolve(t, host(t, ""), read(t, "minimal", "v1.37.1"))
		require.NoError(t, err)
		_, refused := render.Render(s, version(t, kubeadm))
		require.Len(t, refused, 1)
		assert.Equal(t, want, refused[0].Message)
	}
}
