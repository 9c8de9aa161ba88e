package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// TestClaims: a claim for each key in its canonical spelling, each module and each file, also when planning fails.
func TestClaims(t *testing.T) {
	t.Parallel()
	target := machinetest.New(t)
	target.Machine.Kernel = newKernel()
	spec := `{"parameters":{"net/ipv4/conf/eth0.100/rp_filter":"1","kernel.nosuch":" 1\t2 "}}`
	_, err := plan(t.Context(), target.Machine, sysctl(t, spec))
	require.Error(t, err)
	claims := map[string]machine.Claim{}
	for _, c := range target.Claims() {
		claims[c.ID] = c
	}
	assert.Equal(t, machine.Claim{
		ID: "sysctl:kernel.nosuch", Field: `spec.parameters["kernel.nosuch"]`, Value: []string{"1 2"},
	}, claims["sysctl:kernel.nosuch"])
	assert.Equal(t, machine.Claim{
		ID: "sysctl:net.ipv4.conf.eth0/100.rp_filter", Field: `spec.parameters["net/ipv4/conf/eth0.100/rp_filter"]`, Value: []string{"1"},
	}, claims["sysctl:net.ipv4.conf.eth0/100.rp_filter"])

	target = machinetest.New(t)
	kernel := newKernel()
	kernel.Modules["br_netfilter"] = machine.ModuleLoaded
	target.Machine.Kernel = kernel
	_, err = plan(t.Context(), target.Machine, sysctl(t, `{"modules":["br-netfilter"],"parameters":{"kernel.panic":0}}`))
	require.NoError(t, err)
	var ids []string
	for _, c := range target.Claims() {
		ids = append(ids, c.ID)
	}
	assert.ElementsMatch(t, []string{"sysctl:kernel.panic", "module:br_netfilter", "file:" + ownSysctl + "#node", "file:" + ownModules + "#node"}, ids)
}

// TestValidateReportsEveryViolation of all fields at once.
func TestValidateReportsEveryViolation(t *testing.T) {
	t.Parallel()
	doc := sysctl(t, `{"modules":["a b"],"ignoreMissing":["y"],"parameters":{"kernel":1}}`)
	var fields []string
	for _, v := range validate(doc) {
		fields = append(fields, v.Field)
	}
	assert.Equal(t, []string{"spec.parameters.kernel", "spec.modules[0]", "spec.ignoreMissing[0]"}, fields)
}
