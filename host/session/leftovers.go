package session

import (
	"path/filepath"

	"github.com/machineadm/machineadm/host/machine"
	"github.com/machineadm/machineadm/host/resume"
	"github.com/machineadm/machineadm/host/state"
)

// newWrites returns the record of the files that the run writes.
func (s *Session) newWrites() *state.Writes {
	own := []string{filepath.Join(s.runDir, state.ReportFile), filepath.Join(s.runDir, state.DetailsFile)}
	if s.root == "" {
		own = append(append(own, machine.NewSentinel().Path()), resume.Files()...)
	}
	return state.NewWrites(s.root, s.stateDir, own...)
}

// cleanUp removes leftovers of killed runs. A failure is a warning; the next run tries again.
func (s *Session) cleanUp() {
	if s.writes == nil {
		return
	}
	s.warnLeft(s.writes.CleanUp())
	machine.RemoveStale(s.o.Log)
}

// endWrites clears the record of written files after all plugins have ended.
func (s *Session) endWrites() {
	if s.writes != nil {
		s.warnLeft(s.writes.Clear())
	}
}

func (s *Session) warnLeft(err error) {
	if err != nil {
		s.o.Log.Warn("files of an interrupted run, which can contain secrets, cannot be removed", "error", err)
	}
}
