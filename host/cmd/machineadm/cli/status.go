package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/journal"
	"github.com/machineadm/machineadm/host/reporting"
)

func newStatus(g *globals, s streams) *cobra.Command {
	output := "text"
	c := &cobra.Command{
		Use: "status", Short: "Show how the last run ended", Args: cobra.NoArgs,
		Long: "status shows how the last run ended. The first line says at which document and phase, why, what to do, and whether\n" +
			"running again is safe.",
		RunE: func(*cobra.Command, []string) error { return g.status(s, output) },
	}
	c.Flags().StringVarP(&output, "output", "o", output, "`FORMAT` of the output: text, json")
	return c
}

func (g *globals) status(s streams, output string) error {
	runDir, stateDir := g.runDir, g.stateDir
	if runDir == "" {
		runDir = defaultRunDir()
	}
	if stateDir == "" {
		stateDir = defaultStateDir()
	}
	last, path, err := journal.Last(runDir, stateDir)
	if errors.Is(err, journal.ErrNoReport) {
		return &exitError{code: report.ExitFailed, text: fmt.Sprintf(
			"no run has left a report in %s or %s\n  hint: machineadm apply makes one", runDir, stateDir)}
	}
	if err != nil {
		return &exitError{code: report.ExitFailed, text: "error: " + err.Error()}
	}
	switch output {
	case "json":
		encoder := json.NewEncoder(s.out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(last)
	case "text":
		if err := reporting.Status(s.out, last, journal.Held(filepath.Join(runDir, "lock"))); err != nil {
			return err
		}
		_, err := fmt.Fprintf(s.out, "report: %s\n", path)
		return err
	}
	return usage("--output takes text or json")
}

func readAll(file *os.File) ([]byte, error) { return io.ReadAll(io.LimitReader(file, 1<<20)) }
