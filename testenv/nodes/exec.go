package nodes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"testing"
)

// Result is the result of a command in a node. ExitCode is 128+n after signal n, 127 when there is no such program.
type Result struct {
	Stdout   string
	Stderr   string
	ExitCode int
}

// failure is nil for exit status 0.
func (r Result) failure() error {
	if r.ExitCode == 0 {
		return nil
	}
	return fmt.Errorf("exit status %d, stderr: %s", r.ExitCode, lastLines(r.Stderr, 20))
}

// Exec runs a command in the node as root, in all its namespaces, in a control group of its own inside the node's,
// with a constructed environment, empty stdin and / as working directory. There is no shell: argv[0] is looked up in
// the node's PATH. A non-zero exit is a Result; the error says that the command could not be run or did not finish.
// When ctx ends, the command and all its children are killed. A child that the command leaves behind keeps running in
// the node, but must not keep stdout or stderr open. A command that still runs when the node shuts down delays that by
// 10 s: it is no child of the node's init, which therefore does not notice that it ends.
func (n *Node) Exec(ctx context.Context, argv ...string) (Result, error) {
	return n.ExecInput(ctx, nil, argv...)
}

// ExecInput is Exec with stdin.
func (n *Node) ExecInput(ctx context.Context, stdin io.Reader, argv ...string) (Result, error) {
	if len(argv) == 0 {
		return Result{}, errors.New("no command given")
	}
	var stdout, stderr bytes.Buffer
	code, err := n.machine.exec(ctx, command{argv: argv, stdin: stdin, stdout: &stdout, stderr: &stderr})
	r := Result{Stdout: stdout.String(), Stderr: stderr.String(), ExitCode: code}
	if err != nil {
		return r, fmt.Errorf("%s in node %s: %w", argv[0], n.inst.name, err)
	}
	return r, nil
}

// MustExec is Exec for a command that has to succeed; it ends the test otherwise, showing both outputs.
func (n *Node) MustExec(t testing.TB, argv ...string) Result {
	t.Helper()
	r, err := n.Exec(t.Context(), argv...)
	if err != nil {
		t.Fatalf("%v\nstderr: %s", err, r.Stderr)
	}
	if r.ExitCode != 0 {
		t.Fatalf("%q in node %s: exit status %d\nstdout: %s\nstderr: %s", argv, n.inst.name, r.ExitCode, r.Stdout, r.Stderr)
	}
	return r
}

// receive writes beside and renames, so that a program that is running can be replaced.
const receive = `set -eu
umask 022
mkdir -p -- "$(dirname -- "$1")"
new="$1.incoming-$$"
trap 'rm -f -- "$new"' EXIT
(umask 077 && cat >"$new")
chmod -- "$2" "$new"
mv -T -- "$new" "$1"
trap - EXIT`

// CopyIn copies a file of the host into the node, owned by root, atomically. Missing parent directories are made 0755.
func (n *Node) CopyIn(ctx context.Context, hostPath, nodePath string, mode fs.FileMode) (err error) {
	f, err := os.Open(hostPath)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r, err := n.ExecInput(ctx, f, "sh", "-c", receive, "sh", nodePath, fmt.Sprintf("%04o", octal(mode)))
	if err == nil {
		err = r.failure()
	}
	if err != nil {
		return fmt.Errorf("copy %s to %s: %w", hostPath, nodePath, err)
	}
	return nil
}

// octal turns Go's mode bits into chmod(1)'s.
func octal(mode fs.FileMode) uint32 {
	bits := uint32(mode.Perm())
	for flag, bit := range map[fs.FileMode]uint32{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if mode&flag != 0 {
			bits |= bit
		}
	}
	return bits
}

// CopyOut returns the contents of a file in the node. A file that does not exist is fs.ErrNotExist.
func (n *Node) CopyOut(ctx context.Context, nodePath string) ([]byte, error) {
	r, err := n.Exec(ctx, "sh", "-c", `test -e "$1" || exit 66; cat -- "$1"`, "sh", nodePath)
	switch {
	case err != nil:
		return nil, err
	case r.ExitCode == 66:
		return nil, &fs.PathError{Op: "copy out", Path: nodePath, Err: fs.ErrNotExist}
	case r.ExitCode != 0:
		return nil, fmt.Errorf("copy out %s: %w", nodePath, r.failure())
	}
	return []byte(r.Stdout), nil
}
