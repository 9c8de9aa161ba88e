// Package expand puts the documents of its stream behind each reference of a stream.
package expand

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/host/resolve"
	"github.com/machineadm/machineadm/host/run/values"
)

// Stream puts the documents of its stream behind each reference. An error ends the run.
func (x *Expander) Stream(ctx context.Context, s values.Stream) (values.Stream, error) {
	out := values.Stream{Problems: s.Problems, Faulty: s.Faulty}
	if err := x.all(ctx, s.Docs, &out, x.stage()); err != nil {
		return s, err
	}
	for i := range out.Docs {
		out.Docs[i].Order = i
	}
	return out, x.prune(out)
}

// Document resolves a reference at its turn, for at most this time, and returns the documents of its stream. An error ends the run.
func (x *Expander) Document(ctx context.Context, d values.Doc, tries time.Duration) (values.Source, values.Stream, error) {
	return x.resolve(ctx, d, limit{tries: tries})
}

// Documents resolves the references among the documents of a stream that Document returned. An error ends the run.
func (x *Expander) Documents(ctx context.Context, docs []values.Doc) (values.Stream, error) {
	var out values.Stream
	err := x.all(ctx, docs, &out, x.stage())
	return out, err
}

// errTimeout is the cause of the end of a stage.
var errTimeout = errors.New("the sources exceeded their limit")

// limit bounds the access to a source.
type limit struct {
	tries time.Duration // how long the plugin tries again by itself
	// until ends the access to all sources of a stage: one that sends a byte now and then would hold the stage for its own limit, once
	// for each document. The zero value means the end of the context.
	until time.Time
}

// stage is the limit of documents that are resolved one after the other.
func (x *Expander) stage() limit { return limit{firstTries, time.Now().Add(x.o.PlanTimeout)} }

// firstTries is how long a plugin tries again by itself to reach a source in the first planning, in which other documents may have
// to come first. At the turn of the document it is all that is left of its limit.
const firstTries = 5 * time.Second

// apply returns the context of one access.
func (l limit) apply(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.until.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadlineCause(ctx, l.until, errTimeout)
}

// all resolves these references and the references in their streams. What the limit leaves is pending.
func (x *Expander) all(ctx context.Context, docs []values.Doc, out *values.Stream, l limit) error {
	for _, d := range docs {
		if !d.IsReference() || len(d.Wrong) > 0 {
			out.Docs = append(out.Docs, d)
			continue
		}
		if err := x.o.Run.Checkpoint(ctx); err != nil {
			return err
		}
		own := l
		if d.Kind == v1alpha1.KindReportTarget { // contacts nothing before the end of the run
			own = x.stage()
		}
		state, below, err := x.resolve(ctx, d, own)
		if err != nil {
			return err
		}
		state = x.unsent(d, state)
		d.Source = &state
		out.Docs = append(out.Docs, d)
		out.Problems, out.Faulty = append(out.Problems, below.Problems...), append(out.Faulty, below.Faulty...)
		if err := x.all(ctx, below.Docs, out, l); err != nil {
			return err
		}
	}
	return nil
}

// resolve resolves one reference, and returns the documents of its stream. An error ends the run.
func (x *Expander) resolve(ctx context.Context, d values.Doc, l limit) (values.Source, values.Stream, error) {
	if !d.When.Matches(x.o.Target) {
		return values.Source{Result: values.Result{}.End(report.NotApplicable, "")}, values.Stream{}, nil
	}
	wrong := func(err error) (values.Source, values.Stream, error) {
		return values.Source{Result: values.Failed(d.FromPlugin(nil, err))}, values.Stream{}, nil
	}
	want, err := resolve.Check(d.Kind, d.Text)
	if err != nil {
		return wrong(err)
	}
	if d.From != nil {
		if err := resolve.Permitted(want, d.Remote); err != nil {
			return wrong(err)
		}
	}
	bound, err := x.o.Run.Bind(ctx, d)
	out := values.Source{Result: bound}
	if err != nil || bound.Settled {
		return out, values.Stream{}, err
	}
	if err := x.admit(d); err != nil {
		out.Result = out.Result.Fail(d.FromPlugin(nil, err))
		return out, values.Stream{}, nil
	}
	began := time.Now()
	out.Result.Began = x.o.At(began)
	limited, cancel := l.apply(ctx)
	defer cancel()
	data, err := x.get(limited, d, want, &out, l.tries)
	out.Result.Took = time.Since(began)
	if err != nil {
		return x.failed(limited, d, out, err)
	}
	if x.o.Validate {
		return out, values.Stream{}, nil
	}
	if d.Kind == v1alpha1.KindReportTarget {
		out.Result = out.Result.End(report.Unchanged, "")
		return out, values.Stream{}, nil
	}
	out.Result = out.Result.End(report.Unchanged, report.ReasonResolved)
	x.sums[d.ID] = sha256.Sum256(data)
	below, err := x.read(d, want, data)
	if values.EndsRun(err) { // the whole stream cannot be read
		out.Result = out.Result.Fail(d.Within(values.AsProblems(err)))
		return out, values.Stream{}, nil
	}
	x.o.Run.Progress(d, out.Result, "brings "+counted(len(below.Docs)+len(below.Faulty)))
	return out, below, err
}

func counted(documents int) string {
	if documents == 1 {
		return "1 document"
	}
	return fmt.Sprintf("%d documents", documents)
}

// admit refuses what exceeds the limits of a run. Another try of a pending document does not count.
func (x *Expander) admit(d values.Doc) error {
	if d.Source != nil {
		return nil
	}
	var message string
	switch x.fetches++; {
	case x.fetches > resolve.MaxFetches:
		message = fmt.Sprintf("the stream has references to more than %d other streams", resolve.MaxFetches)
	case len(d.Above()) >= resolve.MaxDepth:
		message = fmt.Sprintf("the document is within more than %d others", resolve.MaxDepth)
	default:
		return nil
	}
	return &pluginv1.Error{Code: pluginv1.CodeInvalidConfig, Message: message, Hint: "put the documents themselves into one of the streams"}
}

// get returns the stream of a reference as bytes, from its source or, where that is permitted, from an earlier try.
func (x *Expander) get(ctx context.Context, d values.Doc, want any, out *values.Source, tries time.Duration) ([]byte, error) {
	request := resolve.Request{
		Document: d.Text, Target: x.o.Target, MaxBytes: document.MaxStreamBytes - x.bytes, RetryFor: tries,
		ValidateOnly: x.o.Validate,
	}
	if target, ok := want.(*v1alpha1.ReportTarget); ok {
		return nil, x.checkTarget(ctx, target, out.Result.By, request)
	}
	key := resolve.Key(d.Chain(), d.Text)
	kept, err := x.load(key)
	if err != nil {
		return nil, err
	}
	if kept != nil && x.o.Resumed {
		return kept, nil
	}
	if err := ctx.Err(); err != nil { // the sources before it have used up the limit
		return nil, err
	}
	began := time.Now()
	done := x.waiting(d, tries)
	defer done()
	plugin := out.Result.By.Plugin
	var data []byte
	var revision string
	switch want := want.(type) {
	case *v1alpha1.RemoteConfig:
		data, revision, err = resolve.Fetch(ctx, plugin.Source, *want, request)
	case *v1alpha1.EncryptedConfig:
		data, err = resolve.Decrypt(ctx, plugin.Keys, x.opener, *want, request)
	}
	if done() {
		out.Result = out.Result.Wait(values.TextOf(d.Source.Pending), x.o.At(began), time.Since(began))
	}
	switch {
	case err != nil && kept != nil && resolve.Absent(err):
		message := "the source has nothing for this machine any more; what an earlier try got is used: " + pluginv1.AsError(err).Message
		out.Result = x.o.Run.Warn(d, out.Result, pluginv1.Warning{Message: message})
		x.o.Log.Warn(message, "document", d.Label()) // the output of a run can go to a file
		return kept, nil
	case err != nil || request.ValidateOnly:
		return nil, err
	}
	x.o.Log.Info("document resolved", "document", d.Label(), "bytes", len(data), "revision", revision)
	return data, x.keep(key, data)
}

// waitFirst is how long a run waits for a source without a word: a document ahead may have cured what kept it away.
const waitFirst = time.Second

// waiting says why a document that was tried before still waits for its source, and until when, until end is called, which returns
// whether it was said. The report has it, too, for as long as that lasts. The plugin tries by itself, and reports nothing meanwhile.
func (x *Expander) waiting(d values.Doc, tries time.Duration) (end func() bool) {
	if d.Source == nil || d.Source.Pending == nil {
		return func() bool { return false }
	}
	waited := false
	said := fmt.Sprintf("%s; tries until %s", values.TextOf(d.Source.Pending), time.Now().Add(tries).Format(time.TimeOnly))
	stop := values.Repeat(waitFirst, func() {
		x.o.Run.Waits(d, said, !waited)
		waited = true
	})
	return func() bool {
		stop() // before anything else of the run continues
		return waited
	}
}

// failed classifies the error of a source. An error that may pass leaves the document pending.
func (x *Expander) failed(ctx context.Context, d values.Doc, out values.Source, err error) (values.Source, values.Stream, error) {
	if values.EndsRun(err) {
		return out, values.Stream{}, err
	}
	if values.Expired(err) {
		values.AwaitDeadline(ctx)
		switch {
		case errors.Is(context.Cause(ctx), errTimeout):
			err = &pluginv1.Error{Code: pluginv1.CodeRetry, Message: fmt.Sprintf("it was not delivered within %s, the limit of all sources together", x.o.PlanTimeout)}
		case ctx.Err() != nil:
			return out, values.Stream{}, values.ContextEnded(ctx.Err(), x.o.Timeout)
		default:
			err = values.SelfCancelled(err)
		}
	}
	if e := pluginv1.AsError(err); !errors.Is(err, pluginv1.ErrCrashed) &&
		(e.Code == pluginv1.CodeRetry || e.Code == pluginv1.CodePrecondition) {
		out.Pending = e
		return out, values.Stream{}, nil
	}
	out.Result = out.Result.Fail(d.FromPlugin(out.Result.By, err))
	return out, values.Stream{}, nil
}

// read decodes the stream of a reference. An error of the run concerns all of it.
func (x *Expander) read(d values.Doc, want any, data []byte) (values.Stream, error) {
	tooMany := func(what string, most int) error {
		return values.OfRun(report.Error{
			Code: pluginv1.CodeInvalidConfig.String(), Message: fmt.Sprintf("the streams together hold more than %d %s", most, what),
		})
	}
	if x.bytes += int64(len(data)); x.bytes > document.MaxStreamBytes {
		return values.Stream{}, tooMany("bytes", document.MaxStreamBytes)
	}
	decoded, err := document.Decode(d.Chain(), bytes.NewReader(data))
	if err != nil {
		return values.Stream{}, err
	}
	s, err := values.Read(d.ID+".", decoded)
	if err != nil {
		return s, err
	}
	for _, docs := range [][]values.Doc{s.Docs, s.Faulty} {
		for i := range docs {
			docs[i].From, docs[i].Remote = &d, d.Remote || resolve.FromNetwork(want)
		}
	}
	for i := range s.Docs {
		here := &s.Docs[i]
		if other, twice := x.chains[here.Label()]; twice {
			message := "has the same name as " + other
			if slices.Contains(here.Above(), here.Label()) {
				message = "refers to itself: " + here.Chain()
			}
			here.Wrong = append(here.Wrong, here.Invalid("metadata.name", message, "give every document of a kind its own name, also across streams")...)
			continue
		}
		x.chains[here.Label()] = here.Chain()
	}
	if len(x.chains) > document.MaxDocuments {
		return s, tooMany("documents", document.MaxDocuments)
	}
	if x.o.WithoutSecrets {
		s = values.WithoutSecrets(s)
	}
	return s, nil
}

// Digest returns a digest of the stream and of the streams of all its references, whenever these were resolved; "" where there is none.
func (x *Expander) Digest() (string, error) {
	if x.o.StreamDigest == nil || len(x.sums) == 0 {
		return "", nil
	}
	signed := append(slices.Clone(x.o.Text), 0)
	for _, id := range slices.Sorted(maps.Keys(x.sums)) {
		signed = fmt.Appendf(signed, "%s %x\n", id, x.sums[id])
	}
	streamDigest, err := x.o.StreamDigest(signed)
	return streamDigest, values.StateError("", err)
}
