package resume

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/machineadm/machineadm/host/launch"
	"github.com/machineadm/machineadm/internal/atomicfile"
)

// The definitions that schtasks.exe reads, in the state directory.
const (
	taskFile       = "resume-task.xml"
	reportTaskFile = "report-task.xml"
)

// task is a Starter that registers a task with the Task Scheduler.
type task struct {
	name string
	file string
	xml  []byte
}

// NewStarter returns a Starter of argv. Windows has no task of this name.
func NewStarter(argv []string, stateDir string, _ bool) Starter {
	return &task{name: TaskName, file: filepath.Join(stateDir, taskFile), xml: resumeTask(argv)}
}

// NewReportStarter returns a Starter that runs argv every minute.
func NewReportStarter(argv []string, stateDir string) Starter {
	return &task{name: reportTask, file: filepath.Join(stateDir, reportTaskFile), xml: reportTaskXML(argv)}
}

// Install implements Starter.
func (t *task) Install(ctx context.Context) error {
	if err := atomicfile.WriteFile(t.file, t.xml, atomicfile.Options{}); err != nil {
		return err
	}
	return errors.Join(launch.RegisterTask(ctx, t.name, t.file), os.Remove(t.file))
}

// Remove implements Starter.
func (t *task) Remove(ctx context.Context) error { return launch.RemoveTask(ctx, t.name) }

// Files returns the paths that a Starter writes outside of the state directory.
func Files() []string { return nil }
