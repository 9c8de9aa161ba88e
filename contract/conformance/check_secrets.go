package conformance

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// secrets runs Plan and Apply, and Plan with documents that are wrong about the secret or beside it: errors are where
// secrets leak most.
func secrets(ctx context.Context, b *bench) (finding, error) {
	t := b.trial
	if len(t.c.expect.Secrets) == 0 {
		return skipped("the case has no secret"), nil
	}
	p, err := b.start(ctx)
	if err != nil {
		return finding{}, err
	}
	w := &watch{traces: tracesOf(t.canary), pid: p.PID()}
	stop := w.run()
	defer stop()
	unknown, err := with(t.document, t.canary, []string{"spec"}, unknownName)
	if err != nil {
		return finding{}, err
	}
	mistyped, err := replaceWord(t.document, t.canary, func(text string) any { return []any{text} })
	if err != nil {
		return finding{}, err
	}
	for _, d := range []struct {
		what string
		doc  []byte
	}{{"a plan", t.document}, {"a plan with an unknown field", unknown}, {"a plan with a secret of another type", mistyped}} {
		plan, err := p.plan(ctx, clone(b.planning(), d.doc))
		w.look("the answer to "+d.what, texts(plan), texts(contractError(err)))
	}
	run := p.apply(ctx, b.applying(), 0, func(int, pluginv1.Event) { w.lookAtProcesses() })
	for _, e := range run.events {
		w.look("an event of Apply", texts(e))
	}
	w.look("finished", texts(run.finished), texts(run.finished.Error), texts(contractError(run.err)))
	stop()
	p.end()
	w.look("what the plugin wrote to its stderr", string(p.stderr.all()))
	if found := w.found(); len(found) > 0 {
		return failed("a secret of %s (as it is, in hexadecimal or base64) shows in %s",
			strings.Join(t.c.expect.Secrets, ", "), strings.Join(found, ", and in ")), nil
	}
	return passed(), nil
}

// texts is everything in a value of the wire, in one text.
func texts(value any) string {
	if e, ok := value.(*pluginv1.Error); ok {
		if e == nil {
			return ""
		}
		return fmt.Sprintf("%+v", *e)
	}
	return fmt.Sprintf("%+v", value)
}

// watch collects where a canary shows.
type watch struct {
	traces traces
	pid    int

	mu     sync.Mutex
	places []string
}

func (w *watch) look(place string, texts ...string) {
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

// lookAtProcesses reads /proc/PID/{cmdline,environ} of the plugin and its descendants.
func (w *watch) lookAtProcesses() {
	if w.traces.in(family(w.pid).shown()) {
		w.add("the arguments or the environment of a process")
	}
}

// sampling is how often the processes are looked at.
const sampling = time.Millisecond

// run looks at the processes all the time, until the function that it returns is called, which may be more than once.
// It samples: a process that lives for less than a millisecond may be missed. No image root has one, see no-command.
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
				w.lookAtProcesses()
			}
		}
	}()
	var once sync.Once
	return func() {
		once.Do(func() { close(over) })
		<-ended
	}
}
