package infrastructure

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/authority"
	"github.com/machineadm/machineadm/testenv/management"
	"github.com/machineadm/machineadm/testenv/nodes/nodestest"
	"github.com/machineadm/machineadm/testenv/objectstores"
)

// TestBucket: machines without credentials fetch their documents from a bucket, and report by it. When they have joined, the bucket is empty.
func TestBucket(t *testing.T) {
	needs.Campaign(t)
	r := layout{machines: 2, bucket: true}.start(t)
	objects := small(t)
	storage := kind(t, example(t, "object-storage.yaml"), bootstrap.KindMachineBootstrapStorage)
	storeIn(t, objects, map[string]any{"apiGroup": bootstrap.Group, "kind": storage.GetKind(), "name": storage.GetName()})
	r.apply(t, objects...)
	for _, m := range r.running(t, 2) {
		name := m.Spec.InfrastructureRef.Name
		r.prepared(t, name, 5)
		r.bootstrapped(t, m.Name, metav1.ConditionTrue, "Succeeded: 5 documents")
		r.unstored(t, m)
		said, err := r.Node(name).Exec(t.Context(), "sh", "-c", "cat /var/lib/cloud/instance/user-data.txt; journalctl; machineadm status")
		require.NoError(t, err)
		assert.Contains(t, said.Stdout, "Succeeded: 5 documents")
		assert.NotContains(t, said.Stdout, r.bucket.SecretKey)
	}
	nodestest.Eventually(t, "the bucket to be empty", func() bool { return len(r.bucket.Keys(t)) == 0 })
	writer := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: storage.GetNamespace(), Name: "bucket-writer"}}
	require.NoError(t, r.Delete(t.Context(), writer), "it is the user's, and stays")
	r.deleted(t)
}

// startBucket starts a server with a bucket at an address of the network, and makes the storage of the examples in it.
func startBucket(t testing.TB, c *management.Cluster, address string) *objectstores.S3 {
	t.Helper()
	ca := authority.New(t)
	s := objectstores.StartS3At(t, address, &ca)
	objects := example(t, "object-storage.yaml")
	set(t, kind(t, objects, "Secret"), map[string]any{"secretAccessKey": s.SecretKey}, "stringData")
	storage := kind(t, objects, bootstrap.KindMachineBootstrapStorage)
	set(t, storage, "s3://"+s.Bucket+"/default/", "spec", "source", "uriPrefix")
	for name, value := range map[string]string{"region": s.Region, "accessKeyID": s.AccessKey, "endpoint": s.Endpoint, "ca": string(ca.Certificate)} {
		set(t, storage, value, "spec", "source", "providerConfig", name)
	}
	for _, o := range objects {
		text, err := json.Marshal(o)
		require.NoError(t, err)
		c.Install(t, text)
	}
	return s
}
