package session

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/host/machine"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/host/state"
	"github.com/machineadm/machineadm/internal/rooted"
	"github.com/machineadm/machineadm/internal/trust"
)

// maxDefaults is far above the size of a valid file.
const maxDefaults = 1 << 20

// vendorFiles reads the files of the machine or image that choose providers: the OS vendor's defaults by kind, and the bake's
// choices by document. It returns the file of an error.
func (s *Session) vendorFiles(o *run.Options) (at string, err error) {
	if o.Mode == run.ModeValidate {
		return "", nil
	}
	for _, f := range []struct {
		path  string
		parse func(file string, data []byte) (map[string]string, error)
		to    *map[string]string
	}{{machine.DefaultsFile, parseDefaults, &o.Defaults}, {state.ImageChoices, parseChoices, &o.ImageChoices}} {
		at = filepath.Join(s.root, f.path)
		data, err := s.readVendorFile(f.path)
		if errors.Is(err, os.ErrNotExist) {
			s.o.Log.Debug("vendor file absent", "path", at)
			continue
		}
		if err == nil {
			*f.to, err = f.parse(at, data)
		}
		if err != nil {
			return at, err
		}
		s.o.Log.Info("vendor file read", "path", at, "bytes", len(data))
	}
	return "", nil
}

func parseChoices(file string, data []byte) (map[string]string, error) {
	choices, err := state.ParseChoices(data)
	if err != nil {
		return nil, &document.Error{
			File: file, Index: -1, Message: err.Error(), Hint: "remove the file: machineadm then chooses the providers again",
		}
	}
	return choices, nil
}

// readVendorFile reads a file, which on the live machine must be trusted, because it chooses the executed plugins. The files
// of an image are not checked.
func (s *Session) readVendorFile(path string) ([]byte, error) {
	open := func() (*os.File, error) { return rooted.Open(s.root, path) }
	if s.root == "" {
		if _, err := os.Lstat(path); err != nil {
			return nil, err
		}
		open = func() (*os.File, error) { return trust.Open(path, trust.Settings()) }
	}
	file, err := open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // opened for reading only
	data, err := io.ReadAll(io.LimitReader(file, maxDefaults+1))
	if err == nil && len(data) > maxDefaults {
		err = fmt.Errorf("the file is larger than %d MiB", maxDefaults>>20)
	}
	return data, err
}

func parseDefaults(file string, data []byte) (map[string]string, error) {
	all, err := document.Strings(file, data)
	if err != nil {
		return nil, err
	}
	var wrong []error
	for kind, provider := range all {
		err := naming.ValidKind(kind)
		if err == nil {
			err = naming.ValidProvider(provider)
		}
		if err != nil {
			wrong = append(wrong, &document.Error{
				File: file, Index: -1, Field: string(document.Path("").Field(kind)), Message: err.Error(),
				Hint: "write KIND: PROVIDER, such as Timesync: chronyd",
			})
		}
	}
	return all, errors.Join(wrong...)
}
