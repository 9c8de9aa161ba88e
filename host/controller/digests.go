package controller

import (
	"crypto/sha256"
	"sync"
)

// digests remembers digests of values, for as long as the object that they are in is the same. So a manager that starts, or is
// asked again, reads a Secret that thousands of configs refer to once.
type digests struct {
	mu      sync.Mutex
	byInput map[input]*versioned
}

type versioned struct {
	resourceVersion string
	byKey           map[string][sha256.Size]byte
}

func newDigests() *digests { return &digests{byInput: map[input]*versioned{}} }

func (d *digests) get(of input, resourceVersion, key string) (sum [sha256.Size]byte, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := d.byInput[of]
	if found == nil || resourceVersion == "" || found.resourceVersion != resourceVersion {
		return sum, false
	}
	sum, ok = found.byKey[key]
	return sum, ok
}

// put remembers nothing of an object that the cache does not have.
func (d *digests) put(of input, resourceVersion, key string, sum [sha256.Size]byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if resourceVersion == "" {
		delete(d.byInput, of)
		return
	}
	found := d.byInput[of]
	if found == nil || found.resourceVersion != resourceVersion {
		found = &versioned{resourceVersion, map[string][sha256.Size]byte{}}
		d.byInput[of] = found
	}
	found.byKey[key] = sum
}

func (d *digests) drop(of input) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.byInput, of)
}
