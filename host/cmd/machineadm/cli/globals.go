package cli

import (
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/reporting"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/host/session"
)

// globals are the flags of every command.
type globals struct {
	logLevel, logFormat string
	stateDir, runDir    string
	pluginDirs          []string
	beside              string // the directory of this program, if it contains plugins
	pluginsOnPath       bool
	timeout             time.Duration
}

// Defaults of the log flags.
const (
	defaultLogLevel  = "warn"
	defaultLogFormat = "text"
)

func (g *globals) bind(p *pflag.FlagSet) {
	p.StringVar(&g.logLevel, "log-level", defaultLogLevel, "`LEVEL` of the log on standard error: debug, info, warn, error")
	p.StringVar(&g.logFormat, "log-format", defaultLogFormat, "`FORMAT` of the log: text, json")
	stateDir, runDir := session.Directories("", "")
	p.StringVar(&g.stateDir, "state-dir", "", "`DIR` for state that outlives a run (default: "+stateDir+"; with --root a temporary one)")
	p.StringVar(&g.runDir, "run-dir", "", "`DIR` for the report and the lock (default: "+runDir+"; with --root a temporary one, and the image itself is locked)")
	p.StringArrayVar(&g.pluginDirs, "plugin-dir", nil, "`DIR` to search for plugins first; may be repeated")
	p.BoolVar(&g.pluginsOnPath, "plugins-on-path", false, "search the absolute directories of PATH for plugins, last")
	p.DurationVar(&g.timeout, "timeout", run.RunTimeout, "time limit of the whole run, a `DURATION` such as 30m")
}

// check checks the flags of every command, and that no flag has an empty value, which comes from an unset shell variable: an
// empty --root would mean the live machine.
func (g *globals) check(given *pflag.FlagSet) error {
	empty := ""
	given.Visit(func(f *pflag.Flag) {
		if f.Value.Type() == "string" && f.Value.String() == "" {
			empty = f.Name
		}
	})
	if slices.Contains(g.pluginDirs, "") {
		empty = "plugin-dir"
	}
	switch {
	case empty != "":
		return usage("--" + empty + " has an empty value")
	case g.timeout <= 0:
		return usage("--timeout takes a duration above zero, such as 90s or 30m")
	}
	for _, dir := range g.pluginDirs { // otherwise the error would be a missing plugin
		if info, err := os.Stat(dir); err == nil && !info.IsDir() || errors.Is(err, fs.ErrNotExist) {
			return &report.Error{
				Code: report.CodeUsage, Message: "--plugin-dir " + strconv.Quote(dir) + " is not a directory",
				Hint: "create it, or give the directory that contains the plugins",
			}
		}
	}
	_, err := g.logger(nil)
	return err
}

// logger returns the log on standard error.
func (g *globals) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(g.logLevel)); err != nil || strings.ContainsAny(g.logLevel, "+-") {
		return nil, usage("--log-level takes debug, info, warn or error")
	}
	if g.logFormat != "text" && g.logFormat != "json" {
		return nil, usage("--log-format takes text or json")
	}
	return reporting.Log(w, level, g.logFormat == "json"), nil
}

// session returns what a session gets of these flags.
func (g *globals) session(s streams) (session.Options, error) {
	log, err := g.logger(s.err)
	return session.Options{
		StateDir: g.stateDir, RunDir: g.runDir, PluginDirs: g.pluginDirs, Beside: g.beside, PluginsOnPath: g.pluginsOnPath,
		Timeout: g.timeout, LogFlags: g.logFlags(), Log: log, Note: s.note, Fail: s.fail,
	}, err
}

// logFlags returns the flags of the log that differ from their defaults.
func (g *globals) logFlags() []string {
	var flags []string
	if g.logLevel != defaultLogLevel {
		flags = append(flags, "--log-level", g.logLevel)
	}
	if g.logFormat != defaultLogFormat {
		flags = append(flags, "--log-format", g.logFormat)
	}
	return flags
}
