package sdk_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// TestRollbackRemovesDirectories: created directories are removed, except one that holds a file of others.
func TestRollbackRemovesDirectories(t *testing.T) {
	t.Parallel()
	f := machinetest.New(t)
	f.WriteFiles(t, map[string]string{"/etc/d/d.conf": "old"})
	f.Services.Put("d", machine.ServiceState{Active: "active", Sub: "running", InvocationID: "1"})
	f.Services.Failures["restart d.service"] = errors.New("it does not start")
	changes, err := sdk.Activate(t.Context(), f.Machine, sdk.Activation{
		Unit:  "d.service",
		Files: []sdk.FileSpec{{Path: "/etc/d/d.conf", Content: []byte("new"), Mode: 0o644}},
		Companions: []sdk.FileSpec{
			{Path: "/etc/d/new/a/x.conf", Content: []byte("new"), Mode: 0o644},
			{Path: "/etc/d/new/b/x.conf", Content: []byte("new"), Mode: 0o644},
			{Path: "/etc/d/shared/x.conf", Content: []byte("new"), Mode: 0o644},
		},
		Check: func(context.Context, sdk.Machine, map[string]string) error { return nil },
	})
	require.NoError(t, err)
	require.Len(t, changes, 1)
	before := machinetest.Tree(t, f.Root)
	require.Error(t, changes[0].Do(t.Context(), writer{f.Machine.FS}))
	const others = "/etc/d/shared/others.conf"
	text, err := f.Machine.FS.ReadFile(others)
	require.NoError(t, err)
	assert.Equal(t, "others", string(text))
	require.NoError(t, f.Machine.FS.Remove(others))
	require.NoError(t, f.Machine.FS.Remove("/etc/d/shared"))
	assert.Equal(t, before, machinetest.Tree(t, f.Root))
}

// writer is another program, which writes a file when the restart is reported.
type writer struct{ files *machine.FS }

func (w writer) Report(message string) {
	if message == "restarting d.service" {
		_ = w.files.WriteFile("/etc/d/shared/others.conf", []byte("others"), 0o644) // the test reads it
	}
}

func (writer) Warn(string, string)      {}
func (writer) RequestReboot(sdk.Reboot) {}
