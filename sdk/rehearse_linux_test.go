package sdk_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	requires "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// TestPlanMeetsTheErrorsOfApply: Plan reports what in an image keeps Apply from its end, and changes nothing.
func TestPlanMeetsTheErrorsOfApply(t *testing.T) {
	t.Parallel()
	requires.Root(t)
	const units, configured = "usr/lib/systemd/system/", "etc/systemd/system/"
	const unit, wants = "[Service]\nExecStart=/bin/d\n[Install]\nWantedBy=multi-user.target\nAlias=other.service\n", configured + "multi-user.target.wants"
	for name, c := range map[string]struct {
		links, files map[string]string
		owner        string // a directory of another user
		message      string // empty: nothing keeps it
	}{
		"in order":                {},
		"no [Install]":            {files: map[string]string{units + "d.service": "[Service]\nExecStart=/bin/d\n"}, message: "d.service cannot be enabled (static)"},
		"an alias of another":     {links: map[string]string{configured + "other.service": "/usr/lib/systemd/system/foreign.service"}, message: "already leads to another unit"},
		"an enabled unit's alias": {links: map[string]string{configured + "other.service": "/usr/lib/systemd/system/foreign.service", wants + "/d.service": "/" + units + "d.service"}, message: "already leads to another unit"},
		"an alias that is masked": {links: map[string]string{configured + "other.service": "/dev/null"}, message: "already leads to another unit"},
		"an alias that is a file": {files: map[string]string{configured + "other.service": unit}, message: "exists and is not a link"},
		"wants that are a file":   {files: map[string]string{wants: ""}, message: "not a directory"},
		"a want that is a file":   {files: map[string]string{wants + "/d.service": ""}, message: "exists and is not a link"},
		"units of another user":   {owner: "etc/systemd/system", message: "belongs to user 1000"},
		"files of another user":   {owner: "etc/d", message: "belongs to user 1000"},
		"a masked file":           {links: map[string]string{"etc/d/file": "/dev/null"}, message: "leads from the path of the file to /dev"},
		"a missing Also":          {files: map[string]string{units + "d.service": unit + "Also=missing.service\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := machinetest.Root(t)
			write := func(at, content string) {
				at = filepath.Join(root, at)
				require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
				require.NoError(t, os.WriteFile(at, []byte(content), 0o644))
			}
			write(units+"d.service", unit)
			write(units+"foreign.service", unit)
			for _, dir := range []string{"etc/d", configured} {
				require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
			}
			for at, content := range c.files {
				write(at, content)
			}
			for at, target := range c.links {
				at = filepath.Join(root, at)
				require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
				require.NoError(t, os.Symlink(target, at))
			}
			if c.owner != "" {
				require.NoError(t, os.Chown(filepath.Join(root, c.owner), 1000, 0))
			}
			before := machinetest.Tree(t, root)
			plugin := configurator(activating)
			r := pluginv1.Request{Document: document(`{}`), Root: root, Target: machinetest.Target()}
			_, planned := plugin.Plan(t.Context(), r)
			require.Equal(t, before, machinetest.Tree(t, root))
			_, made := plugin.Apply(t.Context(), r, 0, func(pluginv1.Event) error { return nil })
			if c.message == "" {
				require.NoError(t, planned)
				require.NoError(t, made)
				plan, err := plugin.Plan(t.Context(), r)
				require.NoError(t, err)
				assert.Len(t, plan.Changes, 1, "the start alone is left")
				return
			}
			wantCode(t, planned, pluginv1.CodePrecondition, c.message)
			wantCode(t, made, pluginv1.CodePrecondition, c.message)
		})
	}
}

func activating(ctx context.Context, m sdk.Machine, _ probe) (sdk.Plan, error) {
	var plan sdk.Plan
	changes, err := sdk.Activate(ctx, m, sdk.Activation{
		Unit: "d.service", Enable: true, Files: []sdk.FileSpec{{Path: "/etc/d/file", Content: []byte("new\n"), Mode: 0o644}},
	})
	plan.Add(changes...)
	return plan, err
}

// TestPlanListsFiles: a plan lists what its changes leave, and has nothing to do on top of that; changes beyond files are not listed.
func TestPlanListsFiles(t *testing.T) {
	t.Parallel()
	const unit = "/usr/lib/systemd/system/d.service"
	plugin := configurator(activating)
	root := machinetest.Root(t)
	require.NoError(t, os.MkdirAll(filepath.Join(root, filepath.Dir(unit)), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, unit), []byte("[Service]\nExecStart=/bin/d\n[Install]\nWantedBy=multi-user.target\n"), 0o644))
	before := machinetest.Tree(t, root)
	r := pluginv1.Request{Document: document(`{}`), Root: root, Target: machinetest.Target()}
	plan, err := plugin.Plan(t.Context(), r)
	require.NoError(t, err)
	assert.Empty(t, plan.Files, "the runtime did not ask")
	r.ListFiles = true
	plan, err = plugin.Plan(t.Context(), r)
	require.NoError(t, err)
	listed := map[string]bool{}
	for _, c := range plan.Changes {
		listed[c.ID] = c.Listed
	}
	assert.Equal(t, map[string]bool{"file:/etc/d/file": true, "enable:d.service": true, "activate:d.service": false}, listed)
	const want = "/etc/systemd/system/multi-user.target.wants/d.service"
	left := map[string]pluginv1.PlannedFile{}
	for _, f := range plan.Files {
		left[f.Path] = f
	}
	assert.Equal(t, "new\n", string(left["/etc/d/file"].Content))
	assert.Equal(t, unit, left[want].Link)
	assert.True(t, left["/etc/d"].Directory)
	assert.Equal(t, before, machinetest.Tree(t, root))

	again := r
	again.Files = plan.Files
	settled, err := plugin.Plan(t.Context(), again)
	require.NoError(t, err)
	assert.Empty(t, settled.Files)
	require.Len(t, settled.Changes, 1)
	assert.Equal(t, "activate:d.service", settled.Changes[0].ID)
	again.Files = append(again.Files, pluginv1.PlannedFile{Path: unit, Absent: true})
	_, err = plugin.Plan(t.Context(), again)
	wantCode(t, err, pluginv1.CodePrecondition, "d.service is not installed")

	_, err = plugin.Apply(t.Context(), r, 0, func(pluginv1.Event) error { return nil })
	require.NoError(t, err)
	content, err := os.ReadFile(filepath.Join(root, "etc/d/file"))
	require.NoError(t, err)
	assert.Equal(t, "new\n", string(content))
	target, err := os.Readlink(filepath.Join(root, want))
	require.NoError(t, err)
	assert.Equal(t, unit, target)
}
