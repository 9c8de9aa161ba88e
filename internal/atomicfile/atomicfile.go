// Package atomicfile replaces files so that a reader, a crash or a full disk never meets half of one.
//
// A write goes to a temporary file with a reserved, deterministic name in the same directory, is made durable there,
// and takes the place of the old file in one step. Until that step the old file is whole and untouched; after it the
// new one is. A temporary file that a killed process left behind is recognised and removed by the next write of the
// same name; one that a live process holds is waited for.
package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
)

// WriteFile is Write for a directory that the caller names by path. Links in the path are followed: use it only where
// the caller trusts every directory on the way.
func WriteFile(path string, data []byte, o Options) (err error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	return Write(dir, filepath.Base(path), data, o)
}

// CleanUp removes from dir what interrupted writes of name left there: temporary files, links and candidates.
func CleanUp(dir *os.File, name string) error {
	if checkName(name) != nil {
		return nil //nolint:nilerr // no write of this package has such a name
	}
	candidate := CandidateName(name)
	var errs []error
	for _, left := range []string{
		temporaryName(name, temporarySuffix), temporaryName(name, linkSuffix), candidate, temporaryName(candidate, temporarySuffix),
	} {
		errs = append(errs, Remove(dir, left))
	}
	return errors.Join(errs...)
}
