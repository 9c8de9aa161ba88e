package state

import (
	"encoding/json"
	"errors"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// Reboots keeps the reboots requested in one boot, and counts the reboots of a stream. It implements run.Reboots.
type Reboots struct {
	store  *Store
	bootID string
}

// reboots is the format of the file.
type reboots struct {
	BootID       string    `json:"bootID,omitempty"` // of Requests
	Requests     []request `json:"requests,omitempty"`
	StreamDigest string    `json:"generation,omitempty"` // of Count
	Count        int       `json:"count,omitempty"`
	CountedIn    string    `json:"countedIn,omitempty"` // the boot that was counted last
}

type request struct {
	Document string `json:"document"`
	When     string `json:"when"`
	Asked    bool   `json:"asked"`
}

// Request is a reboot that a document requested in this boot.
type Request struct {
	Document string // KIND/NAME
	When     pluginv1.Reboot
	// Asked is false for a planned change that may or may not have been started.
	Asked bool
}

// Reboots returns the requests of the boot with this ID; another boot ID ends a request. Without boot IDs, only the run that made
// a request has it.
func (s *Store) Reboots(bootID string) *Reboots { return &Reboots{store: s, bootID: bootID} }

// Requests implements run.Reboots.
func (r *Reboots) Requests() ([]Request, error) {
	kept, err := r.load()
	if err != nil || kept.BootID != r.bootID || r.bootID == "" {
		return nil, err
	}
	var out []Request
	for _, q := range kept.Requests {
		out = append(out, Request{Document: q.Document, When: parseWhen(q.When), Asked: q.Asked})
	}
	return out, nil
}

func parseWhen(text string) pluginv1.Reboot {
	for _, when := range []pluginv1.Reboot{pluginv1.RebootAfterRun, pluginv1.RebootBeforeNext} {
		if when.String() == text {
			return when
		}
	}
	return pluginv1.RebootNone
}

// Keep implements run.Reboots.
func (r *Reboots) Keep(requests []Request) error {
	kept, err := r.load()
	if err != nil {
		return err
	}
	kept.BootID, kept.Requests = r.bootID, nil
	for _, q := range requests {
		kept.Requests = append(kept.Requests, request{Document: q.Document, When: q.When.String(), Asked: q.Asked})
	}
	return r.save(kept)
}

// Count implements run.Reboots. The count starts again with another stream.
func (r *Reboots) Count(streamDigest string) (int, error) {
	kept, err := r.load()
	if err != nil {
		return 0, err
	}
	if kept.StreamDigest != streamDigest {
		kept.StreamDigest, kept.Count, kept.CountedIn = streamDigest, 0, ""
	}
	if r.bootID != "" && kept.CountedIn == r.bootID { // the counted reboot has not happened
		return kept.Count, nil
	}
	kept.Count++
	kept.CountedIn = r.bootID
	return kept.Count, r.save(kept)
}

// Forget implements run.Reboots.
func (r *Reboots) Forget() error {
	kept, err := r.load()
	if err != nil {
		return err
	}
	left := reboots{BootID: kept.BootID, Requests: kept.Requests}
	if kept.BootID != r.bootID {
		left.Requests = nil
	}
	return r.save(left)
}

// save removes a file without requests and count, which would read as damaged.
func (r *Reboots) save(kept reboots) error {
	if len(kept.Requests) == 0 && kept.Count == 0 {
		return r.store.remove(rebootsFile)
	}
	return r.store.save(rebootsFile, kept)
}

func (r *Reboots) load() (reboots, error) {
	kept, _, err := load(r.store, rebootsFile, parseReboots, "reboot if a change has asked for it")
	return kept, err
}

func parseReboots(data []byte) (reboots, error) {
	var kept reboots
	if err := json.Unmarshal(data, &kept); err != nil {
		return kept, errors.New("it is not the JSON of requested reboots")
	}
	if kept.Count < 0 || kept.Count == 0 && len(kept.Requests) == 0 {
		return kept, errors.New("it contains neither a request nor a count")
	}
	for _, q := range kept.Requests {
		if q.Document == "" || parseWhen(q.When) == pluginv1.RebootNone {
			return kept, errors.New("a request in it is incomplete")
		}
	}
	return kept, nil
}
