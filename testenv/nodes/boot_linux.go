package nodes

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/machineadm/machineadm/internal/require"
)

func prerequisites(t testing.TB, o Options) {
	t.Helper()
	if o.VM {
		require.Tier(t, require.VM)
	} else {
		require.Tier(t, require.System)
	}
	require.Root(t)
	if !o.VM {
		require.Tool(t, "systemd-nspawn")
		require.Tool(t, "nsenter")
		return
	}
	if runtime.GOARCH != "amd64" {
		require.Missing(t, "virtual machines need amd64, this is "+runtime.GOARCH)
	}
	for _, program := range []string{qemuProgram, "mke2fs", "go"} {
		require.Tool(t, program)
	}
}

// newNode names a node and finds its parts. Only its directory exists before assemble is called, so that the test's
// cleanup covers everything else.
func newNode(t testing.TB, o Options) (n *Node, assemble func() error, err error) {
	t.Helper()
	ctx := t.Context()
	store, err := openCache()
	if err != nil {
		return nil, nil, err
	}
	if err := store.cleanUp(ctx); err != nil {
		return nil, nil, fmt.Errorf("clean up after an earlier run: %w", err)
	}
	if !store.has(o) {
		require.Tool(t, "mmdebstrap")
	}
	lowers, err := store.system(ctx, o, t.Logf)
	if err != nil {
		return nil, nil, err
	}
	inst, err := store.newInstance()
	if err != nil {
		return nil, nil, err
	}
	n = &Node{inst: inst, opts: o, tb: t}
	if o.VM {
		machine := &qemu{inst: inst, hostname: o.Hostname, clock: o.Clock}
		n.machine = machine
		return n, func() error { return machine.assemble(ctx, lowers, o.Prepare) }, nil
	}
	machine := &nspawn{
		inst: inst, hostname: o.Hostname, timeDaemon: o.TimeDaemon, init: o.Init, limits: o.Limits,
		link: connection{network: o.Network, name: o.Hostname},
	}
	n.machine = machine
	prepare := o.Prepare
	if o.Init != "" {
		prepare = InOrder(o.Init.markBoot, prepare)
	}
	return n, func() error { return machine.assemble(lowers, prepare) }, nil
}

// BuildCache builds the parts of a node with these options that are not in the cache. Only Suite, Layers,
// Script, VM and Init count. logf gets a line when a build begins and one, with its duration, when it is done.
func BuildCache(ctx context.Context, o Options, logf func(format string, args ...any)) error {
	o, err := o.checked()
	if err != nil {
		return err
	}
	store, err := openCache()
	if err != nil {
		return err
	}
	_, err = store.system(ctx, o, logf)
	return err
}
