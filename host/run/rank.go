package run

import (
	"slices"

	"github.com/machineadm/machineadm/contract/target"
)

// ranked groups candidates by how well they fit the target, best first: by fitness, and at equal fitness a provider that
// was written for this distribution before one for a distribution that it is like, in the order of ID_LIKE, before a
// generic one, before one for other distributions. Two candidates in one group are a tie.
func ranked(all []*candidate, t target.Target) [][]*candidate {
	better := func(a, b *candidate) int {
		if d := b.plugin.Description.Fitness - a.plugin.Description.Fitness; d != 0 {
			return int(d)
		}
		return nearness(a.plugin.Description.Distributions, t) - nearness(b.plugin.Description.Distributions, t)
	}
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, better)
	var out [][]*candidate
	for i, c := range sorted {
		if i > 0 && better(sorted[i-1], c) == 0 {
			out[len(out)-1] = append(out[len(out)-1], c)
			continue
		}
		out = append(out, []*candidate{c})
	}
	return out
}

// nearness is how near a provider's distributions are to the target: 0 is its own ID.
func nearness(distributions []string, t target.Target) int {
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
