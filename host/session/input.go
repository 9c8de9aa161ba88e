package session

import (
	"io"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/run"
)

// Input is one run: its stream, its target and who watches it.
type Input struct {
	Mode         run.Mode
	Path         string    // of the stream, - for In
	In           io.Reader // standard input
	Root         string    // the directory of an image; empty for the live machine
	Phase        string    // all, preparation or provisioning
	Resume       bool      // resume the run whose stream was saved before a reboot; Path and Phase are empty
	Reboot       bool      // reboot the machine if a change needs it
	AllowSecrets bool
	ResolveOnly  bool
	Interrupt    <-chan struct{} // closed to request an early, orderly end
	Observe      func(run.Event)
	// Interrupted is called when the run begins to end early; nil for no notice.
	Interrupted func()
	// Idle is called instead of a run if none is pending to be resumed. The report has no documents.
	Idle func(stateDir string, r report.Report) error
}

// PhaseOf returns the phase of the flag --phase.
func PhaseOf(name string) (pluginv1.Phase, error) {
	switch name {
	case "all":
		return pluginv1.PhaseUnspecified, nil
	case "preparation":
		return pluginv1.PhasePreparation, nil
	case "provisioning":
		return pluginv1.PhaseProvisioning, nil
	}
	return 0, usage("--phase takes preparation, provisioning or all")
}
