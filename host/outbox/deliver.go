package outbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/host/launch"
	"github.com/machineadm/machineadm/host/machine"
	"github.com/machineadm/machineadm/host/resume"
	"github.com/machineadm/machineadm/host/state"
)

// The time that the end of a run spends on sending its report: all of it, and the part for the try.
const (
	deliveryTime = 5 * time.Second
	tryTime      = 4 * time.Second
)

// Sender sends the reports of a machine. A report that was not delivered is kept, and tried again.
type Sender struct {
	Box    state.Outbox
	Broken error // why the state directory keeps no report; nil if it does
	Shared bool  // the state is of this machine, so that other processes can keep a report
	Target target.Target
	// Plugins returns plugins, and the function that ends those that only this call needs.
	Plugins func() (fleet *launch.Fleet, end func(), err error)
	Search  func() (state.Pending, error)  // how to search for plugins
	Starter func() (resume.Starter, error) // of machineadm report send
	Warn    func(message string)
}

// Deliver sends the report of a run. It is kept until it is delivered. Nothing here changes the result of the run: a failure is a
// warning.
func (s Sender) Deliver(ctx context.Context, to Destination, r report.Report) {
	now := clock()
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), deliveryTime)
	defer cancel()
	try, cancelTry := context.WithTimeout(ctx, tryTime) // a second interrupt ends it
	defer cancelTry()
	text, err := Trim(r, report.MaxBytes)
	if err != nil {
		s.Warn("the report is not sent: " + err.Error())
		return
	}
	o, err := s.outgoing(to, text, now)
	if err != nil {
		s.Warn("the report is not sent: " + err.Error())
		return
	}
	keeping := s.Broken
	if keeping == nil {
		o, keeping = s.Box.Keep(o, time.Now())
	} else {
		o.Sequence = s.Box.Next(time.Now())
	}
	err = s.send(try, o)
	answer, after := Classify(o, err)
	switch {
	case answer != Again:
		if answer == Refused {
			s.Warn("the report is not sent: " + sendError(err))
		}
		s.forget(work, o.Sequence)
	case keeping != nil:
		s.Warn(fmt.Sprintf("the report was not sent, and cannot be kept for another try: %s; %s", sendError(err), keeping))
	default:
		o = Failed(o, clock(), time.Now().UTC(), after, rand.Float64())
		again := "it is tried again for 24 hours; to try at once: machineadm report send --now"
		if failed := errors.Join(s.Box.Update(o), s.start(work)); failed != nil {
			again = fmt.Sprintf("nothing starts another try (%s): run machineadm report send", failed)
		}
		s.Warn(fmt.Sprintf("the report was not sent: %s; %s", sendError(err), again))
	}
}

// outgoing returns the record of a report, without its number.
func (s Sender) outgoing(to Destination, text []byte, now state.Clock) (state.Outgoing, error) {
	search, err := s.Search()
	return state.Outgoing{
		Document: to.Document, Binary: to.Binary, Report: text, FirstTry: time.Now().UTC(), NextTry: time.Now().UTC(), LastTry: now,
		PluginDirs: search.PluginDirs, PluginPath: search.PluginPath, Proxies: search.Proxies,
	}, err
}

// send passes a report to the plugin of its destination, once.
func (s Sender) send(ctx context.Context, o state.Outgoing) error {
	fleet, end, err := s.Plugins()
	if err != nil {
		return err
	}
	defer end()
	found, err := fleet.Find(o.Binary)
	if err != nil {
		return err
	}
	plugin, err := fleet.Start(ctx, found)
	if err != nil {
		return fmt.Errorf("plugin %s: %w", o.Binary, err)
	}
	return Send(ctx, plugin.Source, plugin.Description.Capabilities, o, s.Target)
}

// sendError describes the error of a try on one line.
func sendError(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "the destination did not answer in time"
	}
	return err.Error()
}

// forget removes a report, and what starts its next try. A newer report and its tries stay.
func (s Sender) forget(ctx context.Context, number uint64) {
	if s.Broken != nil {
		return
	}
	err := s.Box.Remove(number)
	if err == nil {
		err = s.Stop(ctx)
	}
	if err != nil {
		s.Warn("a report that is not sent again cannot be removed: " + err.Error())
	}
}

// Stop removes what starts the tries, unless a report waits.
func (s Sender) Stop(ctx context.Context) error {
	starter, err := s.Starter()
	if err != nil {
		return nil //nolint:nilerr // nothing was started
	}
	if !s.Shared {
		return starter.Remove(ctx)
	}
	return s.Box.WhenEmpty(func() error { return starter.Remove(ctx) })
}

// start starts the tries. What it has written before an error is removed.
func (s Sender) start(ctx context.Context) error {
	starter, err := s.Starter()
	if err != nil {
		return err
	}
	if err := starter.Install(ctx); err != nil {
		return errors.Join(err, starter.Remove(context.WithoutCancel(ctx)))
	}
	return nil
}

// DropExpired removes a report of an earlier run that waited for too long, because it can contain secrets.
func (s Sender) DropExpired() {
	if o, err := s.Box.Load(); err == nil && o != nil && Expired(*o, clock()) {
		_ = s.Box.Remove(o.Sequence) // the next run tries again
	}
}

func clock() state.Clock { return state.Clock{BootID: machine.BootID(""), Uptime: machine.Uptime()} }
