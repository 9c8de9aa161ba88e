package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/report"
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
	f, err := archive(m.Manifest, runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return Result{}, err
	}
	chosen, err := choose(f.Contents, i.With)
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
	release, changed, err := i.place(ctx, s, m.Version, f, chosen)
	if err != nil {
		return Result{}, err
	}
	if err := i.use(m.Manifest, release); err != nil {
		return Result{}, err
	}
	before, err := t.link(previous)
	return Result{
		Version: m.Version, Directory: t.path, Changed: changed, Previous: strings.TrimSuffix(before, again), Plugins: pluginsOf(chosen),
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
func (i *installation) place(ctx context.Context, s *source, version string, f manifest.File, chosen []manifest.Entry) (string, bool, error) {
	t := i.target
	now, err := t.link(current)
	if err != nil {
		return "", false, err
	}
	for _, name := range []string{version, version + again} {
		if ok, err := t.holds(name, chosen); err != nil || ok {
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
	data, err := t.fetch(ctx, s, f)
	if err != nil {
		return "", false, err
	}
	err = t.unpack(data, name, f, chosen)
	return name, true, errors.Join(err, data.Close())
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

// unpack makes a release of a verified archive.
func (t *target) unpack(data *os.File, name string, f manifest.File, chosen []manifest.Entry) error {
	at := releases + "/" + name
	if err := errors.Join(t.keepSequence(0), t.root.MkdirAll(at+temporary, directory)); err != nil {
		return err
	}
	root, err := t.root.OpenRoot(at + temporary)
	if err != nil {
		return err
	}
	err = unpack(data, root, f.Contents, chosen)
	if wrong, ok := errors.AsType[*Error](err); ok {
		wrong.Problem = f.Name + ": " + wrong.Problem
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

// archive returns the artifact of a platform.
func archive(m *manifest.Manifest, os, arch string) (manifest.File, error) {
	var others []string
	for _, f := range m.Files {
		if f.Kind == manifest.KindArchive && f.OS == os && f.Arch == arch {
			return f, nil
		}
		if f.Kind == manifest.KindArchive {
			others = append(others, f.OS+"/"+f.Arch)
		}
	}
	return manifest.File{}, &Error{
		Code:    report.ExitPrecondition,
		Problem: fmt.Sprintf("the release %s has no archive for %s/%s; it has: %s", m.Version, os, arch, strings.Join(others, ", ")),
		Remedy:  "use a release for this platform", elsewhere: true,
	}
}

// pluginsOf returns the names of the plugins in an archive or in a part of it.
func pluginsOf(contents []manifest.Entry) []string {
	names := []string{}
	for _, e := range contents {
		if dir, name := path.Split(e.Path); dir == "plugins/" {
			names = append(names, name)
		}
	}
	return names
}

// choose returns the files of an archive to install: all but the plugins that are not asked for.
func choose(contents []manifest.Entry, with []string) ([]manifest.Entry, error) {
	plugins := pluginsOf(contents)
	wanted := []string{}
	for _, name := range with {
		whole := product + "-" + strings.TrimPrefix(name, product+"-")
		if wanted = append(wanted, whole); !slices.Contains(plugins, whole) {
			return nil, &Error{
				Code: report.ExitUsage, Problem: fmt.Sprintf("--with: the release has no plugin %q; it has: %s", name, strings.Join(plugins, ", ")),
				Remedy: "correct the name, or leave --with out for all plugins",
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(contents), func(e manifest.Entry) bool {
		dir, name := path.Split(e.Path)
		return len(with) > 0 && dir == "plugins/" && !slices.Contains(wanted, name)
	}), nil
}
