//go:build linux

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/internal/cri/critest"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// TestFilesThroughLinks: the plan of a live machine and of an image refuses a file that a link leads to a reserved path, and nothing is
// written. A link that appears after the plan is found before the write.
func TestFilesThroughLinks(t *testing.T) {
	t.Parallel()
	needs.Root(t) // the owner of a file is set
	f := fixture(t, &critest.Runtime{})
	image, root := machinetest.NewImage(t)
	image.Target.OS = "linux"
	doc := decode(t, creator+"files: [{path: /srv/k/defaults.yaml, content: a}]")
	for m, root := range map[*sdk.Machine]string{&f.Machine: f.Root, &image: root} {
		for _, target := range []string{"/etc/machineadm", "/usr/bin", "../usr", "/var/lib/machineadm"} {
			link := filepath.Join(root, "srv/k")
			require.NoError(t, os.MkdirAll(filepath.Dir(link), 0o755)) //nolint:gosec // like any machine
			p, err := plan(t.Context(), *m, doc)
			require.NoError(t, err)
			require.NoError(t, os.Symlink(target, link))
			before := machinetest.Tree(t, root)
			_, err = plan(t.Context(), *m, doc)
			e := pluginv1.AsError(err)
			require.NotNil(t, e, target)
			assert.Equal(t, pluginv1.CodePrecondition, e.Code)
			assert.True(t, e.Final)
			assert.Equal(t, "spec.files[0].path", e.Violations[0].Field)
			for _, change := range p.Changes {
				if change.ID == "file:/srv/k/defaults.yaml" {
					assert.ErrorContains(t, change.Do(t.Context(), &recorder{}), "must not write", target)
				}
			}
			assert.Equal(t, before, machinetest.Tree(t, root), target)
			require.NoError(t, os.Remove(link))
		}
	}
}
