package install

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"

	"github.com/machineadm/machineadm/installer/manifest"
)

// DefaultDirectory is the directory of releases unless another one is given. The host searches its plugins directory.
const DefaultDirectory = "/opt/machineadm"

// Install installs a release into a directory:
//
//	releases/VERSION/{bin,plugins,share}
//	current -> releases/VERSION
//	bin -> current/bin, plugins -> current/plugins
//
// Nothing is written before the manifest is verified, and no file is in place before the whole archive is. The link current
// is replaced in one step. A run can be killed at any point: the next one completes it. Errors are of type *Error.
func Install(ctx context.Context, o Options) (result Result, err error) {
	i := &installation{Options: o}
	defer func() {
		if i.target != nil {
			i.target.close(err != nil)
		}
	}()
	err = fromAny(ctx, o, func(s *source) error {
		result, err = i.from(ctx, s)
		return err
	})
	return result, err
}

type installation struct {
	Options
	target *target // nil until a manifest was verified
}

func (i *installation) from(ctx context.Context, s *source) (Result, error) {
	m, err := s.release(ctx, i.Keys)
	if err != nil {
		return Result{}, err
	}
	parts, err := choose(m.Manifest, runtime.GOOS, runtime.GOARCH, i.With)
	if err != nil {
		return Result{}, err
	}
	if i.target == nil {
		if i.target, err = openTarget(i.To); err != nil {
			return Result{}, err
		}
	}
	t := i.target
	seen, err := t.seen()
	if err != nil {
		return Result{}, err
	}
	now, right := clock()
	if err := errors.Join(admit(m.Manifest, i.Options, seen, now, right), t.check()); err != nil {
		return Result{}, err
	}
	release, changed, err := i.place(ctx, s, m.Version, parts)
	if err != nil {
		return Result{}, err
	}
	if err := i.use(m.Manifest, release); err != nil {
		return Result{}, err
	}
	before, err := t.link(previous)
	return Result{
		Version: m.Version, Directory: t.path, Changed: changed, Previous: strings.TrimSuffix(before, again), Plugins: pluginsOf(chosenOf(parts)),
	}, err
}

func (i *installation) use(m *manifest.Manifest, release string) error {
	do := func() error { return i.target.use(m, release) }
	if i.Switch == nil {
		return do()
	}
	return i.Switch(do)
}

// place returns the name of the complete release below releases, and whether it is not the current one yet.
func (i *installation) place(ctx context.Context, s *source, version string, parts []part) (string, bool, error) {
	t := i.target
	now, err := t.link(current)
	if err != nil {
		return "", false, err
	}
	for _, name := range []string{version, version + again} {
		if ok, err := t.holds(name, chosenOf(parts)); err != nil || ok {
			return name, name != now, err
		}
	}
	name := version
	if name == now { // it is in use: another directory replaces it
		name += again
	}
	if err := t.cleanUp(); err != nil {
		return "", false, err
	}
	return name, true, t.unpack(ctx, s, name, parts)
}

// fetch returns the verified archive, in a file that has no name any more.
func (t *target) fetch(ctx context.Context, s *source, f manifest.File) (*os.File, error) {
	data, err := t.root.OpenFile(download, os.O_RDWR|os.O_CREATE|os.O_EXCL, untilRemoved)
	if err != nil {
		return nil, err
	}
	err = t.root.Remove(download)
	if err == nil {
		err = s.fetch(ctx, f, data)
	}
	if err == nil {
		_, err = data.Seek(0, 0)
	}
	if err != nil {
		return nil, errors.Join(err, data.Close())
	}
	return data, nil
}

// unpack makes a release of verified archives. All are downloaded before the first file is written.
func (t *target) unpack(ctx context.Context, s *source, name string, parts []part) (err error) {
	archives := make([]*os.File, len(parts))
	for i, p := range parts {
		if archives[i], err = t.fetch(ctx, s, p.File); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, archives[i].Close()) }()
	}
	at := releases + "/" + name
	if err := errors.Join(t.keepSequence(newest{}), t.root.MkdirAll(at+temporary, directory)); err != nil {
		return err
	}
	root, err := t.root.OpenRoot(at + temporary)
	if err != nil {
		return err
	}
	for i, p := range parts {
		if err = unpack(archives[i], root, p.Contents, p.chosen); err != nil {
			if wrong, ok := errors.AsType[*Error](err); ok {
				wrong.Problem = p.Name + ": " + wrong.Problem
			}
			break
		}
	}
	if err == nil {
		err = finish(root)
	}
	if err = errors.Join(err, root.Close()); err != nil {
		return err
	}
	if err := t.root.RemoveAll(at); err != nil { // an incomplete one that is not in use
		return err
	}
	if err := t.root.Rename(at+temporary, at); err != nil {
		return err
	}
	dir, err := t.root.Open(releases)
	if err != nil {
		return err
	}
	return errors.Join(dir.Chmod(directory), dir.Sync(), dir.Close(), t.dir.Sync())
}
