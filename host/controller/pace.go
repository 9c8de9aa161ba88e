package controller

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pace is what the manager remembers of an object between two calls. A manager that starts begins anew.
type pace struct {
	// failures counts the calls that have failed in a row, the last of them with a storage of this digest. There is none before next.
	failures int
	source   [32]byte
	failed   *stop
	next     time.Time
	// look is when to look for the report again, and interval was the pause before.
	look     time.Time
	interval time.Duration
	// joined is when the machine was first seen with a node.
	joined time.Time
}

// paces has the pace of each config. A config has one reconciliation at a time, which alone uses its pace.
type paces struct {
	mu       sync.Mutex
	byConfig map[client.ObjectKey]*pace
}

func (p *paces) of(config client.ObjectKey) *pace {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := p.byConfig[config]
	if found == nil {
		if p.byConfig == nil {
			p.byConfig = map[client.ObjectKey]*pace{}
		}
		found = &pace{}
		p.byConfig[config] = found
	}
	return found
}

func (p *paces) drop(config client.ObjectKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byConfig, config)
}
