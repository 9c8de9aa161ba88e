// Package ready finds out, before kubeadm runs, what of the machine would make it fail, all of it together.
package ready

import (
	"context"
	"errors"
	"io/fs"
	"net/netip"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/release"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/settings"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// Check returns the version of the installed kubeadm, or a Precondition with all that is missing. With fresh the machine has
// nothing of an earlier run, so that nothing may use the ports of Kubernetes.
func Check(ctx context.Context, m sdk.Machine, s settings.Settings, fresh bool) (release.Version, error) {
	c := &checker{m: m, s: s}
	kubeadm, err := c.programs(ctx)
	checks := []func(context.Context) error{c.service, c.hostName}
	if !s.Windows {
		checks = append(checks, c.runtime, c.swap, c.forwarding)
	}
	if fresh && !s.Windows {
		checks = append(checks, c.ports)
	}
	for _, check := range checks {
		if err == nil {
			err = check(ctx)
		}
	}
	if err == nil && len(c.missing) > 0 {
		err = sdk.Preconditions(c.missing...)
	}
	return kubeadm, err
}

// programs checks that the programs are there, and that their versions suit the control plane.
func (c *checker) programs(ctx context.Context) (release.Version, error) {
	kubeadm, found, err := c.version(ctx, "kubeadm", "version", "--output", "short")
	if err != nil {
		return kubeadm, err
	}
	kubelet, ok, err := c.version(ctx, "kubelet", "--version")
	if err == nil && found && ok {
		c.missing = append(c.missing, release.Check(c.s.Version, kubeadm, kubelet)...)
	}
	return kubeadm, err
}

// version asks a program for its version; ok is false when it is missing, which is recorded.
func (c *checker) version(ctx context.Context, name string, args ...string) (v release.Version, ok bool, err error) {
	if _, err := c.m.Commands.Find(name); errors.Is(err, fs.ErrNotExist) {
		c.miss("", "the program "+name+" is not installed", "install "+name+" of the minor version of spec.kubernetesVersion"+runAgain)
		return v, false, nil
	}
	result, err := c.m.Commands.Run(ctx, machine.Command{Name: name, Args: args})
	if err != nil {
		return v, false, err
	}
	words := strings.Fields(string(result.Stdout)) // "v1.37.1", or "Kubernetes v1.37.1"
	if len(words) > 0 {
		v, err = release.Parse(words[len(words)-1])
	}
	if len(words) == 0 || err != nil {
		return v, false, sdk.WithDetail(sdk.Precondition(name+" does not report a version of Kubernetes",
			"install a release of "+name+runAgain), string(result.Stdout))
	}
	return v, true, nil
}

// service checks the unit of the kubelet. Without it kubeadm waits for the kubelet in vain.
func (c *checker) service(ctx context.Context) error {
	state, err := c.m.Services.State(ctx, "kubelet")
	switch {
	case err != nil:
		return err
	case !state.Exists:
		c.miss("", "the service kubelet is not installed",
			"install the package of the kubelet, or its unit and the drop-in 10-kubeadm.conf"+runAgain)
	case state.Masked:
		c.miss("", "the service kubelet is masked: it cannot be started", "find out why, then: systemctl unmask kubelet")
	}
	return nil
}

// hostName checks that the node has the name of the host, if a profile demands it: otherwise kubeadm overrides the host name.
func (c *checker) hostName(context.Context) error {
	if c.s.WithHostName() && !strings.EqualFold(c.m.Target.Hostname, c.s.NodeName) {
		c.miss("spec.node.name", "a profile demands that the node has the host name of the machine, and it has another one",
			"set the host name before this document, or remove spec.node.name or the profile")
	}
	return nil
}

// forwarding checks the parameter without which no pod reaches another node.
func (c *checker) forwarding(context.Context) error {
	value, err := c.m.Kernel.Parameter("net/ipv4/ip_forward")
	ipv6 := len(c.s.NodeIPs) > 0 && !slices.ContainsFunc(c.s.NodeIPs, netip.Addr.Is4)
	if err == nil && strings.TrimSpace(value) != "1" && !ipv6 && !c.ignored("FileContent--proc-sys-net-ipv4-ip_forward") {
		c.miss("", "net.ipv4.ip_forward is not 1: the machine forwards no packets of pods",
			"put a Sysctl document with net.ipv4.ip_forward: 1 before this one")
	}
	return err
}

// swap checks that the kubelet, which kubeadm waits for, starts with the swap space of the machine.
func (c *checker) swap(context.Context) error {
	tolerated := c.s.Kubelet["failSwapOn"] == false ||
		slices.Contains(c.s.Spec.Node.KubeletArgs, v1alpha1.Argument{Name: "fail-swap-on", Value: "false"})
	text, err := c.m.FS.ReadFile("/proc/swaps")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if strings.Count(strings.TrimSpace(string(text)), "\n") > 0 && !tolerated && !c.ignored("Swap") { // a heading, then the swap spaces
		c.miss("", "swap is on, with which the kubelet does not start",
			"swapoff -a and remove it from /etc/fstab; or set failSwapOn: false in spec.kubelet.config; then run again")
	}
	return err
}
