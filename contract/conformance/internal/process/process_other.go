//go:build !linux

package process

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

const CanSetUmask = false

func Freeze(int) error { return unsupported("stopping a process") }

func Thaw(int) error { return unsupported("stopping a process") }

func unsupported(what string) error { return fmt.Errorf("%s: %w", what, errors.ErrUnsupported) }

const CanFreeze = false

func Lock(*os.File) error { return unsupported("locking a file") }

const CanLock = false

// Relatives is the plugin alone, without its descendants.
type Relatives struct{ pid int }

func Family(pid int) Relatives { return Relatives{pid} }

func (r Relatives) Kill() {
	if process, err := os.FindProcess(r.pid); err == nil {
		_ = process.Kill() // its error says that it is gone already
	}
}

func InMachineOf(int) Relatives { return Relatives{} }

func (Relatives) Count() int { return 0 }

const CanCount = false

func (Relatives) Grew(Relatives) bool { return false }

func (Relatives) Shown() []byte { return nil }
