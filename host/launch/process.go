package launch

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/internal/proctree"
)

// child is a plugin's process, which ends with this one.
type child struct {
	tree    *proctree.Tree
	command proctree.Command
	process *proctree.Process
}

// Start implements pluginv1.Program.
func (p *child) Start(ctx context.Context, environment []string, stdout, stderr *os.File) (err error) {
	p.command.Environment, p.command.Stdout, p.command.Stderr = environment, stdout, stderr
	p.process, err = p.tree.Start(ctx, p.command)
	return err
}

// Wait implements pluginv1.Program.
func (p *child) Wait() error {
	status, err := p.process.Wait()
	if err == nil && status != 0 {
		err = fmt.Errorf("exit status %d", status)
	}
	return err
}

// Kill implements pluginv1.Program.
func (p *child) Kill() error { return p.process.Kill() }

// PID implements pluginv1.Program.
func (p *child) PID() int { return p.process.PID() }

// contained is a plugin whose Apply ends with the processes that it has orphaned.
type contained struct {
	pluginv1.Configurator
	tree *proctree.Tree
}

// orphanGrace bounds how long the end of an Apply waits for the orphans: the kernel keeps a process that waits for a device.
const orphanGrace = 5 * time.Second

// Apply implements pluginv1.Configurator.
func (c contained) Apply(ctx context.Context, r pluginv1.Request, limit int, send func(pluginv1.Event) error) (pluginv1.Finished, error) {
	finished, err := c.Configurator.Apply(ctx, r, limit, send)
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), orphanGrace)
	defer cancel()
	if left := c.tree.KillOrphans(ending); left != nil && err == nil {
		err = &pluginv1.Error{Code: pluginv1.CodeInternal, Message: fmt.Sprintf("processes that the plugin left cannot be ended: %s", left)}
	}
	return finished, err
}
