package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/contract/pluginv1"
)

// run runs one check.
func (r *runner) run(ctx context.Context, check Check) (Result, error) {
	if check.alone {
		r.shared.machine.Lock()
		defer r.shared.machine.Unlock()
	} else {
		r.shared.machine.RLock()
		defer r.shared.machine.RUnlock()
	}
	since, before := time.Now(), r.starts
	got, err := r.attempt(ctx, check)
	if ctx.Err() != nil {
		return Result{}, ctx.Err()
	}
	if err != nil {
		return Result{}, fmt.Errorf("%s: %s: %w", r.c.Name, check.Name, err)
	}
	r.unsettled = r.unsettled || (check.Name == outcomeName || check.Name == objectName) && got.status == Fail
	return got.export(r.c, check, since, r.starts-before), nil
}

func (r *runner) attempt(ctx context.Context, check Check) (result, error) {
	switch {
	case r.shared.startFailure.Load() != nil:
		return r.skippedWithoutStart(), nil
	case check.once && !r.representative, check.eachKind && !r.ofKind:
		return skipped("does not depend on the case: checked with another one"), nil
	}
	f, err := r.fixture()
	if err != nil {
		return result{}, err
	}
	got, err := check.run(ctx, f)
	f.close()
	if err != nil || got.status == Fail {
		r.endIdle() // a later check has no use for the state that a finding leaves in a process
	}
	var died *crash
	if !errors.As(err, &died) {
		return got, err
	}
	if died.atStart {
		if at := r.c.Name + "/" + check.Name; !r.shared.startFailure.CompareAndSwap(nil, &at) {
			return r.skippedWithoutStart(), nil
		}
		return failed(startFinding(died)), nil
	}
	return failed(finding{
		clause: check.Clause, expected: "the plugin answers every call and ends when it is asked to", got: died.Error(),
		cause: "an exception or a panic that no handler catches, see the last output",
	}), nil
}

func (r *runner) skippedWithoutStart() result {
	return skipped("the plugin does not start, see %s", *r.shared.startFailure.Load())
}

func startFinding(died *crash) finding {
	out := finding{
		clause: "H-10", expected: "the plugin starts, and its first line of standard output is the handshake",
		got:   "the plugin does not start: " + died.Error(),
		cause: "an error of its own startup, which is in the last output, or output before the handshake line",
	}
	if failure, ok := errors.AsType[*launch.Error](died); ok {
		out.clause = failure.Clause()
	}
	switch out.clause {
	case "H-7":
		out.expected = "the plugin listens on a Unix socket in the directory PLUGIN_UNIX_SOCKET_DIR"
		out.cause = "the plugin chooses the directory of its socket itself, or listens on TCP"
	case "H-11":
		out.expected = "the sixth field of the line is empty, because no TLS was requested"
		out.cause = "the plugin uses TLS also without PLUGIN_CLIENT_CERT in its environment"
	case "H-12":
		out.expected = fmt.Sprintf("the second field of the line is %d, the protocol version of PLUGIN_PROTOCOL_VERSIONS", pluginv1.ProtocolVersion)
		out.cause = "the plugin writes a version of its own; the first field is the version of the handshake"
	}
	return out
}
