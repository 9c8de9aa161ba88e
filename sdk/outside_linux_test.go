package sdk_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// merged is a machine, or an image, whose /bin leads to /usr, with a link to what a document must not change.
func merged(t *testing.T) (live, image sdk.Machine, roots []string) {
	t.Helper()
	f := machinetest.New(t)
	offline, root := machinetest.NewImage(t)
	roots = []string{f.Root, root}
	for _, root := range roots {
		require.NoError(t, os.MkdirAll(filepath.Join(root, "usr/bin"), 0o755))      //nolint:gosec // like any image
		require.NoError(t, os.MkdirAll(filepath.Join(root, "srv"), 0o755))          //nolint:gosec // like any image
		require.NoError(t, os.MkdirAll(filepath.Join(root, "etc/reserved"), 0o755)) //nolint:gosec // like any image
		require.NoError(t, os.WriteFile(filepath.Join(root, "usr/bin/old"), []byte("old"), 0o600))
		for name, target := range map[string]string{"bin": "usr/bin", "srv/link": "/etc/reserved", "srv/new": "/usr/bin/new"} {
			require.NoError(t, os.Symlink(target, filepath.Join(root, name)))
		}
	}
	return f.Machine, offline, roots
}

// TestOutside: no change reaches /usr or what a document must not change, by whatever link, and the plan says so.
func TestOutside(t *testing.T) {
	t.Parallel()
	live, image, roots := merged(t)
	before := []string{machinetest.Tree(t, roots[0]), machinetest.Tree(t, roots[1])}
	spec := func(path string) sdk.FileSpec {
		return sdk.FileSpec{Path: path, Content: []byte("new"), Mode: 0o600, Outside: []string{"/etc/reserved", "/run/none"}}
	}
	for _, m := range []sdk.Machine{live, image} {
		for _, path := range []string{
			"/usr/bin/x", "/bin/x", "/bin/old", "/usr/none/x", "/srv/new", "/etc/reserved/x", "/srv/link/x", "/srv/link/deep/x", "/run/none/x", "/run/none",
		} {
			_, err := sdk.File(m, spec(path))
			wantCode(t, err, pluginv1.CodePrecondition, "namei -l "+path)
			assert.True(t, pluginv1.AsError(err).Final, path)
			_, err = sdk.Activate(t.Context(), m, sdk.Activation{Unit: "d.service", Files: []sdk.FileSpec{spec(path)}})
			assert.Error(t, err, path)
		}
		_, err := sdk.Absent(m, "/bin/old")
		wantCode(t, err, pluginv1.CodePrecondition, "/usr")
		same := spec("/srv/link/x")
		same.Outside = nil
		_, err = sdk.File(m, same)
		require.NoError(t, err)
	}
	for i, root := range roots {
		assert.Equal(t, before[i], machinetest.Tree(t, root))
	}
}

// TestOutsideInThePlanOfWhatMatches: what matches below /usr is no change, and is refused where the document must not be at all.
func TestOutsideInThePlanOfWhatMatches(t *testing.T) {
	t.Parallel()
	m, _, _ := merged(t)
	spec := sdk.FileSpec{Path: "/bin/old", Content: []byte("old"), Mode: 0o600}
	change, err := sdk.File(m, spec)
	require.NoError(t, err)
	assert.Nil(t, change)
	spec.Outside = []string{"/etc/reserved"}
	_, err = sdk.File(m, spec)
	wantCode(t, err, pluginv1.CodePrecondition, "a link of this machine leads")
}

// TestOutsideWhenALinkChanges: a link that appears between plan and apply leads no write away.
func TestOutsideWhenALinkChanges(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"/usr/bin", "/etc/reserved"} {
		m, _, roots := merged(t)
		change, err := sdk.File(m, sdk.FileSpec{Path: "/srv/later/x", Content: []byte("x"), Mode: 0o600, Outside: []string{"/etc/reserved"}})
		require.NoError(t, err)
		require.NoError(t, os.Symlink(target, filepath.Join(roots[0], "srv/later")))
		before := machinetest.Tree(t, roots[0])
		err = change.Do(t.Context(), &recorder{})
		wantCode(t, err, pluginv1.CodePrecondition, target[:4])
		assert.Equal(t, before, machinetest.Tree(t, roots[0]))
	}
}
