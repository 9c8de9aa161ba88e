package launch

import (
	"errors"
	"io/fs"
	"os"
)

// ignoreAbsent returns the error of a deletion, or nil if the task does not exist. schtasks.exe exits with 1 for both, its
// text is localized, and its /Query is not reliable everywhere; so file, the task's file of the Task Scheduler, decides.
func ignoreAbsent(deletion error, file string) error {
	if deletion == nil {
		return nil
	}
	_, err := os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(deletion, err)
}
