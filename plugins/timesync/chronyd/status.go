package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/machineadm/machineadm/plugins/timesync/internal/daemon"
	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// The columns of chronyc -c. Source: chronyc(1), and client.c for their order.
const (
	trackingID, trackingReference, trackingStratum, trackingOffset, trackingLeap, trackingColumns = 0, 1, 2, 4, 13, 14

	sourceMode, sourceState, sourceName, sourceStratum, sourceReach, sourceOffset, sourceColumns = 0, 1, 2, 3, 5, 8, 10
)

// ask runs chronyc and returns the rows of its report, with the addresses of sources.
func ask(ctx context.Context, m sdk.Machine, report string, columns int) ([][]string, error) {
	return askAs(ctx, m, "-n", report, columns)
}

// askAs is ask with -N for the names that the configuration has, which chronyc shows since 4.0.
func askAs(ctx context.Context, m sdk.Machine, names, report string, columns int) ([][]string, error) {
	result, err := m.Commands.Run(ctx, machine.Command{Name: "chronyc", Args: []string{names, "-c", report}, Timeout: 10 * time.Second})
	if err != nil {
		return nil, err
	}
	reader := csv.NewReader(strings.NewReader(string(result.Stdout)))
	reader.FieldsPerRecord = -1 // a later release may add columns
	rows, err := reader.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("chronyc %s: %w", report, err)
	}
	for _, row := range rows {
		if len(row) < columns {
			return nil, fmt.Errorf("chronyc %s: %d columns instead of %d", report, len(row), columns)
		}
	}
	return rows, nil
}

// healthy returns a function that succeeds when the daemon answers, and has no other sources than the document if other sources are turned
// off.
func healthy(want settings.Settings, files []sdk.FileSpec) func(context.Context, sdk.Machine, sdk.Progress) error {
	return func(ctx context.Context, m sdk.Machine, _ sdk.Progress) error {
		if _, err := ask(ctx, m, "tracking", trackingColumns); err != nil || !want.Exclusive() || !daemon.InPlace(m, files) {
			return err
		}
		rows, err := askAs(ctx, m, "-N", "sources", sourceColumns)
		if err != nil { // before 4.0
			return nil //nolint:nilerr // it answers, and cannot say how its sources are named
		}
		for _, row := range rows {
			if name := row[sourceName]; row[sourceMode] != "#" && !want.Names(name) {
				return sdk.Final(sdk.Precondition("chronyd uses the source "+name+", which the document does not have and no file that it reads names",
					"find the program that adds it, such as a hook of the DHCP client; chronyc -N sources lists all"))
			}
		}
		return nil
	}
}

// localID is the reference of a chronyd that serves its own clock, by the directive local, and has no source.
const localID = "7F7F0101"

// statusOf returns the function that asks the daemon whether it has synchronized the clock: with a source, if the document has
// sources.
func statusOf(want settings.Settings) func(context.Context, sdk.Machine, bool) (daemon.Status, error) {
	return func(ctx context.Context, m sdk.Machine, verbose bool) (daemon.Status, error) {
		return status(ctx, m, verbose, want.HasSources())
	}
}

func status(ctx context.Context, m sdk.Machine, verbose, sources bool) (daemon.Status, error) {
	rows, err := ask(ctx, m, "tracking", trackingColumns)
	if err != nil {
		return daemon.Status{}, err
	}
	if len(rows) != 1 {
		return daemon.Status{}, fmt.Errorf("chronyc tracking: %d lines instead of 1", len(rows))
	}
	row := rows[0]
	s := daemon.Status{Synchronized: row[trackingLeap] != "Not synchronised" && row[trackingStratum] != "0", Source: row[trackingReference]}
	if sources && row[trackingID] == localID {
		s.Synchronized, s.Source = false, ""
	}
	if s.Offset, err = duration(row[trackingOffset]); err != nil {
		return daemon.Status{}, fmt.Errorf("chronyc tracking: %w", err)
	}
	if !verbose {
		return s, nil
	}
	if rows, err = ask(ctx, m, "sources", sourceColumns); err != nil {
		return daemon.Status{}, err
	}
	for _, row := range rows {
		s.Sources = append(s.Sources, describe(row))
	}
	return s, nil
}

// describe returns a source in words.
func describe(row []string) string {
	state := map[string]string{
		"*": "selected", "+": "combined", "-": "not combined", "?": "unusable", "x": "a falseticker", "~": "too variable",
	}[row[sourceState]]
	if row[sourceReach] == "0" {
		return row[sourceName] + ": no answer so far"
	}
	text := fmt.Sprintf("%s: %s, stratum %s", row[sourceName], state, row[sourceStratum])
	if offset, err := duration(row[sourceOffset]); err == nil {
		text += ", offset " + offset.Round(time.Microsecond).String()
	}
	return text
}

func duration(seconds string) (time.Duration, error) {
	number, err := strconv.ParseFloat(seconds, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number of seconds", seconds)
	}
	return time.Duration(number * float64(time.Second)), nil
}
