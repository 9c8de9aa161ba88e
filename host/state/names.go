package state

import (
	"errors"
	"fmt"
)

// The files of the state directory.
const (
	// DigestsFile is the cache of plugin digests; see launch.Digests.
	DigestsFile = "digests.json"
	// PendingFile is a run that resumes at the next boot.
	PendingFile = "resume.json"
	// RestingFile is a run that failed after a reboot: an operator can resume it, a boot does not.
	RestingFile = "resume-failed.json"
	// OutboxFile is a report that is not delivered yet; see Outbox.
	OutboxFile = "outbox.json"
	// WritesFile is the record of the live machine; see Writes.
	WritesFile = "writes.json"

	machineFile = "machine-id"
	keyFile     = "generation.key" // of StreamDigest; machines have it
	choicesFile = "choices.json"
	rebootsFile = "reboots.json"
	reportsDir  = "reports"
	pluginsDir  = "plugins"
	outboxLock  = "outbox.lock"
	sequence    = "report-sequence" // of the last report that was kept for sending
	resolvedDir = "resolved"        // what documents stood for, mode 0700
)

// The files of the run directory.
const (
	ReportFile  = "report.json"  // of the last run; mode 0644
	DetailsFile = "details.json" // raw output of external programs, mode 0600; absent if there is none

	// earlierFile is the report of an earlier run, until the run writes its own. Without ReportFile beside it, the last run
	// left no report.
	earlierFile = "report.earlier.json"
)

// stateNames returns all names that this package creates in a state directory.
func stateNames() []string {
	return []string{
		choicesFile, keyFile, rebootsFile, PendingFile, RestingFile, DigestsFile, OutboxFile, outboxLock, sequence, pluginsDir,
		resolvedDir, reportsDir, machineFile, WritesFile,
	}
}

// ErrState means that state could not be read or written. The run must not continue as if it had been.
var ErrState = errors.New("the state cannot be kept")

func stateError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrState, err)
}
