package emit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/naming"
)

// Order returns the documents in the order of the stream: by their constraints, then by kind (Sysctl, Timesync, DomainJoin,
// ContainerRuntime, KubernetesNode, then all others), then by their place in the list. A KIND that no document has is no
// constraint; a KIND/NAME that no document has is an error, because it may be a typo.
//
// A constraint moves as few documents as possible. An HTTPProxy before ContainerRuntime comes directly in front of it, and
// KubernetesNode stays behind both, although it has no constraint.
func Order(documents []Document) ([]Document, error) {
	g := graph{documents: documents, ids: map[string]int{}, kinds: map[string][]int{}}
	for i := range documents {
		d := &documents[i]
		if _, taken := g.ids[d.id()]; taken {
			return nil, &DuplicateError{Kind: d.Kind, Name: d.Metadata.Name}
		}
		g.ids[d.id()] = i
		g.kinds[d.Kind] = append(g.kinds[d.Kind], i)
	}
	if err := g.connect(); err != nil {
		return nil, err
	}
	return g.sort()
}

// graph has an edge for each constraint, from a document to one that comes after it.
type graph struct {
	documents []Document
	ids       map[string]int
	kinds     map[string][]int
	next      []map[int]bool // by document: those that come after it
	waits     []int          // by document: how many unsorted documents come before it
}

func (g *graph) connect() error {
	g.next, g.waits = make([]map[int]bool, len(g.documents)), make([]int, len(g.documents))
	for i := range g.next {
		g.next[i] = map[int]bool{}
	}
	for i := range g.documents {
		d := &g.documents[i]
		if err := g.resolve(i, "before", d.Before, func(other int) { g.edge(i, other) }); err != nil {
			return err
		}
		if err := g.resolve(i, "after", d.After, func(other int) { g.edge(other, i) }); err != nil {
			return err
		}
	}
	return nil
}

func (g *graph) edge(from, to int) {
	if !g.next[from][to] {
		g.next[from][to] = true
		g.waits[to]++
	}
}

// resolve calls found with each document that the references of document i name. A KIND does not include i itself.
func (g *graph) resolve(i int, field string, references []string, found func(other int)) error {
	for n, reference := range references {
		kind, _, named := strings.Cut(reference, "/")
		other, there := g.ids[reference]
		switch {
		case named && there:
			found(other)
		case named, naming.ValidKind(kind) != nil:
			d := &g.documents[i]
			return &ReferenceError{Kind: d.Kind, Name: d.Metadata.Name, Field: fmt.Sprintf("%s[%d]", field, n), Reference: reference}
		}
		if !named {
			for _, other := range g.kinds[kind] {
				if other != i {
					found(other)
				}
			}
		}
	}
	return nil
}

// sort takes, again and again, the first document for which none has to wait. A ranked one is taken only when those of lower
// levels are, so that a document that has to wait keeps the later kinds behind it.
func (g *graph) sort() ([]Document, error) {
	levels := g.levels()
	key := func(i int) (level, rank int) {
		if rank = g.documents[i].rank(); rank == unranked {
			return unranked, rank
		}
		return levels[i], rank
	}
	pending := make([]int, len(g.documents))
	for i := range pending {
		pending[i] = i
	}
	slices.SortStableFunc(pending, func(a, b int) int {
		levelA, rankA := key(a)
		levelB, rankB := key(b)
		return cmp.Or(cmp.Compare(levelA, levelB), cmp.Compare(rankA, rankB))
	})
	ordered := make([]Document, 0, len(pending))
	for len(pending) > 0 {
		lowest, _ := key(pending[0])
		at := slices.IndexFunc(pending, func(i int) bool {
			level, _ := key(i)
			return g.waits[i] == 0 && (level == lowest || level == unranked)
		})
		if at < 0 {
			return nil, g.cycle(pending)
		}
		for other := range g.next[pending[at]] {
			g.waits[other]--
		}
		ordered = append(ordered, g.documents[pending[at]])
		pending = slices.Delete(pending, at, at+1)
	}
	return ordered, nil
}

// levels returns the highest rank among each document and those that come before it. So no constraint contradicts levels.
func (g *graph) levels() []int {
	levels := make([]int, len(g.documents))
	for i := range levels {
		levels[i] = -1
		if rank := g.documents[i].rank(); rank != unranked {
			levels[i] = rank
		}
	}
	for changed := true; changed; {
		changed = false
		for i, next := range g.next {
			for other := range next {
				if levels[other] < levels[i] {
					levels[other], changed = levels[i], true
				}
			}
		}
	}
	return levels
}

// cycle returns a cycle among documents of which each waits for another of them: it walks back until a document repeats.
func (g *graph) cycle(pending []int) error {
	walk := []int{pending[0]}
	for {
		last := walk[len(walk)-1]
		before := pending[slices.IndexFunc(pending, func(i int) bool { return g.next[i][last] })]
		if start := slices.Index(walk, before); start >= 0 {
			walk = walk[start:]
			break
		}
		walk = append(walk, before)
	}
	slices.Reverse(walk)
	first := slices.Index(walk, slices.Min(walk))
	walk = append(walk[first:], walk[:first]...)
	names := make([]string, len(walk))
	for i, d := range walk {
		names[i] = g.documents[d].id()
	}
	return &CycleError{Documents: names}
}
