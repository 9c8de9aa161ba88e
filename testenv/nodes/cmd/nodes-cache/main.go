// Command nodes-cache builds the root file systems that tests boot, so that a test run does not have to wait for them.
// With -vm it builds those of virtual machines, which have a kernel. It needs root, Debian, mmdebstrap and the Debian mirror of the machine. What is already built is left alone.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync"

	"github.com/machineadm/machineadm/testenv/nodes"
)

func main() {
	vm := flag.Bool("vm", false, "build those of virtual machines")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *vm); err != nil {
		fmt.Fprintln(os.Stderr, "nodes-cache:", err)
		os.Exit(1) //nolint:gocritic // stop only puts the signal handler back
	}
}

func run(ctx context.Context, vm bool) error {
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
	suites := nodes.Suites()
	if !vm {
		suites = append(suites, nodes.Noble)
	}
	// Most of a build waits for the mirror.
	var builds sync.WaitGroup
	failures := make([]error, len(suites))
	for i, suite := range suites {
		builds.Go(func() { failures[i] = one(ctx, nodes.Options{Suite: suite, VM: vm}) })
	}
	builds.Wait()
	return errors.Join(failures...)
}

func one(ctx context.Context, o nodes.Options) error {
	built := false
	logf := func(format string, args ...any) {
		built = true
		fmt.Printf(format+"\n", args...)
	}
	if err := nodes.BuildCache(ctx, o, logf); err != nil {
		return err
	}
	if !built {
		fmt.Printf("%s: cached\n", o.Suite)
	}
	return nil
}
