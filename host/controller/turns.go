package controller

import (
	"context"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

const (
	// lightBytes is how many bytes of inputs a reconciliation may read beside all others of its namespace.
	lightBytes = 32 << 10
	// largeConfig is the size of a config that is itself large.
	largeConfig = 256 << 10
	// largeSlots is how many namespaces may have a large reconciliation at once.
	largeSlots = 4
)

// turns shares the workers and the memory between namespaces, because each may belong to a tenant. A namespace has a share of the
// workers, and one large reconciliation at a time. So what it takes does not grow with the number of its objects.
type turns struct {
	share int
	slots chan struct{}

	mu          sync.Mutex
	byNamespace map[string]*namespaceTurns
}

// namespaceTurns are the reconciliations of a namespace, and the requests that wait until one of them ends.
type namespaceTurns struct {
	running int
	large   chan struct{}
	parked  []reconcile.Request
	isIn    map[reconcile.Request]struct{}
}

func newTurns(workers int) *turns {
	return &turns{share: max(1, workers/8), slots: make(chan struct{}, largeSlots), byNamespace: map[string]*namespaceTurns{}}
}

// turn is one reconciliation. The nil turn is alone.
type turn struct {
	turns     *turns
	namespace string
	of        *namespaceTurns
	large     bool
}

// begin returns nil if the namespace has its share of workers: then the request is parked, and its worker is free.
func (t *turns) begin(request reconcile.Request) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.byNamespace[request.Namespace]
	if of == nil {
		of = &namespaceTurns{large: make(chan struct{}, 1), isIn: map[reconcile.Request]struct{}{}}
		t.byNamespace[request.Namespace] = of
	}
	if of.running >= t.share {
		if _, known := of.isIn[request]; !known {
			of.parked, of.isIn[request] = append(of.parked, request), struct{}{}
		}
		return nil
	}
	of.running++
	return &turn{turns: t, namespace: request.Namespace, of: of}
}

// end returns the parked request that comes next, if there is one.
func (t *turn) end() (next reconcile.Request, parked bool) {
	t.release()
	t.turns.mu.Lock()
	defer t.turns.mu.Unlock()
	t.of.running--
	if len(t.of.parked) > 0 {
		next, parked = t.of.parked[0], true
		t.of.parked = t.of.parked[1:]
		delete(t.of.isIn, next)
	} else if t.of.running == 0 {
		delete(t.turns.byNamespace, t.namespace)
	}
	return next, parked
}

// wait makes the reconciliation the large one of its namespace.
func (t *turn) wait(ctx context.Context) error {
	if t == nil || t.large {
		return nil
	}
	select {
	case t.of.large <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err() //nolint:wrapcheck // the manager ends
	}
	select {
	case t.turns.slots <- struct{}{}:
	case <-ctx.Done():
		<-t.of.large
		return ctx.Err() //nolint:wrapcheck // the manager ends
	}
	t.large = true
	return nil
}

// release lets the next large one begin.
func (t *turn) release() {
	if t != nil && t.large {
		t.large = false
		<-t.turns.slots
		<-t.of.large
	}
}

// waitFor makes the reconciliation of a config that is itself large the large one of its namespace.
func (t *turn) waitFor(ctx context.Context, config *bootstrap.MachineBootstrapConfig) error {
	size := 0
	for i := range config.Spec.Documents {
		d := &config.Spec.Documents[i]
		size += len(d.Spec.Raw) + textBytes(d.Before) + textBytes(d.After)
	}
	for _, refs := range [][]bootstrap.PluginReference{config.Spec.PluginRefs, config.Spec.PluginTemplateRefs} {
		for i := range refs {
			size += textBytes(refs[i].Before) + textBytes(refs[i].After)
		}
	}
	if size+textBytes(config.Status.Order) > largeConfig {
		return t.wait(ctx)
	}
	return nil
}

func textBytes(texts []string) int {
	sum := 0
	for _, text := range texts {
		sum += len(text)
	}
	return sum
}
