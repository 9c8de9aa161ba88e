package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/journal"
	"github.com/machineadm/machineadm/host/reporting"
	"github.com/machineadm/machineadm/internal/trust"
	"github.com/machineadm/machineadm/internal/visible"
)

func newStatus(g *globals, s streams) *cobra.Command {
	output := "text"
	c := &cobra.Command{
		Use: "status", Short: "Show how the last run ended", Args: noArguments,
		Long: "status shows how the last run ended. The first line says at which document and phase, why, what to do, and whether\n" +
			"running again is safe.",
		RunE: func(*cobra.Command, []string) error { return g.status(s, output) },
	}
	c.Flags().StringVarP(&output, "output", "o", output, "`FORMAT` of the output: text, json")
	return c
}

func (g *globals) status(s streams, output string) error {
	if err := checkOutput(output); err != nil {
		return err
	}
	runDir, stateDir := g.runDir, g.stateDir
	if runDir == "" {
		runDir = defaultRunDir()
	}
	if stateDir == "" {
		stateDir = defaultStateDir()
	}
	last, path, err := journal.Last(runDir, stateDir)
	if errors.Is(err, journal.ErrNoReport) {
		return &exitError{
			code: report.ExitFailed, message: fmt.Sprintf("no run has left a report in %s or %s", runDir, stateDir),
			hint: "run machineadm apply, which leaves one; after a run with --run-dir or --state-dir give the same flags",
		}
	}
	if errors.Is(err, journal.ErrLost) {
		return &exitError{
			code: report.ExitFailed, message: fmt.Sprintf("%s in %s, which it could not write", err, runDir),
			hint: "make room in " + trust.Quote(runDir) + " and run again, which is safe; an earlier report is " + trust.Quote(path),
		}
	}
	if err != nil {
		exit := &exitError{code: report.ExitFailed, message: err.Error()}
		if errors.Is(err, fs.ErrPermission) {
			exit.hint = "run as root: after a reboot the report is among the state, which is root's alone"
		}
		return exit
	}
	if output == "json" {
		encoder := json.NewEncoder(visible.Writer{Out: s.out})
		encoder.SetIndent("", "  ")
		return encoder.Encode(last)
	}
	color, end := coloring(s.out)
	defer end()
	if err := reporting.Status(s.out, last, journal.Held(lockAt(last.Root, runDir)), color); err != nil {
		return err
	}
	if last.Resume == report.ResumeByHand {
		if _, err := fmt.Fprintln(s.out, g.toGoOn(stateDir, runDir)); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(s.out, "report: %s\n", path)
	return err
}
