package machine_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/sdk/machine"
)

// runForever is an environment variable with a shell script, which this test binary then runs instead of tests.
const runForever = "MACHINE_TEST_RUN"

func TestMain(m *testing.M) {
	if script := os.Getenv(runForever); script != "" {
		_, err := shell(context.Background(), script)
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func shell(ctx context.Context, script string) (machine.Result, error) {
	return machine.NewRunner().Run(ctx, machine.Command{Name: "sh", Args: []string{"-c", script}})
}

func TestRunResults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		script         string
		stdin          []byte
		env            []string
		ok             []int
		stdout, stderr string
		code           int
		failure        string
	}{
		"output":            {script: "echo out; echo err >&2", stdout: "out\n", stderr: "err\n"},
		"no input":          {script: "cat; readlink /proc/self/fd/0", stdout: "/dev/null\n"},
		"input":             {script: "cat", stdin: []byte("given"), stdout: "given"},
		"input not read":    {script: "exit 0", stdin: make([]byte, 1<<20)},
		"directory":         {script: "pwd", stdout: "/\n"},
		"environment":       {script: "echo $LANG $EXTRA", env: []string{"EXTRA=more"}, stdout: "C.UTF-8 more\n"},
		"replaced":          {script: "echo $LANG", env: []string{"LANG=de_DE"}, stdout: "de_DE\n"},
		"failure":           {script: "echo why >&2; exit 3", stderr: "why\n", code: 3, failure: "sh: exit code 3"},
		"expected":          {script: "exit 3", ok: []int{1, 3}, code: 3},
		"not that one":      {script: "exit 2", ok: []int{1, 3}, code: 2, failure: "sh: exit code 2"},
		"zero is always ok": {script: "exit 0", ok: []int{1}},
		"signal":            {script: "kill -TERM $$", code: -1, failure: "sh: ended by signal TERM"},
		"real-time signal":  {script: "kill -40 $$", code: -1, failure: "sh: ended by signal 40"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, err := machine.NewRunner().Run(context.Background(), machine.Command{
				Name: "sh", Args: []string{"-c", test.script}, Stdin: test.stdin, Env: test.env, OK: test.ok,
			})
			if string(result.Stdout) != test.stdout || string(result.Stderr) != test.stderr || result.ExitCode != test.code {
				t.Errorf("output %q and %q, exit code %d", result.Stdout, result.Stderr, result.ExitCode)
			}
			if test.failure == "" != (err == nil) || err != nil && err.Error() != test.failure {
				t.Errorf("error %v, want %q", err, test.failure)
			}
			if failure, ok := errors.AsType[*machine.CommandError](err); err != nil && (!ok || failure.ExitCode != test.code) {
				t.Errorf("error %#v, want a CommandError", err)
			}
		})
	}
}

// TestFindInABrokenDirectory: an error of a directory is not fs.ErrNotExist.
func TestFindInABrokenDirectory(t *testing.T) {
	t.Parallel()
	loop := filepath.Join(t.TempDir(), "loop")
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	if path, err := machine.NewRunner(loop, "/bin").Find("sh"); err != nil || path != "/bin/sh" {
		t.Errorf("found %q, %v", path, err)
	}
	_, err := machine.NewRunner(loop, "/bin").Find("no-such-program")
	if !errors.Is(err, syscall.ELOOP) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want the directory's", err)
	}
}

func TestCommandErrorHasBothOutputs(t *testing.T) {
	t.Parallel()
	_, err := shell(t.Context(), "echo out; echo err >&2; exit 1")
	failure, ok := errors.AsType[*machine.CommandError](err)
	if !ok || failure.Stdout != "out" || failure.Stderr != "err" {
		t.Errorf("error %#v", err)
	}
}

func TestEnvironmentIsClean(t *testing.T) {
	t.Setenv("MACHINE_TEST_SECRET", "leaks")
	t.Setenv("HTTPS_PROXY", "http://proxy.example")
	t.Setenv("HOME", "/somewhere")
	result, err := machine.NewRunner().Run(context.Background(), machine.Command{Name: "env"})
	must(t, err)
	var names []string
	for line := range strings.Lines(string(result.Stdout)) {
		name, _, _ := strings.Cut(line, "=")
		names = append(names, name)
	}
	for _, want := range []string{
		"HOME=/somewhere\n", "HTTPS_PROXY=http://proxy.example\n", "LANG=C.UTF-8\n",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n",
	} {
		if !strings.Contains(string(result.Stdout), want) {
			t.Errorf("the environment lacks %q", want)
		}
	}
	for _, name := range names {
		if !strings.HasSuffix(strings.ToUpper(name), "_PROXY") && name != "HOME" && name != "LANG" && name != "PATH" {
			t.Errorf("the environment has %s", name)
		}
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "program"), nil, 0o755), os.WriteFile(filepath.Join(dir, "text"), nil, 0o644),
		os.Mkdir(filepath.Join(dir, "directory"), 0o755))
	r := machine.NewRunner(t.TempDir(), dir)
	if path, err := r.Find("program"); err != nil || path != filepath.Join(dir, "program") {
		t.Errorf("found %q, %v", path, err)
	}
	for name, want := range map[string]error{
		"text": fs.ErrNotExist, "directory": fs.ErrNotExist, "sh": fs.ErrNotExist, "": fs.ErrInvalid, "..": fs.ErrInvalid,
		"/bin/sh": fs.ErrInvalid, "../bin/sh": fs.ErrInvalid,
	} {
		if _, err := r.Find(name); !errors.Is(err, want) {
			t.Errorf("Find(%q) = %v, want %v", name, err, want)
		}
		if _, err := r.Run(context.Background(), machine.Command{Name: name}); !errors.Is(err, want) {
			t.Errorf("Run(%q) = %v, want %v", name, err, want)
		}
	}
	_, err := r.Run(context.Background(), machine.Command{Name: "program", Args: []string{"s3cret"}})
	if err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "it does not start") {
		t.Errorf("error %v, want one that says that it does not start", err)
	}
}

func TestErrorsHoldNoArguments(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"exit 1", "kill -KILL $$", "exec /nonexistent", "sleep 60"} {
		_, err := machine.NewRunner().Run(context.Background(), machine.Command{
			Name: "sh", Args: []string{"-c", script, "s3cret-argument"}, Stdin: []byte("s3cret-input"),
			Env: []string{"X=s3cret-environment"}, Timeout: 200 * time.Millisecond,
		})
		if err == nil || strings.Contains(fmt.Sprintf("%v %+v", err, err), "s3cret") {
			t.Errorf("%s: error %v", script, err)
		}
	}
}

func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	result, err := shell(context.Background(), "head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2; echo the end >&2; exit 1")
	if len(result.Stdout) != machine.MaxOutputBytes || len(result.Stderr) != machine.MaxOutputBytes || !result.Truncated {
		t.Errorf("%d and %d bytes, truncated %v", len(result.Stdout), len(result.Stderr), result.Truncated)
	}
	failure, ok := errors.AsType[*machine.CommandError](err)
	if !ok || len(failure.Stderr) > 4<<10 || !strings.HasSuffix(failure.Stderr, `\x00the end`) {
		t.Errorf("error %v, want a CommandError with the end of the output", err)
	}
	if result, err := shell(context.Background(), "head -c 1048576 /dev/zero"); err != nil || result.Truncated {
		t.Errorf("truncated %v (%v) at exactly the limit", result.Truncated, err)
	}
}

func TestErrorOutputIsEscaped(t *testing.T) {
	t.Parallel()
	_, err := shell(context.Background(), `printf 'a\033[31mb\rc\nd\te \342\200\256 \377 \302\205 ä' >&2; exit 1`)
	failure, ok := errors.AsType[*machine.CommandError](err)
	want := "a\\x1b[31mb\\x0dc\nd\te \\u202e \\xff \\x85 ä"
	if !ok || failure.Stderr != want {
		t.Errorf("error output %q, want %q", failure.Stderr, want)
	}
	if strings.Contains(err.Error(), "31m") {
		t.Errorf("the error has the output of the program: %v", err)
	}
}

// alive reports whether a process runs. A zombie does not.
func alive(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(status), ") ")
	return !strings.HasPrefix(after, "Z") && !strings.HasPrefix(after, "X")
}

func wantDead(t *testing.T, pids string) {
	t.Helper()
	fields := strings.Fields(pids)
	if len(fields) == 0 {
		t.Fatal("the script named no processes")
	}
	for _, field := range fields {
		pid, err := strconv.Atoi(field)
		must(t, err)
		for deadline := time.Now().Add(2 * time.Minute); alive(pid); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				process, err := os.FindProcess(pid)
				must(t, err, process.Kill())
				t.Errorf("process %d is alive", pid)
				break
			}
		}
	}
}

// untilStarted calls try with limits that are doubled, from 300 ms to a minute, until what it runs has started within one of them.
func untilStarted(try func(limit time.Duration) (output string, started bool)) string {
	for limit := 300 * time.Millisecond; ; limit *= 2 {
		if output, started := try(limit); started || limit > time.Minute {
			return output
		}
	}
}

func TestTimeoutKillsTheGroup(t *testing.T) {
	t.Parallel()
	const script = "sleep 1000 & (sleep 1000 & echo $!); echo $! $$; wait"
	for name, test := range map[string]struct {
		timeout time.Duration
		cancel  time.Duration
		want    error
		text    string
	}{
		"own time":          {0, time.Hour, machine.ErrTimeout, "sh: timed out after LIMIT"},
		"caller's deadline": {time.Hour, 0, context.DeadlineExceeded, "sh: context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			output := untilStarted(func(limit time.Duration) (string, bool) {
				ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(test.cancel, limit))
				defer cancel()
				begin := time.Now()
				result, err := machine.NewRunner().Run(ctx, machine.Command{Name: "sh", Args: []string{"-c", script}, Timeout: cmp.Or(test.timeout, limit)})
				started := len(strings.Fields(string(result.Stdout))) == 3
				// On a busy machine a small limit is over before the command has begun, and the error is the context's.
				if want := strings.Replace(test.text, "LIMIT", limit.String(), 1); !errors.Is(err, test.want) || started && err.Error() != want {
					t.Errorf("error %v, want %q", err, want)
				}
				if errors.Is(test.want, machine.ErrTimeout) && errors.Is(err, context.DeadlineExceeded) {
					t.Error("a command's own timeout looks like the caller's")
				}
				if took := time.Since(begin); took > limit+2*time.Minute {
					t.Errorf("it took %v", took)
				}
				return string(result.Stdout), started
			})
			if len(strings.Fields(output)) != 3 {
				t.Errorf("output %q, want three processes", output)
			}
			wantDead(t, output)
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := shell(ctx, "true"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v with a context that is over, want Canceled", err)
	}
}

func TestGroupIsKilledAfterTheCommand(t *testing.T) {
	t.Parallel()
	result, err := shell(context.Background(), "sleep 1000 & echo $!")
	must(t, err)
	if result.Truncated {
		t.Error("the pipe was waited for")
	}
	wantDead(t, string(result.Stdout))
}

func TestDaemonThatHoldsThePipe(t *testing.T) {
	t.Parallel()
	require.Tool(t, "setsid")
	begin := time.Now()
	result, err := shell(context.Background(), "setsid sleep 60 & echo $!; while [ ! -d /proc/$! ]; do :; done; sleep 0.3")
	must(t, err)
	if took := time.Since(begin); took > 30*time.Second || !result.Truncated {
		t.Errorf("it took %v, truncated %v", took, result.Truncated)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(result.Stdout)))
	must(t, err)
	if !alive(pid) {
		t.Error("the daemon ended before the check")
	}
	process, err := os.FindProcess(pid)
	must(t, err, process.Kill())
}

func TestCommandDiesWithThisProcess(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pid")
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), runForever+"=echo $$ > "+file+".new; mv "+file+".new "+file+"; exec sleep 1000")
	must(t, child.Start())
	var pid []byte
	for deadline := time.Now().Add(2 * time.Minute); len(pid) == 0; time.Sleep(5 * time.Millisecond) {
		pid, _ = os.ReadFile(file) // absent until the command runs
		if time.Now().After(deadline) {
			t.Error("the command does not start")
			break
		}
	}
	must(t, child.Process.Kill())
	_, err := child.Process.Wait()
	must(t, err)
	wantDead(t, string(pid))
}

func TestManyCommandsAtOnce(t *testing.T) {
	t.Parallel()
	const count = 40
	errs := make(chan error, count)
	for i := range count {
		go func() {
			result, err := shell(context.Background(), fmt.Sprintf("sleep 0.%d; echo %d", i%5, i))
			if want := fmt.Sprintf("%d\n", i); err == nil && !bytes.Equal(result.Stdout, []byte(want)) {
				err = fmt.Errorf("output %q, want %q", result.Stdout, want)
			}
			errs <- err
		}()
	}
	for range count {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// TestStarts: what a command starts as a service outlives it, in the process group of the command too, unless the command is ended.
func TestStarts(t *testing.T) {
	t.Parallel()
	run := func(ctx context.Context, script string, starts bool) string {
		t.Helper()
		c := machine.Command{Name: "sh", Args: []string{"-c", "sleep 300 >/dev/null 2>&1 & echo $!; " + script}, Starts: starts}
		got, _ := machine.NewRunner().Run(ctx, c) // the processes show what it did
		return strings.TrimSpace(string(got.Stdout))
	}
	wantDead(t, run(t.Context(), "", false))
	pid, err := strconv.Atoi(run(t.Context(), "", true))
	if err != nil || !alive(pid) {
		t.Errorf("the service %d has ended with its command: %v", pid, err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	wantDead(t, run(ctx, "wait", true))
}
