package cli

import (
	"log/slog"
	"path/filepath"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/host/launch"
	"github.com/machineadm/machineadm/host/state"
	"github.com/machineadm/machineadm/internal/proctree"
)

// place is the machine or image of a run, with its directories.
type place struct {
	root         string // of the image, or an empty directory when validating
	image        string // the directory of --root
	target       target.Target
	runDir       string
	stateDir     string
	reportPath   string // empty without a report
	temporaryRun bool   // the run directory is temporary
	unkept       bool   // the report on disk is not the last one of this run
	stateErr     error  // why there is no store, although the lock is held
	log          *slog.Logger
	hook         *launch.InitHook // nil where the host uses systemd or Windows
	tree         *proctree.Tree   // of the plugins, while they run
	lock         *state.Lock
	writes       *state.Writes // of an apply only
	store        *state.Store
	reports      state.Reports // of this run, when reportPath is set
	// deliver sends the report of an apply on the live machine, with the plugins of the run or nil; nil sends nothing.
	deliver func(*launch.Fleet, report.Report)
	cleanup []func()
}

func (p *place) close() {
	for i := len(p.cleanup) - 1; i >= 0; i-- {
		p.cleanup[i]()
	}
	p.cleanup = nil
}

// digests returns the cache of plugin digests. Only an apply saves new ones.
func (p *place) digests(log *slog.Logger) *launch.Digests {
	if p.store == nil {
		return nil
	}
	d := launch.OpenDigests(filepath.Join(p.store.Dir(), state.DigestsFile))
	if p.lock != nil {
		p.cleanup = append(p.cleanup, func() {
			if err := d.Save(); err != nil {
				log.Warn("the digests of plugins are not cached, so the next run computes them again", "error", err)
			}
		})
	}
	return d
}
