package hardship

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

const racedRuns = 300

// racedWrites is how often a file is written in a race. make test, which has ten minutes for everything, tries a fifth of them: each write costs the
// processor time of several exchanges of its directory.
func racedWrites() int {
	if needs.Runs(needs.System) {
		return 10_000
	}
	return 2_000
}

// arena is an image, one of whose directories is exchanged for a link and back, as fast as possible.
type arena struct {
	root, dir, victim string
	before            string   // the tree of the victim
	real              *os.File // the directory under any name
	traps             []string // the links beside it
	alarm             *os.File // reports every event in the victim
	// inside are the targets of the links inside the image. Half of these directories exist and are writable.
	inside []string
	stop   chan struct{}
	count  chan int
}

// newArena begins the exchange of a directory of an image. Outside of the image is a victim, which has the same files.
func newArena(t *testing.T, dir, file string) *arena {
	t.Helper()
	isolate(t, 0)
	b := newBench(t)
	a := &arena{
		root: b.root, dir: filepath.Join(b.root, dir), victim: filepath.Join(b.dir, "victim"),
		stop: make(chan struct{}), count: make(chan int),
	}
	for _, d := range []string{a.dir, a.victim} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(a.victim, file), "the victim's\n")
	up := strings.Repeat("../", 1+strings.Count(dir, "/"))
	for n, link := range []string{a.victim, up + "victim", "/proc/self/root" + a.victim, "/proc/1/cwd" + a.victim} {
		a.traps = append(a.traps, fmt.Sprintf("trap%d", n))
		if err := os.Symlink(link, filepath.Join(filepath.Dir(a.dir), a.traps[n])); err != nil {
			t.Fatal(err)
		}
		a.inside = append(a.inside, filepath.Join(a.root, filepath.Join("/", filepath.Dir(dir), link)))
		if filepath.IsAbs(link) {
			a.inside[n] = filepath.Join(a.root, link)
		}
		if n%2 == 0 {
			continue
		}
		if err := os.MkdirAll(a.inside[n], 0o755); err != nil {
			t.Fatal(err)
		}
	}
	a.before = machinetest.Tree(t, a.victim)
	a.real = open(t, a.dir)
	a.watch(t)
	go a.exchange(t, open(t, filepath.Dir(a.dir)), filepath.Base(a.dir))
	return a
}

func open(t *testing.T, path string) *os.File {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() }) // a directory
	return file
}

// watch reports what is created and removed in the victim, also what is gone at the end.
func (a *arena) watch(t *testing.T) {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	a.alarm = os.NewFile(uintptr(fd), "inotify")
	t.Cleanup(func() { _ = a.alarm.Close() }) // no reader is left
	const changes = unix.IN_CREATE | unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_DELETE
	if _, err := unix.InotifyAddWatch(fd, a.victim, changes); err != nil {
		t.Fatal(err)
	}
}

// exchange uses the parent directory: its own thread has other mounts.
func (a *arena) exchange(t *testing.T, above *os.File, name string) {
	n, fd := 0, int(above.Fd())
	defer func() { runtime.KeepAlive(above); a.count <- n }()
	for {
		select {
		case <-a.stop:
			return
		default:
		}
		for range 2 { // there and back
			if err := unix.Renameat2(fd, name, fd, a.traps[n%len(a.traps)], unix.RENAME_EXCHANGE); err != nil {
				t.Errorf("exchange: %v", err)
				return
			}
		}
		n++
	}
}

// end ends the exchange, and returns the changes of the victim.
func (a *arena) end(t *testing.T) (exchanges int, harm error) {
	t.Helper()
	close(a.stop)
	exchanges = <-a.count
	event := make([]byte, 4096)
	if n, err := unix.Read(int(a.alarm.Fd()), event); !errors.Is(err, unix.EAGAIN) {
		harm = fmt.Errorf("something happened outside of the root: %q (%w)", event[:max(n, 0)], err)
	}
	if d := machinetest.Diff(a.before, machinetest.Tree(t, a.victim)); d != "" {
		harm = errors.Join(harm, fmt.Errorf("the outside changed:\n%s", d))
	}
	return exchanges, harm
}

// copies are the contents of a file, in the directory itself and at the targets of the links in the image.
func (a *arena) copies(t *testing.T, file string) [][]byte {
	t.Helper()
	var all [][]byte
	for _, dir := range append([]string{fmt.Sprintf("/proc/self/fd/%d", a.real.Fd())}, a.inside...) {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err == nil {
			all = append(all, data)
		} else if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
			t.Fatal(err)
		}
	}
	return all
}

// version is the content of the writes, in several blocks.
func version(n int) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "version %05d of the file\n", n), 400)
}

// TestRenamerAgainstWrites has a directory exchanged for links that lead out of the root during thousands of writes: each is
// an error and leaves the old file, or is complete.
func TestRenamerAgainstWrites(t *testing.T) {
	t.Parallel()
	a := newArena(t, "etc/app", "f")
	files, err := machine.OpenFS(a.root)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = files.Close() }() // a directory
	refused := map[string]int{}
	held := map[string]bool{} // contents of files
	writes := racedWrites()
	for n := range writes {
		next := version(n)
		err := files.WriteFile("/etc/app/f", next, 0o644)
		if err != nil {
			refused[errnoOf(err)]++
		}
		now := map[string]bool{}
		for _, data := range a.copies(t, "f") {
			now[string(data)] = true
		}
		if err == nil != now[string(next)] {
			t.Fatalf("write %d: the new file is there: %v, and yet: %v", n, now[string(next)], err)
		}
		for data := range now {
			if !held[data] && data != string(next) {
				t.Fatalf("write %d: an incomplete file of %d bytes: %.60q", n, len(data), data)
			}
		}
		held = now
	}
	exchanges, harm := a.end(t)
	if harm != nil {
		t.Error(harm)
	}
	t.Logf("%d writes during %d exchanges; refused: %v", writes, exchanges, refused)
	if exchanges < writes || len(held) < 2 || len(refused) == 0 {
		t.Error("too few events for a proof")
	}
	a.clean(t)
}

// clean fails the test for temporary files.
func (a *arena) clean(t *testing.T) {
	t.Helper()
	left, err := leftovers(a.root)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range left {
		t.Error(l)
	}
}

func errnoOf(err error) string {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

// TestRenamerAgainstAPlugin has the real Sysctl plugin, in one long-lived process, change its file repeatedly during
// the same exchange.
func TestRenamerAgainstAPlugin(t *testing.T) {
	t.Parallel()
	const file = "99-machineadm-raced.conf"
	a := newArena(t, "etc/sysctl.d", file)
	p := start(t)
	refused := map[string]int{}
	held := map[string]bool{}
	for n := range racedRuns {
		code := applyOver(t, p, a.root, n)
		refused[code]++
		now := map[string]bool{}
		for _, data := range a.copies(t, file) {
			now[string(data)] = true
			if want := fmt.Sprintf("kernel.panic = %d\n", n); !held[string(data)] && !strings.Contains(string(data), want) {
				t.Fatalf("run %d: an incomplete file of %d bytes: %.60q", n, len(data), data)
			}
		}
		held = now
	}
	exchanges, harm := a.end(t)
	if harm != nil {
		t.Error(harm)
	}
	t.Logf("%d runs during %d exchanges: %v", racedRuns, exchanges, refused)
	if exchanges < racedRuns || refused[""] == 0 || refused[""] == racedRuns {
		t.Error("too few events for a proof")
	}
	a.clean(t)
	if code := applyOver(t, p, a.root, racedRuns); code != "" {
		t.Errorf("after the race: %s", code)
	}
}

// launch starts the plugin as the host does.
func start(t *testing.T) *launch.Process {
	t.Helper()
	sockets, err := os.MkdirTemp("", "hs") //nolint:usetesting // t.TempDir is too long for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(sockets); err != nil {
			t.Error(err)
		}
	})
	p, err := launch.Start(t.Context(), launch.Options{
		Command:     exec.Command(filepath.Join(built, plugins, sysctlBinary)), // Kill ends it
		Environment: launch.Environment("linux", os.LookupEnv), SocketDir: sockets, Stderr: os.Stderr,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

// applyOver plans and applies the document of this number, and returns the code of the error, or nothing.
func applyOver(t *testing.T, p *launch.Process, root string, n int) string {
	t.Helper()
	const document = `{"apiVersion":"machineadm.cluster.x-k8s.io/v1alpha1","kind":"Sysctl","metadata":{"name":"raced"},` +
		`"spec":{"parameters":{"kernel.panic":%d}}}`
	r := pluginv1.Request{Document: fmt.Appendf(nil, document, n), Root: root, Target: target.Target{OS: "linux"}}
	_, err := p.Plan(t.Context(), r)
	if err == nil {
		var finished pluginv1.Finished
		if finished, err = p.Apply(t.Context(), r, 0, func(pluginv1.Event) error { return nil }); err == nil && finished.Error != nil {
			err = finished.Error
		}
	}
	if err == nil {
		return ""
	}
	return pluginv1.AsError(err).Code.String()
}
