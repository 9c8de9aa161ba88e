package sdk

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

// recordVersion changes when an older record can no longer be read.
const recordVersion = 1

// record is an activation that has begun and not ended.
type record struct {
	Version int    `json:"version"`
	Unit    string `json:"unit"`
	// Wish is the digest of the configuration that is being activated.
	Wish string `json:"wish"`
	// Old is what was there before anything was swapped.
	Old []oldFile `json:"old"`
	// Missing are the directories of the files that were not there.
	Missing []string `json:"missing,omitempty"`
	// Ran says that the unit ran before.
	Ran bool `json:"ran"`
	// Disabled says that the unit was not started at boot before, and shall be.
	Disabled bool `json:"disabled,omitempty"`
	// Replaced are the units of Instead as they were before.
	Replaced []replaced `json:"replaced,omitempty"`
	// Kept says that the files were as wanted all the time, so that no restart is due.
	Kept bool `json:"kept,omitempty"`
	// Swapped says that every file was new when Invocation was noted.
	Swapped bool `json:"swapped"`
	// Invocation is one that has not read the new files as a whole.
	Invocation string `json:"invocation"`
	// Restarted says that the daemon may have been restarted with new files.
	Restarted bool `json:"restarted"`
}

type oldFile struct {
	Path    string  `json:"path"`
	Version version `json:"file"`
}

// replaced is a unit of Instead that was on.
type replaced struct {
	Unit   string `json:"unit"`
	AtBoot bool   `json:"atBoot"`
	Ran    bool   `json:"ran"`
}

func loadRecord(m memory, unit string) (*record, error) {
	data, err := m.Load(memoryName("activation", unit))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("remember an interrupted activation: %w", err)
	}
	r := &record{}
	if err := json.Unmarshal(data, r); err != nil || r.Version != recordVersion || r.Unit != unit {
		// never %w: the record holds the content of files
		return nil, fmt.Errorf("the record of an interrupted activation of %s cannot be read (state %s)",
			unit, memoryName("activation", unit))
	}
	return r, nil
}

func (r *record) save(m memory) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode the record of the activation of %s", r.Unit) // never %w: it could quote the content
	}
	if err := m.Save(memoryName("activation", r.Unit), data); err != nil {
		return fmt.Errorf("record the activation of %s: %w", r.Unit, err)
	}
	return nil
}

func (r *record) forget(m memory) error {
	if err := m.Delete(memoryName("activation", r.Unit)); err != nil {
		return fmt.Errorf("forget the finished activation of %s: %w", r.Unit, err)
	}
	return nil
}
