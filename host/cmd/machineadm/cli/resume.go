package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/journal"
	"github.com/machineadm/machineadm/host/resume"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/internal/trust"
)

// checkResume judges the flags beside --resume: what they would say was kept with the stream.
func (o *applyFlags) checkResume() error {
	switch {
	case !o.resume:
		return nil
	case o.path != "":
		return usage("--resume goes on with the stream that was kept over the reboot: leave --path out")
	case o.root != "":
		return usage("--resume is for the live machine, and --root prepares an image: leave one out")
	case o.dryRun:
		return usage("--resume goes on with a run, and --dry-run changes nothing: leave one out")
	case o.phase != "all":
		return usage("--resume goes on with the phase that was kept with the stream: leave --phase out")
	}
	return nil
}

// recall makes the flags those of the run that waits for a reboot, except where the command line says otherwise, and
// returns its stream: nothing when no run waits.
func (g *globals) recall(where *place, o *applyFlags) ([]byte, error) {
	kept, err := where.journal.Pending()
	if err != nil || kept == nil {
		return nil, err
	}
	o.path, o.phase, o.reboot = kept.File, kept.Phase, true
	if g.timeout == run.RunTimeout {
		g.timeout = kept.Timeout
	}
	if len(g.pluginDirs) == 0 {
		g.pluginDirs = kept.PluginDirs
	}
	g.pluginsOnPath = g.pluginsOnPath || kept.PluginPath != ""
	g.kept = kept
	return kept.Stream, nil
}

// searchPath is where plugins are looked for with --plugins-on-path.
func (g *globals) searchPath() string {
	if g.kept != nil && g.kept.PluginPath != "" {
		return g.kept.PluginPath
	}
	return os.Getenv("PATH")
}

// lookupEnv is the environment of the run: what starts a command at boot knows none of the proxies that the run knew.
func (g *globals) lookupEnv(name string) (string, bool) {
	if value, ok := os.LookupEnv(name); ok || g.kept == nil {
		return value, ok
	}
	for _, known := range g.kept.Proxies {
		if value, ok := strings.CutPrefix(known, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// resume makes the next boot continue this run.
func (g *globals) resume(where *place, o run.Options, head report.Report) (*resume.Resume, error) {
	starter, err := g.starter(where)
	if err != nil {
		return nil, err
	}
	kept, err := g.pending(o, head)
	if err != nil {
		return nil, err
	}
	return resume.New(where.journal, starter, kept), nil
}

// pending is all of a run that a boot must know to go on with it.
func (g *globals) pending(o run.Options, head report.Report) (journal.Pending, error) {
	kept := journal.Pending{
		Generation: head.Generation, BootID: head.BootID, File: o.File, Phase: head.Phase, Timeout: o.Timeout, Stream: o.Stream,
	}
	dirs := slices.Clone(g.pluginDirs)
	if g.beside != "" && !slices.Contains(dirs, g.beside) {
		dirs = append(dirs, g.beside)
	}
	for _, dir := range dirs {
		absolute, err := filepath.Abs(dir)
		if err != nil {
			return kept, usage("--plugin-dir: " + err.Error())
		}
		kept.PluginDirs = append(kept.PluginDirs, absolute)
	}
	if g.pluginsOnPath {
		kept.PluginPath = g.searchPath()
	}
	for _, variable := range pluginv1.Environment(runtime.GOOS, g.lookupEnv) {
		if name, _, _ := strings.Cut(variable, "="); strings.HasSuffix(strings.ToUpper(name), "_PROXY") {
			kept.Proxies = append(kept.Proxies, variable)
		}
	}
	return kept, nil
}

// starter has a boot run this program in the directories of this run.
func (g *globals) starter(where *place) (resume.Starter, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, &exitError{code: report.ExitFailed, message: "find out which program this is: " + err.Error()}
	}
	flags := g.unusual(where.stateDir, where.runDir)
	argv := append([]string{program, "apply", "--resume"}, flags...)
	return resume.NewStarter(argv, where.stateDir, len(flags) == 0), nil
}

// unusual are the flags without which another run would look elsewhere, or log otherwise.
func (g *globals) unusual(stateDir, runDir string) []string {
	var flags []string
	for _, flag := range []struct{ name, value, usual string }{
		{"--state-dir", stateDir, defaultStateDir()},
		{"--run-dir", runDir, defaultRunDir()},
		{"--log-level", g.logLevel, defaultLogLevel},
		{"--log-format", g.logFormat, defaultLogFormat},
	} {
		if flag.value != flag.usual {
			flags = append(flags, flag.name, flag.value)
		}
	}
	return flags
}

// toGoOn says that a run which has failed can still be gone on with, and how.
func (g *globals) toGoOn(stateDir, runDir string) string {
	text := "the stream was kept; to go on: machineadm apply --resume"
	for _, word := range g.unusual(stateDir, runDir) {
		text += " " + trust.Quote(word)
	}
	return text
}

// nothingWaits ends a run that has nothing to go on with: that of a clone, say, whose state was void.
func (g *globals) nothingWaits(ctx context.Context, where *place, o *applyFlags, s streams, observe func(run.Event)) error {
	starter, err := g.starter(where)
	if err != nil {
		return err
	}
	if err := resume.Forget(ctx, where.journal, starter); err != nil {
		return o.unopened(stateExit(err), observe)
	}
	if o.output == "json" {
		head := where.head(o)
		head.FinishedAt, head.Outcome = time.Now().UTC(), report.RunSucceeded
		observe(run.Event{Type: run.EventRunFinished, Time: head.FinishedAt, Report: &head})
		return nil
	}
	_, err = fmt.Fprintf(s.out, "nothing waits in %s to be gone on with\n", where.stateDir)
	return err
}
