package daemon

import (
	"bytes"
	"errors"
	"io/fs"

	"github.com/machineadm/machineadm/sdk"
)

// InPlace reports whether files have their desired content, so that a daemon that has started read it. A configuration that is rolled back
// has the old content.
func InPlace(m sdk.Machine, files []sdk.FileSpec) bool {
	for _, f := range files {
		text, err := m.FS.ReadFile(f.Path)
		if f.Absent != errors.Is(err, fs.ErrNotExist) || !f.Absent && (err != nil || !bytes.Equal(text, f.Content)) {
			return false
		}
	}
	return true
}
