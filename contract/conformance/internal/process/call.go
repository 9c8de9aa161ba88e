package process

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/conformance/internal/testcase"
	"github.com/machineadm/machineadm/contract/pluginv1"
)

// CallTimeout limits one call, as the host limits a plan (SPEC.md).
const CallTimeout = 60 * time.Second

// runtimeVersion is the version of the runtime in Describe.
const runtimeVersion = "0.0.0-conformance"

// CallDescribe calls Describe.
func (p *Plugin) CallDescribe(ctx context.Context, r pluginv1.Request, schemas bool) (pluginv1.Description, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	d, err := p.Describe(ctx, pluginv1.DescribeRequest{Root: r.Root, Target: r.Target, RuntimeVersion: runtimeVersion, JSONSchema: schemas})
	return d, p.Explain(err)
}

// CallPlan calls Plan, or that which a source or a key provider answers instead.
func (p *Plugin) CallPlan(ctx context.Context, r pluginv1.Request) (pluginv1.Plan, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	if p.Role != testcase.Configurator { // whether the document is refused is all that these answer
		_, err := p.Get(ctx, r, Query{})
		return pluginv1.Plan{}, err
	}
	plan, err := p.Plan(ctx, r)
	return plan, p.Explain(err)
}

// mostBytes is the size of the largest object where a check does not limit it: as large as a stream.
const mostBytes = 16 << 20

// Query is a call of a source or a key provider.
type Query struct {
	Most         int64  // 0 is mostBytes
	ValidateOnly bool   // and nothing else
	Begun        func() // called when the first part of an object arrives; may be nil
}

// Get fetches the object of a document or gets its passphrase, in one try.
func (p *Plugin) Get(ctx context.Context, r pluginv1.Request, q Query) (got []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	if p.Role == testcase.KeyProvider {
		bare, err := testcase.Without(r.Document, "spec", "ciphertext")
		if err != nil {
			return nil, err
		}
		got, err = p.Passphrase(ctx, pluginv1.PassphraseRequest{Document: bare, Target: r.Target, ValidateOnly: q.ValidateOnly})
		return got, p.Explain(err)
	}
	if q.Most == 0 {
		q.Most = mostBytes
	}
	err = p.Fetch(ctx, pluginv1.FetchRequest{
		Document: r.Document, Target: r.Target, MaxBytes: q.Most, ValidateOnly: q.ValidateOnly,
	}, func(c pluginv1.Chunk) error {
		if c.Begin {
			got = nil
			if q.Begun != nil {
				q.Begun()
			}
		}
		got = append(got, c.Data...)
		return nil
	})
	if err != nil {
		return nil, p.Explain(err)
	}
	return got, nil
}

// CallHealth asks the health service.
func (p *Plugin) CallHealth(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	return p.Explain(p.Healthy(ctx))
}

// Explain adds the last output of a plugin that has ended.
func (p *Plugin) Explain(err error) error {
	switch {
	case errors.Is(err, pluginv1.ErrCrashed):
		return &CrashError{cause: err, output: p.Stderr.tail()}
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %s", CallTimeout)
	}
	return err
}

// Applied is the result of an Apply.
type Applied struct {
	Events   []pluginv1.Event
	Finished pluginv1.Finished
	// Err is set unless the stream ended with one finished.
	Err error
}

// CallApply calls Apply, or that which a source or a key provider answers instead, with an error in finished. on, which may be nil, is called with the number of each event, from 0, when it arrives.
func (p *Plugin) CallApply(ctx context.Context, r pluginv1.Request, limit int, on func(int, pluginv1.Event)) Applied {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	var out Applied
	if p.Role != testcase.Configurator {
		_, err := p.Get(ctx, r, Query{})
		if out.Finished.Error = ContractError(err); out.Finished.Error == nil {
			out.Err = err
		}
		return out
	}
	out.Finished, out.Err = p.Apply(ctx, r, limit, func(e pluginv1.Event) error {
		out.Events = append(out.Events, e)
		if on != nil {
			on(len(out.Events)-1, e)
		}
		return nil
	})
	out.Err = p.Explain(out.Err)
	return out
}

// Failure is the error of the call or of finished.
func (a Applied) Failure() error {
	if a.Err != nil {
		return a.Err
	}
	if a.Finished.Error != nil {
		return a.Finished.Error
	}
	return nil
}

// Explained is an error with what other programs said of it, which is often the cause of a failure of a stand-in.
func Explained(err error) string {
	const most = 1000
	text := err.Error()
	if e, ok := errors.AsType[*pluginv1.Error](err); ok && e.Detail != "" {
		text += "; its detail: " + strings.TrimSpace(e.Detail[max(0, len(e.Detail)-most):])
	}
	return text
}

// Succeeded reports whether Apply ended without an error.
func (a Applied) Succeeded() bool { return a.Failure() == nil }

// Crashed is the end of the plugin during the call, nil if it did not end.
func (a Applied) Crashed() error {
	if errors.As(a.Err, new(*CrashError)) && !ProtocolBroken(a.Err) {
		return a.Err
	}
	return nil
}

// Started returns the IDs of the started events.
func (a Applied) Started() []string {
	var out []string
	for _, e := range a.Events {
		if e, ok := e.(pluginv1.Started); ok {
			out = append(out, e.Change.ID)
		}
	}
	return out
}

// Changed returns the IDs of the changed events.
func (a Applied) Changed() []string {
	var out []string
	for _, e := range a.Events {
		if e, ok := e.(pluginv1.Changed); ok {
			out = append(out, e.ID)
		}
	}
	return out
}

// Deferred returns the IDs of the changes that Apply left for first boot.
func (a Applied) Deferred() []string {
	var out []string
	for _, change := range a.Finished.Deferred {
		out = append(out, change.ID)
	}
	return out
}

// ProtocolBroken reports whether a running plugin ended the stream of Apply against the protocol: an error of the
// contract belongs into finished, so that an error that Apply itself returns is the client's about the stream, or a status.
func ProtocolBroken(err error) bool {
	var e *pluginv1.Error
	return errors.As(err, &e) || errors.Is(err, pluginv1.ErrCrashed) && strings.Contains(err.Error(), "without finished")
}
