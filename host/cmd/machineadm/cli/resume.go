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

	"github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/resume"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/host/state"
	"github.com/machineadm/machineadm/internal/trust"
)

// recall sets the flags to those of the pending run, unless the command line sets them, and returns its stream. The stream is
// nil if no run is pending.
func (g *globals) recall(where *place, o *applyFlags) ([]byte, error) {
	kept, err := where.store.Pending()
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

// identify sets the generation of an apply, and whether it continues a run of the same stream that waited for this boot. A unit
// of the operating system can apply the stream again, beside the unit that resumes it, and the sources of the first try may be
// gone.
func (p *place) identify(head *report.Report, o *run.Options) (err error) {
	if p.store == nil || o.Mode != run.ModeApply {
		return nil
	}
	if head.Generation, err = p.store.Generation(o.Stream); err != nil {
		return err
	}
	kept, err := p.store.Pending()
	waited := kept != nil && !kept.Resting && kept.Generation == head.Generation && kept.BootID != head.BootID
	o.Resumed = o.Resumed || waited
	return err
}

// resume returns the resume of this run.
func (g *globals) resume(where *place, o run.Options, head report.Report) (*resume.Resume, error) {
	starter, err := g.starter(where)
	if err != nil {
		return nil, err
	}
	kept, err := g.pending(o, head)
	if err != nil {
		return nil, err
	}
	return resume.New(where.store, starter, kept), nil
}

// pending returns the record that resumes the run.
func (g *globals) pending(o run.Options, head report.Report) (state.Pending, error) {
	kept, err := g.search()
	kept.Generation, kept.BootID, kept.File, kept.Phase = head.Generation, head.BootID, o.File, head.Phase
	kept.Timeout, kept.Stream = o.Timeout, o.Stream
	return kept, err
}

// search returns how this run searches for plugins, and what they get of its environment.
func (g *globals) search() (kept state.Pending, err error) {
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
	for _, variable := range launch.Environment(runtime.GOOS, g.lookupEnv) {
		if name, _, _ := strings.Cut(variable, "="); strings.HasSuffix(strings.ToUpper(name), "_PROXY") {
			kept.Proxies = append(kept.Proxies, variable)
		}
	}
	return kept, nil
}

// starter returns the Starter of this program with the directories of this run.
func (g *globals) starter(where *place) (resume.Starter, error) {
	argv, err := g.self(where, "apply", "--resume")
	if err != nil {
		return nil, err
	}
	if where.hook != nil {
		return resume.NewHookStarter(where.hook, where.tree, argv), nil
	}
	plain := len(g.changedFlags(where.stateDir, where.runDir)) == 0
	return resume.NewStarter(argv, where.stateDir, plain), nil
}

// self returns the command line of this program with the directories of this run.
func (g *globals) self(where *place, command ...string) ([]string, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, &exitError{code: report.ExitFailed, message: "find the path of this program: " + err.Error()}
	}
	return slices.Concat([]string{program}, command, g.changedFlags(where.stateDir, where.runDir)), nil
}

// changedFlags returns the flags for directories and log that differ from their defaults.
func (g *globals) changedFlags(stateDir, runDir string) []string {
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

// resumeHint returns the command that resumes a failed run.
func (g *globals) resumeHint(stateDir, runDir string) string {
	text := "the stream was saved; to resume: machineadm apply --resume"
	for _, word := range g.changedFlags(stateDir, runDir) {
		text += " " + trust.Quote(word)
	}
	return text
}

// nothingToResume ends a run without a pending run, and removes the start at boot.
func (g *globals) nothingToResume(ctx context.Context, where *place, o *applyFlags, s streams, observe func(run.Event)) error {
	starter, err := g.starter(where)
	if err != nil {
		return err
	}
	if err := resume.Forget(ctx, where.store, starter); err != nil {
		return o.unopened(stateExit(err), observe)
	}
	if o.output == "json" {
		head := where.head(o)
		head.FinishedAt, head.Outcome = time.Now().UTC(), report.RunSucceeded
		observe(run.Event{Type: run.EventRunFinished, Time: head.FinishedAt, Report: &head})
		return nil
	}
	_, err = fmt.Fprintf(s.out, "nothing to resume in %s\n", where.stateDir)
	return err
}
