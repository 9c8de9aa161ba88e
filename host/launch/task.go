package launch

import (
	"errors"
	"io/fs"
	"os"
)

// absentTask returns why a task could not be deleted, or nil if there is no such task: schtasks.exe ends with 1 for both,
// its text is in the language of the machine, and its /Query is not reliable everywhere. file is where the Task
// Scheduler keeps the task, below %SystemRoot%\System32\Tasks.
func absentTask(deletion error, file string) error {
	if deletion == nil {
		return nil
	}
	_, err := os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(deletion, err)
}
