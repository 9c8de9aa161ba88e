package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// outboxVersion is the format of OutboxFile. A host refuses another one.
const outboxVersion = stateVersion

// Outgoing is the report of a run and its destination, until it is delivered. It can contain secrets.
type Outgoing struct {
	Version    int             `json:"version"`
	Sequence   uint64          `json:"sequence"` // grows with every report of this machine
	Document   json.RawMessage `json:"document"` // the RemoteConfig or ReportTarget with the destination
	Binary     string          `json:"binary"`   // its plugin
	PluginDirs []string        `json:"pluginDirs,omitempty"`
	PluginPath string          `json:"pluginPath,omitempty"` // PATH, if plugins are searched on it
	Proxies    []string        `json:"proxies,omitempty"`    // NAME=VALUE, without users and passwords
	Report     []byte          `json:"report"`
	// FirstTry and NextTry are of the wall clock and for people: it can be set meanwhile. The fields below decide.
	FirstTry time.Time     `json:"firstTry"`
	NextTry  time.Time     `json:"nextTry"`
	Tries    int           `json:"tries"`
	LastTry  Clock         `json:"lastTry"` // before the first try, when the report was kept
	Age      time.Duration `json:"ageNanoseconds"`
	Pause    time.Duration `json:"pauseNanoseconds"` // between LastTry and the next try
}

// Clock is a reading of the clock that runs since the boot. Nothing sets it.
type Clock struct {
	BootID string        `json:"bootID,omitempty"` // empty if the system has none
	Uptime time.Duration `json:"uptimeNanoseconds"`
}

// Outbox is the report in a state directory that waits to be delivered: at most one, of the newest run. Its methods exclude
// each other, also in several processes, so that it needs neither the lock of a run nor a writable Store.
type Outbox struct{ store *Store }

// OutboxIn returns the outbox of a state directory.
func OutboxIn(dir string) Outbox { return Outbox{&Store{dir: dir}} }

// Load returns the waiting report, nil if there is none.
func (b Outbox) Load() (*Outgoing, error) {
	o, _, err := load(b.store, OutboxFile, parseOutgoing, "its report is not sent")
	return o, err
}

// Next returns the number of the next report. It is at least the time in seconds, so that it grows although the state directory
// was removed or cannot be used.
func (b Outbox) Next(now time.Time) uint64 {
	return max(b.last()+1, uint64(max(0, now.Unix()))) //nolint:gosec // not negative
}

// Keep gives a report the next number and saves it durably, readable by this user only, in place of any earlier one. The number
// is valid also with an error.
func (b Outbox) Keep(o Outgoing, now time.Time) (Outgoing, error) {
	o.Version, o.Sequence = outboxVersion, b.Next(now)
	err := b.exclusively(func() error {
		var err error
		if o.Sequence, err = b.advance(now); err != nil { // another process can have taken the first one
			return err
		}
		return b.store.save(OutboxFile, o)
	})
	return o, err
}

// Take returns the next number, for a report that is not kept. Later reports have larger ones.
func (b Outbox) Take(now time.Time) (number uint64, err error) {
	err = b.exclusively(func() error {
		number, err = b.advance(now)
		return err
	})
	return number, err
}

// advance makes the next number the last one.
func (b Outbox) advance(now time.Time) (uint64, error) {
	number := b.Next(now)
	return number, b.store.write(sequence, []byte(strconv.FormatUint(number, 10)+"\n"))
}

// last returns the number of the last report, 0 if it is unknown.
func (b Outbox) last() uint64 {
	data, err := os.ReadFile(filepath.Join(b.store.dir, sequence))
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 63) // 0 if it is none
	return n
}

// Update saves a changed record, unless a newer report has taken its place or it was removed.
func (b Outbox) Update(o Outgoing) error {
	return b.ifCurrent(o.Sequence, func() error { return b.store.save(OutboxFile, o) })
}

// Remove removes the report with this number, unless a newer one has taken its place.
func (b Outbox) Remove(number uint64) error {
	return b.ifCurrent(number, func() error { return b.store.remove(OutboxFile) })
}

// WhenEmpty calls f if no report waits. No report is kept meanwhile.
func (b Outbox) WhenEmpty(f func() error) error {
	return b.exclusively(func() error {
		if o, err := b.Load(); err != nil || o != nil {
			return err
		}
		return f()
	})
}

func (b Outbox) ifCurrent(number uint64, change func() error) error {
	return b.exclusively(func() error {
		o, err := b.Load()
		if err != nil || o == nil || o.Sequence != number {
			return err
		}
		return change()
	})
}

// exclusively calls change while no other process is in it. A process is in it for the time of two writes.
func (b Outbox) exclusively(change func() error) (err error) {
	var lock *Lock
	for try := 0; ; try++ { // each waits for a while
		if lock, err = Acquire(filepath.Join(b.store.dir, outboxLock)); !errors.Is(err, ErrLocked) || try == 10 {
			break
		}
	}
	if err != nil {
		return stateError(err)
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	return change()
}

func parseOutgoing(data []byte) (*Outgoing, error) {
	var o Outgoing
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, errors.New("it is not the JSON of a report that waits")
	}
	switch {
	case o.Version != outboxVersion:
		return nil, fmt.Errorf("it has version %d, and this release reads %d", o.Version, outboxVersion)
	case o.Sequence == 0, len(o.Document) == 0, o.Binary == "", len(o.Report) == 0, o.Age < 0, o.Pause < 0, o.Tries < 0:
		return nil, errors.New("a part of it is missing")
	}
	return &o, nil
}
