package nodes_test

import (
	"strings"
	"testing"

	"github.com/machineadm/machineadm/testenv/nodes"
)

// Two layers, the second on the first: its package database lists both. A third runs a program of the first, without a network.
func TestLayers(t *testing.T) {
	t.Parallel()
	const script = "hello >/made; grep -c : /proc/net/dev >>/made"
	for _, suite := range nodes.Suites() {
		t.Run(string(suite), func(t *testing.T) {
			t.Parallel()
			n := nodes.Boot(t, nodes.Options{Suite: suite, Layers: []nodes.Layer{nodes.Hello, nodes.Tree}, Script: script})
			if got := n.MustExec(t, "hello").Stdout; got != "Hello, world!\n" {
				t.Errorf("hello says %q", got)
			}
			n.MustExec(t, "tree", "--version")
			if got := n.MustExec(t, "cat", "/made").Stdout; got != "Hello, world!\n1\n" { // and its loopback device
				t.Errorf("the script's file: %q", got)
			}
			got := n.MustExec(t, "dpkg-query", "--show", "--showformat", "${Package} ${db:Status-Status}\n", "hello", "tree", "cloud-init").Stdout
			if want := "cloud-init installed\nhello installed\ntree installed\n"; got != want {
				t.Errorf("package database: %q, want %q", got, want)
			}
			left := n.MustExec(t, "sh", "-c", "ls /etc/resolv.conf /usr/sbin/policy-rc.d /etc/apt/sources.list /var/cache/apt/archives/*.deb 2>/dev/null; ls -A /var/lib/apt/lists")
			if got := strings.TrimSpace(left.Stdout); got != "" {
				t.Errorf("left of the build: %q", got)
			}
		})
	}
}
