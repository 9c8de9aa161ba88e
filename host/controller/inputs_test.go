package controller

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func secretInput(name string) input {
	return input{schema.GroupKind{Kind: "Secret"}, client.ObjectKey{Namespace: "ns", Name: name}}
}

func sysctlInput(name string) input {
	return input{schema.GroupKind{Group: "machineadm.cluster.x-k8s.io", Kind: "Sysctl"}, client.ObjectKey{Namespace: "ns", Name: name}}
}

// recorded are the inputs with these contents, in this order.
func recorded(key string, contents ...string) *inputs {
	in := newInputs([]byte(key))
	for _, content := range contents {
		in.add(secretInput("password"), []byte(content))
	}
	return in
}

func TestInputsChanged(t *testing.T) {
	t.Parallel()
	const name = "Secret/password"
	was, err := recorded("key", "a", "b").annotation()
	require.NoError(t, err)
	other := recorded("key", "a", "b")
	other.add(sysctlInput("base"), nil)
	for about, c := range map[string]struct {
		now        *inputs
		annotation string
		want       []string
	}{
		"the same":                {recorded("key", "a", "b"), was, nil},
		"other content":           {recorded("key", "a", "c"), was, []string{name}},
		"less content":            {recorded("key", "a"), was, []string{name}},
		"in another order":        {recorded("key", "b", "a"), was, []string{name}},
		"another key":             {recorded("yek", "a", "b"), was, []string{name}},
		"an object more":          {other, was, []string{"Sysctl.machineadm.cluster.x-k8s.io/base"}},
		"an object less":          {recorded("key"), was, []string{name}},
		"no annotation":           {recorded("key", "a"), "", []string{name}},
		"an annotation of others": {recorded("key", "a"), "[]", []string{name}},
		"nothing":                 {recorded("key"), "", nil},
	} {
		assert.Equal(t, c.want, c.now.changed(c.annotation), about)
	}
}

// TestInputsSayNothingOfTheirContent: without the key of the cluster a guess at a password cannot be compared.
func TestInputsSayNothingOfTheirContent(t *testing.T) {
	t.Parallel()
	annotation, err := recorded("key", "c4n4ry").annotation()
	require.NoError(t, err)
	assert.NotContains(t, annotation, "c4n4ry")
	guess, err := recorded("another", "c4n4ry").annotation()
	require.NoError(t, err)
	assert.NotEqual(t, guess, annotation)
}

func TestReaders(t *testing.T) {
	t.Parallel()
	r := newReaders()
	key := func(name string) client.ObjectKey { return client.ObjectKey{Namespace: "ns", Name: name} }
	names := func(requests []reconcile.Request) (all []string) {
		for _, q := range requests {
			all = append(all, q.Name)
		}
		slices.Sort(all)
		return all
	}
	r.add(key("b"), sysctlInput("base"))
	r.add(key("a"), sysctlInput("base"))
	r.add(key("a"), secretInput("base"))
	r.add(key("a"), input{definitions(), client.ObjectKey{Name: "example.com"}})
	assert.Equal(t, []string{"a", "b"}, names(r.requests(sysctlInput("base"))))
	assert.Equal(t, []string{"a"}, names(r.requests(secretInput("base"))))
	assert.Empty(t, r.requests(secretInput("other")))
	assert.Equal(t, []string{"a"}, names(r.requests(secretInput("a-machineadm-data"))), "the Secret with the data of a config")
	assert.Empty(t, r.requests(sysctlInput("a")))
	assert.Equal(t, []string{"a"}, names(r.waitingForGroup("example.com")))
	assert.Empty(t, r.waitingForGroup("example.org"))

	r.begin(key("a"))
	assert.Equal(t, []string{"b"}, names(r.requests(sysctlInput("base"))))
	assert.Empty(t, r.requests(secretInput("a-machineadm-data")))
	assert.Empty(t, r.waitingForGroup("example.com"))
	r.begin(key("b"))
	r.begin(key("c"))
	assert.Empty(t, r.byInput, "nothing is kept of configs that are gone")
	assert.Empty(t, r.byConfig)
}

func TestDigests(t *testing.T) {
	t.Parallel()
	d := newDigests()
	sum := [32]byte{1}
	d.put(secretInput("s"), "1", "a", sum)
	got, ok := d.get(secretInput("s"), "1", "a")
	assert.True(t, ok)
	assert.Equal(t, sum, got)
	for about, c := range map[string]struct {
		of           input
		version, key string
	}{
		"another key":     {secretInput("s"), "1", "b"},
		"another version": {secretInput("s"), "2", "a"},
		"no version":      {secretInput("s"), "", "a"},
		"another object":  {secretInput("t"), "1", "a"},
	} {
		_, ok := d.get(c.of, c.version, c.key)
		assert.False(t, ok, about)
	}
	d.put(secretInput("s"), "2", "b", sum)
	_, ok = d.get(secretInput("s"), "2", "a")
	assert.False(t, ok, "a new version has none of the digests of the old one")
	d.put(secretInput("s"), "", "a", sum)
	assert.Empty(t, d.byInput, "an object that the cache does not have is not kept")
}

// TestForget: nothing is kept of an object after its last reader.
func TestForget(t *testing.T) {
	t.Parallel()
	r := &Reconciler{readers: newReaders(), digests: newDigests(), keys: newKeys()}
	first, second, of := client.ObjectKey{Name: "a"}, client.ObjectKey{Name: "b"}, secretInput("s")
	r.readers.add(first, of)
	r.readers.add(second, of)
	r.digests.put(of, "1", "key", [32]byte{1})
	r.keys.put(of.ObjectKey, "1", []byte("key"))
	r.forget(r.readers.begin(first))
	_, ok := r.digests.get(of, "1", "key")
	assert.True(t, ok)
	assert.NotNil(t, r.keys.get(of.ObjectKey, "1"))
	r.forget(r.readers.begin(second))
	assert.Empty(t, r.digests.byInput)
	assert.Empty(t, r.keys.byID)
}
