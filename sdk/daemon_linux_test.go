package sdk_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// daemonName is the name under which the test binary is the scripted daemon.
const daemonName = "scriptd"

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == daemonName {
		os.Exit(scripted(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// scripted is a daemon whose configuration selects its behaviour: `scriptd --check FILE`, or `scriptd FILE SOCKET`.
//
//	mode: ok      answers every connection with its configuration
//	mode: refuse  --check fails
//	mode: exit    ends at once
//	mode: die     answers one connection and ends
//	mode: hang    takes connections, never answers, and ignores SIGTERM
//	mode: late    answers "starting" until it was asked five times
//	mode: once    ok at the first start, later as exit
func scripted(args []string) int {
	check := args[0] == "--check"
	if check {
		args = args[1:]
	}
	data, err := os.ReadFile(args[0])
	mode, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "mode: ")
	switch {
	case err != nil || !ok:
		fmt.Fprintln(os.Stderr, "no configuration")
		return 2
	case check && mode == "refuse":
		fmt.Fprintln(os.Stderr, "line 1: the mode refuse is refused")
		return 1
	case check:
		return 0
	case mode == "exit", mode == "refuse":
		return 3
	case mode == "once":
		if err := os.Mkdir(args[0]+".started", 0o700); err != nil {
			return 3
		}
	case mode == "hang":
		signal.Ignore(syscall.SIGTERM)
	}
	go func() { // a pipe of the test's process, with whose end this one ends
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(6)
	}()
	return serve(mode, args[1])
}

func serve(mode, socket string) int {
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return 4
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return 4
	}
	for asked := 1; ; asked++ {
		connection, err := listener.Accept()
		if err != nil {
			return 4
		}
		answer := mode
		switch {
		case mode == "hang":
			continue // the connection stays open
		case mode == "late" && asked <= 5:
			answer = "starting"
		}
		if _, err := fmt.Fprintln(connection, answer); err != nil {
			return 4
		}
		if err := connection.Close(); err != nil || mode == "die" {
			return 5
		}
	}
}

// supervisor is a service manager that starts and stops the daemon as a process.
type supervisor struct {
	program, config, socket string

	mutex      sync.Mutex
	command    *exec.Cmd
	gone       chan struct{} // closed when command has ended
	invocation string
	starts     int
}

// State implements machine.Services.
func (s *supervisor) State(context.Context, string) (machine.ServiceState, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	state := machine.ServiceState{Exists: true, Enabled: true, Active: "inactive", InvocationID: s.invocation}
	if s.command == nil {
		return state, nil
	}
	select {
	case <-s.gone:
		state.Active = "failed"
	default:
		state.Active, state.Sub, state.MainPID = "active", "running", s.command.Process.Pid
	}
	return state, nil
}

// Do implements machine.Services, as for a service of the type simple.
func (s *supervisor) Do(_ context.Context, _ string, a machine.Action) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if err := s.end(); err != nil || a == machine.Stop {
		return err
	}
	command := exec.Command(s.program, s.config, s.socket)
	if _, err := command.StdinPipe(); err != nil { // Wait closes it
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	s.command = command
	gone := make(chan struct{})
	s.gone, s.invocation = gone, rand.Text()
	s.starts++
	go func() {
		defer close(gone)
		_ = command.Wait() // only its end matters
	}()
	return nil
}

func (s *supervisor) end() error {
	if s.command == nil {
		return nil
	}
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := s.command.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		select {
		case <-s.gone:
			s.command = nil
			return nil
		case <-time.After(200 * time.Millisecond):
		}
	}
	<-s.gone
	s.command = nil
	return nil
}

// States implements machine.Services.
func (s *supervisor) States(ctx context.Context, _ ...string) ([]machine.ServiceState, error) {
	state, err := s.State(ctx, "")
	return []machine.ServiceState{state}, err
}

func (s *supervisor) SetEnabled(context.Context, string, bool) error { return errors.New("not used") }

func (s *supervisor) DaemonReload(context.Context) error { return errors.New("not used") }

// ask returns the daemon's answer to a client.
func (s *supervisor) ask(ctx context.Context) (string, error) {
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "unix", s.socket)
	if err != nil {
		return "", err
	}
	defer func() { _ = connection.Close() }() // only read from
	stop := context.AfterFunc(ctx, func() { _ = connection.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	line, err := bufio.NewReader(connection).ReadString('\n')
	return strings.TrimSpace(line), err
}

func (s *supervisor) healthy(ctx context.Context, _ machine.Machine, _ sdk.Progress) error {
	answer, err := s.ask(ctx)
	if err == nil && answer == "starting" {
		err = errors.New("it is still starting")
	}
	return err
}

// newSupervisor returns the supervisor of a daemon that reads config, a path of this machine.
func newSupervisor(t *testing.T, config string) *supervisor {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "sdk") //nolint:usetesting // t.TempDir is too long for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	s := &supervisor{program: filepath.Join(dir, daemonName), config: config, socket: filepath.Join(dir, "s")}
	if err := os.Symlink(self, s.program); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Do(context.Background(), "", machine.Stop), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	return s
}
