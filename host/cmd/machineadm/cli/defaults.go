package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/internal/rooted"
	"github.com/machineadm/machineadm/internal/trust"
)

// maxDefaults is far above what a file of a few lines has.
const maxDefaults = 1 << 20

// defaults reads the providers that the OS vendor chose, of the machine or of the image.
func (p *place) defaults(mode run.Mode) (map[string]string, error) {
	if mode == run.ModeValidate {
		return nil, nil //nolint:nilnil // none is a fine set of defaults
	}
	data, err := p.readDefaults()
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil //nolint:nilnil // none is a fine set of defaults
	}
	if err != nil {
		return nil, err
	}
	return parseDefaults(p.defaultsFile(), data)
}

// defaultsFile is its name in messages.
func (p *place) defaultsFile() string { return filepath.Join(p.root, defaultsFile) }

// readDefaults reads the machine's own file like a program, links and all: whoever can write it chooses what is run. An
// image is the baker's.
func (p *place) readDefaults() ([]byte, error) {
	open := func() (*os.File, error) { return rooted.Open(p.root, defaultsFile) }
	if p.root == "" {
		if _, err := os.Lstat(defaultsFile); err != nil {
			return nil, err
		}
		open = func() (*os.File, error) { return trust.Open(defaultsFile, trust.Settings()) }
	}
	file, err := open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read from
	data, err := io.ReadAll(io.LimitReader(file, maxDefaults+1))
	if err == nil && len(data) > maxDefaults {
		err = fmt.Errorf("it is larger than %d MiB", maxDefaults>>20)
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
