package promise_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/contract/report"
)

const (
	directory = "directory"
	sentinel  = "run/cluster-api/bootstrap-success.complete"
	choices   = "etc/machineadm/choices.json"
)

// lane is where streams are tried one after the other.
type lane struct {
	programs string // the host and the plugins
	dir      string
	live     string // the root of live machines; empty where none can be made
}

// newLane is a lane in dir. It has mounts of its own, which end with the goroutine of the test: a host that is confined to
// the live root takes it for the machine. /proc, with a boot ID of the test, and /dev/null are this machine's. The
// sysctl plugin, which would write to /proc/sys, never runs there.
func newLane(t *testing.T, programs, dir string) *lane {
	t.Helper()
	l := &lane{programs: programs, dir: dir}
	require.NoError(t, os.MkdirAll(l.tmp(), 0o700))
	require.NoError(t, os.MkdirAll(dir, 0o700))
	if os.Geteuid() != 0 {
		t.Log("images only: live machines need root")
		return l
	}
	runtime.LockOSThread() // never unlocked: the thread must not be used again
	if err := errors.Join(unix.Unshare(unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")); err != nil {
		t.Logf("images only: live machines need a mount namespace: %v", err)
		return l
	}
	l.live = filepath.Join(dir, "live")
	require.NoError(t, os.WriteFile(l.bootID(), []byte("boot\n"), 0o600))
	for _, d := range []string{"proc", "dev", "usr/bin", "usr/libexec/machineadm"} {
		require.NoError(t, os.MkdirAll(filepath.Join(l.live, d), 0o755))
	}
	for _, bind := range [][2]string{
		{"/proc", "proc"},
		{l.bootID(), "proc/sys/kernel/random/boot_id"},
		{"/dev/null", "dev/null"},
		{filepath.Join(programs, "machineadm"), "usr/bin/machineadm"},
		{programs, "usr/libexec/machineadm"},
	} {
		at := filepath.Join(l.live, bind[1])
		if _, err := os.Stat(at); err != nil {
			require.NoError(t, os.WriteFile(at, nil, 0o600))
		}
		require.NoError(t, unix.Mount(bind[0], at, "", unix.MS_BIND, ""))
		t.Cleanup(func() { require.NoError(t, unix.Unmount(at, unix.MNT_DETACH)) })
	}
	return l
}

func (l *lane) bootID() string { return filepath.Join(l.dir, "boot_id") }

// tmp is for all lanes: each run cleans up there what killed ones left, and must leave the others alone.
func (l *lane) tmp() string { return filepath.Join(filepath.Dir(l.dir), "tmp") }

// machine is what a stream is applied to.
type machine struct {
	*lane
	root   string
	isLive bool
	phase  string        // --phase
	killed time.Duration // when a run is killed; 0 is never
}

// newMachine is an empty machine, in place of the one before it.
func (l *lane) newMachine(t *testing.T, live bool) *machine {
	t.Helper()
	for _, d := range []string{"image", "state", "run"} {
		require.NoError(t, os.RemoveAll(filepath.Join(l.dir, d)))
	}
	if !live {
		return &machine{lane: l, root: filepath.Join(l.dir, "image"), phase: "all"}
	}
	m := &machine{lane: l, root: l.live, isLive: true, phase: "all"}
	entries, err := os.ReadDir(m.root)
	require.NoError(t, err)
	for _, e := range entries {
		if name := e.Name(); name != "proc" && name != "dev" && name != "usr" {
			require.NoError(t, os.RemoveAll(filepath.Join(m.root, name)))
		}
	}
	m.write(t, "etc/machine-id", "0123456789abcdef0123456789abcdef\n")
	for _, d := range []string{"tmp", "run", "var/lib"} {
		require.NoError(t, os.MkdirAll(filepath.Join(m.root, d), 0o755))
	}
	return m
}

// reboot gives a live machine another boot ID: the host sees nothing else of a reboot.
func (m *machine) reboot(t *testing.T) {
	t.Helper()
	before, err := os.ReadFile(m.bootID())
	require.NoError(t, err)
	after := "boot\n"
	if string(before) == after {
		after = "next boot\n"
	}
	require.NoError(t, os.WriteFile(m.bootID(), []byte(after), 0o600))
}

func (m *machine) write(t *testing.T, name, content string) {
	t.Helper()
	path := filepath.Join(m.root, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644)) //nolint:gosec // a file of a machine
}

// step is one run of the host.
type step struct {
	exit    int
	output  string
	planned map[string][]string // changes, by document
	changes []change            // of a plan
	made    []change            // begun by an apply
	report  report.Report
	pending []string // documents
}

// change is one of a document.
type change struct {
	ID, Summary, Diff string
	NeedsLive         bool
}

// host runs a command on a stream.
func (m *machine) host(t *testing.T, stream, command string) step {
	t.Helper()
	args := []string{command, "--path", "/stream.yaml", "-o", "json"}
	if command != "validate" {
		args = append(args, "--phase", m.phase)
	}
	path := filepath.Join(m.root, "stream.yaml")
	c := exec.CommandContext(t.Context(), "/usr/bin/machineadm", args...)
	c.SysProcAttr, c.Dir, c.Env = &syscall.SysProcAttr{Chroot: m.root}, "/", []string{"TMPDIR=/tmp"}
	if !m.isLive {
		path = filepath.Join(m.dir, "stream.yaml")
		args[2] = path
		args = append(args, "--plugin-dir", m.programs, "--state-dir", filepath.Join(m.dir, "state"), "--run-dir", filepath.Join(m.dir, "run"))
		if command != "validate" {
			args = append(args, "--root", m.root, "--allow-secrets")
		}
		c = exec.CommandContext(t.Context(), filepath.Join(m.programs, "machineadm"), args...)
		c.Env = []string{"TMPDIR=" + m.tmp()}
	}
	require.NoError(t, os.WriteFile(path, []byte(stream), 0o600))
	var out, problems bytes.Buffer
	c.Stdout, c.Stderr = &out, &problems
	require.NoError(t, c.Start())
	if m.killed > 0 {
		defer time.AfterFunc(m.killed, func() { _ = c.Process.Kill() }).Stop()
	}
	err := c.Wait()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return newStep(command, c.ProcessState.ExitCode(), out.String(), problems.String())
}

func newStep(command string, exit int, out, problems string) step {
	s := step{exit: exit, planned: map[string][]string{}}
	s.output = command + ": exit " + show(exit) + "\n" + out + problems
	for line := range strings.Lines(out) {
		s.read(line)
	}
	return s
}

// read takes an event of a plan.
func (s *step) read(line string) {
	var event struct {
		Type, Pending string
		Document      struct{ Kind, Name string }
		Planned       []change
		Change        change
		Report        *report.Report
	}
	if json.Unmarshal([]byte(line), &event) != nil {
		return
	}
	switch event.Type {
	case "change-started":
		s.made = append(s.made, event.Change)
	case "run-finished":
		s.report = *event.Report
	}
	if event.Type != "document-planned" {
		return
	}
	document := event.Document.Kind + "/" + event.Document.Name
	if event.Pending != "" {
		s.pending = append(s.pending, document)
	}
	s.changes = append(s.changes, event.Planned...)
	for _, change := range event.Planned {
		s.planned[document] = append(s.planned[document], change.ID)
	}
}

func (m *machine) report(t *testing.T) report.Report {
	t.Helper()
	path := filepath.Join(m.dir, "run/report.json")
	if m.isLive {
		path = filepath.Join(m.root, "run/machineadm/report.json")
	}
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var r report.Report
	require.NoError(t, json.Unmarshal(data, &r))
	return r
}

// tree is every path of the machine with its content. Of a live machine it leaves out what is mounted, the stream, and the
// directories of the host's state, reports and temporary files, in which a plan keeps a report with details.
func (m *machine) tree(t *testing.T) map[string]string {
	t.Helper()
	var skipped []string
	if m.isLive {
		skipped = []string{"/proc", "/dev", "/usr", "/stream.yaml", "/var/lib/machineadm", "/run/machineadm", "/tmp"}
	}
	out := map[string]string{}
	require.NoError(t, filepath.WalkDir(m.root, func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, m.root)
		switch {
		case err != nil:
		case slices.Contains(skipped, name):
			if d.IsDir() {
				return fs.SkipDir
			}
		case d.IsDir():
			out[name] = directory
		case d.Type() == fs.ModeSymlink:
			out[name], err = os.Readlink(path)
		default:
			var data []byte
			data, err = os.ReadFile(path)
			out[name] = string(data)
		}
		return err
	}))
	if text, there := out["/"+choices]; there { // as a value: its layout promises nothing
		kept := map[string]string{}
		require.NoError(t, json.Unmarshal([]byte(text), &kept))
		out["/"+choices] = show(kept)
	}
	return out
}
