package machine

import (
	"context"
	"fmt"
)

type offlineRunner struct{}

func (offlineRunner) Run(_ context.Context, c Command) (Result, error) {
	return Result{}, fmt.Errorf("run %s: %w", printable(c.Name), ErrOffline)
}

func (offlineRunner) Find(name string) (string, error) {
	return "", fmt.Errorf("find %s: %w", printable(name), ErrOffline)
}

// offlineKernel knows nothing, not even which modules will be loadable: an image may hold several kernels.
type offlineKernel struct{}

func (offlineKernel) Parameter(key string) (string, error) {
	return "", fmt.Errorf("read kernel parameter %s: %w", printable(key), ErrOffline)
}

func (offlineKernel) SetParameter(key, _ string) error {
	return fmt.Errorf("set kernel parameter %s: %w", printable(key), ErrOffline)
}

func (offlineKernel) Module(name string) (ModuleState, error) {
	return ModuleAbsent, fmt.Errorf("look for kernel module %s: %w", printable(name), ErrOffline)
}

func (offlineKernel) LoadModule(_ context.Context, name string) error {
	return fmt.Errorf("load kernel module %s: %w", printable(name), ErrOffline)
}
