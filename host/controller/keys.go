package controller

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// keys remembers the key of each cluster for as long as its Secret is the same, and what was seen of the cluster.
type keys struct {
	mu   sync.Mutex
	byID map[client.ObjectKey]clusterKey
}

type clusterKey struct {
	resourceVersion string
	key             []byte
	// published is when it was last seen that kubeadm init has ended.
	published time.Time
}

func newKeys() *keys { return &keys{byID: map[client.ObjectKey]clusterKey{}} }

func (k *keys) get(of client.ObjectKey, resourceVersion string) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	if found := k.byID[of]; found.resourceVersion == resourceVersion {
		return found.key
	}
	return nil
}

func (k *keys) put(of client.ObjectKey, resourceVersion string, key []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.byID[of] = clusterKey{resourceVersion: resourceVersion, key: key}
}

func (k *keys) published(of client.ObjectKey) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.byID[of].published
}

func (k *keys) setPublished(of client.ObjectKey, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if found, ok := k.byID[of]; ok {
		found.published = at
		k.byID[of] = found
	}
}

func (k *keys) drop(of client.ObjectKey) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.byID, of)
}
