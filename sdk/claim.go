package sdk

import (
	"bytes"
	"slices"
	"sync"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk/internal/fault"
	"github.com/machineadm/machineadm/sdk/machine"
)

// claims collects the claims of a plan function and its helpers. Without a key the runtime wants none.
type claims struct {
	key   []byte
	mutex sync.Mutex
	all   []pluginv1.Claim
	twice string // an ID with two different values
}

func (c *claims) add(claim machine.Claim) {
	if len(c.key) == 0 {
		return
	}
	var value [][]byte
	for _, part := range claim.Value {
		value = append(value, []byte(part))
	}
	made := pluginv1.NewClaim(c.key, claim.ID, claim.Field, value...)
	made.Assumed = claim.Assumed
	c.mutex.Lock()
	defer c.mutex.Unlock()
	at := slices.IndexFunc(c.all, func(other pluginv1.Claim) bool { return other.ID == made.ID })
	switch {
	case at < 0:
		c.all = append(c.all, made)
	case made.Assumed: // what the document asks for counts
	case c.all[at].Assumed:
		c.all[at] = made
	case !bytes.Equal(c.all[at].Digest, made.Digest):
		c.twice = made.ID
	}
}

// check refuses two values of one ID.
func (c *claims) check() error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.twice != "" {
		return internal("the plan claims " + c.twice + " with two values")
	}
	return nil
}

// attach adds the claims so far to an error of planning.
func (c *claims) attach(err error) error {
	known := open(err)
	if known == nil {
		return err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	claiming := *known
	claiming.Claims = c.all
	return &claiming
}

// warning adds warnings to an error of planning.
func warning(err error, warnings []Warning) error {
	known := open(err)
	if known == nil || len(warnings) == 0 {
		return err
	}
	with := *known
	with.Warnings = warnings
	return &with
}

// open returns the error of a plan that another time, or another machine, does not have; else nil.
func open(err error) *pluginv1.Error {
	known, ok := fault.Known(err)
	if !ok || known.Code != pluginv1.CodePrecondition && known.Code != pluginv1.CodeRetry {
		return nil
	}
	return known
}
