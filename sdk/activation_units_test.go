package sdk_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

func insteadOfOld() sdk.Activation {
	return sdk.Activation{
		Unit: "new.service", Conflicts: []string{"old.service", "absent.service", "off.service"}, Enable: true,
		Files: []sdk.FileSpec{{Path: "/etc/new.conf", Content: []byte("x\n"), Mode: 0o644}},
	}
}

// TestActivationInAnImage: units are turned on by links and off by drop-ins; the rest is left for first boot.
func TestActivationInAnImage(t *testing.T) {
	t.Parallel()
	unix(t)
	m, root := machinetest.NewImage(t)
	const units, wants = "/usr/lib/systemd/system/", "/etc/systemd/system/multi-user.target.wants/"
	for _, unit := range []string{"new.service", "old.service"} {
		require.NoError(t, m.FS.WriteFile(units+unit, []byte(unitFile), 0o644))
	}
	require.NoError(t, m.FS.Symlink(units+"old.service", wants+"old.service"))
	require.NoError(t, m.FS.Symlink("/dev/null", "/etc/systemd/system/off.service"))
	require.NoError(t, m.FS.WriteFile(off("new.service"), nil, 0o644))
	require.Equal(t, []string{"file:" + off("old.service"), "file:" + off("new.service"), "file:/etc/new.conf", "enable:new.service", "activate:new.service"},
		applied(t, m, insteadOfOld()))
	tree := machinetest.Tree(t, root)
	assert.Contains(t, tree, wants+"new.service -> "+units+"new.service\n")
	assert.Contains(t, tree, "/etc/systemd/system/off.service -> /dev/null\n")
	assert.Contains(t, tree, wants+"old.service", "its links stay")
	assert.NotContains(t, tree, off("off.service"))
	assert.NotContains(t, tree, off("new.service"))
	assert.Equal(t, []string{"activate:new.service"}, applied(t, m, insteadOfOld()))

	early, _ := machinetest.NewImage(t)
	a := insteadOfOld()
	a.BeforeInstall = true
	assert.Equal(t, []string{"file:/etc/new.conf", "activate:new.service"}, applied(t, early, a), "first boot enables the unit")
}

func off(unit string) string { return "/etc/systemd/system/" + unit + ".d/zz-machineadm-off.conf" }

// applied makes the changes that are possible in an image, and returns the IDs of all.
func applied(t *testing.T, m sdk.Machine, a sdk.Activation) []string {
	t.Helper()
	changes, err := sdk.Activate(t.Context(), m, a)
	require.NoError(t, err)
	var ids []string
	for _, c := range changes {
		ids = append(ids, c.ID)
		if !c.NeedsLive {
			require.NoError(t, c.Do(t.Context(), &recorder{}))
		}
	}
	return ids
}

// TestActivationClaimsUnits: the claims conflict with the claims of a document that runs the replaced unit.
func TestActivationClaimsUnits(t *testing.T) {
	t.Parallel()
	unix(t)
	f := machinetest.New(t)
	f.Services.Put("new.service", running())
	old := running()
	old.ID = "old.service"
	f.Services.Put("alias.service", old)
	own := running()
	own.ID = "new.service"
	a := insteadOfOld()
	a.Conflicts = []string{"alias.service", "old.service", "own.service", "absent.service"}
	a.Seen = map[string]machine.ServiceState{"own.service": own, "old.service": old}
	_, err := sdk.Activate(t.Context(), f.Machine, a)
	require.NoError(t, err)
	var ids []string
	for _, c := range f.Claims() {
		if value := strings.Join(c.Value, " "); !strings.HasPrefix(c.ID, "file:/etc/new.conf") {
			ids = append(ids, c.ID+"="+value[:min(4, len(value))])
		}
	}
	assert.Equal(t, []string{
		"unit:new.service#running=true", "unit:new.service#enabled=true",
		"unit:old.service#running=fals",
		"file:" + off("old.service") + "=# ma",
	}, ids)

	f.Machine.Target.OS = "windows"
	_, err = sdk.Activate(t.Context(), f.Machine, a)
	wantCode(t, err, pluginv1.CodeUnsupported, "only systemd")
}
