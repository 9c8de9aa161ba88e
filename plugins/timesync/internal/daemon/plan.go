package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/machineadm/machineadm/plugins/timesync/internal/measure"
	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// noAnswerRetry is the pause before the host tries again when no server answers, as at a boot before the network is up.
const noAnswerRetry = 5 * time.Second

// Daemon is a time daemon as a provider found it, with its configuration.
type Daemon struct {
	// Unit is the daemon's service, which is installed.
	Unit   string
	States States
	// Files and Check are as in sdk.Activation.
	Files []sdk.FileSpec
	Check func(ctx context.Context, m sdk.Machine, candidates map[string]string) error
	// Registry is that of sdk.Activation.
	Registry []sdk.RegistryValue
	// Then are changes that follow the activation.
	Then []*sdk.Change
	// Healthy is that of sdk.Activation.
	Healthy func(ctx context.Context, m sdk.Machine, p sdk.Progress) error
	// Status asks the daemon once whether it has synchronized the clock. Verbose also asks for a line for each source.
	Status func(ctx context.Context, m sdk.Machine, verbose bool) (Status, error)
	// MaxDistance is the root distance beyond which the daemon ignores a server; 0 is no limit.
	MaxDistance time.Duration
	// Log is a hint to the messages of the daemon; by default its journal.
	Log string
	// Ask replaces the requests to servers in tests; nil sends them.
	Ask func(ctx context.Context, sources []settings.Source) []measure.Answer

	history measure.History
}

// Status is what a daemon reports.
type Status struct {
	// Synchronized reports that the clock is synchronized with a source of the current configuration.
	Synchronized bool
	// Source is the selected source, empty when there is none.
	Source string
	// Offset is the daemon's own measurement, 0 when it has none.
	Offset time.Duration
	// Sources has a line for each source.
	Sources []string
}

// String returns the status in one line.
func (s Status) String() string {
	text := "no source is selected"
	if s.Source != "" {
		text = "the selected source is " + s.Source
	}
	if !s.Synchronized {
		text = "not synchronized, " + text
	}
	if len(s.Sources) > 0 {
		text += " (" + strings.Join(s.Sources, "; ") + ")"
	}
	return text
}

// Plan returns the changes that make the daemon run with its configuration and synchronize the clock.
func Plan(ctx context.Context, m sdk.Machine, want settings.Settings, d Daemon) (sdk.Plan, error) {
	if d.Ask == nil {
		d.Ask = measure.Client{}.Ask
	}
	d.history = measure.History{}
	result := sdk.Plan{Warnings: slices.Clone(want.Warnings)}
	a := sdk.Activation{
		Unit: d.Unit, Seen: d.States, Enable: true, Files: d.Files, Registry: d.Registry, Check: d.Check, Healthy: d.Healthy,
	}
	if want.DisableOthers {
		a.Conflicts = Units()
	}
	var progress sdk.Progress // of the activation, whose Check has none
	if len(want.Asked()) > 0 {
		a.Check = func(ctx context.Context, m sdk.Machine, candidates map[string]string) error {
			if err := d.ask(ctx, progress, want); err != nil || d.Check == nil {
				return err
			}
			return d.Check(ctx, m, candidates)
		}
	}
	changes, err := sdk.Activate(ctx, m, a)
	if err != nil {
		return sdk.Plan{}, err
	}
	if len(changes) > 0 && len(want.Asked()) > 0 {
		activation := changes[len(changes)-1]
		activate := activation.Do
		activation.Do = func(ctx context.Context, p sdk.Progress) error {
			progress = p
			return activate(ctx, p)
		}
	}
	result.Add(changes...)
	result.Add(d.Then...)
	if want.Wait == nil {
		return result, nil
	}
	if len(changes) == 0 {
		status, err := d.Status(ctx, m, false)
		if err != nil {
			return sdk.Plan{}, err
		}
		if status.Synchronized && status.Offset.Abs() <= want.Wait.MaxOffset {
			return result, nil
		}
	}
	result.Add(d.synchronization(m, want))
	return result, nil
}

// ask asks the servers before their configuration is activated: one that works is not replaced by one that cannot.
func (d Daemon) ask(ctx context.Context, p sdk.Progress, want settings.Settings) error {
	p.Report(fmt.Sprintf("asking %d time sources", len(want.Asked())))
	answers := d.Ask(ctx, want.Asked())
	for i, a := range answers {
		if a.Usable() && d.MaxDistance > 0 && a.Distance > d.MaxDistance {
			answers[i].Err = fmt.Errorf("its root distance is %v, and %s ignores servers beyond %v; allow more, or use another server",
				a.Distance.Round(time.Microsecond), d.Unit, d.MaxDistance)
		}
	}
	d.history.Complete(answers)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if measure.NoneUsable(answers) {
		return sdk.Retry(noAnswerRetry, "none of the servers can be used, so the configuration stays unchanged: "+list(answers))
	}
	for _, a := range answers {
		if a.Usable() {
			p.Report(a.String())
		} else {
			p.Warn(a.Source.Field, a.String())
		}
	}
	const most = time.Second
	if low, high, differ := measure.Disagreement(answers, most); differ {
		p.Warn("", fmt.Sprintf("two servers disagree by %v: %v; %v; correct one of them or remove it", (high.Offset-low.Offset).Round(time.Millisecond), low, high))
	}
	return nil
}

func list(answers []measure.Answer) string {
	var all []string
	for _, a := range answers {
		all = append(all, a.String())
	}
	return strings.Join(all, "; ")
}

// synchronization returns the change that waits until the clock is synchronized.
func (d Daemon) synchronization(m sdk.Machine, want settings.Settings) *sdk.Change {
	return &sdk.Change{
		ID: "synchronize", Summary: "wait until " + d.Unit + " has synchronized the clock, at most " + want.Wait.Timeout.String(),
		NeedsLive: true, Interruptible: true,
		Do: func(ctx context.Context, p sdk.Progress) error {
			err := sdk.Wait(ctx, p, sdk.WaitSpec{
				What: "the clock is synchronized", Timeout: want.Wait.Timeout,
				Probe: func(ctx context.Context) (string, error) { return d.probe(ctx, m, want) },
			})
			if err == nil || ctx.Err() != nil {
				return err
			}
			return d.notSynchronized(ctx, err, want)
		},
	}
}

// probe returns nil when the daemon reports that the clock is synchronized and the servers confirm it.
func (d Daemon) probe(ctx context.Context, m sdk.Machine, want settings.Settings) (string, error) {
	status, err := d.Status(ctx, m, true)
	if err != nil {
		return "", err
	}
	switch {
	case !status.Synchronized:
		return status.String(), errors.New(status.String())
	case status.Offset.Abs() > want.Wait.MaxOffset:
		err = fmt.Errorf("%v, the offset is %v", status, status.Offset)
	case len(want.Asked()) > 0:
		answers := d.Ask(ctx, want.Asked())
		if !measure.Confirm(d.history.Complete(answers), want.Wait.MaxOffset) {
			err = fmt.Errorf("%v, but the servers do not confirm an offset of at most %v: %s", status, want.Wait.MaxOffset, list(answers))
		}
	}
	return status.String(), err
}

// notSynchronized adds what each server answers to the error of the wait.
func (d Daemon) notSynchronized(ctx context.Context, err error, want settings.Settings) error {
	hint := "correct the sources, or raise waitForSync.timeout, then run again; " + cmp.Or(d.Log, "see journalctl -u "+d.Unit)
	message := err.Error()
	if len(want.Asked()) > 0 {
		message += "; the servers answer: " + list(d.Ask(ctx, want.Asked()))
	}
	return sdk.Precondition(message, hint)
}
