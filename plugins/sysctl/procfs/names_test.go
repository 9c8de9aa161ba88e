package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/sdk/machine"
)

// TestNames: a plan warns of a name that neither the kernel nor a module of the machine has, and is silent about each of the others.
func TestNames(t *testing.T) {
	t.Parallel()
	for spec, warned := range map[string]bool{
		`{"parameters":{"net.ipv4.tcp_congestion_control":"dctcp"}}`:                       true,
		`{"parameters":{"net.ipv4.tcp_congestion_control":"dctcp"},"modules":["tcp_bbr"]}`: true,
		`{"parameters":{"net.ipv4.tcp_congestion_control":"bbr"}}`:                         false, // a module that can be loaded
		`{"parameters":{"net.ipv4.tcp_congestion_control":"htcp"}}`:                        false, // which the kernel has
		`{"parameters":{"net.ipv4.tcp_congestion_control":"cubic"}}`:                       false, // which is in force
		`{"parameters":{"net.core.default_qdisc":"cake"}}`:                                 true,
		`{"parameters":{"net.core.default_qdisc":"fq"}}`:                                   false, // a module that is built in
		`{"parameters":{"net.core.default_qdisc":"pfifo_fast"}}`:                           false,
		`{"parameters":{"kernel.panic":7}}`:                                                false,
	} {
		f := newFixture(t, nil)
		f.kernel.Parameters["net/ipv4/tcp_congestion_control"] = "cubic"
		f.kernel.Parameters["net/ipv4/tcp_available_congestion_control"] = "reno cubic htcp"
		f.kernel.Parameters["net/core/default_qdisc"] = "fq_codel"
		f.kernel.Modules = map[string]machine.ModuleState{"tcp_bbr": machine.ModuleLoadable, "sch_fq": machine.ModuleBuiltIn}
		got, err := plan(t.Context(), f.machine, sysctl(t, spec))
		require.NoError(t, err, spec)
		text := ""
		for _, w := range got.Warnings {
			text += w.Message + "\n"
		}
		assert.Equal(t, warned, strings.Contains(text, "is installed for it"), "%s\n%s", spec, text)
	}
}
