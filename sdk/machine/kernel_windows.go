package machine

import (
	"context"
	"fmt"
)

// windowsKernel has neither the parameters nor the modules that plugins mean.
type windowsKernel struct{}

func liveKernel(Runner) Kernel { return windowsKernel{} }

func (windowsKernel) Parameter(string) (string, error) { return "", noKernelInterface() }

func (windowsKernel) SetParameter(string, string) error { return noKernelInterface() }

func (windowsKernel) Module(string) (ModuleState, error) { return ModuleAbsent, noKernelInterface() }

func (windowsKernel) LoadModule(context.Context, string) error { return noKernelInterface() }

func noKernelInterface() error {
	return fmt.Errorf("kernel parameters and modules on Windows: %w", ErrUnsupported)
}
