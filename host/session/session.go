// Package session holds the life of one run on a machine or image: its directories, lock, init hook and state, and the leftovers
// of killed runs. The command line gives the flags and shows the result; host/run processes the documents, and host/outbox
// delivers the report.
//
// Errors for the user are of the type *report.Error. One with the code CodeUsage and no hint concerns a flag.
package session

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/host/launch"
	"github.com/machineadm/machineadm/host/state"
	"github.com/machineadm/machineadm/internal/proctree"
)

// Options are what every command gives a session.
type Options struct {
	StateDir, RunDir string   // empty for the default directories
	PluginDirs       []string // searched first
	Beside           string   // the directory of this program, if it contains plugins
	PluginsOnPath    bool     // search PATH for plugins, last
	Timeout          time.Duration
	LogFlags         []string // the flags of the log that a resumed run repeats, with their values
	Log              *slog.Logger
	Note             func(line string)   // shows a line to the operator
	Fail             func(*report.Error) // shows an error that does not decide the exit code
}

// Session is a machine or image, with what a run on it holds until Close.
type Session struct {
	Target target.Target

	o            Options
	kept         *state.Pending // how an earlier run searched for plugins, which this one continues; else nil
	root         string         // of the image, or an empty directory when validating
	image        string         // the directory of --root
	runDir       string
	stateDir     string
	temporaryRun bool             // the run directory is temporary
	hook         *launch.InitHook // nil where the host uses systemd or Windows
	tree         *proctree.Tree   // of the plugins, while they run
	lock         *state.Lock
	writes       *state.Writes // of an apply only
	store        *state.Store
	stateErr     error // why there is no store, although the lock is held
	record       record
	delivers     bool   // the report goes to the destination in stream
	text         []byte // of the stream
	stream       *document.Stream
	cleanup      []func()
}

// record is the report of the run on disk.
type record struct {
	path    string // empty without a report
	reports state.Reports
	unkept  bool // the report on disk is not the last one of this run
}

// Close releases what the session holds, and ends its plugins.
func (s *Session) Close() {
	for i := len(s.cleanup) - 1; i >= 0; i-- {
		s.cleanup[i]()
	}
	s.cleanup = nil
}

// digests returns the cache of plugin digests. Only an apply saves new ones.
func (s *Session) digests() *launch.Digests {
	if s.store == nil {
		return nil
	}
	d := launch.OpenDigests(filepath.Join(s.store.Dir(), state.DigestsFile))
	if s.lock != nil {
		s.cleanup = append(s.cleanup, func() {
			if err := d.Save(); err != nil {
				s.o.Log.Warn("the digests of plugins are not cached, so the next run computes them again", "error", err)
			}
		})
	}
	return d
}

// searchPath returns the PATH for PluginsOnPath.
func (s *Session) searchPath() string {
	if s.kept != nil && s.kept.PluginPath != "" {
		return s.kept.PluginPath
	}
	return os.Getenv("PATH")
}

// lookupEnv looks up the environment of the run, with the proxies of the resumed run, which a boot does not set.
func (s *Session) lookupEnv(name string) (string, bool) {
	if value, ok := os.LookupEnv(name); ok || s.kept == nil {
		return value, ok
	}
	for _, known := range s.kept.Proxies {
		if value, ok := strings.CutPrefix(known, name+"="); ok {
			return value, true
		}
	}
	return "", false
}
