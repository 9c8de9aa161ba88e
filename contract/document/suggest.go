package document

import (
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/v1alpha1"
)

const (
	maxListed  = 12
	maxGuessed = 64 // the longest name that gets a suggestion
)

const unknownField = "unknown field"

// instead returns a hint for a name that is not in known.
func instead(name string, known []string) (hint string) {
	if meant := Nearest(name, known); meant != "" {
		return "did you mean " + meant + "?"
	}
	switch {
	case len(known) == 0:
		return "remove it: no fields are allowed here"
	case len(known) > maxListed:
		return "remove it, or correct its spelling"
	}
	sorted := slices.Sorted(slices.Values(known))
	return "remove it, or use one of: " + strings.Join(sorted, ", ")
}

// SuggestKind returns the kind of this release that is most similar to kind, or "".
func SuggestKind(kind string) string { return Nearest(kind, v1alpha1.Kinds()) }

// Nearest returns the known name that differs from name in case or in a few letters, or "".
func Nearest(name string, known []string) string {
	if len(name) > maxGuessed {
		return ""
	}
	best, bestDistance := "", 1+min(2, (len(name)+1)/3)
	lower := strings.ToLower(name)
	for _, candidate := range known {
		if d := distance(lower, strings.ToLower(candidate)); d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// distance is the edit distance with transpositions (optimal string alignment).
func distance(a, b string) int {
	before, last, current := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		current[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			current[j] = min(last[j]+1, current[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], before[j-2]+1)
			}
		}
		before, last, current = last, current, before
	}
	return last[len(b)]
}
