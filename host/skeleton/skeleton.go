// Package skeleton writes the beginnings of a plugin: a Go module with one conformance case that passes the kit.
//
// What it writes is text. The host knows neither the SDK that the text uses nor the plugin that comes of it.
package skeleton

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// templates holds a folder for what every module has, and one for each form of plugin. The names of the files are those
// that are written, with .tmpl behind them.
//
//go:embed all:templates
var templates embed.FS

const (
	// DefaultAPIVersion is that of a new kind whose group is not given.
	DefaultAPIVersion = "example.com/v1"

	suffix = ".tmpl"
	// unpublished is the version of a machineadm that only a checkout holds.
	unpublished = "v0.0.0"
	goVersion   = "1.26.0"
)

// Options say what plugin it is to be. Check has the rules.
type Options struct {
	Kind, Provider string
	// APIVersion is that of a new kind; empty is DefaultAPIVersion. A kind of machineadm's own has one already.
	APIVersion string
	// Module is the path of the Go module; empty makes one of the group and the binary's name.
	Module string
	// Version is the version of machineadm that the module requires. One that is no release is taken from a checkout.
	Version string
}

// File is a file of a skeleton. Its name is below the skeleton's directory, with slashes.
type File struct {
	Name string
	Data []byte
}

// Binary is the name of the plugin.
func (o Options) Binary() string { return naming.Binary(o.Kind, o.Provider) }

// Files renders the skeleton. The options must have passed Check.
func (o Options) Files() ([]File, error) { return o.files(o.form()) }

// files renders the folder that every module has, and that of its form.
func (o Options) files(form string) ([]File, error) {
	facts := o.facts()
	var files []File
	for _, folder := range []string{"module", form} {
		below, err := fs.Sub(templates, path.Join("templates", folder))
		if err != nil {
			return nil, err
		}
		if err := fs.WalkDir(below, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			file, err := render(below, name, facts)
			files = append(files, file)
			return err
		}); err != nil {
			return nil, fmt.Errorf("render the skeleton: %w", err)
		}
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files, nil
}

// form is the folder of templates.
func (o Options) form() string {
	switch {
	case o.Kind == v1alpha1.KindSysctl:
		return "sysctl" // which does something
	case slices.Contains(structs(), o.Kind):
		return "own"
	}
	return "kind"
}

// structs lists the kinds of machineadm's own that have a struct in contract/v1alpha1, which a test compares.
func structs() []string { return []string{v1alpha1.KindContainerRuntime, v1alpha1.KindSysctl} }

// facts are what the templates are filled with. All of it passed Check, so that nothing of it can end a line, a string
// or a path.
type facts struct {
	Options
	Binary string
	File   string // the configuration file of a new kind
	Phase  string // of a kind of machineadm's own
	Go     string
	// Unpublished says that machineadm comes from a checkout.
	Unpublished bool
}

func (o Options) facts() facts {
	f := facts{Options: o, Binary: o.Binary(), File: "etc/" + naming.Kebab(o.Kind) + ".conf", Go: goVersion, Phase: "Preparation"}
	if slices.Contains([]string{v1alpha1.KindDomainJoin, v1alpha1.KindKubernetesNode}, o.Kind) {
		f.Phase = "Provisioning" // they need the identity of the machine
	}
	if f.APIVersion == "" {
		f.APIVersion = DefaultAPIVersion
	}
	group, _, _ := strings.Cut(f.APIVersion, "/")
	if f.Module == "" {
		f.Module = group + "/" + f.Binary
	}
	if !isRelease(f.Version) {
		f.Version, f.Unpublished = unpublished, true
	}
	return f
}

// render fills one template. Its name is filled, too: FILE stands for the configuration file.
func render(in fs.FS, name string, f facts) (File, error) {
	text, err := fs.ReadFile(in, name)
	if err != nil {
		return File{}, err
	}
	parsed, err := template.New(name).Funcs(template.FuncMap{"plain": plain}).Parse(string(text))
	if err != nil {
		return File{}, err
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, f); err != nil {
		return File{}, err
	}
	return File{Name: strings.Replace(strings.TrimSuffix(name, suffix), "FILE", f.File, 1), Data: out.Bytes()}, nil
}

// plain is a text of letters, digits and dashes as YAML: in quotes where it would be something else than a text.
func plain(text string) string {
	other := []string{"null", "true", "false", "yes", "no", "on", "off", "y", "n"}
	if text[0] >= '0' && text[0] <= '9' || slices.Contains(other, strings.ToLower(text)) {
		return strconv.Quote(text)
	}
	return text
}
