package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
)

// jobTimeout bounds the start or stop of a service. It exceeds systemd's own limits (90 s to start, 90 s to stop), so that
// the error is systemd's.
const jobTimeout = 5 * time.Minute

// systemd is the service manager of a machine that it booted.
type systemd struct {
	commands Runner
	// booted is a path that exists where systemd is the init system, see sd_booted(3).
	booted string
}

func liveServices(commands Runner) Services {
	return &systemd{commands: commands, booted: "/run/systemd/system"}
}

// State implements Services.
func (s *systemd) State(ctx context.Context, unit string) (ServiceState, error) {
	states, err := s.States(ctx, unit)
	if err != nil {
		return ServiceState{}, err
	}
	return states[0], nil
}

// States implements Services.
func (s *systemd) States(ctx context.Context, units ...string) ([]ServiceState, error) {
	if len(units) == 0 { // systemctl would show the manager
		return nil, nil
	}
	const properties = "Id,Names,LoadState,UnitFileState,ActiveState,SubState,InvocationID,MainPID,FragmentPath,ExecStart," +
		"Environment,NeedDaemonReload,ConditionResult,ConditionTimestampMonotonic"
	args := []string{"show", "--property=" + properties, "--"}
	for _, unit := range units {
		name, err := s.prepare(unit)
		if err != nil {
			return nil, err
		}
		args = append(args, name)
	}
	names := args[3:]
	failed := func(unit string, err error) error {
		return &ServiceError{Unit: unit, Action: "query", Hint: "systemctl status " + unit, Err: err}
	}
	result, err := s.commands.Run(ctx, Command{Name: "systemctl", Args: args})
	if err != nil {
		return nil, failed(strings.Join(names, " "), err)
	}
	blocks := strings.Split(strings.TrimSpace(string(result.Stdout)), "\n\n")
	states := make([]ServiceState, len(names))
	for i, name := range names {
		if i == len(blocks) {
			blocks = append(blocks, "")
		}
		if states[i], err = stateOf(blocks[i]); err != nil {
			return nil, failed(name, err)
		}
		if skipped(blocks[i]) {
			states[i].Unmet = unmet(ctx, s.commands, states[i].ID)
		}
	}
	return states, nil
}

// stateOf reads the lines KEY=VALUE of systemctl show. No value has a line feed: systemctl shows [unprintable] instead.
func stateOf(shown string) (ServiceState, error) {
	properties := map[string]string{}
	for line := range strings.SplitSeq(shown, "\n") {
		key, value, _ := strings.Cut(line, "=")
		properties[key] = value
	}
	load, file := properties["LoadState"], properties["UnitFileState"]
	if load == "" {
		return ServiceState{}, errors.New("systemctl show returns nothing for it")
	}
	state := ServiceState{
		ID:           properties["Id"],
		Names:        append([]string(nil), strings.Fields(properties["Names"])...), // nil when there are none
		FileState:    file,
		NeedReload:   properties["NeedDaemonReload"] == "yes",
		Exists:       load != "not-found",
		Masked:       load == "masked" || strings.HasPrefix(file, "masked"),
		Enabled:      file == "enabled",
		Active:       properties["ActiveState"],
		Sub:          properties["SubState"],
		InvocationID: properties["InvocationID"],
		Fragment:     properties["FragmentPath"],
		Command:      argvOf(properties["ExecStart"]),
		Environment:  assignmentsOf(properties["Environment"]),
	}
	if pid := properties["MainPID"]; pid != "" { // only services have one
		var err error
		if state.MainPID, err = strconv.Atoi(pid); err != nil {
			return state, fmt.Errorf("systemctl show: MainPID is not a number: %w", err)
		}
	}
	return state, nil
}

// argvOf reads "{ path=/bin/a ; argv[]=/bin/a -b ; ignore_errors=no ; ... }".
func argvOf(shown string) []string {
	_, rest, _ := strings.Cut(shown, "argv[]=")
	argv, _, _ := strings.Cut(rest, " ;")
	return append([]string(nil), strings.Fields(argv)...)
}

// assignmentsOf splits a line of assignments. One with special characters is in double quotes with backslashes, as in a
// shell (since systemd 236).
func assignmentsOf(shown string) []string {
	var all []string
	word, quoted, escaped := "", false, false
	for _, r := range shown + " " {
		switch {
		case r == '\\' && !escaped:
			escaped = true
			continue
		case r == '"' && !escaped:
			quoted = !quoted
		case r == ' ' && !quoted && !escaped:
			if word != "" {
				all = append(all, word)
			}
			word = ""
		default:
			word += string(r)
		}
		escaped = false
	}
	return all
}

// SetEnabled implements Services.
func (s *systemd) SetEnabled(ctx context.Context, unit string, enabled bool) error {
	unit, err := s.prepare(unit)
	if err != nil {
		return err
	}
	action := enabling(enabled)
	if err := s.run(ctx, DefaultTimeout, action, unit); err != nil {
		return err
	}
	// systemctl also succeeds for a unit without an [Install] section.
	state, err := s.State(ctx, unit)
	if err != nil {
		return err
	}
	if state.Enabled != enabled {
		err := fmt.Errorf("systemd still reports %q", state.FileState)
		return &ServiceError{Unit: unit, Action: action, Hint: "see its [Install] section: systemctl cat " + unit, Err: err}
	}
	return nil
}

// Do implements Services.
func (s *systemd) Do(ctx context.Context, unit string, a Action) error {
	unit, err := s.prepare(unit)
	if err != nil {
		return err
	}
	if a < Start || a > Reload {
		return fmt.Errorf("unit %s: %w: %v", unit, fs.ErrInvalid, a)
	}
	if a == Start || a == Restart {
		return s.start(ctx, unit, a)
	}
	return s.run(ctx, jobTimeout, a.String(), unit)
}

// start starts or restarts a unit, also beyond the start limit (StartLimitBurst= of systemd.unit(5)), at which systemd fails
// without an attempt. The limit is for services that crash repeatedly, and counts successful starts as well. Result= does
// not always show the limit; that no new invocation began does.
func (s *systemd) start(ctx context.Context, unit string, a Action) error {
	before, err := s.State(ctx, unit)
	if err != nil {
		return err
	}
	failure := s.run(ctx, jobTimeout, a.String(), unit)
	if failure == nil || ctx.Err() != nil {
		return failure
	}
	after, err := s.State(ctx, unit)
	if err != nil || after.Active != "failed" || after.InvocationID != before.InvocationID {
		return failure
	}
	if err := s.run(ctx, DefaultTimeout, "reset-failed", unit); err != nil {
		return failure // more specific than err
	}
	return s.run(ctx, jobTimeout, a.String(), unit)
}

// DaemonReload implements Services.
func (s *systemd) DaemonReload(ctx context.Context) error {
	if err := s.check(); err != nil {
		return err
	}
	if _, err := s.commands.Run(ctx, Command{Name: "systemctl", Args: []string{"--no-ask-password", "daemon-reload"}}); err != nil {
		return &ServiceError{Unit: "systemd", Action: "reload", Hint: "see journalctl -b _PID=1", Err: err}
	}
	return nil
}

func (s *systemd) run(ctx context.Context, timeout time.Duration, action, unit string) error {
	_, err := s.commands.Run(ctx, Command{
		Name: "systemctl", Args: []string{"--no-ask-password", "--quiet", action, "--", unit}, Timeout: timeout,
	})
	if err == nil {
		return nil
	}
	hint := "see journalctl -u " + unit
	if errors.Is(err, ErrTimeout) {
		hint = "see the job that blocks it: systemctl list-jobs"
	}
	return &ServiceError{Unit: unit, Action: action, Hint: hint, Err: err}
}

func (s *systemd) prepare(unit string) (string, error) {
	if err := s.check(); err != nil {
		return "", err
	}
	return unitName(unit)
}

func (s *systemd) check() error {
	if _, err := os.Lstat(s.booted); err != nil {
		return fmt.Errorf("services: %w: systemd is not the init system (%s is absent)", ErrUnsupported, s.booted)
	}
	return nil
}
