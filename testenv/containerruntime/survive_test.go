package containerruntime

import (
	"strings"
	"testing"

	"github.com/machineadm/machineadm/testenv/containerd"
)

// TestContainersSurvive keeps a container running while its daemon is reconfigured and restarted.
func TestContainersSurvive(t *testing.T) {
	t.Parallel()
	for _, v := range []containerd.Version{containerd.V17, containerd.V23} {
		t.Run(string(v), func(t *testing.T) {
			t.Parallel()
			n := start(t, v)
			n.reset(t, nil)
			// A node may not limit the devices of containers of its own, so that runc runs none here. A substitute
			// starts a process and leaves it to the shim, as runc does.
			const script = `set -e
mkdir -p /srv/rootfs
cat >/usr/local/bin/bare <<'END'
#!/bin/bash
while [ $# -gt 0 ]; do
	case "$1" in
	create) command=create ;;
	ps) printf '[%s]' "$(cat /run/bare.pid)"; exit ;;
	--pid-file) file=$2; shift ;;
	esac
	shift
done
[ "$command" = create ] || exit 0
setsid sleep infinity >/dev/null 2>&1 </dev/null &
printf %s $! | tee "$file" >/run/bare.pid
END
chmod 755 /usr/local/bin/bare
ctr --namespace k8s.io run --runc-binary /usr/local/bin/bare --detach --rootfs /srv/rootfs survivor /none
ctr --namespace k8s.io task list | grep survivor`
			r := n.Bash(t, script)
			if r.ExitCode != 0 {
				t.Fatalf("start a container: %s%s", r.Stdout, r.Stderr)
			}
			before, invocation := r.Stdout, n.invocation(t)
			n.apply(t, strings.Replace(small, "  snapshotter: native\n", "", 1))
			if n.invocation(t) == invocation {
				t.Fatal("the daemon was not restarted")
			}
			after := n.Bash(t, "ctr --namespace k8s.io task list | grep survivor; kill -0 $(ctr --namespace k8s.io task list | awk '/survivor/{print $2}')")
			if after.Stdout != before || after.ExitCode != 0 || !strings.Contains(before, "RUNNING") {
				t.Errorf("before %q, after %q%s", before, after.Stdout, after.Stderr)
			}
		})
	}
}
