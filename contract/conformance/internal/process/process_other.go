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

// CanSetUmask reports whether startProcess sets the umask.
const CanSetUmask = false

// Freeze does not work here.
func Freeze(int) error { return unsupported("stopping a process") }

// Thaw does not work here.
func Thaw(int) error { return unsupported("stopping a process") }

func unsupported(what string) error { return fmt.Errorf("%s: %w", what, errors.ErrUnsupported) }

// CanFreeze reports whether Freeze and Thaw work.
const CanFreeze = false

// Lock does not work here.
func Lock(*os.File) error { return unsupported("locking a file") }

// CanLock reports whether Lock works.
const CanLock = false

// Relatives is the plugin alone, without its descendants.
type Relatives struct{ pid int }

// Family returns the process alone.
func Family(pid int) Relatives { return Relatives{pid} }

// Kill kills the process.
func (r Relatives) Kill() {
	if process, err := os.FindProcess(r.pid); err == nil {
		_ = process.Kill() // its error says that it is gone already
	}
}

// InMachineOf returns nothing here.
func InMachineOf(int) Relatives { return Relatives{} }

// Count is always 0 here.
func (Relatives) Count() int { return 0 }

// CanCount reports whether Grew works.
const CanCount = false

// Grew is always false here.
func (Relatives) Grew(Relatives) bool { return false }

// Shown returns nothing here.
func (Relatives) Shown() []byte { return nil }
