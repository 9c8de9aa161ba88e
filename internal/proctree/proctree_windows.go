package proctree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Tree is this process with all its descendants.
type Tree struct{ job windows.Handle }

// Contain puts this process into a job object that kills its members when the last handle to it is closed, which is
// when this process ends, in whatever way. Children are members from birth. A program that wraps commands calls it
// once, before the first. The handle is never closed: closing it would kill this process.
func Contain() (*Tree, error) {
	job, err := NewJob()
	if err != nil {
		return nil, fmt.Errorf("proctree: %w", err)
	}
	if err := windows.AssignProcessToJobObject(job, windows.CurrentProcess()); err != nil {
		return nil, errors.Join(fmt.Errorf("proctree: enter the job object: %w", err), windows.CloseHandle(job))
	}
	return &Tree{job: job}, nil
}

// NewJob creates a job object that kills its members when its last handle is closed.
func NewJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, fmt.Errorf("create a job object: %w", err)
	}
	limits := &windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{
			LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
		},
	}
	var pin runtime.Pinner // the call takes a number, which keeps nothing in its place
	defer pin.Unpin()
	pin.Pin(limits)
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(limits)), uint32(unsafe.Sizeof(*limits)))
	if err != nil {
		return 0, errors.Join(fmt.Errorf("limit the job object: %w", err), windows.CloseHandle(job))
	}
	return job, nil
}

// KillOrphans has nothing to do on Windows: a job object does not distinguish orphans from others. KillDescendants ends them.
func (*Tree) KillOrphans(context.Context) ([]Killed, error) { return nil, nil }

// KillDescendants kills every other member of the job and returns when none is left. When ctx ends first, the error
// names the processes that are left.
func (t *Tree) KillDescendants(ctx context.Context) error {
	const firstWait, lastWait = time.Millisecond, 50 * time.Millisecond
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		members, err := t.members()
		if err != nil {
			return err
		}
		if len(members) == 0 {
			return nil
		}
		var failures []error
		for _, pid := range members {
			failures = append(failures, t.kill(pid))
		}
		if ctx.Err() != nil {
			return errors.Join(append(failures, fmt.Errorf("proctree: processes %d are still alive: %w", members, ctx.Err()))...)
		}
		time.Sleep(wait)
	}
}

// members lists the living processes of the job without this one.
func (t *Tree) members() ([]uint32, error) {
	// JOBOBJECT_BASIC_PROCESS_ID_LIST with room for more processes than a machine prepares itself with; a longer list
	// comes in rounds, as the first are killed.
	type processList struct {
		assigned, listed uint32
		pids             [4096]uintptr
	}
	list := &processList{}
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(list)
	err := windows.QueryInformationJobObject(t.job, windows.JobObjectBasicProcessIdList,
		uintptr(unsafe.Pointer(list)), uint32(unsafe.Sizeof(*list)), nil)
	if err != nil && !errors.Is(err, windows.ERROR_MORE_DATA) {
		return nil, fmt.Errorf("proctree: list the job object: %w", err)
	}
	var members []uint32
	for _, pid := range list.pids[:list.listed] {
		if pid := uint32(pid); pid != windows.GetCurrentProcessId() {
			members = append(members, pid)
		}
	}
	return members, nil
}

// kill ends pid if it still is a member of the job: its number may have been given away meanwhile.
func (t *Tree) kill(pid uint32) error {
	handle, err := windows.OpenProcess(windows.PROCESS_TERMINATE|windows.PROCESS_QUERY_LIMITED_INFORMATION, false, pid)
	if errors.Is(err, windows.ERROR_INVALID_PARAMETER) {
		return nil // it is gone
	}
	if err != nil {
		return fmt.Errorf("proctree: open process %d: %w", pid, err)
	}
	member, err := isMember(handle, t.job)
	if err == nil && member {
		err = windows.TerminateProcess(handle, 1)
	}
	return errors.Join(err, windows.CloseHandle(handle))
}

func isMember(process, job windows.Handle) (bool, error) {
	var result int32
	isProcessInJob := windows.NewLazySystemDLL("kernel32.dll").NewProc("IsProcessInJob")
	ok, _, err := isProcessInJob.Call(uintptr(process), uintptr(job), uintptr(unsafe.Pointer(&result)))
	if ok == 0 {
		return false, fmt.Errorf("proctree: IsProcessInJob: %w", err)
	}
	return result != 0, nil
}

// Process is a program that was started.
type Process struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// Start starts a program, which is in the job from birth. Ctrl-C on the console does not reach it.
func (*Tree) Start(_ context.Context, c Command) (*Process, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	p := &Process{ended: make(chan struct{}), cmd: &exec.Cmd{
		Path: c.Path, Args: append([]string{c.Path}, c.Arguments...), Env: c.Environment, Dir: c.Dir,
		SysProcAttr: &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP},
	}}
	if p.cmd.Env == nil {
		p.cmd.Env = []string{} // nil would mean this process's own
	}
	// Not without asking: a nil file in an interface is not a nil interface.
	if c.Stdin != nil {
		p.cmd.Stdin = c.Stdin
	}
	if c.Stdout != nil {
		p.cmd.Stdout = c.Stdout
	}
	if c.Stderr != nil {
		p.cmd.Stderr = c.Stderr
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // its status is in ProcessState
	}()
	return p, nil
}

// PID is the process ID of the program.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Wait returns when the program is gone, with its exit status. It may be called at any time and more than once.
func (p *Process) Wait() (status int, err error) {
	<-p.ended
	if p.cmd.ProcessState == nil {
		return 0, errors.New("proctree: the exit status is not available")
	}
	return p.cmd.ProcessState.ExitCode(), nil
}

// Kill kills the program. Its descendants end with this process, or by Tree.KillDescendants.
func (p *Process) Kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// NoCoreDumps keeps Windows Error Reporting from writing the memory of this process, where secrets are, and its
// dialog from holding up a machine that is unattended.
func NoCoreDumps() error {
	const flags = windows.SEM_FAILCRITICALERRORS | windows.SEM_NOGPFAULTERRORBOX
	windows.SetErrorMode(windows.SetErrorMode(flags) | flags)
	return nil
}

// DieWithParent has nothing to do on Windows: the job object of the host kills its members.
func DieWithParent() error { return nil }
