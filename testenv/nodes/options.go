package nodes

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/machineadm/machineadm/internal/require"
)

// Suite is the code name of a release of Debian or Ubuntu.
type Suite string

const (
	// Bookworm is Debian 12: systemd 252, cloud-init 22.4.
	Bookworm Suite = "bookworm"
	// Trixie is Debian 13: systemd 257, cloud-init 25.1.
	Trixie Suite = "trixie"
	// Noble is Ubuntu 24.04: systemd 255, cloud-init 24.1 or later. It boots as a container without layers.
	Noble Suite = "noble"
)

// Suites lists the releases of Debian, oldest first.
func Suites() []Suite { return []Suite{Bookworm, Trixie} }

// Init is an init system other than systemd, by the name that target.Detect has for it.
type Init string

const (
	// OpenRC is openrc-init of Debian's package openrc.
	OpenRC Init = "openrc"
	// Runit is runit as Debian's package runit-init starts it: it runs the SysV scripts, then supervises the services of /etc/service.
	Runit Init = "runit"
)

// Options says what to boot. The zero value of every field but Suite is a usable default.
type Options struct {
	Suite Suite
	// VM boots a virtual machine instead of a container, see the package comment. It takes much longer.
	VM bool
	// Layers are stacked in this order; a later one may depend on packages of an earlier one. See Stacks.
	Layers []Layer
	// Script is of sh. What it makes of the layers is one more, which is built once as well. It runs as root of the system, without a
	// network and without the system's services.
	Script string
	// Prepare edits the node's own files before the first boot. root is the node's root directory; what is
	// written stays in this node. Links inside root are the node's: do not follow absolute ones.
	Prepare func(root string) error
	// Hostname is "node" when empty.
	Hostname string
	// Network connects a container with the others of its test; Hostname is one of its names. A virtual machine has no
	// network, and without this option a container has none either.
	Network *Network
	// Clock is how far off the clock of a virtual machine is at each power-on. A container's clock is the machine's.
	Clock time.Duration
	// TimeDaemon gives the services of a container CAP_SYS_TIME, without which time daemons refuse to run, and refuses every
	// system call that reads or sets the clock's state with EPERM, because the clock is the machine's. Exec has neither.
	TimeDaemon bool
	// Limits gives a Bookworm container the memory, CPU and pids limits of control groups, which containers in it need too.
	// They are of version 1, with which later releases do not boot.
	Limits bool
	// Init is PID 1 of a container instead of systemd. Node.Reboot and Node.Stop need systemd; a node that reboots itself is started again
	// by Settle.
	Init Init
	// BootTimeout bounds one boot and one orderly shutdown, each; 4 minutes when zero, for a virtual machine 5 minutes,
	// both multiplied by require.Timeout.
	BootTimeout time.Duration
	// NoWait makes Boot return as soon as PID 1 runs, for tests that act during the boot.
	NoWait bool
}

const (
	// defaultBootTimeout includes cloud-init and the reboots of a run, while several nodes boot beside each other.
	defaultBootTimeout   = 4 * time.Minute
	defaultVMBootTimeout = 5 * time.Minute
)

func (o Options) checked() (Options, error) {
	if all := append(Suites(), Noble); !slices.Contains(all, o.Suite) {
		return o, fmt.Errorf("suite %q is none of %v", o.Suite, all)
	}
	if o.Hostname == "" {
		o.Hostname = "node"
	}
	switch {
	case o.Suite == Noble && (o.VM || o.Init != "" || len(o.Layers) > 0):
		return o, errors.New("virtual machines, other init systems and layers are of Debian's packages: Noble has its base system alone")
	case o.VM && o.Network != nil:
		return o, errors.New("a virtual machine has no network")
	case o.VM && o.TimeDaemon:
		return o, errors.New("a virtual machine has a clock of its own: TimeDaemon is for containers")
	case !o.VM && o.Clock != 0:
		return o, errors.New("only a virtual machine can have another clock")
	case o.Limits && (o.VM || o.Init != "" || o.Suite != Bookworm):
		return o, errors.New("limits are for containers of Bookworm with systemd: a virtual machine has its own")
	case o.VM && o.Init != "":
		return o, errors.New("a virtual machine boots systemd")
	case o.Network != nil:
		if _, err := o.Network.member(o.Hostname); err != nil {
			return o, err
		}
		o.Prepare = InOrder(o.Network.hosts, o.Prepare)
	}
	if !o.listed() {
		return o, fmt.Errorf("the layers %q on %s are not in Stacks of testenv/nodes/layers.go, whose layers are built before the tests: add them", o.stack(), o.Suite)
	}
	switch {
	case o.BootTimeout != 0:
	case o.VM:
		o.BootTimeout = require.Timeout(defaultVMBootTimeout)
	default:
		o.BootTimeout = require.Timeout(defaultBootTimeout)
	}
	return o, nil
}
