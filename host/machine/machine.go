// Package machine is the machine that a run changes, as the host sees it: the IDs of machine and boot, the paths of the operating
// system, which files and directories a run trusts, and temporary directories. It reads and writes no state.
//
// Errors for the user are of the type *report.Error. One with the code CodeUsage concerns a flag.
package machine

import (
	"errors"
	"path/filepath"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/internal/trust"
)

// LockAt returns the path of the lock of the live machine or of an image.
func LockAt(root, runDir string) string {
	if root != "" {
		return imageLock(root, runDir)
	}
	return filepath.Join(runDir, "lock")
}

// Untrusted returns an error for a directory that other users can change, and nil for other errors, which the use of the
// directory reports.
func Untrusted(flag string, err error) error {
	var refused *trust.Error
	if !errors.As(err, &refused) {
		return nil
	}
	return &report.Error{Code: report.CodeUntrusted, Message: flag + ": " + refused.Error(), Hint: refused.Remedy}
}
