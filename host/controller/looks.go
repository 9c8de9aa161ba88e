package controller

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// tokenLook is how often the token of a machine without a node is looked at in its cluster. A control plane that is created once more after
// a failure has lost it, and kubeadm join gives up after five minutes.
const tokenLook = 2 * time.Minute

// tokenLife is how long the token of a machine without a node is renewed.
const tokenLife = 24 * time.Hour

// looks are when the tokens of configs were last looked at in their clusters.
type looks struct {
	mu   sync.Mutex
	last map[client.ObjectKey]time.Time
}

// due says whether to look now, and takes that it is done. The first time is later: a manager that starts has just filled its caches.
func (l *looks) due(config client.ObjectKey, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, known := l.last[config]
	if known && now.Sub(last) < tokenLook {
		return false
	}
	if l.last == nil {
		l.last = map[client.ObjectKey]time.Time{}
	}
	l.last[config] = now
	return known
}

func (l *looks) drop(config client.ObjectKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.last, config)
}
