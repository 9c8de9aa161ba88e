package wine

import (
	"context"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/testenv/nodes"
)

const (
	home  = "/root"
	drive = home + "/.wine/drive_c"
)

// prefix is a node with a wine prefix, one wineserver and a running Task Scheduler.
type prefix struct{ *nodes.Node }

func boot(t *testing.T) prefix {
	t.Helper()
	p := prefix{nodes.Boot(t, nodes.Options{
		Suite:  nodes.Trixie,
		Layers: []nodes.Layer{nodes.Wine, nodes.MinGW}, // for netapi32.c
	})}
	p.MustExec(t, "sh", "-c", `echo "127.0.0.1 $(hostname)" >> /etc/hosts`) // wine resolves its own name
	p.mustRun(t, "wineboot", "--init")
	p.mustRun(t, "reg", "add", `HKLM\SYSTEM\CurrentControlSet\Control`, "/v", "ServicesPipeTimeout", "/d", "240000", "/f") // ms; for a loaded machine
	p.restart(t)
	return p
}

// restart ends every Windows process, and starts a wineserver and the Task Scheduler. A process of wine that has not ended yet can
// start a wineserver in between, which would end with its last client, and with it what a boot keeps: then all begins again.
func (p prefix) restart(t *testing.T) {
	t.Helper()
	const server = `export HOME=` + home + `
wineserver --kill --wait
systemctl stop wineserver.service
systemctl reset-failed wineserver.service
exec systemd-run --quiet --unit=wineserver --setenv=HOME=` + home + ` wineserver --foreground --persistent`
	ours := false
	require.Eventually(t, func() bool {
		if !ours {
			p.MustExec(t, "sh", "-c", server)
		}
		p.run(t, "net", "start", "Schedule") // fails if it runs already, or if a loaded machine starts it too slowly
		state, err := p.Exec(t.Context(), "systemctl", "is-active", "wineserver.service")
		require.NoError(t, err)
		ours = state.ExitCode == 0
		return ours && strings.Contains(p.run(t, "sc", "query", "Schedule").Stdout, "RUNNING")
	}, 8*time.Minute, time.Second)
}

// run runs a Windows program on drive C.
func (p prefix) run(t *testing.T, argv ...string) nodes.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	// wine's services inherit the output of the program that starts them, so it goes to files. mscoree and mshtml would ask
	// for downloads.
	const script = `cd && wine "$@" >/run/out 2>/run/err; status=$?; cat /run/out; cat /run/err >&2; exit $status`
	r, err := p.Exec(ctx, append([]string{"env", "HOME=" + home, "WINEDEBUG=-all", "WINEDLLOVERRIDES=mscoree,mshtml=", "sh", "-c", script, "sh"}, argv...)...)
	require.NoError(t, err)
	return r
}

func (p prefix) mustRun(t *testing.T, argv ...string) string {
	t.Helper()
	r := p.run(t, argv...)
	require.Zero(t, r.ExitCode, "%v: %s%s", argv, r.Stdout, r.Stderr)
	return r.Stdout
}

// install builds a package for Windows and copies the program to a path of drive C, which is returned as Windows writes it.
func (p prefix) install(t *testing.T, at string, build ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program.exe")
	command := exec.CommandContext(t.Context(), "go", append(build[:len(build)-1:len(build)-1], "-o", program, build[len(build)-1])...)
	command.Dir = filepath.Join("..", "..")
	command.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, p.CopyIn(t.Context(), program, path.Join(drive, at), 0o755))
	return `C:\` + strings.ReplaceAll(at, "/", `\`)
}

func (p prefix) write(t *testing.T, at, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	require.NoError(t, p.CopyIn(t.Context(), file, path.Join(drive, at), 0o644))
}
