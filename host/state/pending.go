package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// pendingVersion is the format of PendingFile. A host refuses another one.
const pendingVersion = stateVersion

// Pending is a run that waits for a reboot: its stream, which may have been in /run, and its options. It can contain secrets.
type Pending struct {
	Version      int           `json:"version"`
	StreamDigest string        `json:"generation"`       // the name in records that wait
	BootID       string        `json:"bootID,omitempty"` // of the boot that must end; empty if the system has none
	File         string        `json:"file"`             // the stream's name in messages
	Phase        string        `json:"phase"`
	Timeout      time.Duration `json:"timeoutNanoseconds"`
	PluginDirs   []string      `json:"pluginDirs,omitempty"`
	PluginPath   string        `json:"pluginPath,omitempty"` // PATH, if plugins are searched on it
	Proxies      []string      `json:"proxies,omitempty"`    // NAME=VALUE, without users and passwords
	Stream       []byte        `json:"stream"`
	// Resting means that no boot resumes the run.
	Resting bool `json:"-"`
}

// KeepPending saves a run durably, readable by this user only, for the next boot.
func (s *Store) KeepPending(p Pending) error {
	p.Version = pendingVersion
	if err := s.save(PendingFile, p); err != nil {
		return err
	}
	return s.remove(RestingFile)
}

// Pending returns the pending run, or nil if there is none.
func (s *Store) Pending() (*Pending, error) {
	for _, name := range []string{PendingFile, RestingFile} {
		p, found, err := load(s, name, parsePending, "apply the stream anew")
		if err != nil {
			return nil, err
		}
		if found {
			p.Resting = name == RestingFile
			return p, nil
		}
	}
	return nil, nil
}

// RestPending leaves the pending run, if any, to an operator: no boot resumes it.
func (s *Store) RestPending() error {
	err := os.Rename(filepath.Join(s.dir, PendingFile), filepath.Join(s.dir, RestingFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return stateError(err)
}

// ForgetPending removes the pending run, if any.
func (s *Store) ForgetPending() error {
	return errors.Join(s.remove(PendingFile), s.remove(RestingFile))
}

func parsePending(data []byte) (*Pending, error) {
	var p Pending
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, errors.New("it is not the JSON of a pending run")
	}
	switch {
	case p.Version != pendingVersion:
		return nil, fmt.Errorf("it has version %d, and this release reads %d", p.Version, pendingVersion)
	case p.StreamDigest == "", p.File == "", len(p.Stream) == 0, p.Timeout <= 0:
		return nil, errors.New("a part of it is missing")
	}
	return &p, nil
}
