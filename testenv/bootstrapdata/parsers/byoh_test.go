package parsers

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vmware-tanzu/cluster-api-provider-bringyourownhost/agent/cloudinit"
)

// asked is what a program was asked to do: files by path, and commands.
type asked struct {
	files    map[string]cloudinit.Files
	commands []string
}

func (*asked) MkdirIfNotExists(string) error { return nil }

func (a *asked) WriteToFile(f *cloudinit.Files) error {
	a.files[f.Path] = *f
	return nil
}

func (a *asked) RunCmd(_ context.Context, command string) error {
	a.commands = append(a.commands, command)
	return nil
}

// TestBringYourOwnHost reads the data as the agent of BYOH does. The provider for Docker of Cluster API, and RemoteMachine of k0smotron,
// read less: neither decompresses a file, and k0smotron decodes none. Their code cannot be imported.
func TestBringYourOwnHost(t *testing.T) {
	t.Parallel()
	got := asked{files: map[string]cloudinit.Files{}}
	agent := cloudinit.ScriptExecutor{WriteFilesExecutor: &got, RunCmdExecutor: &got, ParseTemplateExecutor: cloudinit.TemplateParser{}}
	require.NoError(t, agent.Execute(string(golden(t, "default.yaml"))))
	require.Len(t, got.files, 2)
	node := got.files["/etc/machineadm/node.yaml"]
	assert.Equal(t, string(golden(t, "plain.yaml")), node.Content)
	assert.Equal(t, "0600", node.Permissions)
	assert.Empty(t, node.Encoding)
	const script = "/var/lib/cloud/scripts/per-boot/machineadm"
	assert.Equal(t, "0700", got.files[script].Permissions)
	assert.Equal(t, []string{script + " first"}, got.commands)
}
