package changes

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

	"github.com/machineadm/machineadm/contract/conformance/internal/process"
	"github.com/machineadm/machineadm/contract/conformance/internal/rig"
	"github.com/machineadm/machineadm/contract/conformance/internal/testcase"
	"github.com/machineadm/machineadm/contract/conformance/internal/trees"
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

// Live applies on a machine of the case's files and its stand-ins of commands, again with a SIGKILL at each command, and again with each command
// that fails.
func Live(ctx context.Context, f *rig.Fixture) (rig.Result, error) {
	if reason := notLive(ctx, f); reason != "" {
		return rig.Skipped("%s", reason), nil
	}
	p, err := startLive(ctx, f, "")
	if err != nil {
		return rig.Result{}, err
	}
	run := p.CallApply(ctx, applyingLive(f), 0, nil)
	wrong := rig.Finding{
		Clause: "G-20", Expected: "Apply succeeds on a machine of the case's files and commands, and leaves no process",
		Cause: "a stand-in in commands/ that answers otherwise than the command, or a process that is started and not waited for",
	}
	if err := run.Failure(); err != nil {
		wrong.Got = fmt.Sprintf("on a live machine, Apply fails: %s", process.Explained(err))
		return rig.Failed(wrong), nil
	}
	if left := left(p.PID()); left.Count() > 0 {
		left.Kill()
		wrong.Got = fmt.Sprintf("on a live machine, Apply leaves processes: %d", left.Count())
		return rig.Failed(wrong), nil
	}
	want, err := trees.ReadTree(f.Root, liveDir, groupsDir)
	if err != nil {
		return rig.Result{}, err
	}
	calls, err := os.ReadFile(filepath.Join(f.Root, liveDir, "calls"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return rig.Result{}, err
	}
	lines := strings.Split(strings.TrimSpace(string(calls)), "\n")
	for number := 1; number <= min(len(lines), mostCalls); number++ {
		command := strconv.Quote(lines[number-1])
		for _, when := range []string{"before", "after", fails} {
			got, err := f.Runner.Another(func(f *rig.Fixture) (rig.Result, error) {
				if when == fails {
					return failedAt(ctx, f, want, number, command)
				}
				return killedAt(ctx, f, want, strconv.Itoa(number)+" "+when, "SIGKILL "+when+" the command "+command)
			})
			if got.Status != rig.Pass || err != nil {
				return got, err
			}
		}
	}
	return rig.Passed(), nil
}

// left returns the processes that a plugin has left on its machine, those that are about to end excepted.
func left(pid int) process.Relatives {
	out := process.InMachineOf(pid)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Second); out.Count() > 0 && time.Now().Before(end); out = process.InMachineOf(pid) {
		<-tick.C
	}
	return out
}

// failedAt lets a call fail: Apply undoes what the failure makes useless and says what failed, or does without the command, and another Apply makes
// the machine. Which files a plugin undoes is up to it: what they are for is not known here.
func failedAt(ctx context.Context, f *rig.Fixture, want trees.Tree, number int, command string) (rig.Result, error) {
	p, err := startLive(ctx, f, strconv.Itoa(number)+" "+fails)
	if err != nil {
		return rig.Result{}, err
	}
	failure := p.CallApply(ctx, applyingLive(f), 0, nil).Failure()
	if left := left(p.PID()); left.Count() > 0 {
		left.Kill()
		return rig.Failed(rig.Finding{
			Clause: "G-20", Expected: "no process stays when Apply has ended", Got: fmt.Sprintf("when the command %s fails, Apply leaves processes: %d", command, left.Count()),
			Cause: "a process that is waited for only where all goes well",
		}), nil
	}
	if e := process.ContractError(failure); failure != nil && (e == nil || e.Code == pluginv1.CodeInternal) {
		return rig.Failed(rig.Finding{
			Clause: "E-1", Expected: "Precondition or Retry, with what the command said in detail",
			Got:   fmt.Sprintf("when the command %s fails, Apply answers %q", command, failure),
			Cause: "an exception that no handler turns into an error of the contract",
		}), nil
	}
	if failure == nil {
		if d, err := otherMachine(f, want); err != nil || d != "" {
			return rig.Failed(rig.Finding{
				Clause: "G-5", Expected: "an error, because a change did not take effect",
				Got:   fmt.Sprintf("the command %s fails, Apply succeeds, and the machine is another one than without the failure:%s", command, d),
				Cause: "the exit code of the command is not looked at",
			}), err
		}
	}
	return applyAgain(ctx, f, want, "the failure of the command "+command)
}

// killedAt kills the plugin at a call and applies once more.
func killedAt(ctx context.Context, f *rig.Fixture, want trees.Tree, kill, at string) (rig.Result, error) {
	p, err := startLive(ctx, f, kill)
	if err != nil {
		return rig.Result{}, err
	}
	p.CallApply(ctx, applyingLive(f), 0, nil) // it fails, because its process is killed
	return applyAgain(ctx, f, want, at)
}

// otherMachine returns how the machine differs from that of an undisturbed Apply, or "".
func otherMachine(f *rig.Fixture, want trees.Tree) (string, error) {
	got, err := trees.ReadTree(f.Root, liveDir, groupsDir)
	if d := trees.Differences(want, got, trees.Aspects{Modes: true, Owners: true}); err == nil && len(d) > 0 {
		return trees.List(d), nil
	}
	return "", err
}

// applyAgain applies once more, by another process and without a disturbance.
func applyAgain(ctx context.Context, f *rig.Fixture, want trees.Tree, after string) (rig.Result, error) {
	if err := os.Remove(filepath.Join(f.Root, liveDir, "kill")); err != nil {
		return rig.Result{}, err
	}
	again, err := startLive(ctx, f, "")
	if err != nil {
		return rig.Result{}, err
	}
	wrong := rig.Finding{
		Clause: "G-22", Expected: "the machine of an undisturbed Apply: what was due is done",
		Cause: "that a restart is due shows only in the Apply that writes the file; keep an intent in the state directory until it is " +
			"done, or compare what the service has read",
	}
	if err := again.CallApply(ctx, applyingLive(f), 0, nil).Failure(); err != nil {
		wrong.Got = fmt.Sprintf("after %s, the next Apply fails: %s", after, process.Explained(err))
		return rig.Failed(wrong), nil
	}
	if d, err := otherMachine(f, want); err != nil || d != "" {
		wrong.Got = fmt.Sprintf("after %s and another Apply, the machine is another one:%s", after, d)
		return rig.Failed(wrong), err
	}
	return rig.Passed(), nil
}

// notLive returns why the case cannot be applied live here, or "".
func notLive(ctx context.Context, f *rig.Fixture) string {
	r := f.Runner
	if _, err := os.Stat(filepath.Join(r.Case.Dir, testcase.CommandsDir)); err != nil || r.Case.Refused() {
		return "the case has no stand-ins of commands in commands/, or its document is refused"
	}
	for _, dir := range []string{"/etc", "/run", "/var"} {
		if strings.HasPrefix(r.Dir, dir+"/") || strings.HasPrefix(r.Binary, dir+"/") {
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
func startLive(ctx context.Context, f *rig.Fixture, kill string) (*process.Plugin, error) {
	d := filepath.Join(f.Root, liveDir)
	shims := filepath.Join(f.Dir, "shims")
	for _, dir := range []string{shims, d, filepath.Join(f.Root, "etc"), filepath.Join(f.Root, "var")} {
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // the usual mode
			return nil, err
		}
	}
	if err := trees.CopyTree(filepath.Join(f.Runner.Case.Dir, testcase.CommandsDir), filepath.Join(d, testcase.CommandsDir), true, trees.AsIs); err != nil {
		return nil, err
	}
	names, err := os.ReadDir(filepath.Join(d, testcase.CommandsDir))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := trees.Write(filepath.Join(shims, name.Name()), []byte(shim), 0o755); err != nil {
			return nil, err
		}
	}
	if kill != "" {
		if err := trees.Write(filepath.Join(d, "kill"), []byte(kill+"\n"), 0o644); err != nil {
			return nil, err
		}
	}
	p, err := f.Runner.StartAs(ctx, process.UsualUmask, append(namespaces(), "sh", "-c", enterMachine, "sh", f.Dir, os.TempDir(), f.Runner.Binary))
	if err != nil {
		return nil, err
	}
	p.Shared = false
	if _, err := f.Use(p, nil); err != nil {
		return nil, err
	}
	return p, trees.Write(filepath.Join(d, "plugin"), []byte(strconv.Itoa(p.PID())), 0o644)
}

// applyingLive is the request for the machine of the fixture.
func applyingLive(f *rig.Fixture) pluginv1.Request {
	r := f.Applying()
	r.Root = ""
	if here, err := target.Detect(""); err == nil {
		r.Target.Kernel, r.Target.Hostname = here.Kernel, here.Hostname
	}
	return r
}
