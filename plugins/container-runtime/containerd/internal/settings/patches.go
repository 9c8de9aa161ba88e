package settings

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/machineadm/machineadm/contract/document"
)

// providerConfig is what this provider reads of spec.providerConfig.
type providerConfig struct {
	// Version is the one of containerd to assume where none is installed that could be asked.
	Version string `json:"version"`
	// Patches are fragments of containerd's configuration, TOML. One that says version = 2 or 3 is for containerd 1.x or
	// 2.x alone.
	Patches []string `json:"patches"`
}

// longestPatch bounds how deep a fragment can nest.
const longestPatch = 64 << 10

func (r *resolver) providerConfig(field document.Path) (version string, patches []patch) {
	if len(r.spec.ProviderConfig) == 0 {
		return "", nil
	}
	var config providerConfig
	decoding := document.Unmarshal(r.spec.ProviderConfig, &config)
	for i, v := range decoding {
		switch {
		case strings.HasPrefix(v.Field, "["):
			decoding[i].Field = string(field) + v.Field
		case v.Field != "":
			decoding[i].Field = string(field) + "." + v.Field
		default:
			decoding[i].Field = string(field)
		}
	}
	before := len(r.violations)
	defer func() {
		r.violations = append(r.violations[:before], document.Join(decoding, r.violations[before:])...)
	}()
	if config.Version != "" {
		const hint = "write it like 1.7 or 2.1.4"
		if release, err := ParseRelease(config.Version); err != nil {
			r.refuse(field.Field("version"), err.Error(), hint)
		} else if !release.Supported() {
			r.refuse(field.Field("version"), "is older than 1.6, the oldest that this plugin configures", hint)
		}
	}
	for i, text := range config.Patches {
		if p, ok := r.patch(field.Field("patches").Index(i), text); ok {
			patches = append(patches, p)
		}
	}
	return config.Version, patches
}

func (r *resolver) patch(at document.Path, text string) (patch, bool) {
	p := patch{field: at}
	if len(text) > longestPatch {
		r.refuse(at, fmt.Sprintf("is longer than %d KiB", longestPatch>>10), "divide it")
		return p, false
	}
	var tree map[string]any
	if err := toml.Unmarshal([]byte(text), &tree); err != nil { // never its text: it may quote
		message := "is not TOML"
		if fault, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, column := fault.Position()
			message = fmt.Sprintf("is not TOML: see its line %d, column %d", line, column)
		}
		r.refuse(at, message, "give a fragment of containerd's configuration")
		return p, false
	}
	if version, ok := tree["version"]; ok {
		number, _ := version.(int64)
		if number != 2 && number != 3 {
			r.refuse(at, "has a version that is not written", "write version = 2 in what is for containerd 1.x, version = 3 in what is for 2.x, or none")
			return p, false
		}
		p.version = int(number)
		delete(tree, "version")
	}
	if err := p.flatten(nil, tree); err != nil {
		r.refuse(at, err.Error(), "")
		return p, false
	}
	if len(p.values) == 0 {
		r.refuse(at, "sets nothing", "give a fragment of containerd's configuration, or remove it")
	}
	ok := true
	for _, v := range p.values {
		if message, hint := reserved(v.path); message != "" {
			r.refuse(at, fmt.Sprintf("sets %s, %s", Dotted(v.path), message), hint)
			ok = false
		}
	}
	return p, ok
}

// flatten takes tables apart; an array is one value, whatever is in it.
func (p *patch) flatten(path []string, table map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(table)) {
		at := append(slices.Clone(path), key)
		if below, ok := table[key].(map[string]any); ok {
			if err := p.flatten(at, below); err != nil {
				return err
			}
			continue
		}
		if !settable(table[key]) {
			return fmt.Errorf("sets %s to a date or a time, which containerd has none of", Dotted(at))
		}
		p.values = append(p.values, patched{at, table[key]})
	}
	return nil
}

func settable(value any) bool {
	switch v := value.(type) {
	case string, bool, int64, float64:
		return true
	case []any:
		return !slices.ContainsFunc(v, func(each any) bool { return !settable(each) })
	case map[string]any:
		for _, each := range v {
			if !settable(each) {
				return false
			}
		}
		return true
	}
	return false
}

// reserved says why a patch cannot set something: it would break what the rest of the document makes, or show a secret.
func reserved(path []string) (message, hint string) {
	if path[0] == "imports" {
		return "which spec.imports is for", "move it to spec.imports"
	}
	if len(path) < 3 || path[0] != "plugins" || path[1] != CRIPlugin && path[1] != ImagesPlugin || path[2] != "registry" {
		return "", ""
	}
	if len(path) > 3 && path[3] == "headers" {
		return "which may be secret, and a patch is not", "move them to spec.registryHeaders"
	}
	return "which spec.registries is for", "move it to spec.registries"
}
