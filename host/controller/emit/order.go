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
	if len(documents) > MaxDocuments {
		return nil, &CountError{}
	}
	g := newGraph(documents)
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
	levels, err := g.levels()
	if err != nil {
		return nil, err
	}
	return g.sort(levels), nil
}

// graph has an edge for each constraint, from a node to one that comes after it. The first nodes are the documents. A constraint on
// a KIND leads to a node in front of all documents of the kind, or comes from one behind them, so that the edges are about as many
// as the references and the documents, and not one for each pair.
type graph struct {
	documents []Document
	ids       map[string]int
	kinds     map[string][]int
	front     map[string]int // by kind: the node in front of its documents
	behind    map[string]int
	next      [][]int // by node: those that come after it
	waits     []int   // by node: how many edges lead to it
}

func newGraph(documents []Document) *graph {
	n := len(documents)
	return &graph{
		documents: documents, ids: make(map[string]int, n), kinds: map[string][]int{}, front: map[string]int{}, behind: map[string]int{},
		next: make([][]int, n), waits: make([]int, n),
	}
}

func (g *graph) connect() error {
	for i := range g.documents {
		d := &g.documents[i]
		if err := g.resolve(i, "before", d.Before, func(i, other int) { g.edge(i, other) }, g.inFront); err != nil {
			return err
		}
		if err := g.resolve(i, "after", d.After, func(i, other int) { g.edge(other, i) }, g.fromBehind); err != nil {
			return err
		}
	}
	return nil
}

func (g *graph) edge(from, to int) {
	g.next[from] = append(g.next[from], to)
	g.waits[to]++
}

func (g *graph) node() int {
	g.next, g.waits = append(g.next, nil), append(g.waits, 0)
	return len(g.next) - 1
}

// inFront returns the node in front of the documents of a kind.
func (g *graph) inFront(kind string) int {
	node, made := g.front[kind]
	if !made {
		node = g.node()
		g.front[kind] = node
		for _, i := range g.kinds[kind] {
			g.edge(node, i)
		}
	}
	return node
}

// fromBehind returns the node behind the documents of a kind.
func (g *graph) fromBehind(kind string) int {
	node, made := g.behind[kind]
	if !made {
		node = g.node()
		g.behind[kind] = node
		for _, i := range g.kinds[kind] {
			g.edge(i, node)
		}
	}
	return node
}

// resolve connects document i with what its references name. A KIND does not include i itself: then it has an edge for each
// other document, of which there are few because two documents of a kind that have it are a cycle.
func (g *graph) resolve(i int, field string, references []string, connect func(i, other int), group func(kind string) int) error {
	d, seen := &g.documents[i], map[string]bool{}
	for n, reference := range references {
		if seen[reference] {
			continue
		}
		seen[reference] = true
		kind, _, named := strings.Cut(reference, "/")
		other, there := g.ids[reference]
		switch {
		case named && there:
			connect(i, other)
		case named, naming.ValidKind(kind) != nil:
			return &ReferenceError{Kind: d.Kind, Name: d.Metadata.Name, Field: fmt.Sprintf("%s[%d]", field, n), Reference: reference}
		case kind == d.Kind:
			for _, other := range g.kinds[kind] {
				if other != i {
					connect(i, other)
				}
			}
		case len(g.kinds[kind]) > 0:
			connect(i, group(kind))
		}
	}
	return nil
}

// levels returns the highest rank among each node and those that come before it, so that no constraint contradicts levels. It
// fails if the constraints have a cycle.
func (g *graph) levels() ([]int, error) {
	levels, waits := make([]int, len(g.next)), slices.Clone(g.waits)
	var ready []int
	for i := range levels {
		levels[i] = -1
		if i < len(g.documents) && g.documents[i].rank() != unranked {
			levels[i] = g.documents[i].rank()
		}
		if waits[i] == 0 {
			ready = append(ready, i)
		}
	}
	for n := 0; n < len(ready); n++ {
		for _, other := range g.next[ready[n]] {
			levels[other] = max(levels[other], levels[ready[n]])
			if waits[other]--; waits[other] == 0 {
				ready = append(ready, other)
			}
		}
	}
	if len(ready) < len(g.next) {
		return nil, g.cycle(waits)
	}
	return levels, nil
}

// sort takes, again and again, the first document for which none has to wait. A ranked one is taken only when those of lower
// levels are, so that a document that has to wait keeps the later kinds behind it.
func (g *graph) sort(levels []int) []Document {
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
		at := slices.IndexFunc(pending, func(i int) bool { // there is one, because there is no cycle
			level, _ := key(i)
			return g.waits[i] == 0 && (level == lowest || level == unranked)
		})
		g.leave(pending[at])
		ordered = append(ordered, g.documents[pending[at]])
		pending = slices.Delete(pending, at, at+1)
	}
	return ordered
}

// leave removes a node, and the nodes of kinds that no other holds back.
func (g *graph) leave(node int) {
	for _, other := range g.next[node] {
		if g.waits[other]--; g.waits[other] == 0 && other >= len(g.documents) {
			g.leave(other)
		}
	}
}

// cycle returns a cycle among the nodes that wait for each other: it walks back until a node repeats.
func (g *graph) cycle(waits []int) error {
	before := make([]int, len(g.next)) // by node: one that it waits for, and that waits itself
	last := -1
	for i, next := range g.next {
		if waits[i] == 0 {
			continue
		}
		for _, other := range next {
			if waits[other] > 0 {
				before[other] = i
			}
		}
		last = i
	}
	at := map[int]int{}
	var walk []int
	for {
		start, repeats := at[last]
		if repeats {
			walk = walk[start:]
			break
		}
		at[last] = len(walk)
		walk = append(walk, last)
		last = before[last]
	}
	walk = slices.DeleteFunc(walk, func(node int) bool { return node >= len(g.documents) })
	slices.Reverse(walk)
	first := slices.Index(walk, slices.Min(walk))
	walk = append(walk[first:], walk[:first]...)
	names := make([]string, len(walk))
	for i, d := range walk {
		names[i] = g.documents[d].id()
	}
	return &CycleError{Documents: names}
}
