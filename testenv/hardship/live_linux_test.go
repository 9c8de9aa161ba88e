package hardship

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/internal/require"
)

const (
	sentinel  = "/run/cluster-api/bootstrap-success.complete"
	systemctl = "/usr/bin/systemctl"
)

// live is a machine of the test's own namespaces: this one's programs, with an /etc and a /run of the test,
// and a service manager that only records its commands.
type live struct {
	*bench
	asked string // the commands of the service manager, a line each
	mark  string // a file that the stream writes
}

// newLive puts the directories of a live run on a disk.
func newLive(t *testing.T, disk string) *live {
	t.Helper()
	at := func(name string) string { return filepath.Join(disk, name) }
	m := &live{bench: newBench(t), mark: at("mark")}
	m.state, m.run, m.tmp = at("state"), at("runs"), at("tmp")
	for _, d := range []string{at("etc"), at("work"), at("run")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	m.makeDirectories(t)
	mount(t, "overlay", "/etc", "overlay", "lowerdir=/etc,upperdir="+at("etc")+",workdir="+at("work"))
	bind(t, at("run"), "/run")
	m.asked = filepath.Join(m.dir, "asked")
	fake := filepath.Join(m.dir, "systemctl")
	put(t, fake, "#!/bin/sh\necho \"$*\" >>"+m.asked+"\n")
	if err := os.Chmod(fake, 0o755); err != nil {
		t.Fatal(err)
	}
	bind(t, fake, systemctl)
	return m
}

func bind(t *testing.T, from, to string) {
	t.Helper()
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		t.Fatalf("bind %s to %s: %v", from, to, err)
	}
	t.Cleanup(func() { unmount(t, to) })
}

// apply makes a live run of a stream.
func (m *live) apply(t *testing.T, text string, flags ...string) result {
	t.Helper()
	put(t, m.stream, text)
	return m.host(t, append([]string{"apply", "--path", m.stream}, flags...)...)
}

// noop is a stream of one document, whose change writes the mark.
func (m *live) noop(more string) string {
	return "apiVersion: example.com/v1\nkind: Noop\nmetadata: {name: a}\nspec: {provider: test, touch: [" + m.mark + "]" + more + "}\n"
}

// reboots returns how often the service manager got a reboot command.
func (m *live) reboots(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile(m.asked)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Count(string(data), "reboot\n")
}

// success reports whether there is a sentinel, which is complete if it exists.
func success(t *testing.T) bool {
	t.Helper()
	data, err := os.ReadFile(sentinel)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil || string(data) != "success\n" {
		t.Errorf("an incomplete sentinel: %q (%v)", data, err)
	}
	return true
}

// resumes reports whether the next boot resumes a run.
func resumes(t *testing.T) bool {
	t.Helper()
	found, err := filepath.Glob("/etc/systemd/system/*/machineadm-resume.service")
	if err != nil {
		t.Fatal(err)
	}
	return len(found) > 0
}

// TestDiskFullInALiveRun makes live runs with a little more room each. The sentinel exists if and only if the run has
// succeeded, and a reboot is requested if and only if the run reports one.
func TestDiskFullInALiveRun(t *testing.T) {
	require.Root(t) // here, because a step that is skipped ends no series
	for name, s := range map[string]struct {
		spec  string
		flags []string
		end   int
	}{
		"success": {"", nil, report.ExitOK},
		"reboot":  {", reboot: AfterRun", []string{"--reboot"}, report.ExitReboot},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			codes := map[int]int{}
			for n := 0; codes[s.end] == 0 && !t.Failed(); n++ {
				t.Run(fmt.Sprintf("%d", n), func(t *testing.T) {
					isolate(t, unix.CLONE_NEWNET)
					codes[liveStep(t, n, s.spec, s.flags, s.end)]++
				})
			}
			t.Logf("exit codes %v", codes)
			if codes[report.ExitState] < 5 {
				t.Error("too few events for a proof")
			}
		})
	}
}

func liveStep(t *testing.T, n int, spec string, flags []string, end int) (code int) {
	t.Helper()
	b := newBench(t)
	disk := filepath.Join(b.dir, "disk")
	mountTmpfs(t, disk)
	m := newLive(t, disk)
	filler := fill(t, disk, int64(n))
	got := m.apply(t, m.noop(spec), flags...)
	inspect := func(got result, after bool) {
		if success(t) != (got.code == report.ExitOK) || m.reboots(t) > 0 != (got.code == report.ExitReboot) {
			t.Errorf("with room for %d (and then for all: %v) there is a sentinel: %v, and %d reboots; %s", n, after, success(t), m.reboots(t), got)
		}
		if resumes(t) && got.code != report.ExitReboot {
			t.Errorf("with room for %d (and then for all: %v) the next boot resumes a run that ended: %s", n, after, got)
		}
		left, err := leftovers(m.state, m.run, "/run", "/etc/systemd")
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range left {
			t.Error(l)
		}
	}
	inspect(got, false)
	if got.code == end {
		return got.code
	}
	if got.code != report.ExitState || !strings.Contains(got.stderr, disk) && !strings.Contains(got.stderr, "/run/") || !strings.Contains(got.stderr, "hint: ") {
		t.Errorf("with room for %d: %s", n, got)
	}
	removeAll(t, filler)
	again := m.apply(t, m.noop(spec), flags...)
	inspect(again, true)
	// The change is made already: no reboot is due.
	if again.code != end && again.code != report.ExitOK {
		t.Errorf("with room for all: %s", again)
	}
	return got.code
}

// TestSentinelDirectory: a run that cannot write the sentinel fails, and one that cannot remove an
// earlier success changes nothing.
func TestSentinelDirectory(t *testing.T) {
	for kind, h := range hardships() {
		for _, warm := range []bool{true, false} {
			if h.file && !warm {
				continue
			}
			t.Run(kind+map[bool]string{true: "/warm", false: "/cold"}[warm], func(t *testing.T) {
				t.Parallel()
				isolate(t, unix.CLONE_NEWNET)
				b := newBench(t)
				m, disk := newLive(t, b.dir), filepath.Join(b.dir, "disk")
				h.mount(t, disk)
				dir := filepath.Dir(sentinel)
				if err := errors.Join(os.Mkdir(filepath.Join(disk, "d"), 0o755), os.Mkdir(dir, 0o755)); err != nil {
					t.Fatal(err)
				}
				bind(t, filepath.Join(disk, "d"), dir)
				if warm {
					put(t, sentinel, "success\n")
				}
				repair := h.strike(t, disk, dir, sentinel)
				got := m.apply(t, m.noop(""))
				// On a full disk the new one takes the room of the old one.
				room := warm && (strings.Contains(kind, "full") || strings.Contains(kind, "inodes")) && got.code == report.ExitOK && success(t)
				if !room && (got.code != report.ExitState || !strings.Contains(got.stderr, sentinel) || !strings.Contains(got.stderr, "hint: ")) {
					t.Errorf("%s", got)
				}
				r, err := m.report()
				if err == nil {
					err = agrees(r, got.code)
				}
				if err != nil {
					t.Errorf("%v\n%s", err, got)
				}
				if _, err := os.Stat(m.mark); !room && success(t) && err == nil {
					t.Error("something was changed, and the old sentinel still exists")
				}
				repair()
				if got := m.apply(t, m.noop("")); got.code != report.ExitOK || !success(t) {
					t.Errorf("the run after it: %s", got)
				}
				left, err := leftovers(dir)
				if err != nil || len(left) > 0 {
					t.Errorf("%q (%v)", left, err)
				}
			})
		}
	}
}

// TestLiveTarget: the kernel accepts a value whose file cannot be written; the next run corrects the file that a boot reads.
func TestLiveTarget(t *testing.T) {
	t.Parallel()
	isolate(t, unix.CLONE_NEWNET) // with kernel parameters of its own
	const key, file = "/proc/sys/net/core/somaxconn", "/etc/sysctl.d/99-machineadm-live.conf"
	m := newLive(t, newBench(t).dir)
	const stream = "apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: Sysctl\nmetadata: {name: live}\nspec: {parameters: {net.core.somaxconn: 8191}}\n"
	repair := bound(t, "", filepath.Dir(file), "")
	got := m.apply(t, stream)
	if got.code != report.ExitPrecondition || !strings.Contains(got.stderr, file) || !strings.Contains(got.stderr, "hint: make that file system writable") {
		t.Errorf("%s", got)
	}
	r, err := m.report()
	if err == nil {
		err = agrees(r, got.code)
	}
	if err != nil || success(t) {
		t.Errorf("%v; there is a sentinel: %v", err, success(t))
	}
	repair()
	if got := m.apply(t, stream); got.code != report.ExitOK || !success(t) {
		t.Errorf("the run after it: %s", got)
	}
	for path, want := range map[string]string{key: "8191", file: "net.core.somaxconn = 8191"} {
		if data, err := os.ReadFile(path); err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s: %q (%v), want %s", path, data, err, want)
		}
	}
}

// TestNoDirectoryForTemporaryFiles: neither TMPDIR nor its alternatives accept a socket.
func TestNoDirectoryForTemporaryFiles(t *testing.T) {
	t.Parallel()
	isolate(t, 0)
	b := newBench(t)
	b.makeDirectories(t)
	for _, dir := range []string{"/tmp", "/var/tmp", "/run/user/0", "/dev/shm", "/run", b.tmp} {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		// Mounts below it stay as they are, such as the bench.
		err := unix.Mount(dir, dir, "", unix.MS_BIND|unix.MS_REC, "")
		if err == nil {
			err = unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
		}
		if err != nil {
			t.Fatalf("%s: %v", dir, err)
		}
		t.Cleanup(func() { unmount(t, dir) })
	}
	put(t, b.stream, stream(1))
	for _, flags := range [][]string{
		{"--state-dir", b.state, "--run-dir", b.run}, {"--state-dir", b.state}, {"--run-dir", b.run}, nil,
	} {
		c := b.command(t.Context())
		c.Args = append([]string{c.Path, "apply", "--root", b.root, "--path", b.stream, "--plugin-dir", filepath.Join(built, plugins)}, flags...)
		var said strings.Builder
		c.Stdout, c.Stderr = &said, &said
		if code := exit(t, c, c.Run()); code != report.ExitState || !strings.Contains(said.String(), "hint: set TMPDIR") {
			t.Errorf("%q: exit %d\n%s", flags, code, &said)
		}
	}
}
