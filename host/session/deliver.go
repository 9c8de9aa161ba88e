package session

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/launch"
	"github.com/machineadm/machineadm/host/outbox"
	"github.com/machineadm/machineadm/host/resume"
	"github.com/machineadm/machineadm/host/state"
)

// The time that the end of a run spends on sending its report: all of it, and the part for the try.
const (
	deliveryTime = 5 * time.Second
	tryTime      = 4 * time.Second
)

// deliver sends the report of a run to the destination in its stream. It is kept until it is delivered. Nothing here changes the
// result of the run: a failure is a warning. fleet has the plugins of the run; nil starts the plugin alone.
func (s *Session) deliver(ctx context.Context, fleet *launch.Fleet, r report.Report) {
	if !s.delivers {
		return
	}
	box, now := state.OutboxIn(s.stateDir), clock()
	to, found := s.destination()
	if !found {
		dropExpired(box, now)
		return
	}
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), deliveryTime)
	defer cancel()
	try, cancelTry := context.WithTimeout(ctx, tryTime) // a second interrupt ends it
	defer cancelTry()
	text, err := outbox.Trim(r, report.MaxBytes)
	if err != nil {
		s.warn("the report is not sent: " + err.Error())
		return
	}
	o, err := s.outgoing(to, text, now)
	if err != nil {
		s.warn("the report is not sent: " + err.Error())
		return
	}
	keeping := s.stateErr
	if keeping == nil {
		o, keeping = box.Keep(o, time.Now())
	} else {
		o.Sequence = box.Next(time.Now())
	}
	err = s.send(try, fleet, o)
	answer, after := outbox.Classify(o, err)
	switch {
	case answer != outbox.Again:
		if answer == outbox.Refused {
			s.warn("the report is not sent: " + sendError(err))
		}
		s.forgetReport(work, o.Sequence)
	case keeping != nil:
		s.warn(fmt.Sprintf("the report was not sent, and cannot be kept for another try: %s; %s", sendError(err), keeping))
	default:
		o = outbox.Failed(o, clock(), time.Now().UTC(), after, rand.Float64())
		again := "it is tried again for 24 hours; to try at once: machineadm report send --now"
		if failed := errors.Join(box.Update(o), s.startReports(work)); failed != nil {
			again = fmt.Sprintf("nothing starts another try (%s): run machineadm report send", failed)
		}
		s.warn(fmt.Sprintf("the report was not sent: %s; %s", sendError(err), again))
	}
}

// destination returns where the report of the run goes.
func (s *Session) destination() (outbox.Destination, bool) {
	if s.stream == nil {
		return outbox.Destination{}, false
	}
	return outbox.Find(s.stream, s.Target)
}

// outgoing returns the record of a report, without its number.
func (s *Session) outgoing(to outbox.Destination, text []byte, now state.Clock) (state.Outgoing, error) {
	search, err := s.search()
	return state.Outgoing{
		Document: to.Document, Binary: to.Binary, Report: text, FirstTry: time.Now().UTC(), NextTry: time.Now().UTC(), LastTry: now,
		PluginDirs: search.PluginDirs, PluginPath: search.PluginPath, Proxies: search.Proxies,
	}, err
}

// send passes a report to the plugin of its destination, once.
func (s *Session) send(ctx context.Context, fleet *launch.Fleet, o state.Outgoing) error {
	if fleet == nil {
		own, err := s.Fleet()
		if err != nil {
			return err
		}
		defer s.endAll(own)
		fleet = own
	}
	found, err := fleet.Find(o.Binary)
	if err != nil {
		return err
	}
	plugin, err := fleet.Start(ctx, found)
	if err != nil {
		return fmt.Errorf("plugin %s: %w", o.Binary, err)
	}
	return outbox.Send(ctx, plugin.Source, plugin.Description.Capabilities, o, s.Target)
}

// sendError describes the error of a try on one line.
func sendError(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "the destination did not answer in time"
	}
	return err.Error()
}

// forgetReport removes a report, and what starts its next try. A newer report and its tries stay.
func (s *Session) forgetReport(ctx context.Context, number uint64) {
	box := state.OutboxIn(s.stateDir)
	if s.stateErr != nil {
		return
	}
	err := box.Remove(number)
	if err == nil {
		err = s.stopReports(ctx, box)
	}
	if err != nil {
		s.warn("a report that is not sent again cannot be removed: " + err.Error())
	}
}

// stopReports removes what starts the tries, unless a report waits.
func (s *Session) stopReports(ctx context.Context, box state.Outbox) error {
	starter, err := s.reportStarter()
	if err != nil {
		return nil //nolint:nilerr // nothing was started
	}
	if s.store == nil { // no state of this machine, and so no other process that keeps a report
		return starter.Remove(ctx)
	}
	return box.WhenEmpty(func() error { return starter.Remove(ctx) })
}

// startReports starts the tries. What it has written before an error is removed.
func (s *Session) startReports(ctx context.Context) error {
	starter, err := s.reportStarter()
	if err != nil {
		return err
	}
	if err := starter.Install(ctx); err != nil {
		return errors.Join(err, starter.Remove(context.WithoutCancel(ctx)))
	}
	return nil
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

// dropExpired removes a report of an earlier run that waited for too long, because it can contain secrets.
func dropExpired(box state.Outbox, now state.Clock) {
	if o, err := box.Load(); err == nil && o != nil && outbox.Expired(*o, now) {
		_ = box.Remove(o.Sequence) // the next run tries again
	}
}

func clock() state.Clock { return state.Clock{BootID: bootID(""), Uptime: uptime()} }

func (s *Session) warn(message string) { s.o.Note("warning: " + message) }
