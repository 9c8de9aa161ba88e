package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/windows"

	"github.com/machineadm/machineadm/internal/proctree"
)

func commandDirectories() []string {
	system, err := windows.GetSystemDirectory()
	if err != nil {
		return nil
	}
	return []string{
		system, filepath.Dir(system), filepath.Join(system, "Wbem"), filepath.Join(system, "WindowsPowerShell", "v1.0"),
	}
}

func programSuffixes() []string { return []string{".exe", ""} }

func isProgram(info fs.FileInfo) bool { return filepath.Ext(info.Name()) == ".exe" }

// baseEnvironment has the variables that Windows programs need to start.
func baseEnvironment() []string {
	var environment []string
	for _, name := range []string{"TEMP", "TMP", "USERPROFILE", "ProgramData", "ProgramFiles"} {
		if value, ok := os.LookupEnv(name); ok {
			environment = append(environment, name+"="+value)
		}
	}
	if system, err := windows.GetSystemWindowsDirectory(); err == nil {
		environment = append(environment, "SystemRoot="+system, "windir="+system,
			"SystemDrive="+filepath.VolumeName(system))
	}
	return environment
}

func workingDirectory(program string) string { return filepath.Dir(program) }

// killed is the exit code of a process that its job object ended: STATUS_CONTROL_C_EXIT, which programs do not return.
const killed = 0xC000013A

func signalOf(*os.ProcessState) string { return "" }

func wasKilled(state *os.ProcessState) bool { return uint32(state.ExitCode()) == killed }

// runGroup runs the command in a job object until ctx ends. All processes of the job end with its last handle, at the
// latest when this process dies. The command has a console of its own and cannot be ended gracefully.
func runGroup(ctx context.Context, cmd *exec.Cmd, _ time.Duration, _ bool) (terminated bool, err error) {
	job, err := proctree.NewJob()
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, windows.CloseHandle(job)) }()
	kill := func() error { return windows.TerminateJobObject(job, killed) }
	// Suspended, so that it starts no child before it is in the job.
	cmd.SysProcAttr = &syscall.SysProcAttr{
		CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_NO_WINDOW,
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	process, err := adopt(job, cmd.Process.Pid)
	if err != nil {
		return false, errors.Join(fmt.Errorf("assign the process to a job object: %w", err), cmd.Process.Kill(), cmd.Wait())
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { defer close(ended); _ = kill() }) // it may have ended
	// The process first, so that its children are killed before the wait for the pipes.
	_, err = windows.WaitForSingleObject(process, windows.INFINITE)
	if !stop() {
		<-ended
	}
	return false, errors.Join(err, kill(), cmd.Wait(), windows.CloseHandle(process))
}

// adopt assigns a suspended process to the job and resumes it. The returned handle can be waited for.
func adopt(job windows.Handle, pid int) (_ windows.Handle, err error) {
	const rights = windows.PROCESS_SET_QUOTA | windows.PROCESS_TERMINATE | windows.PROCESS_SUSPEND_RESUME | windows.SYNCHRONIZE
	process, err := windows.OpenProcess(rights, false, uint32(pid))
	if err != nil {
		return 0, err
	}
	if err := windows.AssignProcessToJobObject(job, process); err != nil {
		return 0, errors.Join(err, windows.CloseHandle(process))
	}
	resume := windows.NewLazySystemDLL("ntdll.dll").NewProc("NtResumeProcess")
	if err := resume.Find(); err != nil {
		return 0, errors.Join(err, windows.CloseHandle(process))
	}
	if status, _, _ := resume.Call(uintptr(process)); status != 0 {
		return 0, errors.Join(windows.NTStatus(status), windows.CloseHandle(process))
	}
	return process, nil
}
