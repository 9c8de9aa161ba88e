package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// registryTree is what becomes of the registries: the files of the document, and of an earlier version of it what is removed. A
// directory that is empty then is removed last.
type registryTree struct {
	files       []sdk.FileSpec
	directories []string
}

// planCerts finds out what the tree of registries has to become, with a warning of each file of other people that is
// replaced.
func planCerts(m sdk.Machine, want desired, r release, result *sdk.Plan) (registryTree, error) {
	t := registryTree{files: want.certs(r)}
	var wanted []string
	for _, spec := range t.files {
		wanted = append(wanted, spec.Path)
		if filepath.Base(spec.Path) == hostsFile {
			if text, err := m.FS.ReadFile(spec.Path); err == nil && !managed(text) {
				result.Warn("spec.registries", spec.Path+" was not written by machineadm: it is replaced")
			}
		}
	}
	certs := pathsOf(m.Target.OS).certs
	hosts, err := listing(m, certs)
	if err != nil {
		return t, err
	}
	for _, host := range hosts {
		if err := t.stale(m, filepath.Join(certs, host), wanted); err != nil {
			return t, err
		}
	}
	return t, nil
}

// stale empties the directory of a registry of what is ours and no longer wanted, and removes it when that was all:
// while it is there, containerd looks no further, not even at _default.
func (t *registryTree) stale(m sdk.Machine, directory string, wanted []string) error {
	names, err := listing(m, directory)
	if err != nil {
		return err
	}
	if ours, err := isOurs(m, directory, names); err != nil || !ours {
		return err
	}
	left := len(names)
	// The hosts.toml first: what it names must not be missing while it is there.
	for _, name := range slices.SortedFunc(slices.Values(names), func(a, b string) int { return strings.Compare(rank(a), rank(b)) }) {
		path := filepath.Join(directory, name)
		if slices.Contains(wanted, path) || name != hostsFile && !strings.HasPrefix(name, hostFilePrefix) {
			continue
		}
		t.files = append(t.files, sdk.FileSpec{Path: path, Absent: true})
		left--
	}
	wantedHere := slices.ContainsFunc(wanted, func(path string) bool { return filepath.Dir(path) == directory })
	if left == 0 && !wantedHere {
		t.directories = append(t.directories, directory)
	}
	return nil
}

// removals are the changes that remove the empty directories.
func (t registryTree) removals(m sdk.Machine) []*sdk.Change {
	var changes []*sdk.Change
	for _, directory := range t.directories {
		changes = append(changes, &sdk.Change{
			ID: "directory:" + directory, Summary: "remove the directory " + directory, Diff: directory + ": removed\n",
			Do: func(context.Context, sdk.Progress) error { return m.FS.Remove(directory) },
		})
	}
	return changes
}

// isOurs says whether machineadm has made the directory of a registry. One without a hosts.toml is what an interrupted
// run has left, when nothing of other people is in it.
func isOurs(m sdk.Machine, directory string, names []string) (bool, error) {
	info, err := m.FS.Stat(directory)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode.IsDir() { // a link to nowhere, or a file
		return false, nil
	}
	if err != nil {
		return false, err
	}
	text, err := m.FS.ReadFile(filepath.Join(directory, hostsFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return !slices.ContainsFunc(names, func(name string) bool { return !strings.HasPrefix(name, hostFilePrefix) }), nil
	case errors.Is(err, machine.ErrNotRegular):
		return false, nil
	}
	return managed(text), err
}

func rank(name string) string {
	if name == hostsFile {
		return ""
	}
	return name
}

func managed(text []byte) bool { return bytes.HasPrefix(text, []byte(mark)) }

// listing is empty for a directory that is not there, and for what is none.
func listing(m sdk.Machine, directory string) ([]string, error) {
	info, err := m.FS.Stat(directory)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode.IsDir() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return m.FS.ReadDir(directory)
}

// emptiedDropIn is the unit's drop-in of an earlier version of the document, when this one wants none: an empty one takes
// effect with the same restart, and with the old one back if need be.
func emptiedDropIn(m sdk.Machine, want desired, files []sdk.FileSpec) ([]sdk.FileSpec, error) {
	path := pathsOf(want.os).unitDropIn(unit)
	if slices.ContainsFunc(files, func(spec sdk.FileSpec) bool { return spec.Path == path }) {
		return nil, nil
	}
	text, err := m.FS.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !managed(text) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []sdk.FileSpec{{Path: path, Content: []byte(header("systemd.exec(5)") + "# It asks for nothing now.\n"), Mode: 0o644}}, nil
}

// planLeftovers removes the files of our own directory that nothing refers to any more.
func planLeftovers(m sdk.Machine, files []sdk.FileSpec, result *sdk.Plan) error {
	at := pathsOf(m.Target.OS)
	for _, directory := range []string{at.own, at.trusted()} {
		names, err := listing(m, directory)
		if err != nil {
			return err
		}
		for _, name := range names {
			path := at.join(directory, name)
			ours := path == at.bundle() || path == at.environment() || strings.HasPrefix(name, "base-") && strings.HasSuffix(name, ".json")
			if !ours || slices.ContainsFunc(files, func(spec sdk.FileSpec) bool { return spec.Path == path }) {
				continue
			}
			change, err := sdk.Absent(m, path)
			if err != nil {
				return err
			}
			result.Add(change)
		}
	}
	return nil
}

// baseSpecs are the specifications that containers start from, made of the daemon's own default. In an image nothing can
// be asked for that: what refers to one is left for first boot, unless an earlier run has made it.
func baseSpecs(ctx context.Context, m sdk.Machine, i installation, want desired, settings []setting, result *sdk.Plan) ([]sdk.FileSpec, []setting, error) {
	var files []sdk.FileSpec
	var defaults []byte
	for _, h := range want.runtimes {
		if !h.hasBaseSpec() {
			continue
		}
		path := pathsOf(want.os).baseSpec(h.name)
		if m.Offline() {
			settings = slices.DeleteFunc(settings, func(s setting) bool { return s.path[len(s.path)-1] == "base_runtime_spec" && s.value == path })
			result.Warn(string(h.field.Field("baseSpec")), "it is made of containerd's own default, which is known at first boot: until then it is not in effect")
			continue
		}
		if defaults == nil {
			var err error
			if defaults, err = defaultSpec(ctx, m, i); err != nil {
				return nil, nil, err
			}
		}
		text, err := baseSpec(defaults, h.rlimits, h.specPatch)
		if err != nil {
			return nil, nil, sdk.Precondition("ctr oci spec: "+err.Error(), "install the ctr that comes with containerd "+i.release.String())
		}
		files = append(files, sdk.FileSpec{Path: path, Content: text, Mode: 0o644})
	}
	return files, settings, nil
}

// defaultSpec is what ctr, which comes with the daemon, prints of its default.
func defaultSpec(ctx context.Context, m sdk.Machine, i installation) ([]byte, error) {
	beside := filepath.Join(filepath.Dir(i.binary), "ctr")
	result, err := m.Commands.Run(ctx, commandOf(beside, "oci", "spec"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, sdk.Precondition(beside+" is not installed: it tells what containers start from by default",
			"install it from the archive or package of containerd, or remove baseSpec")
	}
	if err != nil {
		return nil, fmt.Errorf("ask ctr for the default specification of containers: %w", err)
	}
	return result.Stdout, nil
}

// sandboxWarning compares with the pause image of an installed kubeadm. kubeadm is told its own version, so that it asks
// nobody; one that does not answer is no reason to stop.
func sandboxWarning(ctx context.Context, m sdk.Machine, want desired, result *sdk.Plan) error {
	if m.Offline() || want.spec.SandboxImage == "" {
		return nil
	}
	if _, err := m.Commands.Find("kubeadm"); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	run := func(args ...string) string {
		r, err := m.Commands.Run(ctx, machine.Command{Name: "kubeadm", Args: args})
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(r.Stdout))
	}
	version := run("version", "--output=short")
	if version == "" {
		return ctx.Err()
	}
	for image := range strings.Lines(run("config", "images", "list", "--kubernetes-version="+version)) {
		_, wanted, ok := strings.Cut(strings.TrimSpace(image), "/pause:")
		_, ours, _ := strings.Cut(want.spec.SandboxImage, "/pause:")
		if ok && ours != wanted {
			result.Warn("spec.sandboxImage", "kubeadm "+version+" wants pause:"+wanted+
				": with another one the kubelet may remove the image that pods need")
		}
	}
	return ctx.Err()
}
