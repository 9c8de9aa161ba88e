package session

import "github.com/machineadm/machineadm/host/run"

// WithoutRun calls do while no run on the live machine is active, and none can start.
func WithoutRun(o Options, do func() error) error {
	s := &Session{o: o}
	defer s.Close()
	if err := s.directories(run.ModeApply); err != nil {
		return err
	}
	if err := s.takeLock(); err != nil {
		return err
	}
	return do()
}
