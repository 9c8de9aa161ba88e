package settings

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/machineadm/machineadm/contract/document"
)

// providerConfig is the schema of spec.providerConfig for this provider.
type providerConfig struct {
	// Version is the version of containerd to assume where none is installed.
	Version string `json:"version"`
	// Patches are fragments of containerd's configuration as TOML. A patch with version = 2 or 3 is for containerd 1.x or
	// 2.x alone.
	Patches []string `json:"patches"`
}

// longestPatch bounds the depth to which a fragment can nest.
const longestPatch = 64 << 10

func (r *resolver) providerConfig(field document.Path) (version string, patches []patch) {
	if len(r.spec.ProviderConfig) == 0 {
		return "", nil
	}
	var config providerConfig
	decoding := document.Unmarshal(r.spec.ProviderConfig, &config)
	for i, v := range decoding {
		if v.Field != "" && !strings.HasPrefix(v.Field, "[") {
			v.Field = "." + v.Field
		}
		decoding[i].Field = string(field) + v.Field
	}
	before := len(r.violations)
	defer func() {
		r.violations = append(r.violations[:before], document.Join(decoding, r.violations[before:])...)
	}()
	if config.Version != "" {
		const hint = "write it like 1.7 or 2.1.4"
		release, err := ParseRelease(config.Version)
		if !r.invalid(err, field+".version", hint) {
			r.refuse(!release.Supported(), field+".version", "is older than 1.6, the oldest that this plugin configures", hint)
		}
	}
	for i, text := range config.Patches {
		if p, ok := r.patch((field + ".patches").Index(i), text); ok {
			patches = append(patches, p)
		}
	}
	return config.Version, patches
}

func (r *resolver) patch(at document.Path, text string) (patch, bool) {
	p := patch{field: at}
	if r.refuse(len(text) > longestPatch, at, fmt.Sprintf("is longer than %d KiB", longestPatch>>10), "divide it") {
		return p, false
	}
	var tree map[string]any
	if err := toml.Unmarshal([]byte(text), &tree); err != nil { // never its text: it may quote
		message := "is not TOML"
		if fault, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, column := fault.Position()
			message = fmt.Sprintf("is not TOML: see its line %d, column %d", line, column)
		}
		return p, !r.refuse(true, at, message, "give a fragment of containerd's configuration")
	}
	if version, ok := tree["version"]; ok {
		if r.refuse(version != int64(2) && version != int64(3), at, "has a version that is not written",
			"write version = 2 in what is for containerd 1.x, version = 3 in what is for 2.x, or none") {
			return p, false
		}
		number, _ := version.(int64)
		p.version = int(number)
		delete(tree, "version")
	}
	if r.invalid(p.flatten(nil, tree), at, "") {
		return p, false
	}
	r.refuse(len(p.values) == 0, at, "sets nothing", "give a fragment of containerd's configuration, or remove it")
	ok := true
	for _, v := range p.values {
		message, hint := reserved(v.Path)
		if ok = !r.refuse(message != "", at, fmt.Sprintf("sets %s, %s", Dotted(v.Path), message), hint) && ok; message != "" {
			continue
		}
		switch message, hint, certain := patchFault(v.Path, v.Value); {
		case certain:
			ok = !r.refuse(true, at, fmt.Sprintf("sets %s, which %s", Dotted(v.Path), message), hint) && ok
		case len(v.Path) == 1 && v.Path[0] == "disabled_plugins" && servesKubelet(v.Value):
			r.warn(at, "sets disabled_plugins to a list with the plugin by which the kubelet starts containers: remove it from the list")
		case len(v.Path) == 3 && v.Path[0] == "proxy_plugins" && v.Path[2] == "type" && !isProxyType(v.Value):
			r.warn(at, fmt.Sprintf("sets %s, of which containerd makes no plugin: use snapshot, content, sandbox or diff", Dotted(v.Path)))
		case v.Path[len(v.Path)-1] == "ip_pref" && !slices.Contains([]any{"", "ipv4", "ipv6", "cni"}, v.Value):
			r.warn(at, fmt.Sprintf("sets %s, for which containerd takes ipv4: use ipv4, ipv6 or cni", Dotted(v.Path)))
		case message != "":
			r.warn(at, fmt.Sprintf("sets %s, %s: %s", Dotted(v.Path), message, hint))
		}
	}
	for _, v := range p.values {
		if len(v.Path) != 3 || v.Path[0] != "proxy_plugins" || v.Path[2] != "type" {
			continue
		}
		address := []string{v.Path[0], v.Path[1], "address"}
		if !slices.ContainsFunc(p.values, func(other Setting) bool { return slices.Equal(other.Path, address) }) {
			r.warn(at, fmt.Sprintf("sets %s without its address, at which containerd asks the plugin: set it as well", Dotted(v.Path)))
		}
	}
	return p, ok
}

// servesKubelet reports whether a list of plugins has one of the Container Runtime Interface.
func servesKubelet(list any) bool {
	items, _ := list.([]any)
	return slices.ContainsFunc(items, func(item any) bool { return slices.Contains([]any{CRIPlugin, RuntimePlugin, ImagesPlugin}, item) })
}

// isProxyType reports whether containerd makes a plugin of a proxy plugin of a type, which has a short name and that of the plugin.
func isProxyType(value any) bool {
	text, _ := value.(string)
	return strings.Contains(text, ".") || slices.Contains([]string{"snapshot", "content", "sandbox", "diff"}, text)
}

// flatten divides tables into values. An array is one value.
func (p *patch) flatten(path []string, table map[string]any) error {
	for _, key := range sortedKeys(table) {
		at := append(slices.Clone(path), key)
		if below, ok := table[key].(map[string]any); ok {
			if err := p.flatten(at, below); err != nil {
				return err
			}
			continue
		}
		if !settable(table[key]) {
			return fmt.Errorf("sets %s to a date or a time, which containerd does not have", Dotted(at))
		}
		p.values = append(p.values, Setting{Path: at, Value: table[key], Field: string(p.field)})
	}
	return nil
}

// settable reports whether a value has no date or time.
func settable(value any) bool {
	switch v := value.(type) {
	case string, bool, int64, float64:
		return true
	case []any:
		return !slices.ContainsFunc(v, func(each any) bool { return !settable(each) })
	case map[string]any:
		return !slices.ContainsFunc(sortedKeys(v), func(key string) bool { return !settable(v[key]) })
	}
	return false
}

// reserved is the reason why a patch may not set a path: another field is for it, or the value is a secret.
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
