package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/journal"
	"github.com/machineadm/machineadm/host/run"
)

// fact is a row of a table: what it is about, what it means and, where there is something to do, what to do.
type fact struct{ name, meaning, remedy string }

// exits are the exit codes, as the manual page and the reference show them.
func exits() []fact {
	code := strconv.Itoa
	reboots := strconv.Itoa(run.MaxReboots)
	return []fact{
		{code(report.ExitOK), "done, or already so", ""},
		{code(report.ExitFailed), "a document failed", "read `machineadm status`; running again is safe"},
		{code(report.ExitUsage), "bad usage or configuration; nothing was changed", "correct what is named"},
		{
			code(report.ExitReboot), "a reboot is needed",
			"reboot, then run the same command again; with `--reboot`, which `--bootstrap` implies, nothing: the machine reboots, at most " +
				reboots + " times a stream, and the run goes on by itself",
		},
		{code(report.ExitPrecondition), "a precondition, a missing or an unfitting plugin", "do what the hint says"},
		{code(report.ExitLocked), "another run holds the lock", "wait for it"},
		{code(report.ExitUntrusted), "an untrusted plugin, stream or directory", "do what the hint says"},
		{code(report.ExitDeadline), "a deadline has passed, or the tries or the reboots are used up", "run again when the cause is gone"},
		{code(report.ExitInterrupted), "interrupted", "run again"},
		{code(report.ExitState), "state cannot be written", "free the disk, make it writable"},
		{code(report.ExitDiffers), "`plan` or `apply --dry-run` has something to do", ""},
	}
}

// environment is every variable that the program looks at.
func environment() []fact {
	return []fact{
		{"HTTP_PROXY, HTTPS_PROXY, NO_PROXY, http_proxy, https_proxy, no_proxy", "Given on to the plugins, without users and passwords.", ""},
		{"HOME", "Given on to the plugins on Linux; `/root` where it is not set.", ""},
		{"PATH", "With `--plugins-on-path`: its absolute directories are searched for plugins, last. Plugins get a fixed one.", ""},
		{"TMPDIR", "Where temporary directories are made: of `validate`, and of runs with `--root`.", ""},
		{"TERM", "Where it is `dumb`, or not set on Linux, a terminal gets no status line and no colors.", ""},
		{"NO_COLOR", "Anything but an empty value: no colours on a terminal.", ""},
		{
			"SystemRoot, SystemDrive, windir, ProgramData, ProgramFiles, USERPROFILE, TEMP, TMP, PATH",
			"Given on to the plugins, and to what they start, on Windows, where no program works without them.", "",
		},
	}
}

// files are what a run reads and writes on Linux; on Windows the directories are C:\ProgramData\machineadm and its run.
func files() []fact {
	state, at := "/var/lib/machineadm/", "/run/machineadm/"
	rows := []fact{
		{"/etc/machineadm/defaults.yaml", "Which provider serves a kind where a document names none: `KIND: PROVIDER`. The operating system's vendor writes it.", ""},
		{at + journal.ReportFile, "How the last run ended, for everyone to read. `machineadm status` shows it.", ""},
		{at + journal.DetailsFile, "Words of other programs that the report points to, for root alone.", ""},
		{at + "lock", "Held while a run, or anything that it started, is at work.", ""},
		{state, "What must outlive a run, for root alone: the choice of providers, the count of reboots, the memory of plugins.", ""},
		{state + "reports/", "The reports of the last runs, 20 at most.", ""},
		{state + journal.PendingFile, "A run that waits for a reboot, its stream included; `" + journal.RestingFile + "` once it has failed.", ""},
		{"/run/cluster-api/bootstrap-success.complete", "Written last, when a live run of all phases has succeeded: the bootstrap contract of Cluster API.", ""},
	}
	for _, dir := range naming.SearchDirectories("linux") {
		rows = append(rows, fact{dir + "/", "Plugins.", ""})
	}
	return rows
}

// variables are the names of environment, one by one.
func variables() []string {
	var names []string
	for _, f := range environment() {
		names = append(names, strings.Split(f.name, ", ")...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
