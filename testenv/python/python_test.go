// Package python shows that a plugin needs no Go: a vendor's plugin in Python, written from contract/SPEC.md and
// plugin.proto alone and with Debian's packages only, passes the conformance kit and runs in the host.
//
// All of it happens in nodes: the machine that runs the tests needs no Python.
package python

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/machineadm/machineadm/testenv/foreign"
	"github.com/machineadm/machineadm/testenv/nodes"
)

const (
	plugin  = "machineadm-apt-repository-plugin-deb822"
	libexec = "/usr/libexec/machineadm/"
	source  = "/usr/src/machineadm-apt-repository"
	proto   = "../../contract/pluginv1/pb/plugin.proto"
)

// programs are built by TestMain; a test binary has no other way to pass something to its tests.
var programs foreign.Programs

func TestMain(m *testing.M) { os.Exit(foreign.Main(m, &programs)) }

// boot boots a node in which the plugin is installed by its own build.
func boot(t *testing.T, suite nodes.Suite, stream string) *foreign.Node {
	t.Helper()
	p := foreign.Plugin{
		Programs: &programs,
		Path:     libexec + plugin,
		Cases:    "testdata/conformance",
		Layer:    nodes.PythonGRPC,
		Install: func(root string) error {
			return errors.Join(
				foreign.Copy("plugin", filepath.Join(root, source)),
				foreign.Copy(filepath.Dir(proto), filepath.Join(root, source, "published")),
			)
		},
	}
	n := p.Boot(t, suite, stream, canary)
	n.MustExec(t, source+"/install.sh", source+"/published/plugin.proto")
	return n
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for _, suite := range nodes.Suites() { // each has another gRPC
		t.Run(string(suite), func(t *testing.T) {
			t.Parallel()
			boot(t, suite, "").Conforms(t)
		})
	}
}
