package main

import (
	"strconv"

	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/host/state"
	"github.com/machineadm/machineadm/installer/install"
)

// fact is a row of a table: name, meaning and an optional remedy.
type fact struct{ name, meaning, remedy string }

// exits returns the exit codes for the manual page and the reference.
func exits() []fact {
	code := strconv.Itoa
	reboots := strconv.Itoa(run.MaxReboots)
	return []fact{
		{code(report.ExitOK), "done, or nothing to do", ""},
		{code(report.ExitFailed), "a document failed", "read `machineadm status`; running again is safe"},
		{code(report.ExitUsage), "bad usage or configuration; nothing was changed", "correct the reported errors"},
		{
			code(report.ExitReboot), "a reboot is needed",
			"reboot, then run the same command again; not needed with `--reboot`, which `--bootstrap` implies: the machine reboots, at most " +
				reboots + " times a stream, and the run resumes by itself",
		},
		{code(report.ExitPrecondition), "a precondition, a missing or an unsupported plugin, a release that is not there", "follow the hint"},
		{code(report.ExitLocked), "another run holds the lock", "wait for it"},
		{code(report.ExitUntrusted), "an untrusted plugin, stream, directory or release", "follow the hint"},
		{code(report.ExitDeadline), "a deadline has passed, or the retries or reboots are exhausted", "run again after removing the cause"},
		{code(report.ExitInterrupted), "interrupted", "run again"},
		{code(report.ExitState), "state cannot be written", "free disk space, or make the directory writable"},
		{code(report.ExitDiffers), "`plan` or `apply --dry-run` found changes", ""},
	}
}

// environment returns every variable that the program reads.
func environment() []fact {
	return []fact{
		{"HTTP_PROXY, HTTPS_PROXY, NO_PROXY, http_proxy, https_proxy, no_proxy", "Used by `install` and `mirror`. Passed to the plugins, without users and passwords.", ""},
		{"HOME", "Passed to the plugins on Linux; default `/root`.", ""},
		{"PATH", "With `--plugins-on-path`: its absolute directories are searched for plugins, last. Plugins get a fixed PATH.", ""},
		{"TMPDIR", "Directory for the temporary directories of `validate` and of runs with `--root`.", ""},
		{"TERM", "If it is `dumb`, or not set on Linux, the terminal gets no status line and no colors.", ""},
		{"NO_COLOR", "Any value except an empty one disables colors.", ""},
		{
			"SystemRoot, SystemDrive, windir, ProgramData, ProgramFiles, USERPROFILE, TEMP, TMP, PATH",
			"Passed to the plugins and their commands on Windows, where programs require them.", "",
		},
	}
}

// files returns the files of a run on Linux.
func files() []fact {
	stateDir, at := "/var/lib/machineadm/", "/run/machineadm/"
	rows := []fact{
		{"/etc/machineadm/defaults.yaml", "The default provider of a kind, as `KIND: PROVIDER`, written by the operating system's vendor.", ""},
		{"/etc/machineadm/endpoints.yaml", "The endpoints that may receive the credentials of an instance's role, as `PROVIDER: https://HOST:PORT`. Without it: hosts of AWS alone.", ""},
		{install.TrustedKeys() + "/*.pub", "The minisign public keys that `install` and `mirror` trust if `--key` is not given.", ""},
		{install.DefaultDirectory + "/", "The releases of `install`: `current` is a link to the one in use, `sequence` the highest sequence of all, and its release.", ""},
		{at + state.ReportFile, "The report of the last run, readable by everyone. `machineadm status` shows it.", ""},
		{at + state.DetailsFile, "Output of other programs, which the report refers to, readable by root only.", ""},
		{at + "lock", "Locked while a run, or a process that it started, is active.", ""},
		{stateDir, "State that outlives a run, readable by root only: the choices of providers, the number of reboots, the state of plugins.", ""},
		{stateDir + "reports/", "The last 20 reports.", ""},
		{stateDir + state.PendingFile, "A run that waits for a reboot, with its stream; after a failure `" + state.RestingFile + "`.", ""},
		{stateDir + state.OutboxFile, "A report that is not delivered yet, with its destination; at most 24 hours.", ""},
		{"/run/cluster-api/bootstrap-success.complete", "Written last, when a live run of all phases has succeeded: the bootstrap contract of Cluster API.", ""},
	}
	for _, dir := range naming.SearchDirectories("linux") {
		rows = append(rows, fact{dir + "/", "Plugins.", ""})
	}
	return rows
}
