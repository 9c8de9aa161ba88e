package launch

import (
	"context"
	"fmt"
	"os"

	"github.com/machineadm/machineadm/internal/proctree"
)

// child is the process of a plugin. It ends when this process ends.
type child struct {
	tree    *proctree.Tree
	command proctree.Command
	process *proctree.Process
}

// Start implements the Program of contract/launch.
func (p *child) Start(ctx context.Context, environment []string, stdout, stderr *os.File) (err error) {
	p.command.Environment, p.command.Stdout, p.command.Stderr = environment, stdout, stderr
	p.process, err = p.tree.Start(ctx, p.command)
	return err
}

// Wait implements the Program of contract/launch.
func (p *child) Wait() error {
	status, err := p.process.Wait()
	if err == nil && status != 0 {
		err = fmt.Errorf("exit status %d", status)
	}
	return err
}

// Kill implements the Program of contract/launch.
func (p *child) Kill() error { return p.process.Kill() }

// PID implements the Program of contract/launch.
func (p *child) PID() int { return p.process.PID() }
