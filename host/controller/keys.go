package controller

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// keys remembers the key of each cluster for as long as its Secret is the same.
type keys struct {
	mu   sync.Mutex
	byID map[client.ObjectKey]clusterKey
}

type clusterKey struct {
	resourceVersion string
	key             []byte
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
	k.byID[of] = clusterKey{resourceVersion, key}
}

func (k *keys) drop(of client.ObjectKey) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.byID, of)
}
