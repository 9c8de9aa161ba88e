package layout

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// quoteValue writes a value for EnvironmentFile=, which systemd reads as a shell does, without any expansion.
func quoteValue(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(text) + `"`
}

// ServiceFiles are the files of the daemon's unit: its drop-in, its variables, and trusted certificates. The variables have a file of their
// own: it overrides Environment= of every drop-in, and every user can read the environment in a unit. Windows has none of these.
// Source: systemd.exec(5), Environment= and EnvironmentFile=.
func ServiceFiles(d settings.Desired) []sdk.FileSpec {
	at := settings.PathsOf(d.OS)
	if at.Windows {
		return nil
	}
	var all []sdk.FileSpec
	var lines []string
	if d.Spec.TrustedCAs != "" {
		all = append(all, file(at.Bundle(), []byte(strings.TrimSpace(d.Spec.TrustedCAs)+"\n"), false))
	}
	if n := d.Spec.OOMScore; n != nil && *n == 0 {
		// In containerd's own configuration 0 leaves the value of the unit.
		lines = append(lines, "OOMScoreAdjust=0")
	}
	variables, secret := "", false
	for _, v := range d.Environment {
		variables += v.Name + "=" + quoteValue(string(v.Value.Reveal())) + "\n"
		secret = secret || v.Secret
	}
	if variables != "" {
		all = append(all, file(at.Environment(), []byte(header("systemd.exec(5), EnvironmentFile=")+variables), secret))
		// The daemon starts without the file too: most of a node works without a proxy.
		lines = append(lines, "EnvironmentFile=-"+at.Environment())
	}
	if lines != nil {
		text := fmt.Appendf(nil, "%s[Service]\n%s\n", header("systemd.exec(5)"), strings.Join(lines, "\n"))
		all = append(all, file(at.UnitDropIn(), text, false))
	}
	return all
}

// ServiceEnvironment is the environment of the service on Windows, nil elsewhere. Without variables it removes the ones of
// an earlier document. Secret variables are unsupported there.
func ServiceEnvironment(d settings.Desired) *sdk.ServiceEnvironment {
	if d.OS != "windows" {
		return nil
	}
	e := &sdk.ServiceEnvironment{}
	for _, v := range d.Environment {
		if !v.Secret {
			e.Variables = append(e.Variables, sdk.Variable{Name: v.Name, Value: string(v.Value.Reveal())})
		}
	}
	return e
}

// EmptyDropIn is the unit's drop-in of an earlier document, without content, where this document needs none. It takes
// effect and is rolled back with the same restart as the other files.
func EmptyDropIn(m sdk.Machine, files []sdk.FileSpec) ([]sdk.FileSpec, error) {
	at := settings.PathsOf(m.Target.OS)
	path := at.UnitDropIn()
	if at.Windows || contains(files, path) {
		return nil, nil
	}
	text, err := m.FS.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !managed(text) {
		return nil, nil
	}
	return []sdk.FileSpec{file(path, []byte(header("systemd.exec(5)")+"# It asks for nothing now.\n"), false)}, err
}

// Leftovers removes the files of our own directory that no file refers to any more.
func Leftovers(m sdk.Machine, files []sdk.FileSpec, result *sdk.Plan) error {
	at := settings.PathsOf(m.Target.OS)
	for _, directory := range []string{at.Own, at.Trusted()} {
		names, err := listing(m, directory)
		if err != nil {
			return err
		}
		for _, name := range names {
			path := at.Join(directory, name)
			ours := path == at.Bundle() || path == at.Environment() || strings.HasPrefix(name, "base-") && strings.HasSuffix(name, ".json")
			if !ours || contains(files, path) {
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

func contains(files []sdk.FileSpec, path string) bool {
	return slices.ContainsFunc(files, func(spec sdk.FileSpec) bool { return spec.Path == path })
}
