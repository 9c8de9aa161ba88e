package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// TestClassification: errors of the machine get a code and a hint.
func TestClassification(t *testing.T) {
	t.Parallel()
	path := func(err error) error { return &fs.PathError{Op: "write", Path: "/etc/x", Err: err} }
	command := &machine.CommandError{Name: "chronyd", ExitCode: 1, Stderr: "raw output"}
	for name, c := range map[string]struct {
		err    error
		code   pluginv1.Code
		hint   string
		detail string
	}{
		"full":             {path(syscall.ENOSPC), pluginv1.CodePrecondition, "free some space", ""},
		"no inodes":        {path(syscall.ENOSPC), pluginv1.CodePrecondition, "df -i", ""},
		"over quota":       {path(syscall.EDQUOT), pluginv1.CodePrecondition, "raise the quota", ""},
		"over a limit":     {path(syscall.EFBIG), pluginv1.CodePrecondition, "ulimit -f", ""},
		"failing disk":     {path(syscall.EIO), pluginv1.CodePrecondition, "kernel's log", ""},
		"read-only":        {path(syscall.EROFS), pluginv1.CodePrecondition, "writable", ""},
		"not allowed":      {path(syscall.EACCES), pluginv1.CodePrecondition, "root", ""},
		"immutable":        {path(syscall.EPERM), pluginv1.CodePrecondition, "lsattr", ""},
		"in the way":       {path(syscall.ENOTDIR), pluginv1.CodePrecondition, "move it away", ""},
		"a device":         {path(machine.ErrNotRegular), pluginv1.CodePrecondition, "move it away", ""},
		"unsafe":           {path(machine.ErrUnsafe), pluginv1.CodePrecondition, "message says", ""},
		"command":          {command, pluginv1.CodePrecondition, "details.json", "raw output"},
		"silent command":   {&machine.CommandError{Name: "x", ExitCode: 1}, pluginv1.CodePrecondition, "", ""},
		"service":          {&machine.ServiceError{Unit: "x", Action: "start", Hint: "look there", Err: command}, pluginv1.CodePrecondition, "look there", "raw output"},
		"unsupported":      {path(machine.ErrUnsupported), pluginv1.CodeUnsupported, "", ""},
		"service of an OS": {&machine.ServiceError{Unit: "x", Hint: "no", Err: machine.ErrUnsupported}, pluginv1.CodeUnsupported, "", ""},
		"offline":          {&machine.ServiceError{Unit: "x", Hint: "no", Err: machine.ErrOffline}, pluginv1.CodeInternal, "", ""},
		"own deadline":     {fmt.Errorf("ask: %w", context.DeadlineExceeded), pluginv1.CodeRetry, "", ""},
		"own cancellation": {fmt.Errorf("ask: %w", context.Canceled), pluginv1.CodeInternal, "", ""},
		"anything else":    {errors.New("oops"), pluginv1.CodeInternal, "", ""},
		"not found":        {path(fs.ErrNotExist), pluginv1.CodeInternal, "", ""},
		"retry":            {sdk.Retry(time.Second, "busy"), pluginv1.CodeRetry, "", ""},
		"wrapped":          {fmt.Errorf("plan: %w", sdk.Precondition("no", "do this")), pluginv1.CodePrecondition, "do this", ""},
		"with detail":      {sdk.WithDetail(sdk.Retry(0, "busy"), "raw"), pluginv1.CodeRetry, "", "raw"},
		"plain, detailed":  {sdk.WithDetail(errors.New("no"), "raw"), pluginv1.CodePrecondition, "", "raw"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			planning := configurator(func(context.Context, sdk.Machine, probe) (sdk.Plan, error) { return sdk.Plan{}, c.err })
			applying := configurator(func(context.Context, sdk.Machine, probe) (sdk.Plan, error) {
				var plan sdk.Plan
				plan.Add(&sdk.Change{ID: "a", Summary: "a", Do: func(context.Context, sdk.Progress) error { return c.err }})
				return plan, nil
			})
			_, planErr := connect(t, planning).Plan(t.Context(), live(document(`{}`)))
			finished, err := connect(t, applying).Apply(t.Context(), live(document(`{}`)), 0, nothing)
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range []error{planErr, finished.Error} {
				wantCode(t, err, c.code, c.hint)
				if got := pluginv1.AsError(err).Detail; got != c.detail {
					t.Errorf("detail %q, want %q", got, c.detail)
				}
				if got := pluginv1.AsError(err); c.hint == "" && got.Hint != "" {
					t.Errorf("hint %q, want none", got.Hint)
				}
			}
		})
	}
}

// TestUnsupportedField names the field that a provider cannot express.
func TestUnsupportedField(t *testing.T) {
	t.Parallel()
	e := pluginv1.AsError(sdk.Unsupported("spec.hosts[0].key", "keys are not known", "leave it out"))
	if len(e.Violations) != 1 || e.Violations[0].Field != "spec.hosts[0].key" || e.Hint != "leave it out" {
		t.Errorf("error %+v", e)
	}
	if e := pluginv1.AsError(sdk.Unsupported("", "wrong platform", "")); len(e.Violations) != 0 {
		t.Errorf("error %+v", e)
	}
}

// TestUnsupportedFields names every field that a provider cannot express.
func TestUnsupportedFields(t *testing.T) {
	t.Parallel()
	require.NoError(t, sdk.UnsupportedFields())
	all := []sdk.Violation{{Field: "spec.a", Message: "no a", Hint: "remove it"}, {Field: "spec.b", Message: "no b"}}
	e := pluginv1.AsError(sdk.UnsupportedFields(all...))
	require.Equal(t, pluginv1.CodeUnsupported, e.Code)
	require.Equal(t, "no a; spec.b: no b", e.Message)
	require.Equal(t, "remove it", e.Hint)
	require.Equal(t, all, e.Violations)
}
