// Package skeleton writes the Go module of a new plugin, with one conformance case that passes the kit.
//
// The files are rendered from templates, because host must not import the SDK that they use.
package skeleton

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/contract/v1alpha1/examples"
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
	// APIVersion is the version of a new kind, by default DefaultAPIVersion. It is empty for a kind of machineadm.
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
	values := o.values()
	var files []File
	for _, folder := range []string{"module", form(o.Kind)} {
		below, err := fs.Sub(templates, path.Join("templates", folder))
		if err != nil {
			return nil, err
		}
		if err := fs.WalkDir(below, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			file, err := render(below, name, values)
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

// values returns the texts of the templates. Check ensures that none can end a line, a string or a path.
func (o Options) values() map[string]string {
	phase := "Preparation"
	if slices.Contains([]string{v1alpha1.KindDomainJoin, v1alpha1.KindKubernetesNode}, o.Kind) {
		phase = "Provisioning" // needs the identity of the machine
	}
	version, checkout := o.Version, ""
	if !isRelease(version) {
		version, checkout = unpublished, inCheckout
	}
	apiVersion := cmp.Or(o.APIVersion, DefaultAPIVersion)
	group, _, _ := strings.Cut(apiVersion, "/")
	v := map[string]string{
		"Kind": o.Kind, "Provider": o.Provider, "APIVersion": apiVersion, "Module": cmp.Or(o.Module, group+"/"+o.Binary()), "Version": version,
		"Binary": o.Binary(), "File": "etc/" + naming.Kebab(o.Kind) + ".conf", "Phase": phase, "Go": goVersion,
		"PlainKind": plain(o.Kind), "PlainProvider": plain(o.Provider), "Checkout": checkout, "Example": string(examples.For(v1alpha1.APIVersion, o.Kind, false)),
		"Case": "the tree before (`root`) and after (`expect`), and other", "Next": nextChange,
	}
	switch form(o.Kind) {
	case "source":
		v["Case"], v["Next"] = caseOfServer, "what is valid, how an object is opened, and with `Report` how the report of a run is kept"+nextServer
	case "keyprovider":
		v["Case"], v["Next"] = caseOfServer, "what is valid, how a passphrase is found, and with `NewPassphrase` how a new one is made"+nextServer
	}
	return v
}

// The parts of the README that not every plugin has.
const (
	inCheckout = "This version of machineadm is not published. Set `MACHINEADM` to the absolute path of a checkout:\n\n" +
		"```console\n$ go mod edit -replace=github.com/machineadm/machineadm=\"$MACHINEADM\"\n```\n\n"
	caseOfServer = "the files of a server for it (`served`), and the"
	nextServer   = ".\nSection 7 of contract/SPEC.md of machineadm has the rules, from P-40."
	nextChange   = "a struct for the document and one plan function.\n" +
		"docs/writing-a-plugin.md of machineadm explains both; contract/SPEC.md has the rules."
)

// render replaces {{NAME}} in one template. FILE in its name is replaced by the configuration file. The package text/template would
// make the linker keep every exported method of every type: a sixth of the program.
func render(in fs.FS, name string, values map[string]string) (File, error) {
	text, err := fs.ReadFile(in, name)
	if err != nil {
		return File{}, err
	}
	out := regexp.MustCompile(`\{\{(\w+)\}\}`).ReplaceAllStringFunc(string(text), func(found string) string {
		value, ok := values[strings.Trim(found, "{}")]
		if !ok {
			err = fmt.Errorf("%s: %s has no value", name, found)
		}
		return value
	})
	return File{Name: strings.Replace(strings.TrimSuffix(name, suffix), "FILE", values["File"], 1), Data: []byte(out)}, err
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
