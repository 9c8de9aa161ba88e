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

// jobTimeout is how long a service may take to start or stop. It is longer than systemd's own patience (90 s to
// start, as long to stop), so that systemd's verdict is heard.
const jobTimeout = 5 * time.Minute

// systemd is the service manager of a machine that it booted.
type systemd struct {
	commands Runner
	// booted exists where systemd is the running init, see sd_booted(3).
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
	if len(units) == 0 { // for which systemctl would show the manager
		return nil, nil
	}
	names := make([]string, len(units))
	for i, unit := range units {
		var err error
		if names[i], err = s.prepare(unit); err != nil {
			return nil, err
		}
	}
	shown, err := s.show(ctx, names...)
	if err != nil {
		return nil, err
	}
	states := make([]ServiceState, len(shown))
	for i, properties := range shown {
		if states[i], err = stateOf(properties); err != nil {
			return nil, err
		}
	}
	return states, nil
}

// show returns the properties of each unit. No value has a line feed: systemctl shows such a one as [unprintable].
func (s *systemd) show(ctx context.Context, units ...string) ([]map[string]string, error) {
	const wanted = "Id,Names,LoadState,UnitFileState,ActiveState,SubState,InvocationID,MainPID,FragmentPath,ExecStart," +
		"Environment,NeedDaemonReload,WantedBy,RequiredBy"
	failed := func(unit string, err error) error {
		return &ServiceError{Unit: unit, Action: "query", Hint: "systemctl status " + unit, Err: err}
	}
	result, err := s.commands.Run(ctx, Command{
		Name: "systemctl", Args: append([]string{"show", "--property=" + wanted, "--"}, units...),
	})
	if err != nil {
		return nil, failed(strings.Join(units, " "), err)
	}
	blocks := strings.Split(strings.TrimSpace(string(result.Stdout)), "\n\n")
	shown := make([]map[string]string, len(units))
	for i, unit := range units {
		properties := map[string]string{}
		if i < len(blocks) {
			for line := range strings.Lines(blocks[i]) {
				if key, value, ok := strings.Cut(strings.TrimRight(line, "\n"), "="); ok {
					properties[key] = value
				}
			}
		}
		if properties["LoadState"] == "" {
			return nil, failed(unit, errors.New("systemctl show says nothing of it"))
		}
		shown[i] = properties
	}
	return shown, nil
}

func stateOf(properties map[string]string) (ServiceState, error) {
	load, file := properties["LoadState"], properties["UnitFileState"]
	state := ServiceState{
		ID:           properties["Id"],
		Names:        namesIn(properties["Names"]),
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
	state.StartsAtBoot = !state.Masked && (state.Enabled || properties["WantedBy"]+properties["RequiredBy"] != "")
	if pid := properties["MainPID"]; pid != "" { // Only services have one.
		var err error
		if state.MainPID, err = strconv.Atoi(pid); err != nil {
			return state, fmt.Errorf("systemctl show: MainPID is no number: %w", err)
		}
	}
	return state, nil
}

// namesIn divides a list of units, nil when it is empty.
func namesIn(list string) []string { return append([]string(nil), strings.Fields(list)...) }

// argvOf reads "{ path=/bin/a ; argv[]=/bin/a -b ; ignore_errors=no ; ... }".
func argvOf(shown string) []string {
	_, rest, _ := strings.Cut(shown, "argv[]=")
	argv, _, _ := strings.Cut(rest, " ;")
	if argv == "" {
		return nil
	}
	return strings.Fields(argv)
}

// assignmentsOf divides a line of assignments: one with blanks or special characters is in double quotes, with backslashes
// as in a shell (systemctl show quotes so since systemd 236, what is plain stays plain).
func assignmentsOf(shown string) []string {
	var all []string
	var word strings.Builder
	quoted, escaped, begun := false, false, false
	end := func() {
		if begun {
			all = append(all, word.String())
		}
		word.Reset()
		begun = false
	}
	for _, r := range shown {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\':
			escaped, begun = true, true
		case r == '"':
			quoted, begun = !quoted, true
		case r == ' ' && !quoted:
			end()
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	end()
	return all
}

// SetEnabled implements Services.
func (s *systemd) SetEnabled(ctx context.Context, unit string, enabled bool) error {
	unit, err := s.prepare(unit)
	if err != nil {
		return err
	}
	action := "disable"
	if enabled {
		action = "enable"
	}
	if err := s.run(ctx, DefaultTimeout, action, unit); err != nil {
		return err
	}
	// systemctl answers 0 for a unit without an installation section, too.
	shown, err := s.show(ctx, unit)
	if err != nil {
		return err
	}
	if file := shown[0]["UnitFileState"]; (file == "enabled") != enabled {
		err := fmt.Errorf("systemd still calls it %q", file)
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

// start starts or restarts. systemd refuses more than so many starts within so many seconds, successful ones included
// (StartLimitBurst=, systemd.unit(5)), without even trying. That is for services which die again and again; one that is asked
// for is made. Result= does not always tell such a refusal, that no new invocation began does.
func (s *systemd) start(ctx context.Context, unit string, a Action) error {
	before, err := s.show(ctx, unit)
	if err != nil {
		return err
	}
	failure := s.run(ctx, jobTimeout, a.String(), unit)
	if failure == nil || ctx.Err() != nil {
		return failure
	}
	after, err := s.show(ctx, unit)
	if err != nil || after[0]["ActiveState"] != "failed" || after[0]["InvocationID"] != before[0]["InvocationID"] {
		return failure
	}
	if err := s.run(ctx, DefaultTimeout, "reset-failed", unit); err != nil {
		return failure // that it cannot be reset explains less
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
		hint = "see what it waits for: systemctl list-jobs"
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
		return fmt.Errorf("services: %w: it was not booted by systemd (%s is absent)", ErrUnsupported, s.booted)
	}
	return nil
}
