package crash

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// process has the fields of proc_pid_stat(5) and proc_pid_cmdline(5) that the tests use.
type process struct {
	id, parent int
	start      string // distinguishes processes of the same ID
	arguments  []string
}

func (p process) program() string { return filepath.Base(p.arguments[0]) }

func (p process) String() string { return fmt.Sprintf("%d %q", p.id, p.arguments) }

// processes returns the processes that are alive, without zombies. One that is starting or ending has no arguments.
func processes(t testing.TB) map[int]process {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	all := map[int]process{}
	for _, e := range entries {
		id, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, ok := readProcess(id); ok {
			all[id] = p
		}
	}
	return all
}

func readProcess(id int) (process, bool) {
	dir := filepath.Join("/proc", strconv.Itoa(id))
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return process{}, false
	}
	line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const parent, start = 1, 19 // counted from the state
	if err != nil || len(fields) <= start || fields[0] == "Z" || fields[0] == "X" {
		return process{}, false
	}
	up, err := strconv.Atoi(fields[parent])
	return process{
		id: id, parent: up, start: fields[start],
		arguments: strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00"),
	}, err == nil
}

// descends reports whether a process is ancestor, or below it.
func descends(all map[int]process, id, ancestor int) bool {
	for steps := 0; steps <= len(all); steps++ {
		if id == ancestor {
			return true
		}
		p, known := all[id]
		if !known {
			return false
		}
		id = p.parent
	}
	return false
}

// marked are the living processes with the mark in their arguments, except a process (0: none) and those below it.
func marked(all map[int]process, mark string, except int) []process {
	var found []process
	for id, p := range all {
		if strings.Contains(strings.Join(p.arguments, "\x00"), mark) && (except == 0 || !descends(all, id, except)) {
			found = append(found, p)
		}
	}
	return found
}

// victims are the processes of the run with this host that are to be killed. There are none for a plugin that is not
// started yet, or for a run that has ended.
func victims(t testing.TB, host int, who victim) []process {
	t.Helper()
	all := processes(t)
	var found []process
	for id, p := range all {
		switch {
		case !descends(all, id, host):
		case who == victimBoth, who == victimHost && id == host, who == victimPlugin && strings.Contains(p.program(), "-plugin-"):
			found = append(found, p)
		}
	}
	return found
}

// kill sends SIGKILL, and reports whether the process existed. It cannot hit another one of the same ID.
func kill(t testing.TB, p process) bool {
	t.Helper()
	fd, err := unix.PidfdOpen(p.id, 0)
	if errors.Is(err, unix.ESRCH) {
		return false
	}
	if err != nil {
		t.Fatalf("pidfd_open: %v", err)
	}
	defer func() { _ = unix.Close(fd) }() // a descriptor without data
	if now, ok := readProcess(p.id); !ok || now.start != p.start {
		return false
	}
	err = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	if err != nil && !errors.Is(err, unix.ESRCH) {
		t.Fatalf("pidfd_send_signal: %v", err)
	}
	return err == nil
}

// named returns the processes that a run lists because they hold the lock of a killed one.
func named(words string) (ids []string) {
	_, list, _ := strings.Cut(words, "still at work: ")
	list, _, _ = strings.Cut(list, ": the lock ")
	for _, found := range regexp.MustCompile(`(?:^|, )(\d+) \(`).FindAllStringSubmatch(list, -1) {
		ids = append(ids, found[1])
	}
	return ids
}

// awaitEnd waits for the end of a process that holds the lock.
func awaitEnd(t testing.TB, id string) {
	t.Helper()
	number, err := strconv.Atoi(id)
	if err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	holder, alive := readProcess(number)
	deadline := time.Now().Add(waitLimit)
	for now := holder; alive && now.start == holder.start; now, alive = readProcess(number) {
		if time.Now().After(deadline) {
			left(t, "holds the lock still: %v", holder)
			return
		}
		<-tick.C
	}
}

// strike waits for the moment of an attack, counted from now or from the start of the plugin that is its victim, and
// kills. It returns how many processes it hit. When there was none, it returns how long there had been one.
func strike(t testing.TB, a attack, span time.Duration, host int, ended <-chan struct{}) (hits int, lasted time.Duration) {
	t.Helper()
	if a.victim == victimPlugin {
		awaitPlugin(t, host, ended)
	}
	began := time.Now()
	// A random moment, not a condition, is the purpose of this wait.
	moment := time.NewTimer(time.Duration(a.part * float64(span)))
	defer moment.Stop()
	select {
	case <-moment.C:
	case <-ended:
	}
	for _, p := range victims(t, host, a.victim) {
		if kill(t, p) {
			hits++
		}
	}
	return hits, time.Since(began)
}

// awaitPlugin returns when the plugin of this host is running, or when the run has ended.
func awaitPlugin(t testing.TB, host int, ended <-chan struct{}) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for len(victims(t, host, victimPlugin)) == 0 {
		select {
		case <-ended:
			return
		case <-tick.C:
		}
	}
}

// measure is how long an undisturbed run takes, how much of that passes before its plugin runs, and how many calls that
// change files it makes.
type measure struct {
	whole, beforePlugin time.Duration
	calls               int
}

// of is the time in which the victim runs.
func (m measure) of(v victim) time.Duration {
	if v == victimPlugin {
		return max(m.whole-m.beforePlugin, 0)
	}
	return m.whole
}

func (m measure) String() string {
	return fmt.Sprintf("%s (%s until its plugin lives), %d calls that change files", m.whole.Round(time.Millisecond),
		m.beforePlugin.Round(time.Millisecond), m.calls)
}
