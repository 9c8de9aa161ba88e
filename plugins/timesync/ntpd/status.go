package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/machineadm/machineadm/internal/lazyregexp"
	"github.com/machineadm/machineadm/plugins/timesync/internal/daemon"
	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// The columns of ntpq -p, without the character in front of the first.
const (
	peerName, peerStratum, peerType, peerReach, peerOffset, peerColumns = 0, 2, 3, 6, 8, 10
)

// ntpqTimeout leaves ntpq, a Python program, time to start and to say after 10 s that ntpd does not answer.
const ntpqTimeout = 25 * time.Second

// system is what ntpd reports of the clock.
type system struct {
	leap    string
	stratum int
	refid   string
	offset  time.Duration
}

// ask runs ntpq, which succeeds also when ntpd does not answer.
func ask(ctx context.Context, m sdk.Machine, arguments ...string) (string, error) {
	result, err := m.Commands.Run(ctx, machine.Command{
		Name: "ntpq", Args: append([]string{"-n"}, arguments...), Timeout: ntpqTimeout,
	})
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(string(result.Stdout)) == "" {
		message, _, _ := strings.Cut(strings.TrimSpace(string(result.Stderr)), "\n")
		return "", errors.New("ntpd does not answer: " + message)
	}
	return string(result.Stdout), nil
}

func askSystem(ctx context.Context, m sdk.Machine) (system, error) {
	text, err := ask(ctx, m, "-c", "rv 0 leap,stratum,refid,offset")
	if err != nil {
		return system{}, err
	}
	return parseSystem(text)
}

// parseSystem parses the answer to rv, such as "leap=00, stratum=3, refid=192.0.2.1, offset=-0.125".
func parseSystem(text string) (system, error) {
	variables := map[string]string{}
	for _, item := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '\n' || r == '\r' }) {
		name, value, _ := strings.Cut(item, "=")
		variables[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	stratum, err := strconv.Atoi(variables["stratum"])
	if err != nil || variables["leap"] == "" {
		return system{}, errors.New("the answer of ntpd has no leap indicator and stratum")
	}
	s := system{leap: variables["leap"], stratum: stratum, refid: variables["refid"]}
	if variables["offset"] != "" {
		s.offset, err = duration(variables["offset"])
	}
	return s, err
}

// duration converts a number of milliseconds.
func duration(milliseconds string) (time.Duration, error) {
	number, err := strconv.ParseFloat(milliseconds, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number of milliseconds", milliseconds)
	}
	return time.Duration(number * float64(time.Millisecond)), nil
}

// selected reports whether ntpd has selected a source: without one the stratum is 16.
func (s system) selected() bool { return s.stratum > 0 && s.stratum < 16 }

// measures reports whether ntpd measures the frequency of the clock. After its first step it does so for the stepout threshold,
// 5 or 15 minutes, unless it has a drift file. Meanwhile it leaves the clock alone, and the leap indicator is 3. Source: the
// state FREQ in ntp_loopfilter.c.
func (s system) measures() bool { return s.selected() && s.leap == "11" }

// orphan reports whether ntpd follows its own clock, by the directive "tos orphan", and has no source.
func (s system) orphan() bool { return s.refid == "127.0.0.1" }

// statusOf returns the function that asks ntpd whether it has synchronized the clock: with a source, if the document has
// sources.
func statusOf(want settings.Settings) func(context.Context, sdk.Machine, bool) (daemon.Status, error) {
	return func(ctx context.Context, m sdk.Machine, verbose bool) (daemon.Status, error) {
		return status(ctx, m, verbose, want.HasSources())
	}
}

func status(ctx context.Context, m sdk.Machine, verbose, sources bool) (daemon.Status, error) {
	s, err := askSystem(ctx, m)
	if err != nil {
		return daemon.Status{}, err
	}
	result := daemon.Status{Synchronized: s.selected(), Offset: s.offset}
	if s.selected() {
		result.Source = s.refid
	}
	if sources && s.orphan() {
		result.Synchronized, result.Source = false, ""
	}
	if !verbose && !s.measures() {
		return result, nil
	}
	text, err := ask(ctx, m, "-p")
	if err != nil {
		return daemon.Status{}, err
	}
	var measured *time.Duration
	result.Sources, measured = describePeers(text)
	if s.measures() { // without an offset of its own
		result.Synchronized = measured != nil
		if measured != nil {
			result.Offset = *measured
		}
	}
	return result, nil
}

// describePeers returns the sources in words, and the offset of the selected one. The prototype of a pool is none.
func describePeers(text string) (all []string, selected *time.Duration) {
	header := true
	for line := range strings.Lines(text) {
		if header {
			header = !strings.HasPrefix(line, "===")
			continue
		}
		columns := strings.Fields(line[1:])
		if len(columns) < peerColumns || columns[peerType] == "p" {
			continue
		}
		if columns[peerReach] == "0" {
			all = append(all, columns[peerName]+": no answer so far")
			continue
		}
		description := fmt.Sprintf("%s: %s, stratum %s", columns[peerName], tally(line[0]), columns[peerStratum])
		if offset, err := duration(columns[peerOffset]); err == nil {
			description += ", offset " + offset.Round(time.Microsecond).String()
			if tally(line[0]) == "selected" {
				selected = &offset
			}
		}
		all = append(all, description)
	}
	return all, selected
}

// tally is the first character of a line of ntpq -p.
func tally(c byte) string {
	switch c {
	case '*', 'o':
		return "selected"
	case '+':
		return "combined"
	case '-', '#':
		return "not combined"
	case 'x':
		return "a falseticker"
	}
	return "unusable"
}

// fault matches what ntpd logs about a configuration with which it runs nevertheless: lines that it ignores, keys and clocks
// that it cannot open. It has no option that only checks a configuration.
var fault = lazyregexp.New(
	`syntax error in \S+ line \d+, column \d+|authreadkeys: (file|unknown auth type) .+|refclock_pps: .+`)

// healthy returns a function that succeeds when the daemon answers and has found no fault in its configuration.
func healthy(unit string) func(context.Context, sdk.Machine, sdk.Progress) error {
	return func(ctx context.Context, m sdk.Machine, _ sdk.Progress) error {
		if _, err := askSystem(ctx, m); err != nil {
			return err
		}
		state, err := m.Services.State(ctx, unit)
		if err != nil || state.InvocationID == "" { // before systemd 232
			return err
		}
		// What ntpd logged before it answered may still be on its way.
		if _, err := m.Commands.Run(ctx, machine.Command{Name: "journalctl", Args: []string{"--sync"}}); err != nil {
			return err
		}
		journal, err := m.Commands.Run(ctx, machine.Command{
			Name: "journalctl", Args: []string{"--quiet", "--no-pager", "--output=cat", "_SYSTEMD_INVOCATION_ID=" + state.InvocationID},
		})
		if err != nil {
			return err
		}
		if found := fault().Find(journal.Stdout); found != nil {
			return sdk.Final(fmt.Errorf("ntpd does not accept its configuration: %s", found))
		}
		return nil
	}
}
