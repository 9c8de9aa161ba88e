package packages

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/testenv/nodes"
)

// TestLabels asks Debian's SELinux policy for the types of our paths, which docs/installing.md lists. Nothing is enforced here.
func TestLabels(t *testing.T) {
	t.Parallel()
	n := node{nodes.Boot(t, nodes.Options{
		Suite: nodes.Bookworm, Layers: []nodes.Layer{nodes.SELinux},
	})}
	for path, want := range map[string]string{
		"/usr/bin/machineadm":                               "bin_t",
		libexec + plugin:                                    "bin_t",
		"/usr/local/libexec/machineadm/" + plugin:           "usr_t",
		"/opt/machineadm/bin/machineadm":                    "bin_t",
		"/opt/machineadm/plugins/" + plugin:                 "usr_t",
		"/usr/lib/systemd/system/machineadm-resume.service": "systemd_unit_t",
		stateDir + "/choices.json":                          "var_lib_t",
		"/etc/machineadm/node.yaml":                         "etc_t",
	} {
		assert.Contains(t, n.sh(t, "matchpathcon -n -m file -f /etc/selinux/default/contexts/files/file_contexts "+path), ":"+want+":", path)
	}
}
