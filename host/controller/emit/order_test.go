package emit

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
)

// parse reads "KIND/NAME <REFERENCE >REFERENCE APIVERSION": before < and after >.
func parse(line string) Document {
	words := strings.Fields(line)
	kind, name, _ := strings.Cut(words[0], "/")
	d := Document{Header: contract.Header{APIVersion: contract.APIVersion, Kind: kind, Metadata: contract.Metadata{Name: name}}, Spec: map[string]any{}}
	for _, word := range words[1:] {
		switch word[0] {
		case '<':
			d.Before = append(d.Before, word[1:])
		case '>':
			d.After = append(d.After, word[1:])
		default:
			d.APIVersion = word
		}
	}
	return d
}

func parseAll(text string) []Document {
	var all []Document
	for line := range strings.SplitSeq(text, ";") {
		all = append(all, parse(line))
	}
	return all
}

func ids(documents []Document) string {
	names := make([]string, len(documents))
	for i := range documents {
		names[i] = documents[i].id()
	}
	return strings.Join(names, " ")
}

func TestOrder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"by kind": {
			"Foo/x; KubernetesNode/a; ContainerRuntime/a; DomainJoin/a; Timesync/a; Sysctl/b; Sysctl/a",
			"Sysctl/b Sysctl/a Timesync/a DomainJoin/a ContainerRuntime/a KubernetesNode/a Foo/x",
		},
		"a kind of another group has no rank":     {"Foo/a; Sysctl/a example.com/v1; Timesync/a", "Timesync/a Foo/a Sysctl/a"},
		"a later version of our group has a rank": {"Foo/a; Sysctl/a " + contract.Group + "/v2", "Sysctl/a Foo/a"},
		"before a kind":                        {"Sysctl/a; Foo/a <Sysctl; Sysctl/b", "Foo/a Sysctl/a Sysctl/b"},
		"after a kind":                         {"Sysctl/a >Timesync; Timesync/a; Timesync/b", "Timesync/a Timesync/b Sysctl/a"},
		"before one":                           {"Sysctl/a; Foo/a <Sysctl/b; Sysctl/b", "Sysctl/a Foo/a Sysctl/b"},
		"after one":                            {"Sysctl/a >Foo/b; Sysctl/b; Foo/b", "Sysctl/b Foo/b Sysctl/a"},
		"a kind that is absent":                {"Foo/a; Sysctl/a <Bar >Baz", "Sysctl/a Foo/a"},
		"its own kind":                         {"Sysctl/a; Sysctl/b <Sysctl", "Sysctl/b Sysctl/a"},
		"twice the same":                       {"Foo/a <Bar/a <Bar >Baz; Bar/a >Foo/a; Baz/a", "Baz/a Foo/a Bar/a"},
		"a chain":                              {"Foo/a >Foo/b; Foo/b >Foo/c; Foo/c", "Foo/c Foo/b Foo/a"},
		"a constraint moves no other document": {"Foo/a; Foo/b <Foo/a; Foo/c", "Foo/b Foo/a Foo/c"},
		"one name in two kinds":                {"Foo/a; Bar/a", "Foo/a Bar/a"},
		"one kind in two groups, by the kind":  {"Foo/a g.example/v1; Foo/b h.example/v1; Bar/a <Foo", "Bar/a Foo/a Foo/b"},
		"one":                                  {"Foo/a", "Foo/a"},
		"a foreign kind is pulled in front of ours, and later kinds stay behind": {
			"KubernetesNode/n; Sysctl/s; ContainerRuntime/c; HTTPProxy/p <ContainerRuntime",
			"Sysctl/s HTTPProxy/p ContainerRuntime/c KubernetesNode/n",
		},
		"a kind that is pushed back moves no later kind forward": {
			"Sysctl/late >KubernetesNode; KubernetesNode/n; ContainerRuntime/c; Sysctl/s",
			"Sysctl/s ContainerRuntime/c KubernetesNode/n Sysctl/late",
		},
		"pushed back through a foreign kind": {
			"Sysctl/late >Foo; Foo/x >Timesync; Timesync/t; DomainJoin/d", "Timesync/t Foo/x Sysctl/late DomainJoin/d",
		},
		"against the ranks": {"ContainerRuntime/c; KubernetesNode/n <ContainerRuntime; Sysctl/s", "Sysctl/s KubernetesNode/n ContainerRuntime/c"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Order(parseAll(c.in))
			require.NoError(t, err)
			assert.Equal(t, c.want, ids(got))
		})
	}
}

func TestOrderRefuses(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]error{
		"Sysctl/a; Foo/b; Sysctl/a":                      &DuplicateError{"Sysctl", "a"},
		"Sysctl/a a.example/v1; Sysctl/a b.example/v1":   &DuplicateError{"Sysctl", "a"},
		"Sysctl/a; Foo/b <Sysctl <Sysctl/c":              &ReferenceError{"Foo", "b", "before[1]", "Sysctl/c"},
		"Foo/b >Sysctl/":                                 &ReferenceError{"Foo", "b", "after[0]", "Sysctl/"},
		"Foo/b >":                                        &ReferenceError{"Foo", "b", "after[0]", ""},
		"Foo/b <sysctl":                                  &ReferenceError{"Foo", "b", "before[0]", "sysctl"},
		"Foo/b </b":                                      &ReferenceError{"Foo", "b", "before[0]", "/b"},
		"Sysctl/a <Foo/b; Foo/b <Sysctl/a":               &CycleError{[]string{"Sysctl/a", "Foo/b"}},
		"Foo/b <Sysctl; Sysctl/a <Foo":                   &CycleError{[]string{"Foo/b", "Sysctl/a"}},
		"Foo/a <Foo/a":                                   &CycleError{[]string{"Foo/a"}},
		"X/free; A/a >C/c; B/b >A/a; C/c >B/b; D/d >C/c": &CycleError{[]string{"A/a", "B/b", "C/c"}},
		"Sysctl/a <Sysctl; Sysctl/b <Sysctl":             &CycleError{[]string{"Sysctl/a", "Sysctl/b"}},
	} {
		t.Run(in, func(t *testing.T) {
			t.Parallel()
			_, err := Order(parseAll(in))
			assert.Equal(t, want, err)
		})
	}
	_, err := Order(parseAll("Sysctl/a <Foo/b; Foo/b <Sysctl/a"))
	assert.EqualError(t, err, "Sysctl/a before Foo/b before Sysctl/a: remove one of these constraints")
	_, err = Order(parseAll("Foo/b <Sysctl/c"))
	assert.EqualError(t, err, `Foo/b: before[0]: no document is "Sysctl/c": write KIND or KIND/NAME of a document of the stream`)
	_, err = Order(parseAll("Foo/b; Foo/b"))
	assert.EqualError(t, err, "two documents are Foo/b: give each document of a kind a name of its own")
}

// random returns a few documents with random constraints, some of which contradict each other.
func random(r *rand.Rand) []Document {
	kinds := []string{"Sysctl", "Timesync", "KubernetesNode", "Foo", "Bar"}
	documents := make([]Document, 1+r.IntN(6))
	for i := range documents {
		documents[i] = parse(fmt.Sprintf("%s/n%d", kinds[r.IntN(len(kinds))], i))
	}
	for n := r.IntN(2 * len(documents)); n > 0; n-- {
		from, to := &documents[r.IntN(len(documents))], &documents[r.IntN(len(documents))]
		reference := to.id()
		if r.IntN(2) == 0 {
			reference = to.Kind
		}
		if r.IntN(2) == 0 {
			from.Before = append(from.Before, reference)
		} else {
			from.After = append(from.After, reference)
		}
	}
	return documents
}

// precedes says whether a constraint puts a in front of b, read from the text of the references alone.
func precedes(a, b *Document) bool {
	names := func(references []string, self, other *Document) bool {
		return slices.Contains(references, other.id()) || self.id() != other.id() && slices.Contains(references, other.Kind)
	}
	return names(a.Before, a, b) || names(b.After, b, a)
}

// level is the highest rank of the document and of all that its constraints put in front of it, directly or not.
func level(documents []Document, d *Document) int {
	front, highest := []*Document{d}, -1
	for n := 0; n < len(front); n++ {
		if rank := front[n].rank(); rank != unranked {
			highest = max(highest, rank)
		}
		for i := range documents {
			if precedes(&documents[i], front[n]) && !slices.Contains(front, &documents[i]) {
				front = append(front, &documents[i])
			}
		}
	}
	return highest
}

// best is the first permutation, by (level, rank, index), in which every constraint and the order of levels holds among the
// ranked documents; nil if constraints contradict each other.
func best(documents []Document) []Document {
	levels := map[string]int{}
	for i := range documents {
		levels[documents[i].id()] = level(documents, &documents[i])
		if documents[i].rank() == unranked {
			levels[documents[i].id()] = unranked
		}
	}
	wrong := func(a, b *Document) bool { // a in front of b
		la, lb := levels[a.id()], levels[b.id()]
		return precedes(b, a) || la != unranked && lb != unranked && la > lb
	}
	var search func(done, left []Document) []Document
	search = func(done, left []Document) []Document {
		if len(left) == 0 {
			return slices.Clone(done)
		}
		for i := range left {
			if slices.ContainsFunc(left, func(d Document) bool { return wrong(&left[i], &d) }) {
				continue
			}
			if found := search(append(done, left[i]), slices.Delete(slices.Clone(left), i, i+1)); found != nil {
				return found
			}
		}
		return nil
	}
	left := slices.Clone(documents)
	slices.SortStableFunc(left, func(a, b Document) int {
		return cmp.Or(cmp.Compare(levels[a.id()], levels[b.id()]), cmp.Compare(a.rank(), b.rank()))
	})
	return search(nil, left)
}

func checkOrder(t *testing.T, documents []Document) {
	t.Helper()
	got, err := Order(documents)
	want := best(documents)
	var cycle *CycleError
	if errors.As(err, &cycle) {
		require.Nil(t, want, "%v has an order, but: %v", documents, err)
		for i, id := range cycle.Documents {
			next := cycle.Documents[(i+1)%len(cycle.Documents)]
			find := func(id string) *Document {
				return &documents[slices.IndexFunc(documents, func(d Document) bool { return d.id() == id })]
			}
			assert.True(t, precedes(find(id), find(next)), "%s before %s is no constraint", id, next)
		}
		return
	}
	require.NoError(t, err)
	assert.Equal(t, ids(want), ids(got))
}

func TestOrderIsTheSmallestPermutation(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(14, 1))
	cycles := 0
	for range 5000 {
		documents := random(r)
		checkOrder(t, documents)
		if _, err := Order(documents); err != nil {
			cycles++
		}
	}
	assert.Greater(t, cycles, 500)
	assert.Less(t, cycles, 4500)
}

// TestOrderIsLinear: the documents and references that made an edge for each pair, each with as many as there may be, take less than
// a second and 64 MiB; more documents are refused before anything is ordered.
func TestOrderIsLinear(t *testing.T) { //nolint:paralleltest // it counts the allocations of the process
	documents := func(n int, of func(i int) string) []Document {
		all := make([]Document, n)
		for i := range all {
			all[i] = parse(of(i))
		}
		return all
	}
	many := make([]string, 100_000)
	for i := range many {
		many[i] = fmt.Sprintf("K%d", i)
	}
	bipartite := documents(MaxDocuments, func(i int) string { return fmt.Sprintf("%s/n%d", []string{"A", "B"}[i%2], i) })
	for i := range bipartite {
		if i%2 == 1 {
			bipartite[i].Before = append([]string{"A"}, many[:100]...)
		}
	}
	repeated := documents(MaxDocuments, func(i int) string { return fmt.Sprintf("A/n%d <B", i) })
	for i := range repeated {
		repeated[i].Before, repeated[i].After = many[:200], slices.Repeat([]string{"B"}, 200)
	}
	for about, all := range map[string][]Document{
		"two kinds":        bipartite,
		"a chain":          documents(MaxDocuments, func(i int) string { return fmt.Sprintf("A/n%d >A/n%d", i, max(1, i+1)%MaxDocuments) })[:MaxDocuments-1],
		"a kind each":      documents(MaxDocuments, func(i int) string { return fmt.Sprintf("K%d/a >K%d", i, i+1) }),
		"its own kind":     documents(MaxDocuments, func(i int) string { return fmt.Sprintf("A/n%d <A", i) }),
		"many references":  repeated,
		"too many":         documents(20_000, func(i int) string { return fmt.Sprintf("%s/n%d <A", []string{"A", "B"}[i%2], i) }),
		"both at one kind": documents(MaxDocuments, func(i int) string { return fmt.Sprintf("%s/n%d <A >B", []string{"A", "B"}[i%2], i) }),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		_, _ = Order(all)
		took := time.Since(began)
		runtime.ReadMemStats(&after)
		allocated := (after.TotalAlloc - before.TotalAlloc) >> 20
		t.Logf("%s: %s, %d MiB", about, took, allocated)
		assert.Less(t, allocated, uint64(64), about)
		assert.Less(t, took, 5*time.Second, about) // a busy machine; 0.3 s on one that is not
	}
	_, err := Order(make([]Document, MaxDocuments+1))
	require.EqualError(t, err, "there are more than 1000 documents: a machine has a few of each kind")
}

func FuzzOrder(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, seed*7)
	}
	f.Fuzz(func(t *testing.T, a, b uint64) { checkOrder(t, random(rand.New(rand.NewPCG(a, b)))) })
}

// FuzzReferences: no reference panics, and an error names it.
func FuzzReferences(f *testing.F) {
	for _, reference := range []string{"", "Foo", "Foo/a", "Foo/", "/", "a/b/c", "foo", "Bar/b"} {
		f.Add(reference)
	}
	f.Fuzz(func(t *testing.T, reference string) {
		documents := parseAll("Foo/a; Bar/b")
		documents[0].Before = []string{reference}
		_, err := Order(documents)
		var wrong *ReferenceError
		if errors.As(err, &wrong) {
			assert.Equal(t, reference, wrong.Reference)
		} else if reference == "Foo/a" {
			assert.Error(t, err)
		} else {
			assert.NoError(t, err)
		}
	})
}
