package nodes

import (
	"context"
	"fmt"
	"testing"

	"github.com/machineadm/machineadm/internal/require"
)

func prerequisites(t testing.TB) {
	t.Helper()
	require.Root(t)
	require.Tool(t, "systemd-nspawn")
	require.Tool(t, "nsenter")
}

// newNode names a node and finds what it is made of. Nothing but its directory exists before assemble is called, so
// that everything else is made under the protection of the test's cleanup.
func newNode(t testing.TB, o Options) (n *Node, assemble func() error, err error) {
	t.Helper()
	ctx := t.Context()
	store, err := openCache()
	if err != nil {
		return nil, nil, err
	}
	if err := store.sweep(ctx); err != nil {
		return nil, nil, fmt.Errorf("sweep what an earlier run left: %w", err)
	}
	if !store.has(o.Suite, o.Layers) {
		require.Tool(t, "mmdebstrap")
	}
	lowers, err := store.system(ctx, o.Suite, o.Layers, t.Logf)
	if err != nil {
		return nil, nil, err
	}
	inst, err := store.newInstance()
	if err != nil {
		return nil, nil, err
	}
	machine := &nspawn{inst: inst, hostname: o.Hostname}
	assemble = func() error { return machine.assemble(lowers, o.Prepare) }
	return &Node{machine: machine, inst: inst, opts: o, tb: t}, assemble, nil
}

// BuildCache makes sure that the base system of the suite and the layers are in the cache. logf gets one line for each
// thing that had to be built.
func BuildCache(ctx context.Context, suite Suite, layers []Layer, logf func(format string, args ...any)) error {
	o, err := Options{Suite: suite, Layers: layers}.checked()
	if err != nil {
		return err
	}
	store, err := openCache()
	if err != nil {
		return err
	}
	_, err = store.system(ctx, o.Suite, o.Layers, logf)
	return err
}
