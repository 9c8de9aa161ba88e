package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/machineadm/machineadm/plugins/timesync/internal/daemon"
	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

const commandTimeout = 10 * time.Second

// healthy returns a function that succeeds when the running timesyncd has not complained about the file of the document, and has its servers.
// Without D-Bus it cannot be asked for them.
func healthy(want settings.Settings, files []sdk.FileSpec) func(context.Context, sdk.Machine, sdk.Progress) error {
	return func(ctx context.Context, m sdk.Machine, _ sdk.Progress) error {
		if err := silent(ctx, m); err != nil || !daemon.InPlace(m, files) {
			return err
		}
		s, err := ask(ctx, m)
		if err == nil && s.differs(want) {
			return sdk.Final(sdk.Precondition("timesyncd has other servers than the document: "+strings.Join(s.servers, " "),
				"see systemd-analyze cat-config systemd/timesyncd.conf"))
		}
		return nil
	}
}

// silent succeeds when timesyncd has not complained: it ignores what it cannot read, so only its log says so.
func silent(ctx context.Context, m sdk.Machine) error {
	state, err := m.Services.State(ctx, unitName)
	if err != nil {
		return err
	}
	result, err := m.Commands.Run(ctx, machine.Command{
		Name: "journalctl", Timeout: commandTimeout,
		Args: []string{"--quiet", "--no-pager", "--output=cat", "_SYSTEMD_INVOCATION_ID=" + state.InvocationID},
	})
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(result.Stdout)) {
		if complaint, ok := strings.CutPrefix(line, ownFile+":"); ok {
			number, _, _ := strings.Cut(complaint, ":")
			return sdk.Final(sdk.WithDetail(sdk.Precondition(unitName+" ignores line "+number+" of "+ownFile,
				"see journalctl -u "+unitName+"; install a release of systemd that has this setting, or remove it"), line))
		}
	}
	return nil
}

// state is what timesyncd reports.
type state struct {
	// servers are the servers of its configuration, and server the one that it uses.
	servers []string
	server  string
	// answers is the number of answers since it started.
	answers uint64
	// offset is an upper bound of what the last answer left to correct.
	offset time.Duration
}

// largestSlew is the smallest offset for which timesyncd steps the clock. Source: NTP_MAX_ADJUST in timesyncd-manager.c.
const largestSlew = 400 * time.Millisecond

// property is the value of a D-Bus property in the JSON of busctl(1).
type property[T any] struct {
	Data T `json:"data"`
}

// parseState reads the properties of org.freedesktop.timesync1.Manager. Source: timesyncd-bus.c.
func parseState(text []byte) (state, error) {
	var reply struct {
		Data []struct {
			SystemNTPServers property[[]string]
			ServerName       property[string]
			NTPMessage       property[[]json.RawMessage]
		} `json:"data"`
	}
	if err := json.Unmarshal(text, &reply); err != nil {
		return state{}, fmt.Errorf("the output of busctl: %w", err)
	}
	if len(reply.Data) != 1 || len(reply.Data[0].NTPMessage.Data) < 14 {
		return state{}, errors.New("the output of busctl lacks properties of timesyncd")
	}
	properties := reply.Data[0]
	s := state{servers: properties.SystemNTPServers.Data, server: properties.ServerName.Data}
	message := properties.NTPMessage.Data
	var times [4]uint64 // in microseconds: request sent and received, answer sent and received
	var ignored bool
	targets := []any{&times[0], &times[1], &times[2], &times[3], &ignored, &s.answers}
	for i, target := range targets {
		if err := json.Unmarshal(message[8+i], target); err != nil {
			return state{}, fmt.Errorf("the output of busctl: NTPMessage: %w", err)
		}
	}
	microseconds := (int64(times[1]-times[0]) + int64(times[2]-times[3])) / 2
	if limit := largestSlew.Microseconds(); !ignored && -limit < microseconds && microseconds < limit {
		s.offset = time.Duration(microseconds) * time.Microsecond
	}
	return s, nil
}

// statusOf returns the function that asks timesyncd whether it has synchronized the clock with the sources of the document.
// Its answers are of its current process, whereas /run/systemd/timesync/synchronized and the kernel's state can be older.
func statusOf(want settings.Settings) func(context.Context, sdk.Machine, bool) (daemon.Status, error) {
	return func(ctx context.Context, m sdk.Machine, _ bool) (daemon.Status, error) {
		s, err := ask(ctx, m)
		if err != nil {
			return daemon.Status{}, err
		}
		return s.status(want), nil
	}
}

// ask asks the running timesyncd for its state.
func ask(ctx context.Context, m sdk.Machine) (state, error) {
	result, err := m.Commands.Run(ctx, machine.Command{Name: "busctl", Timeout: commandTimeout, Args: []string{
		"--json=short", "--auto-start=no", "call", "org.freedesktop.timesync1", "/org/freedesktop/timesync1",
		"org.freedesktop.DBus.Properties", "GetAll", "s", "org.freedesktop.timesync1.Manager",
	}})
	if err != nil {
		return state{}, fmt.Errorf("ask timesyncd over D-Bus: %w", err)
	}
	return parseState(result.Stdout)
}

// differs reports whether timesyncd lacks a server of the document, or has another one where other servers are turned off.
func (s state) differs(want settings.Settings) bool {
	ours := addresses(want)
	foreign := func(address string) bool { return !slices.Contains(s.servers, address) }
	return slices.ContainsFunc(ours, foreign) || want.ReplacesSources() && !slices.Equal(s.servers, ours)
}

func (s state) status(want settings.Settings) daemon.Status {
	ours := addresses(want)
	switch {
	case s.differs(want):
		return daemon.Status{Sources: []string{"timesyncd has other servers than the document: " + strings.Join(s.servers, " ")}}
	case s.answers == 0:
		return daemon.Status{Sources: []string{cmp.Or(s.server, "timesyncd waits for a network connection") + ": no answer so far"}}
	case want.ReplacesSources() && !slices.Contains(ours, s.server):
		return daemon.Status{Source: s.server, Sources: []string{"no server of the document answers"}}
	}
	return daemon.Status{Synchronized: true, Source: s.server, Offset: s.offset}
}
