package answers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/machineadm/machineadm/contract/conformance/internal/process"
	"github.com/machineadm/machineadm/contract/conformance/internal/rig"
	"github.com/machineadm/machineadm/contract/conformance/internal/testcase"
	"github.com/machineadm/machineadm/contract/pluginv1"
)

// Secrets runs Plan and Apply, and Plan with documents that have an error in the secret or beside it, because errors quote
// values most often.
func Secrets(ctx context.Context, f *rig.Fixture) (rig.Result, error) {
	r := f.Runner
	hidden := r.Case.Expect.Secrets
	if r.Counterpart != nil {
		hidden = append(slices.Clip(hidden), "served/")
	}
	if len(hidden) == 0 {
		return rig.Skipped("the case has no secret"), nil
	}
	p, err := f.StartNew(ctx, process.UsualUmask)
	if err != nil {
		return rig.Result{}, err
	}
	w := &watch{traces: testcase.TracesOf(r.Canary), pid: p.PID()}
	stop := w.run()
	defer stop()
	unknown, err := testcase.With(r.Document, r.Canary, []string{"spec"}, testcase.UnknownName)
	if err != nil {
		return rig.Result{}, err
	}
	mistyped, err := testcase.ReplaceWord(r.Document, r.Canary, func(text string) any { return []any{text} })
	if err != nil {
		return rig.Result{}, err
	}
	for _, d := range []struct {
		what string
		doc  []byte
	}{{p.Role.Call(), r.Document}, {p.Role.Call() + " with an unknown field", unknown}, {p.Role.Call() + " with a secret of another type", mistyped}} {
		plan, err := p.CallPlan(ctx, rig.WithDocument(f.Planning(), d.doc))
		w.search("the answer to "+d.what, texts(plan), texts(process.ContractError(err)))
	}
	run := p.CallApply(ctx, f.Applying(), 0, func(int, pluginv1.Event) { w.searchProcesses() })
	for _, e := range run.Events {
		w.search("an event of Apply", texts(e))
	}
	w.search("finished", texts(run.Finished), texts(run.Finished.Error), texts(process.ContractError(run.Err)))
	stop()
	p.End()
	w.search("what the plugin wrote to its stderr", string(p.Stderr.All()))
	if found := w.found(); len(found) > 0 {
		return rig.Failed(rig.Finding{
			Clause: "G-23", Expected: "a secret occurs in no answer, event, log, argument or environment",
			Got: fmt.Sprintf("a secret of %s (plain, in hexadecimal or base64) shows in %s",
				strings.Join(hidden, ", "), strings.Join(found, ", and in ")),
			Cause: "a log of the request, an error that quotes the value, or a diff of a file that has no mark as confidential",
		}), nil
	}
	return rig.Passed(), nil
}

// texts returns all of a value of the wire as one text.
func texts(value any) string {
	if e, ok := value.(*pluginv1.Error); ok {
		if e == nil {
			return ""
		}
		return fmt.Sprintf("%+v", *e)
	}
	return fmt.Sprintf("%+v", value)
}

// watch collects the places where a canary shows.
type watch struct {
	traces testcase.Traces
	pid    int

	mu     sync.Mutex
	places []string
}

func (w *watch) search(place string, texts ...string) {
	for _, text := range texts {
		if w.traces.In([]byte(text)) {
			w.add(place)
			return
		}
	}
}

func (w *watch) add(place string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, known := range w.places {
		if known == place {
			return
		}
	}
	w.places = append(w.places, place)
}

func (w *watch) found() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.places
}

// searchProcesses reads /proc/PID/{cmdline,environ} of the plugin and its descendants.
func (w *watch) searchProcesses() {
	if w.traces.In(process.Family(w.pid).Shown()) {
		w.add("the arguments or the environment of a process")
	}
}

// sampling is the interval of reading the processes.
const sampling = time.Millisecond

// run reads the processes until stop is called, which may be repeated. It samples, so that it may miss a process that lives
// for less than a millisecond; no-command reports every process of an image root.
func (w *watch) run() (stop func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(sampling)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				w.searchProcesses()
			}
		}
	}()
	var once sync.Once
	return func() {
		once.Do(func() { close(over) })
		<-ended
	}
}
