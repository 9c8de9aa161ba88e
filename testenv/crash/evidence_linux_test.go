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

// leftover says what is wrong with a path that a run left; nothing, if it may be there.
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

// leftovers are what a run must not leave below dirs: temporary files, directories of sockets, and JSON that is none.
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

// parseReport refuses all but a whole report.
func parseReport(data []byte) (report.Report, error) {
	var r report.Report
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("not a whole report: %w: %q", err, data)
	}
	if r.Kind != report.Kind || r.RunID == "" || r.Outcome == "" || r.Documents == nil || !strings.HasSuffix(string(data), "}\n") {
		return r, fmt.Errorf("not a whole report: %q", data)
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

// reader reads a report over and over: it is whole whenever it is there.
type reader struct {
	stop    chan struct{}
	done    chan struct{}
	read    chan struct{} // gets something after each reading, if it is listened to
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

// close ends the reading and returns what was wrong.
func (r *reader) close() error {
	close(r.stop)
	<-r.done
	return r.failure
}
