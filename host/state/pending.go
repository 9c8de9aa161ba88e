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

const (
	// PendingFile is the file of a run that waits for a reboot, in the state directory. A boot goes on with it while it
	// has this name.
	PendingFile = "resume.json"
	// RestingFile is the same of a run that has failed since: a person may go on with it, and nothing else does.
	RestingFile = "resume-failed.json"
	// pendingVersion is the form of that file. A host that meets another one leaves it alone.
	pendingVersion = 1
)

// Pending is a run that waits for a reboot: the stream, which may have lain in /run, and how the run was asked for.
// It can hold secrets.
type Pending struct {
	Version    int           `json:"version"`
	Generation string        `json:"generation"`
	BootID     string        `json:"bootID,omitempty"` // of the boot that must end; empty where a boot has no name
	File       string        `json:"file"`             // what messages call the stream
	Phase      string        `json:"phase"`
	Timeout    time.Duration `json:"timeoutNanoseconds"`
	PluginDirs []string      `json:"pluginDirs,omitempty"`
	PluginPath string        `json:"pluginPath,omitempty"` // PATH, where plugins are looked for on it
	Proxies    []string      `json:"proxies,omitempty"`    // NAME=VALUE, without users and passwords
	Stream     []byte        `json:"stream"`
	// Resting says that no boot goes on with it any more.
	Resting bool `json:"-"`
}

// KeepPending has a run outlive the reboot. It is on disk, and nobody else can read it, when KeepPending returns.
func (s *Store) KeepPending(p Pending) error {
	p.Version = pendingVersion
	data, err := json.Marshal(p)
	if err != nil {
		return stateError(err)
	}
	if err := s.write(PendingFile, append(data, '\n')); err != nil {
		return err
	}
	return stateError(s.remove(RestingFile))
}

// Pending is the run that waits, or nil when none does.
func (s *Store) Pending() (*Pending, error) {
	for _, name := range []string{PendingFile, RestingFile} {
		path := filepath.Join(s.dir, name)
		data, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, stateError(err)
		}
		p, err := parsePending(data)
		if err != nil {
			return nil, stateError(fmt.Errorf("%s is damaged: %w; remove it, and apply the stream anew", path, err))
		}
		p.Resting = name == RestingFile
		return p, nil
	}
	return nil, nil
}

// RestPending has no boot go on with the run any more. Nothing waiting is fine.
func (s *Store) RestPending() error {
	err := os.Rename(filepath.Join(s.dir, PendingFile), filepath.Join(s.dir, RestingFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return stateError(err)
}

// parsePending never quotes what it reads: it may be a secret.
func parsePending(data []byte) (*Pending, error) {
	var p Pending
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, errors.New("it is not the JSON of a waiting run")
	}
	switch {
	case p.Version != pendingVersion:
		return nil, fmt.Errorf("it has the form %d, and this release reads %d", p.Version, pendingVersion)
	case p.Generation == "", p.File == "", len(p.Stream) == 0, p.Timeout <= 0:
		return nil, errors.New("a part of it is missing")
	}
	return &p, nil
}

// ForgetPending removes the run that waits. Absent is fine.
func (s *Store) ForgetPending() error {
	return stateError(errors.Join(s.remove(PendingFile), s.remove(RestingFile)))
}

func (s *Store) remove(name string) error {
	err := os.Remove(filepath.Join(s.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
