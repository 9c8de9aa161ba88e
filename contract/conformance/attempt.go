package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/machineadm/machineadm/contract/conformance/internal/process"
	"github.com/machineadm/machineadm/contract/conformance/internal/rig"
	"github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/contract/pluginv1"
)

// run runs one check.
func run(ctx context.Context, r *rig.Runner, check Check) (Result, error) {
	if check.alone {
		r.Shared.Machine.Lock()
		defer r.Shared.Machine.Unlock()
	} else {
		r.Shared.Machine.RLock()
		defer r.Shared.Machine.RUnlock()
	}
	since, before := time.Now(), r.Starts
	got, err := attempt(ctx, r, check)
	if ctx.Err() != nil {
		return Result{}, ctx.Err()
	}
	if err != nil {
		return Result{}, fmt.Errorf("%s: %s: %w", r.Case.Name, check.Name, err)
	}
	r.Unsettled = r.Unsettled || (check.Name == rig.OutcomeName || check.Name == rig.ObjectName) && got.Status == rig.Fail
	return export(got, r.Case, check, since, r.Starts-before), nil
}

func attempt(ctx context.Context, r *rig.Runner, check Check) (rig.Result, error) {
	switch {
	case r.Shared.StartFailure.Load() != nil:
		return skippedWithoutStart(r), nil
	case check.once && !r.Representative, check.eachKind && !r.OfKind:
		return rig.Skipped("does not depend on the case: checked with another one"), nil
	}
	f, err := r.Fixture()
	if err != nil {
		return rig.Result{}, err
	}
	got, err := check.run(ctx, f)
	f.Close()
	if err != nil || got.Status == rig.Fail {
		r.EndIdle() // a later check has no use for the state that a finding leaves in a process
	}
	var died *process.CrashError
	if !errors.As(err, &died) {
		return got, err
	}
	if died.AtStart {
		if at := r.Case.Name + "/" + check.Name; !r.Shared.StartFailure.CompareAndSwap(nil, &at) {
			return skippedWithoutStart(r), nil
		}
		return rig.Failed(startFinding(died)), nil
	}
	return rig.Failed(rig.Finding{
		Clause: check.Clause, Expected: "the plugin answers every call and ends when it is asked to", Got: died.Error(),
		Cause: "an exception or a panic that no handler catches, see the last output",
	}), nil
}

func skippedWithoutStart(r *rig.Runner) rig.Result {
	return rig.Skipped("the plugin does not start, see %s", *r.Shared.StartFailure.Load())
}

func startFinding(died *process.CrashError) rig.Finding {
	out := rig.Finding{
		Clause: "H-10", Expected: "the plugin starts, and its first line of standard output is the handshake",
		Got:   "the plugin does not start: " + died.Error(),
		Cause: "an error of its own startup, which is in the last output, or output before the handshake line",
	}
	if failure, ok := errors.AsType[*launch.Error](died); ok {
		out.Clause = failure.Clause()
	}
	switch out.Clause {
	case "H-7":
		out.Expected = "the plugin listens on a Unix socket in the directory PLUGIN_UNIX_SOCKET_DIR"
		out.Cause = "the plugin chooses the directory of its socket itself, or listens on TCP"
	case "H-11":
		out.Expected = "the sixth field of the line is empty, because no TLS was requested"
		out.Cause = "the plugin uses TLS also without PLUGIN_CLIENT_CERT in its environment"
	case "H-12":
		out.Expected = fmt.Sprintf("the second field of the line is %d, the protocol version of PLUGIN_PROTOCOL_VERSIONS", pluginv1.ProtocolVersion)
		out.Cause = "the plugin writes a version of its own; the first field is the version of the handshake"
	}
	return out
}
