package run

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
	"github.com/machineadm/machineadm/host/envelope"
	"github.com/machineadm/machineadm/host/resolve"
)

// limit bounds the access to a source.
type limit struct {
	tries time.Duration // how long the plugin tries again by itself
	// until ends the access to all sources of a stage: one that sends a byte now and then would hold the stage for its own limit, once
	// for each document. The zero value means the end of the context.
	until time.Time
}

// stage is the limit of documents that are resolved one after the other.
func (x *expander) stage() limit { return limit{firstTries, time.Now().Add(x.o.PlanTimeout)} }

// firstTries is how long a plugin tries again by itself to reach a source in the first planning, in which other documents may have
// to come first. At the turn of the document it is all that is left of its limit.
const firstTries = 5 * time.Second

// expand puts the documents of its stream behind each reference. An error ends the run.
func (r *runner) expand(ctx context.Context, s stream) (stream, error) {
	r.expander = &expander{
		runner: r, chains: map[string]string{}, sums: map[string][sha256.Size]byte{}, bytes: int64(len(r.o.Text)), opener: envelope.NewOpener(),
	}
	for _, d := range s.docs {
		r.expander.chains[d.label()] = d.chain()
	}
	if r.o.ContractOnly || !slices.ContainsFunc(s.docs, doc.isReference) {
		return s, nil
	}
	r.times.enter(report.StageResolve)
	ctx, cancel := r.untilInterrupted(ctx)
	defer cancel()
	out := stream{problems: s.problems, faulty: s.faulty}
	if err := r.expander.all(ctx, s.docs, &out, r.expander.stage()); err != nil {
		return s, err
	}
	for i := range out.docs {
		out.docs[i].index = i
	}
	if err := r.expander.prune(out); err != nil {
		return s, err
	}
	return out, r.expander.updateDigest()
}

// apply returns the context of one access.
func (l limit) apply(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.until.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadlineCause(ctx, l.until, errPlanTimeout)
}

// prune removes the streams of references that are gone. While one is not resolved, the references in its stream are
// not known.
func (x *expander) prune(s stream) error {
	unresolved := func(d doc) bool {
		return d.isReference() && (d.source == nil || d.source.pending != nil || d.source.result.outcome == report.Failed)
	}
	if x.deps.Resolved == nil || x.o.Mode != ModeApply || len(s.problems) > 0 || slices.ContainsFunc(s.docs, unresolved) {
		return nil
	}
	return stateError("remove what documents stood for", x.deps.Resolved.Only(x.keys))
}

// all resolves these references and the references in their streams. What the limit leaves is pending.
func (x *expander) all(ctx context.Context, docs []doc, out *stream, l limit) error {
	for _, d := range docs {
		if !d.isReference() || len(d.wrong) > 0 {
			out.docs = append(out.docs, d)
			continue
		}
		if err := x.checkpoint(ctx); err != nil {
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
		d.source = &state
		out.docs = append(out.docs, d)
		out.problems, out.faulty = append(out.problems, below.problems...), append(out.faulty, below.faulty...)
		if err := x.all(ctx, below.docs, out, l); err != nil {
			return err
		}
	}
	return nil
}

// resolve resolves one reference, and returns the documents of its stream. An error ends the run.
func (x *expander) resolve(ctx context.Context, d doc, l limit) (source, stream, error) {
	if !d.When.Matches(x.o.Target) {
		return source{result: result{}.end(report.NotApplicable, "")}, stream{}, nil
	}
	wrong := func(err error) (source, stream, error) {
		return source{result: failed(d.fromPlugin(nil, err))}, stream{}, nil
	}
	want, err := resolve.Check(d.Kind, d.json)
	if err != nil {
		return wrong(err)
	}
	if d.from != nil {
		if err := resolve.Permitted(want, d.remote); err != nil {
			return wrong(err)
		}
	}
	b, err := x.bind(ctx, bound{doc: d, provider: d.Provider})
	if err != nil || b.result.settled {
		return source{result: b.result}, stream{}, err
	}
	out := source{result: result{by: b.ranks[0][0]}}
	if err := x.admit(d); err != nil {
		out.result = out.result.fail(d.fromPlugin(nil, err))
		return out, stream{}, nil
	}
	began := time.Now()
	out.result.began = x.times.at(began)
	limited, cancel := l.apply(ctx)
	defer cancel()
	data, err := x.get(limited, d, want, &out, l.tries)
	out.result.took = time.Since(began)
	if err != nil {
		return x.failed(limited, d, out, err)
	}
	if x.o.Mode == ModeValidate {
		return out, stream{}, nil
	}
	if d.Kind == v1alpha1.KindReportTarget {
		out.result = out.result.end(report.Unchanged, "")
		return out, stream{}, nil
	}
	out.result = out.result.end(report.Unchanged, report.ReasonResolved)
	x.sums[d.id] = sha256.Sum256(data)
	below, err := x.read(d, want, data)
	if endsRun(err) { // the whole stream cannot be read
		out.result = out.result.fail(d.within(asProblems(err)))
		return out, stream{}, nil
	}
	x.emitFor(d, out.result, Event{Type: EventProgress, Message: "brings " + counted(len(below.docs)+len(below.faulty))})
	return out, below, err
}

func counted(documents int) string {
	if documents == 1 {
		return "1 document"
	}
	return fmt.Sprintf("%d documents", documents)
}

// admit refuses what exceeds the limits of a run. Another try of a pending document does not count.
func (x *expander) admit(d doc) error {
	if d.source != nil {
		return nil
	}
	var message string
	switch x.fetches++; {
	case x.fetches > resolve.MaxFetches:
		message = fmt.Sprintf("the stream has references to more than %d other streams", resolve.MaxFetches)
	case len(d.above()) >= resolve.MaxDepth:
		message = fmt.Sprintf("the document is within more than %d others", resolve.MaxDepth)
	default:
		return nil
	}
	return &pluginv1.Error{Code: pluginv1.CodeInvalidConfig, Message: message, Hint: "put the documents themselves into one of the streams"}
}

// get returns the stream of a reference as bytes, from its source or, where that is permitted, from an earlier try.
func (x *expander) get(ctx context.Context, d doc, want any, out *source, tries time.Duration) ([]byte, error) {
	request := resolve.Request{
		Document: d.json, Target: x.o.Target, MaxBytes: document.MaxStreamBytes - x.bytes, RetryFor: tries,
		ValidateOnly: x.o.Mode == ModeValidate,
	}
	if target, ok := want.(*v1alpha1.ReportTarget); ok {
		return nil, x.checkTarget(ctx, target, out.result.by, request)
	}
	key := resolve.Key(d.chain(), d.json)
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
	plugin := out.result.by.plugin
	var data []byte
	var revision string
	switch want := want.(type) {
	case *v1alpha1.RemoteConfig:
		data, revision, err = resolve.Fetch(ctx, plugin.Source, *want, request)
	case *v1alpha1.EncryptedConfig:
		data, err = resolve.Decrypt(ctx, plugin.Keys, x.opener, *want, request)
	}
	if done() {
		out.result = out.result.wait(textOf(d.source.pending), x.times.at(began), time.Since(began))
	}
	switch {
	case err != nil && kept != nil && resolve.Absent(err):
		message := "the source has nothing for this machine any more; what an earlier try got is used: " + pluginv1.AsError(err).Message
		out.result = x.warn(d, out.result, pluginv1.Warning{Message: message})
		x.log.Warn(message, "document", d.label()) // the output of a run can go to a file
		return kept, nil
	case err != nil || request.ValidateOnly:
		return nil, err
	}
	x.log.Info("document resolved", "document", d.label(), "bytes", len(data), "revision", revision)
	return data, x.keep(key, data)
}

// waitFirst is how long a run waits for a source without a word: a document ahead may have cured what kept it away.
const waitFirst = time.Second

// waiting says why a document that was tried before still waits for its source, and until when, until end is called, which returns
// whether it was said. The report has it, too, for as long as that lasts. The plugin tries by itself, and reports nothing meanwhile.
func (x *expander) waiting(d doc, tries time.Duration) (end func() bool) {
	if d.source == nil || d.source.pending == nil {
		return func() bool { return false }
	}
	res, waited := x.results[d.index], false
	said := Event{Type: EventRetry, Message: fmt.Sprintf("%s; tries until %s",
		textOf(d.source.pending), time.Now().Add(tries).Format(time.TimeOnly))}
	stop := repeat(waitFirst, func() {
		x.emitFor(d, res, said)
		if !waited {
			x.results[d.index] = res.warn(pluginv1.Warning{Message: "waiting: " + said.Message})
			_ = x.record() // the next record returns the error
			x.results[d.index] = res
		}
		waited = true
	})
	return func() bool {
		stop() // before anything else of the run continues
		return waited
	}
}

// failed classifies the error of a source. An error that may pass leaves the document pending.
func (x *expander) failed(ctx context.Context, d doc, out source, err error) (source, stream, error) {
	if endsRun(err) {
		return out, stream{}, err
	}
	if expired(err) {
		awaitDeadline(ctx)
		switch {
		case errors.Is(context.Cause(ctx), errPlanTimeout):
			err = &pluginv1.Error{Code: pluginv1.CodeRetry, Message: fmt.Sprintf("it was not delivered within %s, the limit of all sources together", x.o.PlanTimeout)}
		case ctx.Err() != nil:
			return out, stream{}, x.contextEnded(ctx.Err())
		default:
			err = selfCancelled(err)
		}
	}
	if e := pluginv1.AsError(err); !errors.Is(err, pluginv1.ErrCrashed) &&
		(e.Code == pluginv1.CodeRetry || e.Code == pluginv1.CodePrecondition) {
		out.pending = e
		return out, stream{}, nil
	}
	out.result = out.result.fail(d.fromPlugin(out.result.by, err))
	return out, stream{}, nil
}

// read decodes the stream of a reference. An error of the run concerns all of it.
func (x *expander) read(d doc, want any, data []byte) (stream, error) {
	tooMany := func(what string, most int) error {
		return ofRun(report.Error{
			Code: pluginv1.CodeInvalidConfig.String(), Message: fmt.Sprintf("the streams together hold more than %d %s", most, what),
		})
	}
	if x.bytes += int64(len(data)); x.bytes > document.MaxStreamBytes {
		return stream{}, tooMany("bytes", document.MaxStreamBytes)
	}
	decoded, err := document.Decode(d.chain(), bytes.NewReader(data))
	if err != nil {
		return stream{}, err
	}
	s, err := read(d.id+".", decoded)
	if err != nil {
		return s, err
	}
	for _, docs := range [][]doc{s.docs, s.faulty} {
		for i := range docs {
			docs[i].from, docs[i].remote = &d, d.remote || resolve.FromNetwork(want)
		}
	}
	for i := range s.docs {
		here := &s.docs[i]
		if other, twice := x.chains[here.label()]; twice {
			message := "has the same name as " + other
			if slices.Contains(here.above(), here.label()) {
				message = "refers to itself: " + here.chain()
			}
			here.wrong = append(here.wrong, here.invalid("metadata.name", message, "give every document of a kind its own name, also across streams")...)
			continue
		}
		x.chains[here.label()] = here.chain()
	}
	if len(x.chains) > document.MaxDocuments {
		return s, tooMany("documents", document.MaxDocuments)
	}
	if x.image() && !x.o.AllowSecrets {
		s = withoutSecrets(s)
	}
	return s, nil
}

// load returns what an earlier try of this machine got, nil for nothing.
func (x *expander) load(key string) ([]byte, error) {
	if x.deps.Resolved == nil {
		return nil, nil
	}
	x.keys = append(x.keys, key)
	data, err := x.deps.Resolved.Load(key)
	return data, stateError("read what an earlier run resolved", err)
}

// keep saves the stream of a reference, until the run has succeeded.
func (x *expander) keep(key string, data []byte) error {
	if x.deps.Resolved == nil || x.o.Mode != ModeApply {
		return nil
	}
	return stateError("keep the stream of a reference", x.deps.Resolved.Keep(key, data))
}

// updateDigest makes the stream digest cover the stream and the streams of all its references, whenever these were resolved.
func (x *expander) updateDigest() error {
	if x.deps.StreamDigest == nil || len(x.sums) == 0 {
		return nil
	}
	signed := append(slices.Clone(x.o.Text), 0)
	for _, id := range slices.Sorted(maps.Keys(x.sums)) {
		signed = fmt.Appendf(signed, "%s %x\n", id, x.sums[id])
	}
	streamDigest, err := x.deps.StreamDigest(signed)
	if err == nil {
		x.head.StreamDigest = streamDigest
	}
	return stateError("", err)
}

// showResolved ends a run after its documents are resolved. One that cannot be resolved now is an error.
func (r *runner) showResolved(s stream) error {
	wrong := slices.Clone(s.problems)
	for i, d := range s.docs {
		if d.source != nil {
			r.results[i] = d.source.result
		}
		if d.source != nil && d.source.pending != nil {
			r.results[i] = r.results[i].fail(d.fromPlugin(d.source.result.by, d.source.pending))
		}
		wrong = append(wrong, r.results[i].problems...)
	}
	return wrong.sorted().orNil()
}
