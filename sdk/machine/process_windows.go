package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
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

// baseEnvironment has what Windows programs cannot start without.
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

// terminated is the exit code of a process that its job ended: STATUS_CONTROL_C_EXIT, which no program returns itself.
const terminated = 0xC000013A

func signalOf(*os.ProcessState) string { return "" }

func wasKilled(state *os.ProcessState) bool { return uint32(state.ExitCode()) == terminated }

// runGroup runs the command inside a job object. Whatever is in it ends with the job, and the job ends with the last
// handle to it: at the latest when this process dies. It has a console of its own, by which it cannot be asked to end.
func runGroup(cmd *exec.Cmd, _ *ending) (err error) {
	job, err := newJob()
	if err != nil {
		return fmt.Errorf("make a job object: %w", err)
	}
	defer func() { err = errors.Join(err, windows.CloseHandle(job)) }()
	// Suspended, so that it starts nothing before it is in the job.
	cmd.SysProcAttr = &syscall.SysProcAttr{
		CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_NO_WINDOW,
	}
	cmd.Cancel = func() error { return windows.TerminateJobObject(job, terminated) }
	if err := cmd.Start(); err != nil {
		return err
	}
	process, err := adopt(job, cmd.Process.Pid)
	if err != nil {
		return errors.Join(fmt.Errorf("put it into a job object: %w", err), cmd.Process.Kill(), cmd.Wait())
	}
	defer func() { err = errors.Join(err, windows.CloseHandle(process)) }()
	// Waiting for the process first lets what it left behind be ended before the pipes are waited for.
	if _, err := windows.WaitForSingleObject(process, windows.INFINITE); err != nil {
		return errors.Join(err, windows.TerminateJobObject(job, terminated), cmd.Wait())
	}
	return errors.Join(windows.TerminateJobObject(job, terminated), cmd.Wait())
}

func newJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, err
	}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err != nil {
		return 0, errors.Join(err, windows.CloseHandle(job))
	}
	return job, nil
}

// adopt puts a suspended process into the job and lets it go. The handle it returns can be waited for.
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
