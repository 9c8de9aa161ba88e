package controller

import (
	"testing"
	"time"
)

// tokenTTL is the life of a token in TestInputs. The manager replaces or renews it when half of its life is over, and has the other half
// for that.
const tokenTTL = 2 * time.Minute

// TestInputs: what a config is made from, without any machine. All runs in one management cluster; canaries and rights look at what
// the others have left.
func TestInputs(t *testing.T) {
	t.Parallel() // beside TestBeside and TestFailover: all three wait most of their time
	r := light(t, inputsFlags()...)
	t.Run("unserved", r.unserved)
	r.serve(t, inputsFlags()...)
	t.Run("unidentified", r.unidentified)
	t.Run("bad input", r.badInput)
	t.Run("refused", r.refused)
	t.Run("golden", r.golden)
	t.Run("foreign", r.foreign)
	t.Run("pool", r.pool)
	t.Run("locks", r.locks)
	t.Run("paused", r.paused)
	t.Run("metadata", r.metadata)
	t.Run("remade", r.remade)
	t.Run("external etcd", r.externalEtcd)
	t.Run("adopted", r.adopted)
	t.Run("named again", r.namedAgain)
	t.Run("leaving", r.leaving)
	t.Run("sizes", r.sizes)
	t.Run("storage", r.storage)
	t.Run("claims", r.claims)
	t.Run("taken", r.taken)
	t.Run("events", r.events)
	t.Run("actions", r.actions)
	t.Run("accepted", r.accepted)
	t.Run("identified", r.identified)
	t.Run("canaries", r.canaries)
	t.Run("tokens", r.renewals) // its manager ends with it
	t.Run("pinned", r.pinned)
	t.Run("rights", r.rights)
}

func inputsFlags() []string {
	return []string{"--v=5", "--bootstrap-token-ttl=" + tokenTTL.String(), "--insecure-diagnostics=false", "--leader-elect", "--leader-elect-namespace=machineadm-system"}
}
