package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// secrets runs Plan and Apply, and Plan with documents that have an error in the secret or beside it, because errors quote
// values most often.
func secrets(ctx context.Context, f *fixture) (result, error) {
	r := f.runner
	hidden := r.c.expect.Secrets
	if r.counterpart != nil {
		hidden = append(slices.Clip(hidden), "served/")
	}
	if len(hidden) == 0 {
		return skipped("the case has no secret"), nil
	}
	p, err := f.startNew(ctx, usualUmask)
	if err != nil {
		return result{}, err
	}
	w := &watch{traces: tracesOf(r.canary), pid: p.PID()}
	stop := w.run()
	defer stop()
	unknown, err := with(r.document, r.canary, []string{"spec"}, unknownName)
	if err != nil {
		return result{}, err
	}
	mistyped, err := replaceWord(r.document, r.canary, func(text string) any { return []any{text} })
	if err != nil {
		return result{}, err
	}
	for _, d := range []struct {
		what string
		doc  []byte
	}{{p.role.call(), r.document}, {p.role.call() + " with an unknown field", unknown}, {p.role.call() + " with a secret of another type", mistyped}} {
		plan, err := p.plan(ctx, withDocument(f.planning(), d.doc))
		w.search("the answer to "+d.what, texts(plan), texts(contractError(err)))
	}
	run := p.apply(ctx, f.applying(), 0, func(int, pluginv1.Event) { w.searchProcesses() })
	for _, e := range run.events {
		w.search("an event of Apply", texts(e))
	}
	w.search("finished", texts(run.finished), texts(run.finished.Error), texts(contractError(run.err)))
	stop()
	p.end()
	w.search("what the plugin wrote to its stderr", string(p.stderr.all()))
	if found := w.found(); len(found) > 0 {
		return failed(finding{
			clause: "G-23", expected: "a secret occurs in no answer, event, log, argument or environment",
			got: fmt.Sprintf("a secret of %s (plain, in hexadecimal or base64) shows in %s",
				strings.Join(hidden, ", "), strings.Join(found, ", and in ")),
			cause: "a log of the request, an error that quotes the value, or a diff of a file that has no mark as confidential",
		}), nil
	}
	return passed(), nil
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
	traces traces
	pid    int

	mu     sync.Mutex
	places []string
}

func (w *watch) search(place string, texts ...string) {
	for _, text := range texts {
		if w.traces.in([]byte(text)) {
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
	if w.traces.in(family(w.pid).shown()) {
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
