package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
)

const (
	// liveDir is where the stand-ins and what they record are on the machine of a plugin. It is not compared.
	liveDir = "run/conformance"
	// groupsDir is where the machine has the control groups of a case that has any. What processes are in them is not compared.
	groupsDir = "sys/fs/cgroup"
	// enterMachine is run by sh in new namespaces. The machine has the files of the case in /etc, /run, /var and /sys/fs/cgroup, and the stand-ins in
	// its first directory of commands. The rest is that of this machine and read-only, except the directory of temporary files. Its / is
	// new, because in the namespace of an ordinary user that of this machine belongs to another user, who could exchange /etc.
	enterMachine = `set -e
machine=$1/machine
mkdir -p "$machine"
mount -t tmpfs -o mode=755 machine "$machine"
for entry in /*; do
	if [ -L "$entry" ]; then
		cp -P "$entry" "$machine/"
	elif [ -d "$entry" ]; then
		mkdir "$machine$entry"
		case $entry in
		/etc | /run | /var) mount --bind "$1/root$entry" "$machine$entry" ;;
		*) mount --rbind "$entry" "$machine$entry" && mount -o bind,remount,ro "$machine$entry" 2>/dev/null || : ;;
		esac
	fi
done
[ ! -d "$1/root/sys/fs/cgroup" ] || mount --bind "$1/root/sys/fs/cgroup" "$machine/sys/fs/cgroup"
mount --bind "$2" "$machine$2"
mount --bind "$1/shims" "$machine/usr/local/sbin"
mount -o bind,remount,ro "$machine"
exec unshare --root="$machine" "$3"`
	// shim is in the place of each command. It records the call and runs the stand-in. At the call whose number says so it kills the plugin before
	// or after that, or fails in its place.
	shim = `#!/bin/sh
d=/run/conformance
echo "${0##*/} $*" >>$d/calls
read -r number when 2>/dev/null <$d/kill || number=0
[ $(($(wc -l <$d/calls))) = "$number" ] || exec "$d/commands/${0##*/}" "$@"
if [ "$when" = fails ]; then
	echo "${0##*/} fails, as the kit has it" >&2
	exit 1
fi
[ "$when" = before ] || "$d/commands/${0##*/}" "$@"
kill -KILL "$(cat $d/plugin)"
`
	mostCalls = 24
	// fails is the moment of a call that does not run its stand-in.
	fails = "fails"
)

// namespaces are the arguments of unshare(1). A user namespace keeps even root away from the kernel of this machine.
func namespaces() []string {
	return []string{"unshare", "--user", "--map-root-user", "--mount", "--net", "--uts", "--ipc"}
}

// live applies on a machine of the case's files and its stand-ins of commands, again with a SIGKILL at each command, and again with each command
// that fails.
func live(ctx context.Context, f *fixture) (result, error) {
	if reason := f.notLive(ctx); reason != "" {
		return skipped("%s", reason), nil
	}
	p, err := f.startLive(ctx, "")
	if err != nil {
		return result{}, err
	}
	run := p.apply(ctx, f.applyingLive(), 0, nil)
	wrong := finding{
		clause: "G-20", expected: "Apply succeeds on a machine of the case's files and commands, and leaves no process",
		cause: "a stand-in in commands/ that answers otherwise than the command, or a process that is started and not waited for",
	}
	if err := run.failure(); err != nil {
		wrong.got = fmt.Sprintf("on a live machine, Apply fails: %s", explained(err))
		return failed(wrong), nil
	}
	if left := left(p.PID()); left.count() > 0 {
		left.kill()
		wrong.got = fmt.Sprintf("on a live machine, Apply leaves processes: %d", left.count())
		return failed(wrong), nil
	}
	want, err := readTree(f.root, liveDir, groupsDir)
	if err != nil {
		return result{}, err
	}
	calls, err := os.ReadFile(filepath.Join(f.root, liveDir, "calls"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return result{}, err
	}
	lines := strings.Split(strings.TrimSpace(string(calls)), "\n")
	for number := 1; number <= min(len(lines), mostCalls); number++ {
		command := strconv.Quote(lines[number-1])
		for _, when := range []string{"before", "after", fails} {
			got, err := f.runner.another(func(f *fixture) (result, error) {
				if when == fails {
					return f.failedAt(ctx, want, number, command)
				}
				return f.killedAt(ctx, want, strconv.Itoa(number)+" "+when, "SIGKILL "+when+" the command "+command)
			})
			if got.status != Pass || err != nil {
				return got, err
			}
		}
	}
	return passed(), nil
}

// left returns the processes that a plugin has left on its machine, those that are about to end excepted.
func left(pid int) relatives {
	out := inMachineOf(pid)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Second); out.count() > 0 && time.Now().Before(end); out = inMachineOf(pid) {
		<-tick.C
	}
	return out
}

// failedAt lets a call fail: Apply undoes what the failure makes useless and says what failed, or does without the command, and another Apply makes
// the machine. Which files a plugin undoes is up to it: what they are for is not known here.
func (f *fixture) failedAt(ctx context.Context, want tree, number int, command string) (result, error) {
	p, err := f.startLive(ctx, strconv.Itoa(number)+" "+fails)
	if err != nil {
		return result{}, err
	}
	failure := p.apply(ctx, f.applyingLive(), 0, nil).failure()
	if left := left(p.PID()); left.count() > 0 {
		left.kill()
		return failed(finding{
			clause: "G-20", expected: "no process stays when Apply has ended", got: fmt.Sprintf("when the command %s fails, Apply leaves processes: %d", command, left.count()),
			cause: "a process that is waited for only where all goes well",
		}), nil
	}
	if e := contractError(failure); failure != nil && (e == nil || e.Code == pluginv1.CodeInternal) {
		return failed(finding{
			clause: "E-1", expected: "Precondition or Retry, with what the command said in detail",
			got:   fmt.Sprintf("when the command %s fails, Apply answers %q", command, failure),
			cause: "an exception that no handler turns into an error of the contract",
		}), nil
	}
	if failure == nil {
		if d, err := f.otherMachine(want); err != nil || d != "" {
			return failed(finding{
				clause: "G-5", expected: "an error, because a change did not take effect",
				got:   fmt.Sprintf("the command %s fails, Apply succeeds, and the machine is another one than without the failure:%s", command, d),
				cause: "the exit code of the command is not looked at",
			}), err
		}
	}
	return f.applyAgain(ctx, want, "the failure of the command "+command)
}

// killedAt kills the plugin at a call and applies once more.
func (f *fixture) killedAt(ctx context.Context, want tree, kill, at string) (result, error) {
	p, err := f.startLive(ctx, kill)
	if err != nil {
		return result{}, err
	}
	p.apply(ctx, f.applyingLive(), 0, nil) // it fails, because its process is killed
	return f.applyAgain(ctx, want, at)
}

// otherMachine returns how the machine differs from that of an undisturbed Apply, or "".
func (f *fixture) otherMachine(want tree) (string, error) {
	got, err := readTree(f.root, liveDir, groupsDir)
	if d := differences(want, got, aspects{modes: true, owners: true}); err == nil && len(d) > 0 {
		return list(d), nil
	}
	return "", err
}

// applyAgain applies once more, by another process and without a disturbance.
func (f *fixture) applyAgain(ctx context.Context, want tree, after string) (result, error) {
	if err := os.Remove(filepath.Join(f.root, liveDir, "kill")); err != nil {
		return result{}, err
	}
	again, err := f.startLive(ctx, "")
	if err != nil {
		return result{}, err
	}
	wrong := finding{
		clause: "G-22", expected: "the machine of an undisturbed Apply: what was due is done",
		cause: "that a restart is due shows only in the Apply that writes the file; keep an intent in the state directory until it is " +
			"done, or compare what the service has read",
	}
	if err := again.apply(ctx, f.applyingLive(), 0, nil).failure(); err != nil {
		wrong.got = fmt.Sprintf("after %s, the next Apply fails: %s", after, explained(err))
		return failed(wrong), nil
	}
	if d, err := f.otherMachine(want); err != nil || d != "" {
		wrong.got = fmt.Sprintf("after %s and another Apply, the machine is another one:%s", after, d)
		return failed(wrong), err
	}
	return passed(), nil
}

// notLive returns why the case cannot be applied live here, or "".
func (f *fixture) notLive(ctx context.Context) string {
	r := f.runner
	if _, err := os.Stat(filepath.Join(r.c.dir, commandsDir)); err != nil || r.c.refused() {
		return "the case has no stand-ins of commands in commands/, or its document is refused"
	}
	for _, dir := range []string{"/etc", "/run", "/var"} {
		if strings.HasPrefix(r.dir, dir+"/") || strings.HasPrefix(r.binary, dir+"/") {
			return "the plugin or the directory of temporary files is below " + dir + ", where the files of the case are"
		}
	}
	argv := append(namespaces(), "--root=/", "true")
	if out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput(); err != nil {
		return fmt.Sprintf("unshare(1) makes no namespaces here, so that no restart that is due, and no process that is left, is seen: %v %s", err, bytes.TrimSpace(out))
	}
	return ""
}

// startLive starts the plugin on the machine of the fixture.
func (f *fixture) startLive(ctx context.Context, kill string) (*plugin, error) {
	d := filepath.Join(f.root, liveDir)
	shims := filepath.Join(f.dir, "shims")
	for _, dir := range []string{shims, d, filepath.Join(f.root, "etc"), filepath.Join(f.root, "var")} {
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // the usual mode
			return nil, err
		}
	}
	if err := copyTree(filepath.Join(f.runner.c.dir, commandsDir), filepath.Join(d, commandsDir), true, asIs); err != nil {
		return nil, err
	}
	names, err := os.ReadDir(filepath.Join(d, commandsDir))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := write(filepath.Join(shims, name.Name()), []byte(shim), 0o755); err != nil {
			return nil, err
		}
	}
	if kill != "" {
		if err := write(filepath.Join(d, "kill"), []byte(kill+"\n"), 0o644); err != nil {
			return nil, err
		}
	}
	p, err := f.runner.startAs(ctx, usualUmask, append(namespaces(), "sh", "-c", enterMachine, "sh", f.dir, os.TempDir(), f.runner.binary))
	if err != nil {
		return nil, err
	}
	p.shared = false
	if _, err := f.use(p, nil); err != nil {
		return nil, err
	}
	return p, write(filepath.Join(d, "plugin"), []byte(strconv.Itoa(p.PID())), 0o644)
}

// applyingLive is the request for the machine of the fixture.
func (f *fixture) applyingLive() pluginv1.Request {
	r := f.applying()
	r.Root = ""
	if here, err := target.Detect(""); err == nil {
		r.Target.Kernel, r.Target.Hostname = here.Kernel, here.Hostname
	}
	return r
}
