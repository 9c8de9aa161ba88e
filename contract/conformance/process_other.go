//go:build !linux

package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/machineadm/machineadm/contract/launch"
)

// startProcess starts a process; there is no umask.
func startProcess(ctx context.Context, _ int, o launch.Options) (*launch.Process, func(), error) {
	process, err := launch.Start(ctx, o)
	return process, func() {}, err
}

const canSetUmask = false

func freeze(int) error { return unsupported("stopping a process") }

func thaw(int) error { return unsupported("stopping a process") }

func unsupported(what string) error { return fmt.Errorf("%s: %w", what, errors.ErrUnsupported) }

const canFreeze = false

func lock(*os.File) error { return unsupported("locking a file") }

const canLock = false

// relatives is the plugin alone, without its descendants.
type relatives struct{ pid int }

func family(pid int) relatives { return relatives{pid} }

func (r relatives) kill() {
	if process, err := os.FindProcess(r.pid); err == nil {
		_ = process.Kill() // its error says that it is gone already
	}
}

func inMachineOf(int) relatives { return relatives{} }

func (relatives) count() int { return 0 }

const canCount = false

func (relatives) grew(relatives) bool { return false }

func (relatives) shown() []byte { return nil }
