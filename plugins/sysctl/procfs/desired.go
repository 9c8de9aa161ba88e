package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/sysctl/internal/sysctld"
	"github.com/machineadm/machineadm/sdk"
)

// longestValue is what fits into one write to /proc/sys (sysctl.conf(5)).
const longestValue = 4095

// longestFileName is NAME_MAX of Linux file systems.
const longestFileName = 255

// parameter is one kernel parameter as the document wants it.
type parameter struct {
	key   sysctld.Key
	value string
	// field is the field path that asked for it.
	field string
	// optional marks a key of ignoreMissing.
	optional bool
}

// desired is a document with its profiles resolved.
type desired struct {
	name string
	// parameters are in the order in which they are written, live and at boot.
	parameters []parameter
	modules    []string
	warnings   []sdk.Warning
}

func (d desired) sysctlFile() string  { return ownedBy(d.name) }
func (d desired) modulesFile() string { return "/etc/modules-load.d/machineadm-" + d.name + ".conf" }

const (
	ownedPrefix = "99-machineadm-"
	ownedSuffix = ".conf"
)

func ownedBy(name string) string { return "/etc/sysctl.d/" + ownedPrefix + name + ownedSuffix }

// resolver collects everything that is wrong with a document, so that all of it is reported at once.
type resolver struct {
	known      []profile
	spec       v1alpha1.SysctlSpec
	violations []document.Violation
	warnings   []sdk.Warning
	byHand     map[sysctld.Key]parameter
	wanted     map[sysctld.Key]parameter
	modules    []string
	added      map[string]bool // modules, by canonical name
}

func (r *resolver) refuse(field document.Path, message, hint string) {
	r.violations = append(r.violations, document.Violation{Field: string(field), Message: message, Hint: hint})
}

// resolve is pure: it reads the document and the profiles, nothing else.
func resolve(doc v1alpha1.Sysctl, known []profile) (desired, []document.Violation) {
	r := resolver{
		known: known, spec: doc.Spec,
		byHand: map[sysctld.Key]parameter{}, wanted: map[sysctld.Key]parameter{}, added: map[string]bool{},
	}
	spec := document.Path("spec")
	name := document.Path("metadata").Field("name")
	if err := naming.ValidName(doc.Metadata.Name); err != nil {
		r.refuse(name, err.Error(), "")
	} else if longest := longestFileName - len(ownedPrefix+ownedSuffix); len(doc.Metadata.Name) > longest {
		r.refuse(name, "becomes too long a file name", fmt.Sprintf("use at most %d characters", longest))
	}
	if len(doc.Spec.Parameters)+len(doc.Spec.Profiles)+len(doc.Spec.Modules) == 0 {
		r.refuse(spec, "asks for nothing", "give parameters, profiles or modules, or remove the document")
	}
	r.providerConfig(spec.Field("providerConfig"))
	r.parameters(spec.Field("parameters"))
	r.profiles(spec)
	r.explicitModules(spec.Field("modules"))
	r.ignoreMissing(spec.Field("ignoreMissing"))
	return desired{
		name:       doc.Metadata.Name,
		parameters: slices.SortedFunc(maps.Values(r.wanted), writingOrder),
		modules:    r.modules,
		warnings:   r.warnings,
	}, r.violations
}

func (r *resolver) providerConfig(field document.Path) {
	if len(r.spec.ProviderConfig) == 0 {
		return
	}
	var options map[string]json.RawMessage
	if err := json.Unmarshal(r.spec.ProviderConfig, &options); err != nil {
		r.refuse(field, "must be a mapping", "remove it: procfs has no options of its own")
	}
	for _, name := range slices.Sorted(maps.Keys(options)) {
		r.refuse(field.Field(name), "unknown field", "remove it: procfs has no options of its own")
	}
}

func (r *resolver) parameters(field document.Path) {
	for _, text := range slices.Sorted(maps.Keys(r.spec.Parameters)) {
		at := field.Key(text)
		value := strings.TrimSpace(string(r.spec.Parameters[text]))
		if strings.ContainsFunc(value, func(c rune) bool { return c != '\t' && unicode.IsControl(c) }) {
			r.refuse(at, "a value has no control characters", "write it on one line")
		}
		if len(value) > longestValue {
			r.refuse(at, fmt.Sprintf("a value has at most %d bytes", longestValue), "")
		}
		key, err := sysctld.ParseKey(text)
		if err != nil {
			r.refuse(at, err.Error(), "write it like net.ipv4.ip_forward or net/ipv4/conf/eth0.100/rp_filter")
			continue
		}
		if twin, ok := r.byHand[key]; ok {
			r.refuse(at, "names the same parameter as "+twin.field, "keep one of the two spellings")
			continue
		}
		r.byHand[key] = parameter{key: key, value: value, field: string(at)}
		r.wanted[key] = r.byHand[key]
	}
}

func (r *resolver) profiles(spec document.Path) {
	for i, name := range r.spec.Profiles {
		at := spec.Field("profiles").Index(i)
		found := slices.IndexFunc(r.known, func(p profile) bool { return p.name == name })
		if found < 0 {
			r.refuse(at, "unknown profile", "use one of "+strings.Join(profileNames(r.known), ", "))
			continue
		}
		p := r.known[found]
		for _, key := range slices.Sorted(maps.Keys(p.parameters)) {
			r.profileParameter(parameter{key: key, value: p.parameters[key], field: string(at)}, p.name)
		}
		for _, module := range p.modules {
			r.addModule(module)
		}
	}
}

func (r *resolver) profileParameter(p parameter, profileName string) {
	if hand, ok := r.byHand[p.key]; ok {
		if !sameValue(hand.value, p.value) {
			r.warnings = append(r.warnings, overridden(hand, p, profileName))
		}
		return
	}
	if other, ok := r.wanted[p.key]; ok && !sameValue(other.value, p.value) {
		r.refuse(document.Path(p.field), fmt.Sprintf("sets %s to another value than %s does", p.key, other.field),
			"give the parameter in spec.parameters, which decides, or keep one of the two profiles")
		return
	}
	r.wanted[p.key] = p
}

func overridden(hand, p parameter, profileName string) sdk.Warning {
	message := fmt.Sprintf("the document's own value %s wins over %s of profile %s", hand.value, p.value, profileName)
	if p.key == ipForward {
		message += "; kubeadm's preflight fails unless it is 1 (FileContent--proc-sys-net-ipv4-ip_forward)"
	}
	return sdk.Warning{Field: hand.field, Message: message}
}

func (r *resolver) explicitModules(field document.Path) {
	// A module's name as modprobe(8) and modules-load.d(5) take it, at most MODULE_NAME_LEN of the kernel.
	valid := regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]{0,54}$`)
	for i, module := range r.spec.Modules {
		if !valid.MatchString(module) {
			r.refuse(field.Index(i), "is not a module name", "use letters, digits, _ and - alone, and no options")
			continue
		}
		r.addModule(module)
	}
}

// addModule keeps one of several spellings: to the kernel - and _ are the same.
func (r *resolver) addModule(module string) {
	if canonical := canonicalModule(module); !r.added[canonical] {
		r.added[canonical] = true
		r.modules = append(r.modules, module)
	}
}

func canonicalModule(name string) string { return strings.ReplaceAll(name, "-", "_") }

func (r *resolver) ignoreMissing(field document.Path) {
	for i, text := range r.spec.IgnoreMissing {
		key, err := sysctld.ParseKey(text)
		if err != nil {
			r.refuse(field.Index(i), err.Error(), "")
			continue
		}
		p, ok := r.wanted[key]
		if !ok {
			r.refuse(field.Index(i), "is no parameter of this document or of its profiles", "correct or remove it")
			continue
		}
		p.optional = true
		r.wanted[key] = p
	}
}

// writingOrder puts first what resets other parameters: switching forwarding changes redirects and more, and the values
// under conf/all and conf/default spread to interfaces (kernel documentation, networking/ip-sysctl).
func writingOrder(a, b parameter) int {
	return cmp.Or(cmp.Compare(rank(a.key), rank(b.key)), strings.Compare(string(a.key), string(b.key)))
}

func rank(key sysctld.Key) int {
	switch path := string(key); {
	case key == ipForward, strings.HasPrefix(path, "net/") && strings.HasSuffix(path, "/conf/all/forwarding"):
		return 0
	case strings.HasPrefix(path, "net/") && strings.Contains(path, "/all/"):
		return 1
	case strings.HasPrefix(path, "net/") && strings.Contains(path, "/default/"):
		return 2
	}
	return 3
}

// sameValue compares as the kernel shows values: 4096<tab>131072<tab>6291456 is 4096 131072 6291456.
func sameValue(a, b string) bool { return slices.Equal(strings.Fields(a), strings.Fields(b)) }
