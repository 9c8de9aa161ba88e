package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// connect serves a plugin over gRPC and returns the host's end of it.
func connect(t *testing.T, m pluginv1.Describer, options ...grpc.ServerOption) *pluginv1.Client {
	t.Helper()
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer(options...)
	pluginv1.Register(server, m)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:///plugin", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		closed := conn.Close()
		server.Stop()
		if err := errors.Join(closed, <-served); err != nil {
			t.Error(err)
		}
	})
	return pluginv1.NewClient(conn)
}

func TestApplyOverTheWire(t *testing.T) {
	t.Parallel()
	client := connect(t, configurator(func(_ context.Context, _ sdk.Machine, want probe) (sdk.Plan, error) {
		var done []string
		plan := changes(want.Spec.Count, &done)
		plan.Changes[1].Do = func(_ context.Context, p sdk.Progress) error {
			p.Report("half way")
			p.Warn("spec.hosts[0]", "slow")
			p.RequestReboot(sdk.RebootBeforeNext)
			return nil
		}
		plan.Changes[2].Reboot = sdk.RebootAfterRun
		plan.Warn("spec.count", "many")
		return plan, nil
	}))
	plan, err := client.Plan(t.Context(), live(document(`{"count":3}`)))
	if err != nil || len(plan.Changes) != 3 || plan.Changes[2].Reboot != sdk.RebootAfterRun || len(plan.Warnings) != 1 {
		t.Errorf("plan %+v, %v", plan, err)
	}
	var got []string
	finished, err := client.Apply(t.Context(), live(document(`{"count":3}`)), 0, func(e pluginv1.Event) error {
		got = append(got, strings.TrimPrefix(fmt.Sprintf("%T%+v", e, e), "pluginv1."))
		return nil
	})
	if err != nil || finished.Error != nil || finished.Stopped {
		t.Errorf("finished %+v, %v", finished, err)
	}
	started := func(i int, reboot sdk.Reboot) string {
		return fmt.Sprintf("Started{Change:%+v}", pluginv1.Change{ID: fmt.Sprintf("change-%d", i), Summary: fmt.Sprintf("do change-%d", i), Reboot: reboot})
	}
	want := []string{
		"Warning{Field:spec.count Message:many}",
		started(0, sdk.RebootNone), "Changed{ID:change-0}",
		started(1, sdk.RebootNone), "Progress{ID:change-1 Message:half way Reboot:None}",
		"Warning{Field:spec.hosts[0] Message:slow}", "Progress{ID:change-1 Message: Reboot:BeforeNext}", "Changed{ID:change-1}",
		started(2, sdk.RebootAfterRun), "Changed{ID:change-2}",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("events\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestFailureOverTheWire(t *testing.T) {
	t.Parallel()
	client := connect(t, configurator(func(context.Context, sdk.Machine, probe) (sdk.Plan, error) {
		var done []string
		plan := changes(3, &done)
		plan.Changes[1].Do = func(context.Context, sdk.Progress) error { return sdk.Precondition("not yet", "wait") }
		return plan, nil
	}))
	var got []string
	finished, err := client.Apply(t.Context(), live(document(`{}`)), 0, func(e pluginv1.Event) error {
		got = append(got, fmt.Sprintf("%T", e))
		return nil
	})
	if err != nil || finished.Error == nil || finished.Error.Code != pluginv1.CodePrecondition || finished.Error.Hint != "wait" {
		t.Errorf("finished %+v, %v", finished, err)
	}
	if want := "[pluginv1.Started pluginv1.Changed pluginv1.Started]"; fmt.Sprint(got) != want {
		t.Errorf("events %v, want %s", got, want)
	}
}

// TestPanicOverTheWire: a panic is a defect of the plugin; its value can be a secret. The plugin continues to serve.
func TestPanicOverTheWire(t *testing.T) {
	t.Parallel()
	const canary = "c4n4ry"
	p := plugin(func(_ context.Context, _ sdk.Machine, want probe) (sdk.Plan, error) {
		if want.Spec.Count == 0 {
			panic(canary)
		}
		var plan sdk.Plan
		plan.Add(&sdk.Change{ID: "a", Summary: "a", Do: func(context.Context, sdk.Progress) error { panic(fmt.Errorf("%s", canary)) }})
		return plan, nil
	})
	p.Fit = func(context.Context, sdk.Machine) (sdk.Fitness, string, error) { panic(canary) }
	client := connect(t, sdk.NewConfigurator(p, machinetest.Target().OS))
	_, describeErr := client.Describe(t.Context(), pluginv1.DescribeRequest{Target: machinetest.Target()})
	_, planErr := client.Plan(t.Context(), live(document(`{}`)))
	planned, planInApply := client.Apply(t.Context(), live(document(`{}`)), 0, nothing)
	done, doErr := client.Apply(t.Context(), live(document(`{"count":1}`)), 0, nothing)
	if err := errors.Join(planInApply, doErr); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"Describe": describeErr, "Plan": planErr, "plan in Apply": planned.Error, "Do": done.Error,
	} {
		wantCode(t, err, pluginv1.CodeInternal, "panicked")
		if strings.Contains(fmt.Sprintf("%v %+v", err, pluginv1.AsError(err)), canary) {
			t.Errorf("%s: the panic's value shows: %v", name, err)
		}
		// The stack is all that its author has.
		detail := pluginv1.AsError(err).Detail
		if first, _, _ := strings.Cut(detail, "\n"); !strings.Contains(first, "TestPanicOverTheWire") || !strings.Contains(detail, "wire_test.go:") || strings.Contains(detail, canary) {
			t.Errorf("%s: stack:\n%s", name, detail)
		}
	}
}

func TestCancelledOverTheWire(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{})
	client := connect(t, configurator(func(ctx context.Context, _ sdk.Machine, _ probe) (sdk.Plan, error) {
		close(entered)
		<-ctx.Done()
		return sdk.Plan{}, fmt.Errorf("wait for a daemon: %w", ctx.Err())
	}))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-entered
		cancel()
	}()
	if _, err := client.Plan(ctx, live(document(`{}`))); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
}

// TestStopOverTheWire: Stop reaches an Apply that is running.
func TestStopOverTheWire(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	var done []string
	client := connect(t, configurator(func(context.Context, sdk.Machine, probe) (sdk.Plan, error) {
		plan := changes(2, &done)
		plan.Changes[0].Do = func(context.Context, sdk.Progress) error {
			close(entered)
			<-leave
			return nil
		}
		return plan, nil
	}))
	stopped := make(chan error, 1)
	go func() {
		<-entered
		stopped <- client.Stop(context.WithoutCancel(t.Context()))
		close(leave)
	}()
	finished, err := client.Apply(t.Context(), live(document(`{}`)), 0, nothing)
	if err := errors.Join(err, <-stopped); err != nil || !finished.Stopped || len(done) != 0 {
		t.Errorf("finished %+v (%v), done %v", finished, err, done)
	}
}
