package services

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/testenv/nodes"
)

const units = "/usr/lib/systemd/system/"

// daemons are two that exclude each other, each with an alias, as those that set the clock, and one that a distribution has
// other units want.
func daemons() map[string]string {
	const install = "[Install]\nWantedBy=multi-user.target\nAlias="
	return map[string]string{
		units + "old.service":                     "[Service]\nExecStart=sleep infinity\n" + install + "old-alias.service\n",
		units + "new.service":                     "[Unit]\nConflicts=old.service\n[Service]\nExecStart=sh -c 'grep good " + config + " && exec sleep infinity'\n" + install + "new-alias.service\n",
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

// TestInstead: exactly one of two daemons runs and starts at boot, whatever the result of the activation.
func TestInstead(t *testing.T) {
	t.Parallel()
	eachSuite(t, func(t *testing.T, n node) {
		n.MustExec(t, "systemctl", "enable", "--now", "old.service")
		want := request{
			Unit: "new.service", Enable: true, Config: "bad\n",
			Instead: []string{"old.service", "old-alias.service", "new-alias.service", "absent.service"},
		}
		both := []string{"new.service", "old.service"}
		links := "find /etc/systemd/system -type l | sort"
		before := n.MustExec(t, "sh", "-c", links).Stdout

		a := n.do(t, want)
		assert.Equal(t, pluginv1.CodePrecondition, a.Code)
		assert.Contains(t, a.Error, "the old configuration was restored, and new.service does not run, as before, and old.service runs again")
		assert.Equal(t, "failed active", n.say(t, "is-active", both...))
		assert.Equal(t, before, n.MustExec(t, "sh", "-c", links).Stdout)

		want.Config = "good\n"
		a = n.do(t, want)
		require.Empty(t, a.Error)
		require.Len(t, a.Changes, 1)
		assert.Contains(t, a.Changes[0], "; stop and disable old.service; enable new.service")
		assert.Equal(t, "active inactive", n.say(t, "is-active", both...))
		assert.Equal(t, "enabled disabled", n.say(t, "is-enabled", both...))
		assert.Empty(t, n.do(t, want).Changes)
		require.NoError(t, n.Reboot(t.Context()))
		assert.Equal(t, "active inactive", n.say(t, "is-active", both...))
		assert.Empty(t, n.do(t, want).Changes)

		want.Config, want.Instead = "good, and more\n", []string{"wanted.service"}
		a = n.do(t, want)
		assert.Contains(t, a.Error, "wanted.service starts at boot though it is disabled: another unit wants it")
		assert.Contains(t, a.Error, "new.service was not restarted, and wanted.service runs again")
		assert.Contains(t, a.Hint, "systemctl mask wanted.service")
		assert.Equal(t, "active active", n.say(t, "is-active", "new.service", "wanted.service"))
	})
}

// TestInsteadInAnImage: systemd itself interprets the links of an image.
func TestInsteadInAnImage(t *testing.T) {
	t.Parallel()
	n := boot(t, nodes.Bookworm, daemons())
	const image = "/srv/image"
	n.MustExec(t, "sh", "-c", "mkdir -p "+image+units+" && cp "+units+"old.service "+units+"new.service "+image+units+
		" && systemctl --root="+image+" enable old.service")
	want := request{Root: image, Unit: "new.service", Instead: []string{"old.service"}, Enable: true, Config: "good\n"}
	require.Equal(t, []string{"disable old.service", "create " + config, "enable new.service", "run new.service with its configuration"},
		n.do(t, want).Changes)
	assert.Equal(t, "enabled disabled", n.say(t, "--root="+image, "is-enabled", "new.service", "old.service"))
	assert.Len(t, n.do(t, want).Changes, 1)
}
