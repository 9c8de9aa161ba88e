package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/reporting"
	"github.com/machineadm/machineadm/host/state"
	"github.com/machineadm/machineadm/internal/trust"
)

func newStatus(g *globals, s streams) *cobra.Command {
	output := ""
	c := &cobra.Command{
		Use: "status", Short: "Show the result of the last run", Args: noArguments,
		Long: "status shows the result of the last run. The first line has the document, the phase, the cause, the remedy, and whether\n" +
			"running again is safe.",
		RunE: func(*cobra.Command, []string) error { return g.status(s, output) },
	}
	bindOutput(c, &output)
	return c
}

func (g *globals) status(s streams, output string) error {
	if err := checkOutput(output); err != nil {
		return err
	}
	runDir, stateDir := cmp.Or(g.runDir, defaultRunDir()), cmp.Or(g.stateDir, defaultStateDir())
	last, path, err := state.Last(runDir, stateDir)
	if errors.Is(err, state.ErrNoReport) {
		others := ""
		if other, at, err := state.Last(defaultRunDir(), defaultStateDir()); err == nil {
			others = fmt.Sprintf("; without these flags, status shows the run of %s in %s", other.StartedAt.Format(time.RFC3339), at)
		}
		return &exitError{
			code: report.ExitFailed, message: fmt.Sprintf("there is no report in %s or %s", runDir, stateDir),
			hint: "run machineadm apply first; after a run with --run-dir or --state-dir, give the same flags" + others,
		}
	}
	if errors.Is(err, state.ErrLost) {
		return &exitError{
			code: report.ExitFailed, message: fmt.Sprintf("%s in %s", err, runDir),
			hint: "free space in " + trust.Quote(runDir) + " and run again, which is safe; an earlier report is " + trust.Quote(path),
		}
	}
	if err != nil {
		exit := &exitError{code: report.ExitFailed, message: err.Error()}
		switch {
		case errors.Is(err, state.ErrNotReport):
			exit.hint = "run the same command again, which is safe and writes a new report"
		case errors.Is(err, fs.ErrPermission):
			exit.hint = "run as root: after a reboot only the state directory has the report, which only root can read"
		}
		return exit
	}
	if output == "json" {
		return writeJSON(s.out, last)
	}
	addCauses(last.Errors, state.Details(runDir, last.RunID))
	color, end := coloring(s.out)
	defer end()
	if err := reporting.Status(s.out, last, state.Held(lockAt(last.Root, runDir)), color, columns(s.out)); err != nil {
		return err
	}
	if last.Resume == report.ResumeByHand {
		if _, err := fmt.Fprintln(s.out, g.resumeHint(stateDir, runDir)); err != nil {
			return err
		}
	}
	if o, err := state.OutboxIn(stateDir).Load(); err == nil && o != nil { // only root can read it
		if _, err := fmt.Fprintf(s.out, "report waits to be sent since %s; to try at once: machineadm report send --now\n",
			o.FirstTry.Format(time.RFC3339)); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(s.out, "report: %s\n", path)
	return err
}

// maxCause bounds a cause, in bytes.
const maxCause = 512

// addCauses adds to the messages of errors the causes in their details. The report holds no output of other programs.
func addCauses(errs []report.Error, details map[string]string) {
	for i, e := range errs {
		line, _, _ := strings.Cut(details[e.Details], "\n")
		if cause, ok := strings.CutPrefix(line, pluginv1.CausePrefix); ok {
			errs[i].Message = strings.TrimRight(e.Message, ".; ") + ": " + strings.ToValidUTF8(cause[:min(len(cause), maxCause)], "")
		}
	}
}
