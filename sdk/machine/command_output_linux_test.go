package machine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/sdk/machine"
)

// TestGrace: the process group receives SIGTERM, and after the grace SIGKILL.
func TestGrace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		grace  time.Duration
		stdout string
		code   int
		signal string
		want   error // of the caller's context; nil means the command's own timeout
	}{
		"exits with 3":        {"trap 'echo term; exit 3' TERM; echo up; sleep 1000 & wait", time.Hour, "up\nterm\n", 3, "", nil},
		"exits with 0":        {"trap 'exit 0' TERM; echo up; sleep 1000 & wait", time.Hour, "up\n", 0, "", nil},
		"dies of the signal":  {"echo up; sleep 1000 & wait", time.Hour, "up\n", -1, "TERM", nil},
		"ignores it":          {"trap '' TERM; echo up; sleep 1000", 50 * time.Millisecond, "up\n", -1, "KILL", nil},
		"no grace":            {"trap 'exit 3' TERM; echo up; sleep 1000 & wait", 0, "up\n", -1, "KILL", nil},
		"the caller's cancel": {"trap 'exit 3' TERM; echo up; sleep 1000 & wait", time.Hour, "up\n", 3, "", context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var failure *machine.CommandError
			output := untilStarted(func(limit time.Duration) (string, bool) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				command := machine.Command{Name: "sh", Args: []string{"-c", c.script}, Grace: c.grace, Timeout: limit}
				want := machine.ErrTimeout
				if c.want != nil {
					want, command.Timeout = c.want, time.Hour
					command.Output = func(string) { cancel() }
				}
				began := time.Now()
				result, err := machine.NewRunner().Run(ctx, command)
				require.ErrorIs(t, err, want)
				require.ErrorAs(t, err, &failure)
				assert.Less(t, time.Since(began), limit+2*time.Minute)
				return string(result.Stdout), strings.HasPrefix(string(result.Stdout), "up\n")
			})
			assert.Equal(t, c.stdout, output)
			assert.Equal(t, c.code, failure.ExitCode)
			assert.Equal(t, c.signal, failure.Signal)
		})
	}
}

func TestOutputByLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 5000)
	for name, c := range map[string]struct {
		script string
		want   []string
	}{
		"lines":        {"echo a; echo; echo b >&2; sleep 0; echo c", []string{"a", "", "b", "c"}},
		"no line feed": {"printf 'a\\nb'", []string{"a", "b"}},
		"escaped":      {`printf 'a\033[31m\r\n'`, []string{`a\x1b[31m`}},
		"long":         {"echo " + long, []string{long[:4096], long[4096:]}},
		"none":         {"true", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			_, err := machine.NewRunner().Run(t.Context(), machine.Command{
				Name: "sh", Args: []string{"-c", c.script}, Output: func(line string) { got = append(got, line) },
			})
			require.NoError(t, err)
			assert.ElementsMatch(t, c.want, got) // the order across the streams is undefined
		})
	}
}

func TestWorkingDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	result, err := machine.NewRunner().Run(t.Context(), machine.Command{Name: "pwd", Dir: dir})
	require.NoError(t, err)
	assert.Equal(t, dir+"\n", string(result.Stdout))
}
