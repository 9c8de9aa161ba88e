package controller

import (
	"context"
	"crypto/sha256"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// behind is a cache that has version 1 of every object, before an API server that has version 2.
type behind struct {
	client.Client
	live int
}

func (b *behind) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	into.SetNamespace(key.Namespace)
	into.SetName(key.Name)
	switch into := into.(type) {
	case *metav1.PartialObjectMetadata:
		into.ResourceVersion = "1"
	case *corev1.Secret:
		b.live++
		into.ResourceVersion, into.Data = "2", map[string][]byte{"key": []byte("new")}
	case *corev1.ConfigMap:
		b.live++
		into.ResourceVersion, into.Data = "2", map[string]string{"key": "new"}
	}
	return nil
}

// TestDigestOf: the digest of data that is being made belongs to the value in the data, although the cache is behind. Each object
// is read once.
func TestDigestOf(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"Secret", "ConfigMap"} {
		for _, making := range []bool{false, true} {
			server := &behind{}
			r := &Reconciler{Client: server, Live: server, readers: newReaders(), digests: newDigests()}
			rd := &reading{
				r: r, config: &bootstrap.MachineBootstrapConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}, inputs: newInputs(nil),
				bodies: map[input]body{}, left: map[input]struct{}{}, making: making,
			}
			of := rd.watch(schema.GroupKind{Kind: kind}, "s")
			was, now := sha256.Sum256([]byte("old")), sha256.Sum256([]byte("new"))
			r.digests.put(of, "1", "key", was)
			require.NoError(t, rd.digestOf(t.Context(), bootstrap.ConditionPluginsReady, kind, "s", "key"))

			want, reads := newInputs(nil), 0
			if making {
				reads = 1
				want.add(of, append([]byte("key\x00"), now[:]...))
				sum, ok := r.digests.get(of, "2", "key")
				assert.True(t, ok, "it is remembered for the version that was read")
				assert.Equal(t, now, sum)
			} else {
				want.add(of, append([]byte("key\x00"), was[:]...))
			}
			assert.Equal(t, want.digests, rd.inputs.digests, "%s %v", kind, making)
			assert.Equal(t, reads, server.live)

			value, err := rd.value(t.Context(), bootstrap.ConditionPluginsReady, kind, "s", "key")
			require.NoError(t, err)
			assert.Equal(t, "new", string(value))
			assert.Equal(t, 1, server.live)
		}
	}
}

// unmapped has no kind.
type unmapped struct{ client.Client }

func (unmapped) RESTMapper() meta.RESTMapper { return meta.NewDefaultRESTMapper(nil) }

// TestKindAsksAgain: a kind may be listed after the last event of its definition. Without a recent definition nothing is asked.
func TestKindAsksAgain(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	for ago, again := range map[time.Duration]bool{0: true, discovery - 1: true, discovery: false, 1_000_000 * time.Second: false} {
		r := &Reconciler{Client: unmapped{}, Now: func() time.Time { return now }, readers: newReaders()}
		r.defined.Store(now.Add(-ago).UnixNano())
		rd := &reading{r: r, config: &bootstrap.MachineBootstrapConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}}
		_, err := rd.kind(t.Context(), "spec.pluginRefs[0]", schema.GroupKind{Group: "example.com", Kind: "HTTPProxy"})
		s := asStop(err)
		require.NotNil(t, s)
		assert.Equal(t, bootstrap.ReasonKindNotInstalled, s.reason)
		assert.Equal(t, again, s.again > 0, "%s ago", ago)
		assert.Len(t, r.readers.waitingForGroup("example.com"), 1)
	}
}
