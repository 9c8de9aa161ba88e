package linux

import (
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	needs "github.com/machineadm/machineadm/internal/require"
)

// TestUnitsAreOrderedBeforeNothing: a service that a plugin starts would wait for the unit, and the unit for it (SPEC O-25).
func TestUnitsAreOrderedBeforeNothing(t *testing.T) {
	t.Parallel()
	units, err := fs.Glob(Files, "system/*.service")
	require.NoError(t, err)
	require.Len(t, units, 2)
	for _, unit := range units {
		text, err := Files.ReadFile(unit)
		require.NoError(t, err)
		assert.Contains(t, string(text), "\nAfter=", unit)
		assert.NotRegexp(t, `(?m)^(Before|RequiredBy|UpheldBy)=`, string(text), unit)
	}
}

// TestShellcheck checks the scripts as POSIX sh.
func TestShellcheck(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("scripts/*")
	require.NoError(t, err)
	require.Len(t, scripts, 3)
	argv := append([]string{"--shell=sh", "--severity=warning"}, scripts...)
	out, err := exec.CommandContext(t.Context(), needs.Tool(t, "shellcheck"), argv...).CombinedOutput()
	assert.NoError(t, err, "%s", out)
}

// world runs a script with arguments in empty directories of the system. systemctl, which is called before the state is
// removed, says whether a run could start.
const world = `set -e
for dir in /etc /run /var/lib; do mount -t tmpfs none $dir; done
mkdir -p /run/systemd/system /run/machineadm /var/lib/machineadm /run/bin
: >/run/machineadm/lock
cat >/run/bin/systemctl <<-'EOF'
	#!/bin/sh
	case $* in
	*stop*) flock -n /run/machineadm/lock echo "a run can start" || echo "no run can start" ;;
	esac
EOF
chmod 755 /run/bin/systemctl
if [ "$1" = active ]; then
	exec 8</run/machineadm/lock
	flock 8
fi
shift
code=0
PATH=/run/bin:$PATH "$@" || code=$?
ls -d /run/machineadm /var/lib/machineadm 2>/dev/null || true
exit $code
`

// TestPurgeKeepsRunsOut: purge refuses while a run is active, and no run can start while it removes the state.
func TestPurgeKeepsRunsOut(t *testing.T) {
	t.Parallel()
	needs.Root(t)
	script, err := filepath.Abs("scripts/postremove.sh")
	require.NoError(t, err)
	unshare, busybox := needs.Tool(t, "unshare"), needs.Tool(t, "busybox")
	for _, shell := range []string{needs.Tool(t, "dash"), busybox + " sh"} {
		run := func(state, action string) (string, error) {
			argv := append([]string{"--mount", "/bin/sh", "-c", world, "sh", state}, strings.Fields(shell)...)
			out, err := exec.CommandContext(t.Context(), unshare, append(argv, script, action)...).CombinedOutput()
			return string(out), err
		}
		const kept = "/run/machineadm\n/var/lib/machineadm\n"
		out, err := run("idle", "purge")
		require.NoError(t, err, out)
		assert.Equal(t, "no run can start\n", out, path.Base(shell))
		out, err = run("active", "purge")
		require.Error(t, err, out)
		assert.Equal(t, "machineadm: a run is active and writes its state; wait until it has ended, then purge again\n"+kept, out)
		out, err = run("active", "remove")
		require.NoError(t, err, out)
		assert.Equal(t, kept, out)
	}
}
