package sdk

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/machineadm/machineadm/sdk/machine"
)

// Intent is a record of work that cannot be observed while it is unfinished. It is saved before the work begins and deleted
// when the work is done, so that a plan finds it after a crash.
type Intent[T any] struct {
	State *machine.State
	// Name is the name of the record in State.
	Name string
}

// Load returns the record; nil when no work is unfinished.
func (i Intent[T]) Load() (*T, error) {
	data, err := i.State.Load(i.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("load the intent %s: %w", i.Name, err)
	}
	record := new(T)
	if json.Unmarshal(data, record) != nil {
		return nil, fmt.Errorf("the intent %s cannot be read", i.Name) // never %w: it could quote the record
	}
	return record, nil
}

// Begin saves the record. When it returns without an error, the record survives a crash.
func (i Intent[T]) Begin(record T) error {
	data, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("the intent %s cannot be encoded", i.Name)
	}
	return i.State.Save(i.Name, data)
}

// End deletes the record; an absent one is no error.
func (i Intent[T]) End() error { return i.State.Delete(i.Name) }
