package activate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/machineadm/machineadm/sdk/internal/files"
	"github.com/machineadm/machineadm/sdk/internal/units"
)

// recordVersion changes when an older record can no longer be read.
const recordVersion = 1

// record is an activation that has begun and not ended.
type record struct {
	Version int    `json:"version"`
	Unit    string `json:"unit"`
	// Desired is the digest of the configuration that is being activated.
	Desired string `json:"desired"`
	// Old has the files from before the swap.
	Old []oldFile `json:"old"`
	// Missing are the directories of the files that did not exist.
	Missing []string `json:"missing,omitempty"`
	// Ran reports that the unit ran before.
	Ran bool `json:"ran"`
	// Disabled reports that the unit was disabled before, and is to be enabled.
	Disabled bool `json:"disabled,omitempty"`
	// Stopped are the units of Conflicts that ran before.
	Stopped []string `json:"stopped,omitempty"`
	// Kept reports that the files have matched all the time, so that no restart is due.
	Kept bool `json:"kept,omitempty"`
	// Swapped reports that every file was new when Invocation was recorded.
	Swapped bool `json:"swapped"`
	// Invocation is one that has not read all of the new files.
	Invocation string `json:"invocation"`
	// Restarted reports that the daemon may have been restarted with new files.
	Restarted bool `json:"restarted"`
}

type oldFile struct {
	Path    string      `json:"path"`
	Version files.State `json:"file"`
}

func loadRecord(s units.Records, unit string) (*record, error) {
	data, err := s.Load(units.RecordName("activation", unit))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("load the record of an interrupted activation: %w", err)
	}
	r := &record{}
	if err := json.Unmarshal(data, r); err != nil || r.Version != recordVersion || r.Unit != unit {
		// never %w: the record holds the content of files
		return nil, fmt.Errorf("the record of an interrupted activation of %s cannot be read (state %s)",
			unit, units.RecordName("activation", unit))
	}
	return r, nil
}

func (r *record) save(s units.Records) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode the record of the activation of %s", r.Unit) // never %w: it could quote the content
	}
	if err := s.Save(units.RecordName("activation", r.Unit), data); err != nil {
		return fmt.Errorf("save the record of the activation of %s: %w", r.Unit, err)
	}
	return nil
}

func (r *record) delete(s units.Records) error {
	if err := s.Delete(units.RecordName("activation", r.Unit)); err != nil {
		return fmt.Errorf("delete the record of the activation of %s: %w", r.Unit, err)
	}
	return nil
}
