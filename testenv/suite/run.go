package suite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/machineadm/machineadm/internal/require"
)

// command is one call of go test.
type command struct {
	root  string // directory of the module
	flags []string
	dirs  []string // packages below the module, "." for the module's own; ["./..."] for all
	tiers []require.TierName
	race  bool
	env   []string
	log   io.Writer // what is neither an event nor a result
}

// endGrace is how long go test may take to end after SIGTERM, before it is killed.
const endGrace = 20 * time.Second

// run runs go test and hands over the result of each package. The error is one of go test itself. When ctx ends, the whole process
// group of go test is ended; packages without a result are handed over as failed.
func (c command) run(ctx context.Context, done func(Result)) error {
	arguments := append([]string{"test", "-json", "-vet=off"}, c.flags...)
	cgo := "0"
	if c.race {
		arguments, cgo = append(arguments, "-race"), "1"
	}
	var extra []string
	for i, flag := range arguments {
		if flag == "-args" {
			arguments, extra = arguments[:i:i], arguments[i:]
			break
		}
	}
	for _, dir := range c.dirs {
		arguments = append(arguments, "./"+dir)
	}
	cmd := exec.CommandContext(ctx, "go", append(arguments, extra...)...)
	cmd.Dir = c.root
	names := make([]string, 0, len(c.tiers))
	for _, tier := range c.tiers {
		names = append(names, string(tier))
	}
	cmd.Env = append(os.Environ(), "CGO_ENABLED="+cgo, "GOWORK=off", "MACHINEADM_TIERS="+strings.Join(names, ","),
		// The race detector has each process sleep for a second at its end; tests that start hundreds would wait for it.
		"GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	cmd.Env = append(cmd.Env, c.env...)
	cmd.Stderr = c.log
	group(cmd)
	cmd.WaitDelay = endGrace
	out, in := io.Pipe()
	cmd.Stdout = in
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start go test: %w", err)
	}
	ended := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		ended <- errors.Join(err, in.Close())
	}()
	failed := false
	other, err := collect(out, func(r Result) {
		failed = failed || !r.OK
		done(r)
	})
	if other != "" {
		_, _ = io.WriteString(c.log, other)
	}
	var exit *exec.ExitError
	waited := <-ended
	if ctx.Err() != nil {
		killGroup(cmd)
	}
	if errors.As(waited, &exit) && failed {
		waited = nil // the results say so
	}
	return errors.Join(err, waited)
}
