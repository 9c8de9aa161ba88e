package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// callTimeout limits one call, as the host limits a plan (SPEC.md).
const callTimeout = 60 * time.Second

// runtimeVersion is the version of the runtime in Describe.
const runtimeVersion = "0.0.0-conformance"

// describe calls Describe.
func (p *plugin) describe(ctx context.Context, r pluginv1.Request, schemas bool) (pluginv1.Description, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	d, err := p.Describe(ctx, pluginv1.DescribeRequest{Root: r.Root, Target: r.Target, RuntimeVersion: runtimeVersion, JSONSchema: schemas})
	return d, p.explain(err)
}

// plan calls Plan, or that which a source or a key provider answers instead.
func (p *plugin) plan(ctx context.Context, r pluginv1.Request) (pluginv1.Plan, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if p.role != configurator { // whether the document is refused is all that these answer
		_, err := p.get(ctx, r, query{})
		return pluginv1.Plan{}, err
	}
	plan, err := p.Plan(ctx, r)
	return plan, p.explain(err)
}

// mostBytes is the size of the largest object where a check does not limit it: as large as a stream.
const mostBytes = 16 << 20

// query is a call of a source or a key provider.
type query struct {
	most         int64  // 0 is mostBytes
	validateOnly bool   // and nothing else
	begun        func() // called when the first part of an object arrives; may be nil
}

// get fetches the object of a document or gets its passphrase, in one try.
func (p *plugin) get(ctx context.Context, r pluginv1.Request, q query) (got []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if p.role == keyProvider {
		bare, err := without(r.Document, "spec", "ciphertext")
		if err != nil {
			return nil, err
		}
		got, err = p.Passphrase(ctx, pluginv1.PassphraseRequest{Document: bare, Target: r.Target, ValidateOnly: q.validateOnly})
		return got, p.explain(err)
	}
	if q.most == 0 {
		q.most = mostBytes
	}
	err = p.Fetch(ctx, pluginv1.FetchRequest{
		Document: r.Document, Target: r.Target, MaxBytes: q.most, ValidateOnly: q.validateOnly,
	}, func(c pluginv1.Chunk) error {
		if c.Begin {
			got = nil
			if q.begun != nil {
				q.begun()
			}
		}
		got = append(got, c.Data...)
		return nil
	})
	if err != nil {
		return nil, p.explain(err)
	}
	return got, nil
}

// healthy asks the health service.
func (p *plugin) healthy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return p.explain(p.Healthy(ctx))
}

// explain adds the last output of a plugin that has ended.
func (p *plugin) explain(err error) error {
	switch {
	case errors.Is(err, pluginv1.ErrCrashed):
		return &crash{cause: err, output: p.stderr.tail()}
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %s", callTimeout)
	}
	return err
}

// applied is the result of an Apply.
type applied struct {
	events   []pluginv1.Event
	finished pluginv1.Finished
	// err is set unless the stream ended with one finished.
	err error
}

// apply calls Apply, or that which a source or a key provider answers instead, with an error in finished. on, which may be nil, is called with the number of each event, from 0, when it arrives.
func (p *plugin) apply(ctx context.Context, r pluginv1.Request, limit int, on func(int, pluginv1.Event)) applied {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var out applied
	if p.role != configurator {
		_, err := p.get(ctx, r, query{})
		if out.finished.Error = contractError(err); out.finished.Error == nil {
			out.err = err
		}
		return out
	}
	out.finished, out.err = p.Apply(ctx, r, limit, func(e pluginv1.Event) error {
		out.events = append(out.events, e)
		if on != nil {
			on(len(out.events)-1, e)
		}
		return nil
	})
	out.err = p.explain(out.err)
	return out
}

// failure is the error of the call or of finished.
func (a applied) failure() error {
	if a.err != nil {
		return a.err
	}
	if a.finished.Error != nil {
		return a.finished.Error
	}
	return nil
}

// explained is an error with what other programs said of it, which is often the cause of a failure of a stand-in.
func explained(err error) string {
	const most = 1000
	text := err.Error()
	if e, ok := errors.AsType[*pluginv1.Error](err); ok && e.Detail != "" {
		text += "; its detail: " + strings.TrimSpace(e.Detail[max(0, len(e.Detail)-most):])
	}
	return text
}

// succeeded reports whether Apply ended without an error.
func (a applied) succeeded() bool { return a.failure() == nil }

// crashed is the end of the plugin during the call, nil if it did not end.
func (a applied) crashed() error {
	if errors.As(a.err, new(*crash)) && !protocolBroken(a.err) {
		return a.err
	}
	return nil
}

// started returns the IDs of the started events.
func (a applied) started() []string {
	var out []string
	for _, e := range a.events {
		if e, ok := e.(pluginv1.Started); ok {
			out = append(out, e.Change.ID)
		}
	}
	return out
}

// changed returns the IDs of the changed events.
func (a applied) changed() []string {
	var out []string
	for _, e := range a.events {
		if e, ok := e.(pluginv1.Changed); ok {
			out = append(out, e.ID)
		}
	}
	return out
}

// deferred returns the IDs of the changes that Apply left for first boot.
func (a applied) deferred() []string {
	var out []string
	for _, change := range a.finished.Deferred {
		out = append(out, change.ID)
	}
	return out
}

// protocolBroken reports whether a running plugin ended the stream of Apply against the protocol: an error of the
// contract belongs into finished, so that an error that Apply itself returns is the client's about the stream, or a status.
func protocolBroken(err error) bool {
	var e *pluginv1.Error
	return errors.As(err, &e) || errors.Is(err, pluginv1.ErrCrashed) && strings.Contains(err.Error(), "without finished")
}
