package session

import (
	"context"
	"errors"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/launch"
	"github.com/machineadm/machineadm/host/outbox"
	"github.com/machineadm/machineadm/host/resume"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/host/state"
)

// Send sends the report that waits to be delivered, if its next try is due or now is set. It returns what it did, for the
// operator; an error without a message only has the code.
func Send(ctx context.Context, o Options, now bool) (string, error) {
	s, err := Open(ctx, o)
	if err != nil {
		return "", err
	}
	defer s.Close()
	waits, err := s.waiting(ctx)
	if err != nil {
		return "", stateError(err)
	}
	if waits == nil {
		if err := s.sender(nil).Stop(ctx); err != nil {
			return "", stateError(err)
		}
		return "no report waits in " + s.stateDir, nil
	}
	s.searchAs(&state.Pending{PluginDirs: waits.PluginDirs, PluginPath: waits.PluginPath, Proxies: waits.Proxies})
	done, err := s.sender(nil).Retry(ctx, *waits, s.o.Timeout, now)
	if err != nil {
		return done, stateError(err)
	}
	return done, nil
}

// waiting returns the report in the outbox of this machine, nil for none. A clone never sends the report of the machine that it was
// made from.
func (s *Session) waiting(ctx context.Context) (*state.Outgoing, error) {
	id, err := s.machineID(ctx)
	if err != nil {
		return nil, err
	}
	o, err := state.OutboxIn(s.stateDir).Load()
	if id != "" && s.store == nil && err == nil {
		o = nil
	}
	return o, err
}

// deliver sends the report of a run to the destination in its stream. fleet has the plugins of the run; nil starts the plugin alone.
func (s *Session) deliver(ctx context.Context, fleet *launch.Fleet, r report.Report) {
	if to, found := s.destination(); found {
		s.sender(fleet).Deliver(ctx, to, r)
	} else if s.delivers {
		s.sender(fleet).DropExpired()
	}
}

// follow sends the report of a run that is not over, until the function that it returns is called.
func (s *Session) follow(ctx context.Context, fleet *launch.Fleet, with *run.Dependencies) (end func()) {
	to, found := s.destination()
	if !found {
		return func() {}
	}
	note, end := s.sender(fleet).Follow(ctx, to)
	record := with.Record
	with.Record = func(r report.Report, details map[string]string) error {
		note(r)
		return record(r, details)
	}
	return end
}

// destination returns where the report of the run goes.
func (s *Session) destination() (outbox.Destination, bool) {
	if !s.delivers || s.stream == nil {
		return outbox.Destination{}, false
	}
	return outbox.Find(s.stream, s.Target)
}

// sender returns what sends reports with these plugins. Without any, each try starts its own.
func (s *Session) sender(fleet *launch.Fleet) outbox.Sender {
	return outbox.Sender{
		Box: state.OutboxIn(s.stateDir), Broken: s.stateErr, Shared: s.store != nil, Target: s.Target,
		Search: s.search, Starter: s.reportStarter, Warn: func(message string) { s.o.Note("warning: " + message) },
		Plugins: func() (*launch.Fleet, func(), error) {
			if fleet != nil {
				return fleet, func() {}, nil
			}
			own, err := s.Fleet()
			return own, func() { s.endAll(own) }, err
		},
	}
}

// reportStarter returns the Starter of machineadm report send. An init hook has no verb for it.
func (s *Session) reportStarter() (resume.Starter, error) {
	if s.hook != nil {
		return nil, errors.New("the init hook starts no command again and again")
	}
	argv, err := s.self("report", "send")
	if err != nil {
		return nil, err
	}
	return resume.NewReportStarter(argv, s.stateDir), nil
}
