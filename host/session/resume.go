package session

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/machine"
	"github.com/machineadm/machineadm/host/resume"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/host/state"
	"github.com/machineadm/machineadm/internal/trust"
)

// recall sets the flags as in the pending run, unless the command line sets them, and decodes its stream, which stays nil
// if no run is pending.
func (s *Session) recall(in *Input) error {
	kept, err := s.store.Pending()
	if err != nil || kept == nil {
		return err
	}
	in.Path, in.Phase, in.Reboot = kept.File, kept.Phase, true
	if err := s.decode(kept.File, kept.Stream); err != nil {
		return err
	}
	if s.o.Timeout == run.RunTimeout {
		s.o.Timeout = kept.Timeout
	}
	s.searchAs(kept)
	return nil
}

// searchAs makes the session search for plugins as an earlier run did, unless the command line says where.
func (s *Session) searchAs(kept *state.Pending) {
	if len(s.o.PluginDirs) == 0 {
		s.o.PluginDirs = kept.PluginDirs
	}
	s.o.PluginsOnPath = s.o.PluginsOnPath || kept.PluginPath != ""
	s.kept = kept
}

// identify sets the stream digest of an apply, and whether it continues a run of the same stream that waited for this boot. A unit
// of the operating system can apply the stream again, beside the unit that resumes it, and the sources of the first try may be
// gone.
func (s *Session) identify(head *report.Report, o *run.Options) (err error) {
	if s.store == nil || o.Mode != run.ModeApply {
		return nil
	}
	if head.StreamDigest, err = s.store.StreamDigest(o.Text); err != nil {
		return err
	}
	kept, err := s.store.Pending()
	waited := kept != nil && !kept.Resting && kept.StreamDigest == head.StreamDigest && kept.BootID != head.BootID
	o.Resumed = o.Resumed || waited
	return err
}

// resume returns the resume of this run.
func (s *Session) resume(o run.Options, head report.Report) (*resume.Resume, error) {
	starter, err := s.starter()
	if err != nil {
		return nil, err
	}
	kept, err := s.pending(o, head)
	if err != nil {
		return nil, err
	}
	return resume.New(s.store, starter, kept), nil
}

// pending returns the record that resumes the run.
func (s *Session) pending(o run.Options, head report.Report) (state.Pending, error) {
	kept, err := s.search()
	kept.StreamDigest, kept.BootID, kept.File, kept.Phase = head.StreamDigest, head.BootID, o.Stream.File, head.Phase
	kept.Timeout, kept.Stream = o.Timeout, o.Text
	return kept, err
}

// search returns how this run searches for plugins, and what they get of its environment.
func (s *Session) search() (kept state.Pending, err error) {
	dirs := slices.Clone(s.o.PluginDirs)
	if s.o.Beside != "" && !slices.Contains(dirs, s.o.Beside) {
		dirs = append(dirs, s.o.Beside)
	}
	for _, dir := range dirs {
		absolute, err := filepath.Abs(dir)
		if err != nil {
			return kept, usage("--plugin-dir: " + err.Error())
		}
		kept.PluginDirs = append(kept.PluginDirs, absolute)
	}
	if s.o.PluginsOnPath {
		kept.PluginPath = s.searchPath()
	}
	for _, variable := range launch.Environment(runtime.GOOS, s.lookupEnv) {
		if name, _, _ := strings.Cut(variable, "="); strings.HasSuffix(strings.ToUpper(name), "_PROXY") {
			kept.Proxies = append(kept.Proxies, variable)
		}
	}
	return kept, nil
}

// starter returns the Starter of this program with the directories of this run.
func (s *Session) starter() (resume.Starter, error) {
	argv, err := s.self("apply", "--resume")
	if err != nil {
		return nil, err
	}
	if s.hook != nil {
		return resume.NewHookStarter(s.hook, s.tree, argv), nil
	}
	plain := len(changedFlags(s.stateDir, s.runDir, s.o.LogFlags)) == 0
	return resume.NewStarter(argv, s.stateDir, plain), nil
}

// self returns the command line of this program with the directories of this run.
func (s *Session) self(command ...string) ([]string, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, &report.Error{Code: pluginv1.CodeInternal.String(), Message: "find the path of this program: " + err.Error()}
	}
	return slices.Concat([]string{program}, command, changedFlags(s.stateDir, s.runDir, s.o.LogFlags)), nil
}

// changedFlags returns the flags for directories and log that differ from their defaults.
func changedFlags(stateDir, runDir string, logFlags []string) []string {
	var flags []string
	for _, flag := range []struct{ name, value, usual string }{
		{"--state-dir", stateDir, machine.StateDir()},
		{"--run-dir", runDir, machine.RunDir()},
	} {
		if flag.value != flag.usual {
			flags = append(flags, flag.name, flag.value)
		}
	}
	return append(flags, logFlags...)
}

// ResumeHint returns the command that resumes a failed run with these directories and flags of the log.
func ResumeHint(stateDir, runDir string, logFlags []string) string {
	text := "the stream was saved; to resume: machineadm apply --resume"
	for _, word := range changedFlags(stateDir, runDir, logFlags) {
		text += " " + trust.Quote(word)
	}
	return text
}
