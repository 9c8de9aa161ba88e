package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"sync"
	"time"

	"github.com/machineadm/machineadm/host/catalog"
	"github.com/machineadm/machineadm/internal/atomicfile"
)

// Digests caches the SHA-256 of plugin files between runs, because reading a plugin costs as much CPU as starting it.
//
// The digest only identifies the executed file in the report; trust is checked without it in each run. An entry is valid
// for a file of the same path and identity. Only root could forge that, and root could also forge the report.
type Digests struct {
	path    string
	settled time.Duration // the age from which a file is cached

	mu      sync.Mutex
	cached  map[string]entry // by path
	changed bool
}

type entry struct {
	File   identity `json:"file"`
	SHA256 string   `json:"sha256"`
}

// tick exceeds the resolution of file times: within it, two contents can have the same time.
const tick = 2 * time.Second

// OpenDigests reads the cache at path. A missing or damaged file is an empty cache.
func OpenDigests(path string) *Digests {
	d := &Digests{path: path, settled: tick}
	data, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(data, &d.cached) != nil || d.cached == nil {
		d.cached = map[string]entry{}
	}
	return d
}

// Of returns the SHA-256 of a plugin's open file, in hex. Nil Digests cache nothing.
func (d *Digests) Of(path string, file *os.File) (string, error) {
	if d == nil {
		return catalog.Digest(file)
	}
	before, err := identify(file)
	if err != nil {
		return "", err
	}
	d.mu.Lock()
	hit, found := d.cached[path]
	d.mu.Unlock()
	cacheable := before != identity{}
	if cacheable && found && hit.File == before {
		return hit.SHA256, nil
	}
	sum, err := catalog.Digest(file)
	if err != nil {
		return "", err
	}
	after, err := identify(file)
	if err != nil {
		return "", err
	}
	if cacheable && after == before && time.Since(time.Unix(0, after.Changed)) > d.settled {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.cached[path], d.changed = entry{File: after, SHA256: sum}, true
	}
	return sum, nil
}

// Save writes new entries for the next run, and drops the entries of removed plugins.
func (d *Digests) Save() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.changed {
		return nil
	}
	maps.DeleteFunc(d.cached, func(path string, _ entry) bool {
		_, err := os.Lstat(path)
		return errors.Is(err, fs.ErrNotExist)
	})
	data, err := json.MarshalIndent(d.cached, "", "  ")
	if err == nil {
		err = atomicfile.WriteFile(d.path, append(data, '\n'), atomicfile.Options{Mode: 0o600, KeepLabel: true})
	}
	if err != nil {
		return fmt.Errorf("cache the digests of plugins: %w", err)
	}
	d.changed = false
	return nil
}
