package launch

import (
	"context"
	"fmt"
	"os"

	"github.com/machineadm/machineadm/internal/proctree"
)

// guarded is a plugin's process that ends with this one, and takes with it whatever it has started.
type guarded struct {
	tree    *proctree.Tree
	command proctree.Command
	process *proctree.Process
}

// Start implements pluginv1.Program.
func (g *guarded) Start(ctx context.Context, environment []string, stdout, stderr *os.File) (err error) {
	g.command.Environment, g.command.Stdout, g.command.Stderr = environment, stdout, stderr
	g.process, err = g.tree.Start(ctx, g.command)
	return err
}

// Wait implements pluginv1.Program.
func (g *guarded) Wait() error {
	status, err := g.process.Wait()
	if err == nil && status != 0 {
		err = fmt.Errorf("exit status %d", status)
	}
	return err
}

// Kill implements pluginv1.Program.
func (g *guarded) Kill() error { return g.process.Kill() }

// PID implements pluginv1.Program.
func (g *guarded) PID() int { return g.process.PID() }
