package v1alpha1

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Refusal is a part of a document that every plugin of the kind and the controller refuse, whatever the machine: it asks for nothing, means
// nothing without another part, or contradicts one.
type Refusal struct {
	// Path has the names and the indices from spec to the field.
	Path []any
	// Message and Hint are the text of the violation. Neither repeats a value.
	Message, Hint string
}

// longestParameter is how many bytes one write to /proc/sys can carry (sysctl.conf(5)).
const longestParameter = 4095

// Refused returns the parts of the document that no node accepts.
func (s SysctlSpec) Refused() (all []Refusal) {
	refuse := func(message, hint string, path ...any) {
		all = append(all, Refusal{append([]any{"spec"}, path...), message, hint})
	}
	if len(s.Parameters)+len(s.Profiles)+len(s.Modules) == 0 {
		refuse("has no parameters, profiles or modules", "add one of them, or remove the document")
	}
	known := map[SysctlKey]string{}
	for _, text := range slices.Sorted(maps.Keys(s.Parameters)) {
		value := strings.TrimSpace(string(s.Parameters[text]))
		if strings.ContainsFunc(value, func(c rune) bool { return c != '\t' && unicode.IsControl(c) }) {
			refuse("a value has no control characters", "write it on one line", "parameters", text)
		}
		if len(value) > longestParameter {
			refuse(fmt.Sprintf("a value has at most %d bytes", longestParameter), "", "parameters", text)
		}
		key, err := ParseSysctlKey(text)
		if err != nil {
			refuse(err.Error(), "write it like net.ipv4.ip_forward or net/ipv4/conf/eth0.100/rp_filter", "parameters", text)
			continue
		}
		if other, ok := known[key]; ok {
			refuse("names the same parameter as "+other, "keep one of the two spellings", "parameters", text)
		}
		known[key] = text
	}
	// A module's name as modprobe(8) and modules-load.d(5) accept it, at most MODULE_NAME_LEN of the kernel.
	module := regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]{0,54}$`)
	for i, text := range s.Modules {
		if !module.MatchString(text) {
			refuse("is not a module name", "use only letters, digits, _ and -, and no options", "modules", i)
		}
	}
	profiles := SysctlProfiles()
	for _, name := range s.Profiles {
		for text := range profiles[name].Parameters {
			key, _ := ParseSysctlKey(text) // a test parses each
			known[key] = text
		}
	}
	for i, text := range s.IgnoreMissing {
		key, err := ParseSysctlKey(text)
		if err != nil {
			refuse(err.Error(), "", "ignoreMissing", i)
		} else if _, ok := known[key]; !ok {
			refuse("is no parameter of this document or of its profiles", "correct or remove it", "ignoreMissing", i)
		}
	}
	return all
}

// BuiltinRuntimes are the names that containerd has without an entry in its configuration, the default first. A document lists any other
// name in runtimes. Source: containerd's default configuration.
func BuiltinRuntimes(windows bool) []string {
	if windows {
		return []string{"runhcs-wcow-process", "runhcs-wcow-hypervisor"}
	}
	return []string{"runc"}
}

// Refused returns the parts of the document that no node accepts. What providerConfig asks for is up to the provider.
func (s ContainerRuntimeSpec) Refused() (all []Refusal) {
	const nothing, remove = "asks for nothing", "write what is wanted, or remove it"
	idle := func(value any, hint string, path ...any) {
		if v := reflect.ValueOf(value); v.Kind() != reflect.Pointer && v.IsZero() || v.Kind() == reflect.Pointer && !v.IsNil() && v.Elem().IsZero() {
			all = append(all, Refusal{path, nothing, hint})
		}
	}
	refuse := func(bad bool, message, hint string, path ...any) {
		if bad {
			all = append(all, Refusal{path, message, hint})
		}
	}
	refuse(s.RootDir != "" && s.RootDir == s.StateDir, "must be another directory than spec.rootDir", "give it a directory of its own: its content is lost at boot", "spec", "stateDir")
	idle(s.CDI, remove, "spec", "cdi")
	idle(s.NRI, remove, "spec", "nri")
	idle(s.CNI, remove, "spec", "cni")
	idle(s.Proxy, remove, "spec", "proxy")
	if p := s.Proxy; p != nil {
		refuse(len(p.NoProxy) > 0 && p.HTTP+p.HTTPS == "" && p.HTTPSecret.IsZero() && p.HTTPSSecret.IsZero(),
			"means nothing without a proxy", "give http or https, or remove it", "spec", "proxy", "noProxy")
		refuse(p.HTTP != "" && !p.HTTPSecret.IsZero(), "is given as well as spec.proxy.http", "keep one of the two", "spec", "proxy", "httpSecret")
		refuse(p.HTTPS != "" && !p.HTTPSSecret.IsZero(), "is given as well as spec.proxy.https", "keep one of the two", "spec", "proxy", "httpsSecret")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Runtimes)) {
		b := s.Runtimes[name].BaseSpec
		if b == nil {
			continue
		}
		var patch map[string]json.RawMessage
		switch at := []any{"spec", "runtimes", name, "baseSpec"}; {
		case len(b.Rlimits)+len(b.Patch) == 0:
			all = append(all, Refusal{at, nothing, "give rlimits or patch, or remove it"})
		case len(b.Patch) > 0 && (json.Unmarshal(b.Patch, &patch) != nil || len(patch) == 0):
			all = append(all, Refusal{
				append(at, "patch"), "must be a mapping with at least one key", "write it like an OCI runtime specification, as in {process: {oomScoreAdj: 100}}",
			})
		}
	}
	for _, host := range slices.Sorted(maps.Keys(s.Registries)) {
		idle(s.Registries[host], "give mirrors, a server, how it is reached or auth, or remove it", "spec", "registries", host)
		if a := s.Registries[host].Auth; a != nil {
			const hint = "give username and password, or identityToken alone"
			token := !a.IdentityToken.IsZero()
			refuse(token && (a.Username != "" || !a.Password.IsZero()), "has both a password and a token", hint, "spec", "registries", host, "auth")
			refuse(!token && (a.Username == "" || a.Password.IsZero()), "has neither username and password nor a token", hint, "spec", "registries", host, "auth")
		}
	}
	if name := s.DefaultRuntime; name != nil && *name != "" {
		builtin := slices.Concat(BuiltinRuntimes(false), BuiltinRuntimes(true))
		if _, listed := s.Runtimes[*name]; !listed && !slices.Contains(builtin, *name) {
			hint := "list it there, or use one of " + strings.Join(builtin, ", ")
			all = append(all, Refusal{[]any{"spec", "defaultRuntime"}, "is not one of spec.runtimes", hint})
		}
	}
	s.Provider = ""
	idle(s, "write what is wanted, or remove the document", "spec")
	return all
}
