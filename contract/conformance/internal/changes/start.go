package changes

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"time"

	"github.com/machineadm/machineadm/contract/conformance/internal/process"
	"github.com/machineadm/machineadm/contract/conformance/internal/rig"
	"github.com/machineadm/machineadm/contract/launch"
)

// Cookie starts the plugin as a person does, without the cookie, and with another one.
func Cookie(ctx context.Context, f *rig.Fixture) (rig.Result, error) {
	key := launch.Handshake().MagicCookieKey
	for how, variables := range map[string][]string{"without the cookie": nil, "with another cookie": {key + "=another"}} {
		end, err := startedByHand(ctx, f, variables)
		if err != nil {
			return rig.Result{}, err
		}
		if end != "" {
			return rig.Failed(rig.Finding{
				Clause: "H-4", Expected: "the plugin writes to standard error that it is a plugin and ends with exit code 1",
				Got:   fmt.Sprintf("%s, the plugin %s", how, end),
				Cause: fmt.Sprintf("the plugin does not compare the variable %s, or only tests whether it is set", key),
			}), nil
		}
	}
	return rig.Passed(), nil
}

// startedByHand returns what is wrong with the end of a plugin with these variables, or "".
func startedByHand(ctx context.Context, f *rig.Fixture, variables []string) (wrong string, err error) {
	ctx, cancel := context.WithTimeout(ctx, f.Runner.StartTimeout)
	defer cancel()
	var stderr bytes.Buffer
	command := exec.CommandContext(ctx, f.Runner.Binary)
	command.Dir, command.Env, command.Stderr = f.Dir, append(process.Environment(f.Dir), variables...), &stderr
	command.WaitDelay = time.Second
	stdout, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		return "", fmt.Errorf("start the plugin: %w", err)
	}
	for lines := bufio.NewScanner(stdout); wrong == "" && lines.Scan(); {
		if bytes.Count(lines.Bytes(), []byte("|")) >= 4 {
			wrong = "writes its handshake line"
			cancel()
		}
	}
	_ = command.Wait() // the state has the exit code
	switch code := command.ProcessState.ExitCode(); {
	case wrong != "":
	case ctx.Err() != nil:
		wrong = "does not end"
	case code != 1:
		wrong = fmt.Sprintf("ends with exit code %d", code)
	case stderr.Len() == 0:
		wrong = "writes nothing to standard error"
	}
	return wrong, nil
}

// mostLinger is how long the kit waits for the end of a plugin: longer than P-3 permits, for a busy machine.
const mostLinger = 10 * time.Second

// Shutdown calls Shutdown and waits for the end of the process.
func Shutdown(ctx context.Context, f *rig.Fixture) (rig.Result, error) {
	p, err := f.StartNew(ctx, process.UsualUmask)
	if err != nil {
		return rig.Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, mostLinger)
	defer cancel()
	answer := p.Shutdown(ctx)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !p.Exited() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return rig.Failed(rig.Finding{
				Clause: "P-3", Expected: "Shutdown is answered, and the plugin ends within 2 s",
				Got: fmt.Sprintf("%s after the call of Shutdown (%v), the plugin still runs", mostLinger, answer),
				Cause: "the handler of Shutdown does not end the server, or something after the end of the server waits, such as a " +
					"thread that is no daemon",
			}), nil
		}
	}
	return rig.Passed(), nil
}
