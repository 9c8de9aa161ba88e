package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/catalog"
	"github.com/machineadm/machineadm/internal/trust"
)

func TestErrorsOfAStart(t *testing.T) {
	t.Parallel()
	started := func(err error) error { return &StartError{Path: "/x", Cause: err} }
	for name, tt := range map[string]struct {
		err  error
		exit int
		code string
		hint string
	}{
		"untrusted":      {&trust.Error{Remedy: "chmod"}, report.ExitUntrusted, report.CodeUntrusted, "chmod"},
		"another user's": {started(&launch.PeerError{UID: 1}), report.ExitUntrusted, report.CodeUntrusted, "--run-dir"},
		"no inode":       {started(&launch.Error{Cause: &fs.PathError{Err: syscall.ENOSPC}}), report.ExitState, report.CodeState, "df -i"},
		"no descriptor":  {fmt.Errorf("open: %w", syscall.EMFILE), report.ExitState, report.CodeState, "ulimit -n"},
		"no interpreter": {started(&InterpreterError{"/x"}), report.ExitPrecondition, report.CodeNoPlugin, "install the interpreter"},
		"not installed":  {&catalog.NotFoundError{}, report.ExitPrecondition, report.CodeNoPlugin, "install it"},
		"hidden":         {fs.ErrPermission, report.ExitPrecondition, report.CodeNoPlugin, "as root"},
		"not ready": {
			started(&pluginv1.Error{Code: pluginv1.CodePrecondition, Message: "x", Hint: "make it ready"}),
			report.ExitPrecondition, "Precondition", "make it ready",
		},
		"a defect": {started(&pluginv1.Error{Message: "x"}), report.ExitFailed, report.CodeCrashed, "details.json"},
		"crash":    {started(errors.New("x")), report.ExitFailed, report.CodeCrashed, "details.json"},
	} {
		exit, code := Classify(tt.err)
		require.Equal(t, tt.exit, exit, name)
		require.Equal(t, tt.code, code, name)
		require.Contains(t, Hint(tt.err), tt.hint, name)
	}
}
