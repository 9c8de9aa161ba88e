package require

import (
	"errors"
	"fmt"
	"os"
)

// recordVariable has the file in which a test run records what its result depends on beside Go packages.
const recordVariable = "MACHINEADM_RECORD"

// Record adds a line `KIND NAME` to the record of this test run, if one is kept: a program of the checkout, a tool, a system or a
// missing prerequisite. testenv/suite reads it to decide whether an earlier result still holds.
func Record(kind, name string) (err error) {
	path := os.Getenv(recordVariable)
	if path == "" {
		return nil
	}
	// One write of a short line is atomic with O_APPEND; tests of one package run at once.
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("record %s %s: %w", kind, name, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = fmt.Fprintf(file, "%s %s\n", kind, name)
	return err
}
