package containerd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/machineadm/machineadm/testenv/containerd/internal/answer"
	"github.com/machineadm/machineadm/testenv/nodes"
)

const (
	// Config is the main file of every version.
	Config = "/etc/containerd/config.toml"
	// Socket is where every version listens, and its unit.
	Socket = "/run/containerd/containerd.sock"
	unit   = "containerd.service"
)

// limit bounds every wait for a daemon; it takes about a second, on a virtual machine half a minute.
const limit = 5 * time.Minute

// Daemon is a containerd that runs under systemd on a node of its own.
type Daemon struct {
	*nodes.Node
	Version Version
}

// Answer is the response of the daemon to a call of the Container Runtime Interface.
type Answer = answer.Answer

// Start boots a node and waits until its containerd serves the Container Runtime Interface, with the configuration that its
// package ships. The tools are built first when the cache does not hold them, which takes minutes. Without root or the
// means to boot nodes the test is skipped.
func Start(t testing.TB, v Version, prepare ...func(root string) error) *Daemon {
	t.Helper()
	return begin(t, v, v.options(t, prepare))
}

// StartRunning is Start on a node that can also run containers, as the nodes of Debian 12 can; see nodes.Options.Limits.
func StartRunning(t testing.TB, v Version) *Daemon {
	t.Helper()
	o := v.options(t, nil)
	o.Limits = true
	return begin(t, v, o)
}

// StartVM is Start on a virtual machine with its own clock. It takes minutes.
func StartVM(t testing.TB, v Version, prepare ...func(root string) error) *Daemon {
	t.Helper()
	o := v.options(t, prepare)
	o.VM = true
	return begin(t, v, o)
}

func begin(t testing.TB, v Version, o nodes.Options) *Daemon {
	t.Helper()
	d := &Daemon{Node: nodes.Boot(t, o), Version: v}
	d.Await(t)
	return d
}

// Await waits until the daemon reports that it is ready to run containers, and ends the test when it does not.
func (d *Daemon) Await(t testing.TB) {
	t.Helper()
	var last Answer
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
		if last = d.CRI(t, "status"); last.Error == "" && last.RuntimeReady.Met {
			return
		}
	}
	log := d.Bash(t, "systemctl status --no-pager containerd; journalctl -u containerd --no-pager --lines=60")
	t.Fatalf("containerd %s is not ready: %q, %+v\n%s", d.Version, last.Error, last.RuntimeReady, log.Stdout)
}

// Restart restarts the daemon and waits until it is ready. The unit's limit of starts counts from here.
func (d *Daemon) Restart(t testing.TB) {
	t.Helper()
	d.MustExec(t, "systemctl", "reset-failed", unit)
	d.MustExec(t, "systemctl", "restart", unit)
	d.Await(t)
}

// CRI makes one call, inside the node and through internal/cri: version, status, image IMAGE or remove IMAGE.
func (d *Daemon) CRI(t testing.TB, call ...string) Answer {
	t.Helper()
	return d.ask(t, nil, call)
}

// Pull has the daemon pull an image; an empty user means no login.
func (d *Daemon) Pull(t testing.TB, image, user, password string) Answer {
	t.Helper()
	login, err := json.Marshal(answer.Login{User: user, Password: password})
	if err != nil {
		t.Fatal(err)
	}
	return d.ask(t, login, []string{"pull", image})
}

func (d *Daemon) ask(t testing.TB, stdin []byte, call []string) Answer {
	t.Helper()
	r, err := d.ExecInput(t.Context(), bytes.NewReader(stdin), append([]string{askCommand, Socket}, call...)...)
	if err != nil || r.ExitCode != 0 {
		t.Fatalf("cri %s: exit status %d, %v\n%s", call, r.ExitCode, err, r.Stderr)
	}
	var a Answer
	if err := json.Unmarshal([]byte(r.Stdout), &a); err != nil {
		t.Fatalf("cri %s: %v", call, err)
	}
	return a
}

// Dump is the program's reading of a configuration file (`containerd config dump`), whatever the daemon that runs has read.
func (d *Daemon) Dump(t testing.TB, file string) nodes.Result {
	t.Helper()
	r, err := d.Exec(t.Context(), "containerd", "--config", file, "config", "dump")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Write puts a file into the node.
func (d *Daemon) Write(t testing.TB, path, text string) {
	t.Helper()
	const write = `mkdir -p -- "$(dirname -- "$1")" && cat >"$1"`
	r, err := d.ExecInput(t.Context(), strings.NewReader(text), "sh", "-c", write, "sh", path)
	if err != nil || r.ExitCode != 0 {
		t.Fatalf("write %s: exit status %d, %v\n%s", path, r.ExitCode, err, r.Stderr)
	}
}

// Bash runs a script in the node, whatever its exit status.
func (d *Daemon) Bash(t testing.TB, script string) nodes.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	r, err := d.Exec(ctx, "bash", "-c", script)
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", script, err))
	}
	return r
}
