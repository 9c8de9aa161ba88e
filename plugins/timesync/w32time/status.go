package main

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/machineadm/machineadm/internal/lazyregexp"
	"github.com/machineadm/machineadm/plugins/timesync/internal/daemon"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

const (
	// notRunning is the exit code of w32tm for a service that does not run: ERROR_SERVICE_NOT_ACTIVE as a HRESULT.
	notRunning = 0x80070426

	// unsynchronized is the leap indicator of a clock that is not synchronized, and mostStratum the largest of one that is.
	unsynchronized, mostStratum = "3", 15
	// localClock is the reference of a machine that has only its own clock: LOCL.
	localClock = "0x4C4F434C"
)

// The labels and explanations of w32tm are in the language of Windows; the order of the lines and the numbers are not.
var (
	// statusLines has the leap indicator, the stratum, the reference and the source: the lines 1, 2, 6 and 8.
	statusLines = lazyregexp.New(`^[^:]*: *(\d+).*\n[^:\n]*: *(\d+).*\n(?:.*\n){3}` +
		`[^:\n]*: *(0x[0-9A-Fa-f]{8}).*\n.*\n[^:\n]*: *(.*)`)
	// peerLines has the peer with its flags, and its state: the first two lines of a block.
	peerLines = lazyregexp.New(`\n\n[^:\n]*: *(.*)\n[^:\n]*: *(.*)`)
)

// query asks the service.
func query(ctx context.Context, m sdk.Machine, what string) (string, error) {
	text, err := run(ctx, m, "w32tm", "/query", what)
	if failure, ok := errors.AsType[*machine.CommandError](err); ok && uint32(failure.ExitCode) == notRunning {
		err = sdk.Precondition("the service "+serviceName+" does not run",
			"see in the event log System, source Time-Service, why it ended; then Start-Service "+serviceName)
	}
	return strings.ReplaceAll(text, "\r", ""), err
}

func run(ctx context.Context, m sdk.Machine, name string, args ...string) (string, error) {
	result, err := m.Commands.Run(ctx, machine.Command{Name: name, Args: args, Timeout: 10 * time.Second})
	return strings.ToValidUTF8(string(result.Stdout), "?"), err
}

// status asks the service whether it has synchronized the clock. It reports no offset that can be trusted.
func status(ctx context.Context, m sdk.Machine, verbose bool) (daemon.Status, error) {
	text, err := query(ctx, m, "/status")
	if err != nil {
		return daemon.Status{}, err
	}
	fields := statusLines().FindStringSubmatch(text)
	if fields == nil {
		return daemon.Status{}, errors.New("the output of w32tm /query /status has an unknown form")
	}
	stratum, err := strconv.Atoi(fields[2])
	own := strings.EqualFold(fields[3], localClock)
	s := daemon.Status{
		Synchronized: fields[1] != unsynchronized && 0 < stratum && stratum <= mostStratum && !own,
		Source:       strings.TrimSpace(fields[4]),
	}
	if err != nil || !verbose {
		return s, err
	}
	text, err = query(ctx, m, "/peers")
	for _, peer := range peerLines().FindAllStringSubmatch(text, -1) {
		s.Sources = append(s.Sources, strings.TrimSpace(peer[1])+": "+strings.TrimSpace(peer[2]))
	}
	return s, err
}

// healthy succeeds when the service answers.
func healthy(ctx context.Context, m sdk.Machine, _ sdk.Progress) error {
	_, err := query(ctx, m, "/status")
	return err
}
