package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/host/run"
)

const rebootsFile = "reboots.json"

// Reboots keeps the reboots that were requested in one boot, and counts those that a stream has cost. It implements
// run.Reboots.
type Reboots struct {
	store  *Store
	bootID string
}

// reboots is the file.
type reboots struct {
	BootID     string    `json:"bootID,omitempty"` // of Requests
	Requests   []request `json:"requests,omitempty"`
	Generation string    `json:"generation,omitempty"` // of Count
	Count      int       `json:"count,omitempty"`
	CountedIn  string    `json:"countedIn,omitempty"` // the boot that was counted last
}

type request struct {
	Document string `json:"document"`
	When     string `json:"when"`
	Asked    bool   `json:"asked"`
}

// Reboots are those of the boot with this ID. Requests of another boot are done. Where a boot has no ID, a request is
// known only to the run that made it.
func (s *Store) Reboots(bootID string) *Reboots { return &Reboots{store: s, bootID: bootID} }

// Requests implements run.Reboots.
func (r *Reboots) Requests() ([]run.Request, error) {
	kept, err := r.read()
	if err != nil || kept.BootID != r.bootID || r.bootID == "" {
		return nil, err
	}
	var out []run.Request
	for _, q := range kept.Requests {
		out = append(out, run.Request{Document: q.Document, When: whenOf(q.When), Asked: q.Asked})
	}
	return out, nil
}

func whenOf(text string) pluginv1.Reboot {
	for _, when := range []pluginv1.Reboot{pluginv1.RebootAfterRun, pluginv1.RebootBeforeNext} {
		if when.String() == text {
			return when
		}
	}
	return pluginv1.RebootNone
}

// Keep implements run.Reboots.
func (r *Reboots) Keep(requests []run.Request) error {
	kept, err := r.read()
	if err != nil {
		return err
	}
	kept.BootID, kept.Requests = r.bootID, nil
	for _, q := range requests {
		kept.Requests = append(kept.Requests, request{Document: q.Document, When: q.When.String(), Asked: q.Asked})
	}
	if len(kept.Requests) == 0 && kept.Count == 0 {
		return stateError(r.store.remove(rebootsFile)) // without either, the file is read as damaged
	}
	return r.write(kept)
}

// Count implements run.Reboots. The count is on disk when it returns; it starts again with another stream.
func (r *Reboots) Count(generation string) (int, error) {
	kept, err := r.read()
	if err != nil {
		return 0, err
	}
	if kept.Generation != generation {
		kept.Generation, kept.Count, kept.CountedIn = generation, 0, ""
	}
	if r.bootID != "" && kept.CountedIn == r.bootID { // the machine has not made the one that was counted
		return kept.Count, nil
	}
	kept.Count++
	kept.CountedIn = r.bootID
	return kept.Count, r.write(kept)
}

// Forget implements run.Reboots.
func (r *Reboots) Forget() error {
	kept, err := r.read()
	if err != nil {
		return err
	}
	if kept.BootID == r.bootID && len(kept.Requests) > 0 {
		return r.write(reboots{BootID: kept.BootID, Requests: kept.Requests})
	}
	return stateError(r.store.remove(rebootsFile))
}

func (r *Reboots) write(kept reboots) error {
	data, err := json.Marshal(kept)
	if err != nil {
		return stateError(err)
	}
	return r.store.write(rebootsFile, append(data, '\n'))
}

func (r *Reboots) read() (reboots, error) {
	path := filepath.Join(r.store.dir, rebootsFile)
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return reboots{}, nil
	case err != nil:
		return reboots{}, stateError(err)
	}
	kept, err := parseReboots(data)
	if err != nil {
		return reboots{}, stateError(fmt.Errorf("%s is damaged: %w; remove it, and reboot if a change has asked for it", path, err))
	}
	return kept, nil
}

func parseReboots(data []byte) (reboots, error) {
	var kept reboots
	if err := json.Unmarshal(data, &kept); err != nil {
		return kept, errors.New("it is not the JSON of requested reboots")
	}
	if kept.Count < 0 || kept.Count == 0 && len(kept.Requests) == 0 {
		return kept, errors.New("it holds neither a request nor a count")
	}
	for _, q := range kept.Requests {
		if q.Document == "" || whenOf(q.When) == pluginv1.RebootNone {
			return kept, errors.New("a request in it is incomplete")
		}
	}
	return kept, nil
}
