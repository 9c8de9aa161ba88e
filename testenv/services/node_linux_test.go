package services

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/testenv/nodes"
)

// program is the name under which this test binary does its part on a node.
const program = "sdk-services"

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != program {
		os.Exit(m.Run())
	}
	if err := onNode(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// request is a task of the program: one activation, or a query of units.
type request struct {
	Root      string
	States    []string
	Unit      string
	Conflicts []string
	Enable    bool
	Config    string
	// Mask is a unit that is masked when the activation reports this text.
	Mask, When string
}

// answer is its result.
type answer struct {
	States      []machine.ServiceState
	Changes     []string // their summaries
	Error, Hint string
	Code        pluginv1.Code
}

const config = "/etc/new.conf"

func onNode(state, given string) error {
	var r request
	if err := json.Unmarshal([]byte(given), &r); err != nil {
		return err
	}
	m, closeMachine, err := machine.New(r.Root, state, target.Target{OS: "linux"})
	if err != nil {
		return err
	}
	var a answer
	if r.States != nil {
		a.States, err = m.Services.States(context.Background(), r.States...)
	} else {
		err = a.activate(m, r)
	}
	if known, ok := errors.AsType[*pluginv1.Error](err); ok {
		a.Error, a.Hint, a.Code, err = known.Message, known.Hint, known.Code, nil
	}
	return errors.Join(err, json.NewEncoder(os.Stdout).Encode(a), closeMachine())
}

func (a *answer) activate(m machine.Machine, r request) error {
	changes, err := sdk.Activate(context.Background(), m, sdk.Activation{
		Unit: r.Unit, Conflicts: r.Conflicts, Enable: r.Enable,
		Files: []sdk.FileSpec{{Path: config, Content: []byte(r.Config), Mode: 0o644}},
	})
	if err != nil {
		return err
	}
	for _, c := range changes {
		a.Changes = append(a.Changes, c.Summary)
		if m.Offline() && c.NeedsLive {
			continue
		}
		if err := c.Do(context.Background(), masking(r)); err != nil {
			return err
		}
	}
	return nil
}

// masking is a Progress that masks a unit when it receives a text.
type masking request

func (m masking) Report(message string) {
	if m.Mask != "" && strings.Contains(message, m.When) {
		if out, err := exec.Command("systemctl", "mask", m.Mask).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "mask: %s%v\n", out, err)
			os.Exit(1)
		}
	}
}

func (masking) Warn(string, string)      {}
func (masking) RequestReboot(sdk.Reboot) {}

// node is a booted node with the program.
type node struct{ *nodes.Node }

func boot(t *testing.T, suite nodes.Suite, files map[string]string) node {
	t.Helper()
	n := node{nodes.Boot(t, nodes.Options{Suite: suite, Prepare: func(root string) error {
		var errs []error
		for name, text := range files {
			at := filepath.Join(root, name)
			errs = append(errs, os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o644))
		}
		return errors.Join(errs...)
	}})}
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, n.CopyIn(t.Context(), self, "/usr/bin/"+program, 0o755))
	return n
}

func (n node) do(t *testing.T, r request) answer {
	t.Helper()
	data, err := json.Marshal(r)
	require.NoError(t, err)
	said := n.MustExec(t, program, "/var/lib/"+program, string(data))
	var a answer
	require.NoError(t, json.Unmarshal([]byte(said.Stdout), &a), said.Stdout)
	return a
}

// say returns systemctl's state of each unit, in one line.
func (n node) say(t *testing.T, question string, units ...string) string {
	t.Helper()
	r, err := n.Exec(t.Context(), append([]string{"systemctl", question}, units...)...)
	require.NoError(t, err)
	return strings.Join(strings.Fields(r.Stdout), " ")
}
