package nodes

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/internal/require"
)

// cache holds built systems, one directory per key, and the directories of running nodes beside them: an overlay's
// upper and lower sides live on one file system.
type cache struct{ dir string }

const buildTimeout = 20 * time.Minute

// tries is how often a build may fail whose builder exits with an error: the archive can be out of reach for a moment. Each pause is
// four times the one before.
const (
	tries      = 3
	firstPause = 5 * time.Second
)

func openCache() (cache, error) {
	user, err := os.UserCacheDir()
	if err != nil {
		return cache{}, fmt.Errorf("where to cache root file systems: %w", err)
	}
	c := cache{dir: filepath.Join(user, "machineadm-testenv")}
	return c, os.MkdirAll(c.runDir(), 0o755)
}

func (c cache) runDir() string { return filepath.Join(c.dir, "run") }

func (c cache) newInstance() (instance, error) {
	self, err := thisProcess()
	if err != nil {
		return instance{}, err
	}
	inst := newInstance(c.runDir(), self)
	return inst, os.Mkdir(inst.dir, 0o700)
}

// artefact is one directory of the cache: how it is built, and a key that changes with every input.
type artefact struct {
	what  string // for people
	key   string
	tree  string // the directory inside the artefact that becomes a lower layer
	build func(ctx context.Context, site buildSite) error
	// offline is set where the build uses no network, so that it fails in the same way each time.
	offline bool
}

// buildSite is where one build works. The lock is to be inherited by the build's processes: it is held until the
// last of them is gone, so that no other build starts while they still write.
type buildSite struct {
	dir  string
	lock *os.File
	log  *os.File
}

// system returns the directories of a suite and its layers, in overlayfs's order: topmost first.
func (c cache) system(ctx context.Context, o Options, logf func(string, ...any)) ([]string, error) {
	var lowers []string
	for _, a := range c.artefacts(o) {
		dir, err := c.once(ctx, a, logf)
		if err != nil {
			return nil, err
		}
		lowers = append([]string{filepath.Join(dir, a.tree)}, lowers...)
	}
	return lowers, nil
}

func (c cache) has(o Options) bool {
	for _, a := range c.artefacts(o) {
		if _, err := os.Stat(filepath.Join(c.dir, a.key)); err != nil {
			return false
		}
	}
	return true
}

// artefacts lists the base and then each layer, which is keyed by and built upon everything before it: the package
// database of a layer hides the one below.
func (c cache) artefacts(o Options) []artefact {
	all := []artefact{rootfs(o.Suite)}
	lowers := []string{filepath.Join(c.dir, all[0].key, all[0].tree)}
	add := func(packages []string, script string) {
		a := overlayLayer(o.Suite, all[len(all)-1].key, lowers, packages, script)
		all = append(all, a)
		lowers = append([]string{filepath.Join(c.dir, a.key, a.tree)}, lowers...)
	}
	for _, l := range o.stack() {
		add(strings.Fields(string(l)), "")
	}
	if o.Script != "" {
		add(nil, o.Script)
	}
	return all
}

// once builds the artefact unless it is there: beside, then renamed, under a lock that excludes other processes.
func (c cache) once(ctx context.Context, a artefact, logf func(string, ...any)) (string, error) {
	final := filepath.Join(c.dir, a.key)
	if err := require.Record("system", a.key); err != nil {
		return "", err
	}
	if ok, err := exists(final); ok || err != nil {
		return final, err
	}
	ctx, cancel := context.WithTimeout(ctx, buildTimeout)
	defer cancel()
	lock, err := lockFile(ctx, final+".lock")
	if err != nil {
		return "", err
	}
	defer lock.Close() //nolint:errcheck // nothing was written to it
	if ok, err := exists(final); ok || err != nil {
		return final, err
	}
	logf("building %s", a.what)
	began := time.Now()
	if err := buildInTries(ctx, a, final, lock, logf); err != nil {
		return "", fmt.Errorf("build %s: %w", a.what, err)
	}
	logf("building %s: done in %s", a.what, time.Since(began).Round(time.Second))
	return final, nil
}

func buildInTries(ctx context.Context, a artefact, final string, lock *os.File, logf func(string, ...any)) error {
	pause := firstPause
	for try := 1; ; try++ {
		err := build(ctx, a, final, lock)
		if err == nil || try == tries || a.offline || ctx.Err() != nil || !mayPass(err) {
			return err
		}
		logf("building %s is tried again in %s: %v", a.what, pause, err)
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(pause):
		}
		pause *= 4
	}
}

// mayPass reports whether another try can succeed. apt's messages do not decide it: after an update that reached no archive, apt-get
// cannot locate packages that exist.
func mayPass(err error) bool {
	const notFound = 127 // of sh(1) and unshare(1): the builder is not installed
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() != notFound
}

func build(ctx context.Context, a artefact, final string, lock *os.File) (err error) {
	site := buildSite{dir: final + ".building", lock: lock}
	if err := os.RemoveAll(site.dir); err != nil {
		return fmt.Errorf("remove an earlier, unfinished build: %w", err)
	}
	if err := os.Mkdir(site.dir, 0o755); err != nil {
		return err
	}
	logPath := final + ".log"
	if site.log, err = os.OpenFile(logPath, os.O_CREATE|os.O_TRUNC|os.O_RDWR|os.O_APPEND, 0o600); err != nil {
		return err
	}
	err = a.build(ctx, site)
	if err = errors.Join(err, site.log.Close()); err != nil {
		text, _ := os.ReadFile(logPath) // the build's own error counts
		return errors.Join(fmt.Errorf("%w; end of the log:\n%s", err, lastLines(string(text), 30)), os.RemoveAll(site.dir))
	}
	if err := syncFilesystem(site.dir); err != nil {
		return err
	}
	return os.Rename(site.dir, final)
}

func exists(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// lockFile waits for an exclusive flock(2), which ends with the last descriptor of the opened file.
func lockFile(ctx context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = poll(ctx, 5*pollInterval, "the lock "+path, func() (bool, error) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// syncFilesystem makes the build durable before it gets the name of a complete one.
func syncFilesystem(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(d.Fd())), d.Close())
}

// keyOf hashes a recipe; the prefix makes the cache readable.
func keyOf(prefix string, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return fmt.Sprintf("%s-%x", prefix, sum[:12])
}
