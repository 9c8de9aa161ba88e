package release

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"github.com/google/uuid"
	"golang.org/x/mod/semver"

	"github.com/machineadm/machineadm/installer/manifest"
	"github.com/machineadm/machineadm/installer/windows"
)

// component is a file of the Windows installer.
type component struct {
	ID, GUID, Source, Name string
	Plugin                 bool
}

// msi writes the Windows installer. There is none of a pre-release: a version of Windows Installer has no place for it.
func (r *Release) msi(ctx context.Context, p Platform) (_ []artifact, err error) {
	if semver.Prerelease(r.Version) != "" {
		return nil, nil
	}
	dir, err := os.MkdirTemp("", "machineadm-release-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	programs := sorted(r.programs(p, roleCommand, rolePlugin))
	source, err := r.describe(programs)
	if err != nil {
		return nil, err
	}
	staged := append([]File{{Path: "machineadm.wxs", Mode: 0o644, Data: []byte(source)}}, programs...)
	if err := stage(dir, staged, r.Time); err != nil {
		return nil, err
	}
	const name = "machineadm.msi"
	run := func(program string, arguments ...string) error {
		// msitools writes the time of the clock.
		cmd := exec.CommandContext(ctx, "faketime", append([]string{"-f", r.Time.UTC().Format(time.DateTime), program}, arguments...)...) //nolint:gosec // ours
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "TZ=UTC", "LC_ALL=C.UTF-8")
		out, err := cmd.CombinedOutput()
		return wrap(program+": "+string(out), err)
	}
	if err := run("wixl", "--arch", "x64", "--output", name, "machineadm.wxs"); err != nil {
		return nil, err
	}
	for query := range strings.Lines(windows.Queries) {
		if err := run("msibuild", name, "-q", strings.TrimSpace(query)); err != nil {
			return nil, err
		}
	}
	if err := run("msibuild", name, "-s", "machineadm "+r.Version, "The machineadm authors", "x64;1033", "{"+identity("package", r.Version)+"}"); err != nil {
		return nil, err
	}
	a := artifact{File: r.file(manifest.KindMSI, p, ".msi")}
	for _, f := range programs { // at their places below the directory of the installation
		f.Path = strings.TrimPrefix(f.Path, roleCommand+"/")
		a.files = append(a.files, f)
	}
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	return []artifact{a}, os.WriteFile(filepath.Join(r.Out, a.Name), text, 0o644) //nolint:gosec // for everyone
}

// describe renders the source for wixl, with files relative to its directory.
func (r *Release) describe(programs []File) (string, error) {
	data := struct {
		Version, ProductCode string
		Components           []component
	}{Version: strings.TrimPrefix(r.Version, "v"), ProductCode: identity("product", r.Version)}
	for _, f := range programs {
		name := path.Base(f.Path)
		data.Components = append(data.Components, component{
			ID: strings.ReplaceAll(strings.TrimSuffix(name, ".exe"), "-", "_"), GUID: identity("component", name),
			Source: f.Path, Name: name, Plugin: path.Dir(f.Path) == rolePlugin,
		})
	}
	t, err := template.New("").Parse(windows.Installer)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	err = t.Execute(&text, data)
	return text.String(), err
}

// identity returns a UUID of version 5 in capitals, in the namespace of URLs.
func identity(what, name string) string {
	return strings.ToUpper(uuid.NewSHA1(uuid.NameSpaceURL, []byte(homepage+"#"+what+"="+name)).String())
}
