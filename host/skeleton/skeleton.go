// Package skeleton writes the Go module of a new plugin, with one conformance case that passes the kit.
//
// The files are rendered from templates, because host must not import the SDK that they use.
package skeleton

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// templates holds the files of every module, and a directory for each form of plugin: own (a provider of a kind of
// machineadm), source (of RemoteConfig), keyprovider (of EncryptedConfig) and kind (a new kind). A file has the name of the rendered file with the suffix .tmpl.
//
//go:embed all:templates
var templates embed.FS

const (
	// DefaultAPIVersion is the API version of a new kind without a group.
	DefaultAPIVersion = "example.com/v1"

	suffix = ".tmpl"
	// unpublished is the version of machineadm in a checkout, which no module proxy serves.
	unpublished = "v0.0.0"
	goVersion   = "1.26.0"
)

// Options describe the new plugin; see Check.
type Options struct {
	Kind, Provider string
	// APIVersion is that of a new kind, by default DefaultAPIVersion. It is empty for a kind of machineadm.
	APIVersion string
	// Module is the path of the Go module, by default the group and the binary's name.
	Module string
	// Version is the required version of machineadm. Any version but a release comes from a checkout.
	Version string
}

// File is a file of a skeleton. Its name is relative to the skeleton's directory, with slashes.
type File struct {
	Name string
	Data []byte
}

// Binary returns the file name of the plugin.
func (o Options) Binary() string { return naming.Binary(o.Kind, o.Provider) }

// Files renders the skeleton. The options must have passed Check.
func (o Options) Files() ([]File, error) {
	facts := o.facts()
	var files []File
	for _, folder := range []string{"module", facts.Form} {
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

// form returns the directory of the templates for a kind.
func form(kind string) string {
	switch {
	case kind == v1alpha1.KindRemoteConfig:
		return "source"
	case kind == v1alpha1.KindEncryptedConfig:
		return "keyprovider"
	case slices.Contains(v1alpha1.Kinds(), kind):
		return "own"
	}
	return "kind"
}

// facts are the values of the templates. Check ensures that none can end a line, a string or a path.
type facts struct {
	Options
	Binary string
	Form   string // the directory of the templates
	File   string // the configuration file of a new kind
	Phase  string // of a kind of machineadm
	Go     string
	// Unpublished means that machineadm comes from a checkout.
	Unpublished bool
}

func (o Options) facts() facts {
	f := facts{Options: o, Binary: o.Binary(), Form: form(o.Kind), File: "etc/" + naming.Kebab(o.Kind) + ".conf", Go: goVersion, Phase: "Preparation"}
	if slices.Contains([]string{v1alpha1.KindDomainJoin, v1alpha1.KindKubernetesNode}, o.Kind) {
		f.Phase = "Provisioning" // needs the identity of the machine
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

// render renders one template. FILE in its name stands for the configuration file.
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

// plain returns letters, digits and dashes as a YAML string, quoted where YAML would read another type.
func plain(text string) string {
	other := []string{"null", "true", "false", "yes", "no", "on", "off", "y", "n"}
	if text[0] >= '0' && text[0] <= '9' || slices.Contains(other, strings.ToLower(text)) {
		return strconv.Quote(text)
	}
	return text
}

// isRelease reports whether a module proxy serves the version.
func isRelease(version string) bool {
	return version != unpublished && regexp.MustCompile(`^v(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}(-(alpha|beta|rc)\.\d+)?$`).MatchString(version)
}
