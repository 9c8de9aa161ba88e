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

// Digests remembers the SHA-256 of plugins from run to run: to read one costs as much CPU as to start it, or more.
//
// The digest tells in the report which file was executed. It decides nothing: who may write the file and its directories
// decides, and is judged each time. What is remembered holds for a file of the same path, device, inode, size, times
// and beginning; the system sets the change time itself whenever the file changes. Only root could make another file
// look so, who could as well write another report.
type Digests struct {
	path    string
	settled time.Duration // how long a file must have been left alone

	mu      sync.Mutex
	known   map[string]remembered // by path
	changed bool
}

// remembered is a digest, and the file that it is of.
type remembered struct {
	File   identity `json:"file"`
	SHA256 string   `json:"sha256"`
}

// identity is another one whenever the content of a file is.
type identity struct {
	Device   uint64 `json:"device"`
	Inode    uint64 `json:"inode"`
	Size     int64  `json:"size"`
	Modified int64  `json:"modified"`
	Changed  int64  `json:"changed"`
	// Beginning is the SHA-256 of the first bytes: images of read-only file systems come with times that do not tell one
	// version from the next, but a linker writes into its first page what it made the program of.
	Beginning string `json:"beginning"`
}

const (
	// tick is more than one of the clock that stamps files: within one, two contents can have the same time.
	tick = 2 * time.Second
	// manyDigests is more than a machine has plugins. What is beyond was left by others that are gone.
	manyDigests = 200
)

// OpenDigests reads what Keep has written to path. A file that is missing or damaged remembers nothing.
func OpenDigests(path string) *Digests {
	d := &Digests{path: path, settled: tick}
	data, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(data, &d.known) != nil || d.known == nil {
		d.known = map[string]remembered{}
	}
	return d
}

// Of is the SHA-256 of a plugin's open file, in hex. Nil Digests remember nothing.
func (d *Digests) Of(path string, file *os.File) (string, error) {
	if d == nil {
		return catalog.Digest(file)
	}
	id, known, err := identify(file)
	if err != nil {
		return "", err
	}
	d.mu.Lock()
	before, found := d.known[path]
	d.mu.Unlock()
	if known && found && before.File == id {
		return before.SHA256, nil
	}
	sum, err := catalog.Digest(file)
	if err != nil {
		return "", err
	}
	after, known, err := identify(file)
	if err != nil {
		return "", err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch age := time.Since(time.Unix(0, id.Changed)); {
	case known && after == id && age > d.settled:
		d.known[path], d.changed = remembered{File: id, SHA256: sum}, true
	case found:
		delete(d.known, path)
		d.changed = true
	}
	return sum, nil
}

// Keep writes what is new, for the next run.
func (d *Digests) Keep() error {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.changed {
		return nil
	}
	if len(d.known) > manyDigests {
		maps.DeleteFunc(d.known, func(path string, _ remembered) bool {
			_, err := os.Lstat(path)
			return errors.Is(err, fs.ErrNotExist)
		})
	}
	data, err := json.MarshalIndent(d.known, "", "  ")
	if err == nil {
		err = atomicfile.WriteFile(d.path, append(data, '\n'), atomicfile.Options{Mode: 0o600, KeepLabel: true})
	}
	if err != nil {
		return fmt.Errorf("remember the digests of plugins: %w", err)
	}
	d.changed = false
	return nil
}
