package management

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const (
	readyLimit = 4 * time.Minute // on a machine that compiles beside the tests
	stopLimit  = 4 * time.Minute
	pause      = 20 * time.Millisecond // between two requests to a server that starts
	shownLines = 40
)

// Process is a program that runs beside the test. It dies with the test, and with the test's process.
type Process struct {
	// Log is the file with its output.
	Log string

	cmd   *exec.Cmd
	ended chan struct{} // closed when it is gone
	err   error         // of its end
	meant atomic.Bool   // whether the test ended it
}

// start runs a program until the test ends. A program that ends before it is stopped fails the test.
func start(t testing.TB, dir, path string, environment []string, arguments ...string) *Process {
	t.Helper()
	log, err := os.CreateTemp(dir, filepath.Base(path)+"-*.log")
	if err != nil {
		t.Fatal(err)
	}
	p := &Process{Log: log.Name(), ended: make(chan struct{})}
	p.cmd = exec.Command(path, arguments...) //nolint:noctx // Stop ends it, in the order of the test's cleanups
	p.cmd.Env = append([]string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}, environment...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the kernel kills the program when the thread ends that started it
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
		}
		close(p.ended)
	}()
	if err := errors.Join(<-started, log.Close()); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	t.Cleanup(func() {
		if p.hasEnded() && !p.meant.Load() {
			t.Errorf("%s ended: %v", path, p.err)
		}
		p.Kill(t)
		if t.Failed() {
			t.Logf("the end of %s:\n%s", p.Log, p.tail(t))
		}
	})
	return p
}

func (p *Process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// PID is the process's ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Kill kills the process, as a lack of memory does, and waits until it is gone.
func (p *Process) Kill(t testing.TB) {
	t.Helper()
	p.end(t, syscall.SIGKILL)
}

// Stop asks the process to end, which must do so. At the end of a test it is killed: an API server takes its time.
func (p *Process) Stop(t testing.TB) {
	t.Helper()
	p.end(t, syscall.SIGTERM)
}

func (p *Process) end(t testing.TB, s syscall.Signal) {
	t.Helper()
	p.meant.Store(true)
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("signal %s: %v", p.cmd.Path, err)
	}
	select {
	case <-p.ended:
	case <-time.After(stopLimit):
		t.Errorf("%s does not end within %s of %s", p.cmd.Path, stopLimit, s)
		p.end(t, syscall.SIGKILL)
	}
}

// tail returns the last lines of the output.
func (p *Process) tail(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile(p.Log)
	if err != nil {
		t.Error(err)
	}
	lines := slices.Collect(bytes.Lines(text))
	return bytes.Join(lines[max(0, len(lines)-shownLines):], nil)
}

// AwaitReady waits until a GET of the URL, such as a readiness probe's, is answered with 200. Whose certificate
// a server has does not matter: nothing is sent to it.
func (p *Process) AwaitReady(t testing.TB, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), readyLimit)
	defer cancel()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	ticks := time.NewTicker(pause)
	defer ticks.Stop()
	for {
		err := get(ctx, &http.Client{Transport: transport}, url)
		if err == nil {
			return
		}
		select {
		case <-ticks.C:
		case <-p.ended:
			t.Fatalf("%s ended before it was ready: %v\n%s", p.cmd.Path, p.err, p.tail(t))
		case <-ctx.Done():
			t.Fatalf("%s is not ready: %v", p.cmd.Path, err)
		}
	}
}

func get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	if err = errors.Join(err, response.Body.Close()); err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, response.Status, text)
	}
	return err
}
