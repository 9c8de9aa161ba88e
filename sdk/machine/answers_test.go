package machine_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/sdk/machine"
)

// counting answers with the number of the run.
type counting struct {
	path string
	runs int
}

func (c *counting) Find(string) (string, error) { return c.path, nil }

func (c *counting) Run(context.Context, machine.Command) (machine.Result, error) {
	c.runs++
	return machine.Result{Stdout: []byte(strconv.Itoa(c.runs))}, nil
}

// TestAnswers: a program is started again for another command, for one that is not constant, and when its file is another one.
func TestAnswers(t *testing.T) {
	t.Parallel()
	at := filepath.Join(t.TempDir(), "program")
	write := func(text string) { require.NoError(t, os.WriteFile(at, []byte(text), 0o600)) }
	write("\x7fELF")
	c := &counting{path: at}
	r := new(machine.Answers).Runner(c)
	ask := func(want string, command machine.Command) {
		t.Helper()
		command.Name = "program"
		result, err := r.Run(t.Context(), command)
		require.NoError(t, err)
		require.Equal(t, want, string(result.Stdout))
	}
	constant := machine.Command{Args: []string{"version"}, Constant: true}
	ask("1", constant)
	ask("1", constant)
	ask("2", machine.Command{Args: []string{"help"}, Constant: true})
	ask("3", machine.Command{Args: []string{"version"}})
	write("\x7fELF of another release")
	ask("4", constant)
	require.NoError(t, os.Rename(at, at+"-1"))
	write("\x7fELF of another release")
	ask("5", constant)
	ask("5", constant)
	write("#!/bin/sh\n")
	ask("6", constant)
	ask("7", constant)
	require.NoError(t, os.Remove(at))
	require.NoError(t, os.Symlink(at+"-1", at))
	ask("8", constant)
	ask("9", constant)
}
