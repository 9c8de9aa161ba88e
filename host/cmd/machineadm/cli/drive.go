package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/host/catalog"
	"github.com/machineadm/machineadm/host/journal"
	"github.com/machineadm/machineadm/host/launch"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/internal/proctree"
)

// drive is one run, from the flags to the exit code.
func (g *globals) drive(ctx context.Context, s streams, o *applyFlags, mode run.Mode, observe func(run.Event)) error {
	phase, err := o.check()
	if err != nil {
		return err
	}
	log, err := g.logger(s.err)
	if err != nil {
		return err
	}
	ctx, interrupt, restore := interrupts(ctx)
	defer restore()
	where, err := g.open(o.root, mode)
	if err != nil {
		return err
	}
	defer where.close()

	head := where.head(o)
	stream, err := readStream(o.path, s.in)
	if err != nil {
		return where.refuse(head, o.path, err, observe, s)
	}
	options := run.Options{
		Mode: mode, File: streamName(o.path), Stream: stream, Root: where.root, Target: where.target, Phase: phase,
		AllowSecrets: o.allowSecrets, Timeout: g.timeout, Interrupt: interrupt,
	}
	if options.Defaults, err = where.defaults(mode); err != nil {
		return where.refuse(head, defaultsFile, err, observe, s)
	}
	if where.journal != nil && mode == run.ModeApply {
		if head.Generation, err = where.journal.Generation(stream); err != nil {
			return stateExit(err)
		}
	}
	warnReadable(o.path, options, log)
	fleet, err := g.fleet(where, log)
	if err != nil {
		return err
	}
	defer endAll(fleet, log)
	with := run.Surroundings{Plugins: fleet, Observe: observe}
	where.furnish(&with, mode, o.reboot)
	result, _ := run.Execute(ctx, options, with, head)
	endAll(fleet, log) // before a reboot, not in its middle
	return o.end(ctx, result, with.Reboots != nil, where, s)
}

// end turns the report into the exit code, and reboots when that is due and allowed.
func (o *applyFlags) end(ctx context.Context, result report.Report, mayReboot bool, where *place, s streams) error {
	if where.reportPath != "" && result.ExitCode != report.ExitOK {
		_, _ = fmt.Fprintf(s.err, "report: %s (machineadm status reads it)\n", where.reportPath)
	}
	switch {
	case result.ExitCode == report.ExitOK:
		return nil
	case result.ExitCode == report.ExitReboot && mayReboot:
		_, _ = fmt.Fprintln(s.err, "rebooting; run the same command again after it")
		if err := launch.Reboot(context.WithoutCancel(ctx)); err != nil {
			return &exitError{code: report.ExitReboot, text: fmt.Sprintf(
				"error: the reboot could not be asked for: %s\n  hint: reboot the machine, then run the same command again", err)}
		}
	}
	return &exitError{code: result.ExitCode}
}

// endAll leaves no process behind.
func endAll(fleet *launch.Fleet, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	if err := fleet.KillAll(ctx); err != nil {
		log.Error("some process of a plugin could not be ended", "error", err)
	}
}

// killTimeout bounds the end of a run whose processes do not die: the kernel keeps one that waits for a device.
const killTimeout = 30 * time.Second

// fleet finds plugins where the flags and the platform say, and starts them on demand.
func (g *globals) fleet(where *place, log *slog.Logger) (*launch.Fleet, error) {
	c, err := g.catalog()
	if err != nil {
		return nil, err
	}
	sockets, err := where.socketDir()
	if err != nil {
		return nil, stateExit(err)
	}
	tree, err := proctree.Contain()
	if err != nil {
		return nil, &exitError{code: report.ExitFailed, text: "error: contain the plugins' processes: " + err.Error()}
	}
	o := launch.Options{
		Log: log, SocketDir: sockets, Environment: pluginv1.Environment(runtime.GOOS, os.LookupEnv),
		Root: where.root, Target: where.target, Tree: tree,
	}
	if where.lock != nil {
		o.Inherit = []*os.File{where.lock.File()}
	}
	return launch.NewFleet(c, o), nil
}

func (g *globals) catalog() (*catalog.Catalog, error) {
	c, err := catalog.New(catalog.Options{
		First: g.pluginDirs, Fixed: naming.SearchDirectories(runtime.GOOS),
		Path: os.Getenv("PATH"), PluginsOnPath: g.pluginsOnPath,
	})
	if err != nil {
		return nil, usage(err.Error())
	}
	return c, nil
}

// readStream reads the stream, at most one byte more than a stream may have: the decoder says what is wrong with it.
// A file that root reads is judged like a plugin.
func readStream(path string, in io.Reader) (data []byte, err error) {
	if path != "-" {
		file, openErr := openStream(path)
		if openErr != nil {
			return nil, openErr
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		in = file
	}
	data, err = io.ReadAll(io.LimitReader(in, document.MaxStreamBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the stream: %w", err)
	}
	return data, nil
}

func streamName(path string) string {
	if path == "-" {
		return "<stdin>"
	}
	return path
}

// warnReadable says that a file of secrets is readable by more than its owner.
func warnReadable(path string, o run.Options, log *slog.Logger) {
	if path == "-" || runtime.GOOS == "windows" {
		return
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o044 == 0 {
		return
	}
	if run.StreamHoldsSecret(o.File, o.Stream) {
		log.Warn("the stream holds a secret and others can read it", "file", path, "remedy", "chmod 600 "+path)
	}
}

// place is where a run happens: the machine or an image, and the directories that go with it.
type place struct {
	root       string
	target     target.Target
	runDir     string
	stateDir   string
	reportPath string
	lock       *journal.Lock
	journal    *journal.Journal
	cleanup    []func()
}

func (p *place) close() {
	for i := len(p.cleanup) - 1; i >= 0; i-- {
		p.cleanup[i]()
	}
}

// temporary makes a directory that goes with the run.
func (p *place) temporary(parent string) (string, error) {
	dir, err := os.MkdirTemp(parent, "machineadm-")
	if err != nil {
		return "", err
	}
	p.cleanup = append(p.cleanup, func() { _ = os.RemoveAll(dir) }) // it is empty of anything that matters
	return dir, nil
}

// socketDir is a private directory with a path short enough for a socket's name, which has 108 bytes in all.
func (p *place) socketDir() (string, error) {
	if p.reportPath != "" && len(p.runDir) < 40 {
		return p.temporary(p.runDir)
	}
	return p.temporary("")
}

func absoluteRoot(root string) (string, error) {
	if root == "" {
		return "", nil
	}
	path, err := filepath.Abs(root)
	if err != nil {
		return "", usage("--root: " + err.Error())
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", usage("--root: " + path + " does not exist")
	case err != nil:
		return "", usage("--root: " + err.Error())
	case !info.IsDir():
		return "", usage("--root: " + path + " is not a directory")
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", usage("--root: " + err.Error())
	}
	if path == filepath.VolumeName(path)+string(filepath.Separator) {
		return "", usage("--root is the live machine: leave it out")
	}
	return path, nil
}
