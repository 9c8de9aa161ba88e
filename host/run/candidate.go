package run

import (
	"slices"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/host/launch"
)

// candidate is a running plugin that serves a document's kind.
type candidate struct {
	plugin   *launch.Plugin
	binary   string
	provider string // from the binary's name, by which a later run finds the plugin again; not from Describe
	kind     pluginv1.Kind
}

func (c *candidate) stderr() string {
	if c == nil || c.plugin == nil || c.plugin.Stderr == nil {
		return ""
	}
	return c.plugin.Stderr()
}

// ranked groups candidates by their fit to the target, best first: by fitness and, at equal fitness, by distribution: a
// provider for the target's own, for one of its ID_LIKE in order, for any, for others. Two candidates in a group are a tie.
func ranked(all []*candidate, t target.Target) [][]*candidate {
	compare := func(a, b *candidate) int {
		if d := b.plugin.Description.Fitness - a.plugin.Description.Fitness; d != 0 {
			return int(d)
		}
		return distance(a.plugin.Description.Distributions, t) - distance(b.plugin.Description.Distributions, t)
	}
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, compare)
	var out [][]*candidate
	for i, c := range sorted {
		if i > 0 && compare(sorted[i-1], c) == 0 {
			out[len(out)-1] = append(out[len(out)-1], c)
			continue
		}
		out = append(out, []*candidate{c})
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
