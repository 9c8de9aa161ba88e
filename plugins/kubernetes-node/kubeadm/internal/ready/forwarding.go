package ready

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/settings"
)

// routing is what a family of addresses needs to forward packets, and the check of kubeadm that reads it.
type routing struct {
	family     string
	parameters []string
	check      string
	hint       string
}

func routingOf(family string) routing {
	if family == "IPv4" {
		return routing{
			family,
			[]string{"net/ipv4/ip_forward"},
			settings.CheckForwarding,
			"put a Sysctl document with the profile kubernetes before this one",
		}
	}
	// The kernel forwards by conf/all, and kubeadm reads conf/default.
	return routing{
		family,
		[]string{"net/ipv6/conf/all/forwarding", "net/ipv6/conf/default/forwarding"},
		settings.CheckForwarding6,
		"put a Sysctl document with the profile kubernetes-ipv6 before this one; an interface NAME with its route from router advertisements needs " +
			"net.ipv6.conf.NAME.accept_ra: 2 as well",
	}
}

// forwarding checks the parameters without which no pod reaches another node, for each family of the cluster; for one of the two where
// that is not known.
func (c *checker) forwarding(context.Context) error {
	known := c.s.Families()
	if known == nil {
		off, err := c.off(routingOf("IPv6"))
		if err != nil || off == "" {
			return err
		}
		known = []string{"IPv4"}
	}
	for _, family := range known {
		r := routingOf(family)
		off, err := c.off(r)
		if err != nil {
			return err
		}
		if off != "" && !c.s.Ignores(r.check) {
			c.need("sysctl:"+off, "", off+" is not 1: the machine forwards no "+family+" packets of pods", r.hint)
		}
	}
	return nil
}

// off returns the first parameter that is not 1. A kernel without the family has none.
func (c *checker) off(r routing) (string, error) {
	for _, parameter := range r.parameters {
		value, err := c.m.Kernel.Parameter(parameter)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if strings.TrimSpace(value) != "1" {
			return strings.ReplaceAll(parameter, "/", "."), nil
		}
	}
	return "", nil
}
