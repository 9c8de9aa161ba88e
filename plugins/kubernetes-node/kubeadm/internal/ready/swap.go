package ready

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/machineadm/machineadm/internal/lazyregexp"
)

// extraArgument is in KUBELET_EXTRA_ARGS, the end of the command line. Source: the drop-in 10-kubeadm.conf of the packages of Kubernetes.
var extraArgument = lazyregexp.New(`(?m)^[^#\n]*--fail-swap-on=(true|false)\b`)

// swap checks that the kubelet, which kubeadm waits for, starts with the swap space of the machine. kubeadm only warns.
func (c *checker) swap(ctx context.Context) error {
	text, err := c.m.FS.ReadFile("/proc/swaps")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || strings.Count(strings.TrimSpace(string(text)), "\n") == 0 || c.s.Spec.Node.Swap == "off" { // a heading, then the swap spaces
		return err
	}
	fails := c.s.FailSwapOn()
	state, err := c.m.Services.State(ctx, "kubelet")
	extra := strings.Join(state.Environment, "\n")
	for _, name := range variablesOfKubelet() {
		text, readErr := c.m.FS.ReadFile(name)
		if readErr != nil && !errors.Is(readErr, fs.ErrNotExist) {
			err = errors.Join(err, readErr)
		}
		extra += "\n" + string(text)
	}
	for _, found := range extraArgument().FindAllStringSubmatch(extra, -1) {
		fail := found[1] != "false"
		fails = &fail
	}
	const doesNotStart = "swap is on, and with failSwapOn: true, its default, the kubelet does not start"
	const remedy = "set spec.node.swap: off; or failSwapOn: false in spec.kubelet.config"
	switch {
	case err != nil:
		return err
	case fails == nil && c.s.Spec.Node.Swap == "" && !c.s.Ignores("Swap"):
		c.warn("spec.node.swap", "swap is on, with which the kubelet starts only if the cluster has failSwapOn: false for it, which a plan cannot know: "+
			remedy+"; or, if the cluster has it, spec.node.swap: keep")
	case fails != nil && *fails && c.s.Ignores("Swap"): // the kubelet does not read what kubeadm ignores
		c.warn("spec.ignorePreflightErrors", doesNotStart+": "+remedy)
	case fails != nil && *fails:
		c.miss("spec.node.swap", doesNotStart, remedy+runAgain)
	}
	return nil
}
