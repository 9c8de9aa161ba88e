package values

import (
	"slices"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/host/launch"
)

// Candidate is a running plugin that serves a document's kind.
type Candidate struct {
	Plugin   *launch.Plugin
	Binary   string
	Provider string // from the binary's name, by which a later run finds the plugin again; not from Describe
	Kind     pluginv1.Kind
}

func (c *Candidate) stderr() string {
	if c == nil || c.Plugin == nil || c.Plugin.Stderr == nil {
		return ""
	}
	return c.Plugin.Stderr()
}

// Ranked groups candidates by their fit to the target, best first: by fitness and, at equal fitness, by distribution: a
// provider for the target's own, for one of its ID_LIKE in order, for any, for others. Two candidates in a group are a tie.
func Ranked(all []*Candidate, t target.Target) [][]*Candidate {
	compare := func(a, b *Candidate) int {
		if d := b.Plugin.Description.Fitness - a.Plugin.Description.Fitness; d != 0 {
			return int(d)
		}
		return distance(a.Plugin.Description.Distributions, t) - distance(b.Plugin.Description.Distributions, t)
	}
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, compare)
	var out [][]*Candidate
	for i, c := range sorted {
		if i > 0 && compare(sorted[i-1], c) == 0 {
			out[len(out)-1] = append(out[len(out)-1], c)
			continue
		}
		out = append(out, []*Candidate{c})
	}
	return out
}

// distance returns how far a provider's distributions are from the target; 0 is the target's own ID.
func distance(distributions []string, t target.Target) int {
	for i, id := range append([]string{t.Distribution}, t.Like...) {
		if id != "" && slices.Contains(distributions, id) {
			return i
		}
	}
	if len(distributions) == 0 {
		return len(t.Like) + 1
	}
	return len(t.Like) + 2
}

// Foresees reports whether the plugin of a document plans with the files of earlier documents.
func (c *Candidate) Foresees() bool {
	return c != nil && slices.Contains(c.Plugin.Description.Capabilities, pluginv1.CapabilityFiles)
}
