package crash

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/state"
	"github.com/machineadm/machineadm/internal/atomicfile"
)

// leftover returns what is wrong with a path that a run left; empty when the path may exist.
func leftover(path string) string {
	switch name := filepath.Base(path); {
	case atomicfile.Leftover(name):
		return "a temporary file: " + path
	case strings.HasPrefix(name, ".sockets-"), strings.HasPrefix(name, "machineadm-run-"):
		return "a temporary directory: " + path
	case name == filepath.Base(state.ImageWrites), name == state.WritesFile:
		return "a record of what is written: " + path
	case name == "report.earlier.json":
		return "a report moved aside: " + path
	}
	return ""
}

// leftovers returns what a run must not leave below dirs: temporary files, directories of sockets, and invalid JSON.
func leftovers(dirs ...string) ([]string, error) {
	var found []string
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if what := leftover(path); what != "" {
				found = append(found, what)
			} else if strings.HasSuffix(path, ".json") {
				data, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				if !json.Valid(data) {
					found = append(found, "not JSON: "+path)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// parseReport parses a complete report.
func parseReport(data []byte) (report.Report, error) {
	var r report.Report
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("not a complete report: %w: %q", err, data)
	}
	if r.Kind != report.Kind || r.RunID == "" || r.Outcome == "" || r.Documents == nil || !strings.HasSuffix(string(data), "}\n") {
		return r, fmt.Errorf("not a complete report: %q", data)
	}
	return r, nil
}

// checkReport compares the report that a run left with how its process ended.
func checkReport(r report.Report, code int) error {
	switch {
	case r.ExitCode != code:
		return fmt.Errorf("the process ended with %d, its report says %d", code, r.ExitCode)
	case (code == report.ExitOK) != (r.Outcome == report.RunSucceeded) || r.Outcome == report.RunRunning || r.FinishedAt.IsZero():
		return fmt.Errorf("the process ended with %d, its report with %s at %s", code, r.Outcome, r.FinishedAt)
	case code == report.ExitOK:
		return nil
	}
	if len(r.Errors) == 0 {
		return errors.New("the report of a failed run holds no error")
	}
	return nil
}

// reader reads a report repeatedly and checks that it is complete whenever it exists.
type reader struct {
	stop    chan struct{}
	done    chan struct{}
	read    chan struct{} // receives after each reading, if it is read
	failure error
}

func readReports(path string) *reader {
	r := &reader{stop: make(chan struct{}), done: make(chan struct{}), read: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.failure = r.loop(path)
	}()
	return r
}

func (r *reader) loop(path string) error {
	tick := time.NewTicker(300 * time.Microsecond) // leaves the processor to the run
	defer tick.Stop()
	for {
		data, err := os.ReadFile(path)
		switch {
		case err == nil:
			if _, err := parseReport(data); err != nil {
				return err
			}
		case !errors.Is(err, fs.ErrNotExist): // a run that begins moves the earlier one away
			return err
		}
		select {
		case r.read <- struct{}{}:
		default:
		}
		select {
		case <-r.stop:
			return nil
		case <-tick.C:
		}
	}
}

// close ends the reading and returns the error that it found.
func (r *reader) close() error {
	close(r.stop)
	<-r.done
	return r.failure
}
