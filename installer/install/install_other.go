//go:build !linux

package install

import (
	"context"

	"github.com/machineadm/machineadm/contract/report"
)

// DefaultDirectory is the directory of releases unless another one is given.
const DefaultDirectory = `C:\Program Files\machineadm`

// Install is not supported here: programs that run cannot be replaced in one step on Windows, and links are not trusted.
func Install(context.Context, Options) (Result, error) {
	return Result{}, &Error{
		Code: report.ExitPrecondition, Problem: "machineadm install replaces releases in one step, which is possible on Linux only",
		Remedy: "on Windows install the MSI of the release, which machineadm mirror verifies and copies",
	}
}
