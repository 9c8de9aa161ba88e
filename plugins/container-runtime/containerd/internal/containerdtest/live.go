package containerdtest

import (
	"strings"
	"testing"

	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// Live is a machine whose unit runs.
func Live(t *testing.T, argv, version string) *machinetest.Fixture {
	t.Helper()
	f := machinetest.New(t)
	f.Services.Put("containerd", machine.ServiceState{
		Active: "active", Sub: "running", InvocationID: "1",
		Command: strings.Fields(argv), Environment: []string{"CONTAINERD_CONFIG=/etc/c.toml", "TWO=a b"},
	})
	f.Commands.On("containerd --version", machine.Result{Stdout: []byte("containerd github.com/containerd/containerd " + version + " 88bf19b2\n")})
	return f
}
