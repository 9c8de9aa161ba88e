// Command nodes-cache builds the root file systems that tests boot, so that a test run does not have to wait for them. With -layers it
// builds every system of nodes.Stacks for containers, with -vm every one for virtual machines.
// It needs root, Debian, mmdebstrap and the Debian mirror of the machine. What is already built is left alone.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync"

	"github.com/machineadm/machineadm/testenv/nodes"
)

func main() {
	layers := flag.Bool("layers", false, "build the systems with layers of packages")
	vm := flag.Bool("vm", false, "build the systems of virtual machines")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *layers, *vm); err != nil {
		fmt.Fprintln(os.Stderr, "nodes-cache:", err)
		os.Exit(1) //nolint:gocritic // stop only puts the signal handler back
	}
}

func run(ctx context.Context, layers, vm bool) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("building a root file system needs root (on Debian); run it as root, or leave out the tests on nodes")
	}
	tools := map[string]string{"mmdebstrap": "mmdebstrap"}
	if vm {
		tools["qemu-system-x86_64"] = "qemu-system-x86"
	} else {
		tools["systemd-nspawn"] = "systemd-container"
	}
	for tool, pkg := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%s is missing; install it: apt-get install --no-install-recommends %s", tool, pkg)
		}
	}
	if layers || vm {
		// Systems that share layers wait for each other, so that each layer is built once.
		return build(ctx, 2, slices.DeleteFunc(nodes.Stacks(), func(o nodes.Options) bool { return o.VM != vm }))
	}
	var bases []nodes.Options
	for _, suite := range append(nodes.Suites(), nodes.Noble) {
		bases = append(bases, nodes.Options{Suite: suite})
	}
	return build(ctx, len(bases), bases)
}

// build builds so many systems at once, because most of a build waits for the mirror.
func build(ctx context.Context, atOnce int, systems []nodes.Options) error {
	var builds sync.WaitGroup
	slots, failures := make(chan struct{}, atOnce), make([]error, len(systems))
	for i, system := range systems {
		slots <- struct{}{}
		builds.Go(func() {
			defer func() { <-slots }()
			failures[i] = nodes.BuildCache(ctx, system, func(format string, args ...any) { fmt.Printf(format+"\n", args...) })
		})
	}
	builds.Wait()
	if err := errors.Join(failures...); err != nil {
		return err
	}
	fmt.Printf("%d systems of nodes are in the cache\n", len(systems))
	return nil
}
