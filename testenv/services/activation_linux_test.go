package services

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/testenv/nodes"
)

const units = "/usr/lib/systemd/system/"

// daemons are two of which the old one excludes the new one, each with an alias, as those that set the clock, and one that a
// distribution has other units want.
func daemons() map[string]string {
	const install = "[Install]\nWantedBy=multi-user.target\nAlias="
	return map[string]string{
		units + "old.service":                     "[Unit]\nConflicts=new.service\n[Service]\nExecStart=sleep infinity\n" + install + "old-alias.service\n",
		units + "new.service":                     "[Service]\nExecStart=sh -c 'grep good " + config + " && exec sleep infinity'\n" + install + "new-alias.service\n",
		units + "wanted.service":                  "[Service]\nExecStart=sleep infinity\n",
		units + "new@.service":                    "[Service]\nExecStart=sleep infinity\n",
		units + "lines.service":                   "[Service]\nExecStart=true\nEnvironment=\"A=1\\n\\nId=x.service\" B=2\n",
		units + "multi-user.target.d/wanted.conf": "[Unit]\nWants=wanted.service\n",
	}
}

func eachSuite(t *testing.T, test func(*testing.T, node)) {
	t.Helper()
	for _, suite := range nodes.Suites() {
		t.Run(string(suite), func(t *testing.T) {
			t.Parallel()
			test(t, boot(t, suite, daemons()))
		})
	}
}

// TestConflicts: exactly one of two daemons runs, whatever the result of the activation, and whatever starts the other one.
func TestConflicts(t *testing.T) {
	t.Parallel()
	eachSuite(t, func(t *testing.T, n node) {
		n.MustExec(t, "systemctl", "enable", "--now", "old.service")
		want := request{
			Unit: "new.service", Enable: true, Config: "bad\n",
			Conflicts: []string{"old.service", "old-alias.service", "new-alias.service", "absent.service"},
		}
		both := []string{"new.service", "old.service"}
		const configuration = "find /etc/systemd/system | sort"
		before := n.MustExec(t, "sh", "-c", configuration).Stdout

		a := n.do(t, want)
		assert.Equal(t, pluginv1.CodePrecondition, a.Code)
		assert.Contains(t, a.Error, "the old configuration was restored, and new.service does not run, as before, and old.service runs again")
		assert.Equal(t, "failed active", n.say(t, "is-active", both...))
		assert.Equal(t, before, n.MustExec(t, "sh", "-c", configuration).Stdout)

		want.Config = "good\n"
		a = n.do(t, want)
		require.Empty(t, a.Error)
		require.Len(t, a.Changes, 1)
		assert.Contains(t, a.Changes[0], "; stop old.service; keep old.service from starting; enable new.service")
		alone := func() {
			t.Helper()
			assert.Equal(t, "active inactive", n.say(t, "is-active", both...))
			assert.Equal(t, "enabled enabled", n.say(t, "is-enabled", both...))
			assert.Empty(t, n.do(t, want).Changes)
		}
		alone()
		n.MustExec(t, "systemctl", "preset-all")
		for _, start := range []string{"start", "enable --now", "restart"} {
			_, err := n.Exec(t.Context(), "sh", "-c", "systemctl "+start+" old.service")
			require.NoError(t, err)
			alone()
		}
		require.NoError(t, n.Reboot(t.Context()))
		alone()

		// A unit that others want, and a foreign mask.
		n.MustExec(t, "systemctl", "mask", "lines.service")
		want.Config, want.Conflicts = "good, and more\n", append(want.Conflicts, "wanted.service", "lines.service")
		require.Empty(t, n.do(t, want).Error)
		require.NoError(t, n.Reboot(t.Context()))
		alone()
		assert.Equal(t, "inactive masked", n.say(t, "is-active", "wanted.service")+" "+n.say(t, "is-enabled", "lines.service"))

		// Back again.
		back := request{Unit: "old-alias.service", Conflicts: []string{"new.service"}, Config: "good\n"}
		a = n.do(t, back)
		require.Empty(t, a.Error)
		require.Len(t, a.Changes, 1)
		assert.Contains(t, a.Changes[0], "; let old.service start again")
		assert.Equal(t, "inactive active", n.say(t, "is-active", both...))
		require.NoError(t, n.Reboot(t.Context()))
		assert.Equal(t, "inactive active", n.say(t, "is-active", both...))
		assert.Empty(t, n.do(t, back).Changes)
	})
}

// TestConflictsInAnImage: systemd itself interprets the links and drop-ins of an image.
func TestConflictsInAnImage(t *testing.T) {
	t.Parallel()
	n := boot(t, nodes.Bookworm, daemons())
	const image, off = "/srv/image", "/etc/systemd/system/old.service.d/zz-machineadm-off.conf"
	n.MustExec(t, "sh", "-c", "mkdir -p "+image+units+" && cp "+units+"old.service "+units+"new.service "+image+units+
		" && systemctl --root="+image+" enable old.service")
	want := request{Root: image, Unit: "new.service", Conflicts: []string{"old.service"}, Enable: true, Config: "good\n"}
	require.Equal(t, []string{"create " + off, "create " + config, "enable new.service", "run new.service with its configuration"},
		n.do(t, want).Changes)
	assert.Equal(t, "enabled enabled", n.say(t, "--root="+image, "is-enabled", "new.service", "old.service"))
	assert.Len(t, n.do(t, want).Changes, 1)
	n.MustExec(t, "sh", "-c", "cp -r "+image+"/etc/systemd/system/. /etc/systemd/system/ && echo good >"+config)
	require.NoError(t, n.Reboot(t.Context()))
	assert.Equal(t, "active inactive", n.say(t, "is-active", "new.service", "old.service"))
}
