package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/sysctl/internal/sysctld"
	"github.com/machineadm/machineadm/sdk"
)

const (
	// longestFileName is NAME_MAX of Linux file systems.
	longestFileName = 255
	// ownedPrefix and ownedSuffix enclose the document's name in the name of its file in /etc/sysctl.d.
	ownedPrefix = "99-machineadm-"
	ownedSuffix = ".conf"
)

// desired is the desired state of a document, profiles resolved.
type desired struct {
	name string
	// parameters are in the order in which they are written, live and at boot.
	parameters []parameter
	modules    []string
	// moduleFields are the fields that ask for the modules, by their canonical names.
	moduleFields map[string]string
	warnings     []sdk.Warning
}

// resolve is pure: its result depends on the document and the profiles alone.
func resolve(doc v1alpha1.Sysctl, known map[string]profile) (desired, []document.Violation) {
	r := resolver{known: known, spec: doc.Spec, byKey: map[sysctld.Key]parameter{}, fields: map[string]string{}}
	spec := document.Path("spec")
	name := document.Path("metadata").Field("name")
	if err := naming.ValidName(doc.Metadata.Name); err != nil {
		r.refuse(name, err.Error(), "")
	} else if longest := longestFileName - len(ownedPrefix+ownedSuffix); len(doc.Metadata.Name) > longest {
		r.refuse(name, "makes a file name too long", fmt.Sprintf("use at most %d characters", longest))
	}
	r.violations = append(r.violations, document.Refused(doc.Spec)...)
	r.providerConfig(spec.Field("providerConfig"))
	r.parameters(spec.Field("parameters"))
	r.profiles(spec.Field("profiles"))
	r.explicitModules(spec.Field("modules"))
	r.ignoreMissing()
	r.values()
	r.exclusive()
	r.ascending()
	r.routerAdvertisements()
	r.reversePath()
	r.localPorts()
	r.doubts()
	return desired{
		name:         doc.Metadata.Name,
		parameters:   slices.SortedFunc(maps.Values(r.byKey), writingOrder),
		modules:      r.modules,
		moduleFields: r.fields,
		warnings:     r.warnings,
	}, r.violations
}

func (r *resolver) providerConfig(field document.Path) {
	const hint = "remove it: procfs has no options of its own"
	var options map[string]json.RawMessage
	if len(r.spec.ProviderConfig) > 0 && json.Unmarshal(r.spec.ProviderConfig, &options) != nil {
		r.refuse(field, "must be a mapping", hint)
	}
	for _, name := range slices.Sorted(maps.Keys(options)) {
		r.refuse(field.Field(name), "unknown field", hint)
	}
}

func (r *resolver) parameters(parent document.Path) {
	for _, text := range slices.Sorted(maps.Keys(r.spec.Parameters)) {
		value := r.spec.Parameters[text]
		if key, err := v1alpha1.ParseSysctlKey(text); err == nil { // a key that is none is refused
			if strings.Contains(string(value), "{{") || strings.Contains(string(value), "${") {
				r.refuse(parent.Key(text), "has the mark of a template that was not rendered", "write the value itself")
			}
			r.byKey[key] = parameter{key: key, value: strings.TrimSpace(string(value)), field: string(parent.Key(text)), explicit: true}
		}
	}
}

func (r *resolver) profiles(parent document.Path) {
	for i, name := range r.spec.Profiles {
		field := parent.Index(i)
		p := r.known[name] // another name is refused by the rule of the field
		for _, key := range slices.Sorted(maps.Keys(p.parameters)) {
			r.profileParameter(parameter{key: key, value: p.parameters[key], field: string(field)}, name)
		}
		for _, module := range p.modules {
			r.addModule(module, field)
		}
	}
}

func (r *resolver) profileParameter(p parameter, profileName string) {
	other, ok := r.byKey[p.key]
	switch {
	case !ok:
		r.byKey[p.key] = p
	case sameValue(other.value, p.value):
	case other.explicit:
		message := fmt.Sprintf("the document's value %s overrides %s of profile %s", other.value, p.value, profileName)
		if p.key == ipForward || p.key == ipv6Forward {
			message += "; kubeadm's preflight fails unless it is 1 (FileContent--proc-sys-" + strings.ReplaceAll(string(p.key), "/", "-") + ")"
		}
		r.warnings = append(r.warnings, sdk.Warning{Field: other.field, Message: message})
	default:
		r.refuse(document.Path(p.field), fmt.Sprintf("sets %s to another value than %s does", p.key, other.field),
			"set the parameter in spec.parameters, which overrides profiles, or keep one of the two profiles")
	}
}

func (r *resolver) explicitModules(field document.Path) {
	for i, module := range r.spec.Modules { // what is no name is refused
		r.addModule(module, field.Index(i))
	}
}

// addModule keeps the first of several spellings.
func (r *resolver) addModule(module string, field document.Path) {
	name := canonicalModule(module)
	if _, known := r.fields[name]; !known {
		r.modules = append(r.modules, module)
		r.fields[name] = string(field)
	}
}

// canonicalModule returns the kernel's name of a module; - and _ are the same in names.
func canonicalModule(name string) string { return strings.ReplaceAll(name, "-", "_") }

func (r *resolver) ignoreMissing() {
	for _, text := range r.spec.IgnoreMissing {
		key, _ := v1alpha1.ParseSysctlKey(text) // what is no key, or none of the document's, is refused
		if p, ok := r.byKey[key]; ok {
			p.optional = true
			r.byKey[key] = p
		}
	}
}

// values refuses values of the document that no kernel takes.
func (r *resolver) values() {
	for _, key := range slices.Sorted(maps.Keys(r.byKey)) {
		p := r.byKey[key]
		refused := slices.ContainsFunc(r.violations, func(v document.Violation) bool { return v.Field == p.field })
		if message, hint := valueFault(p.key, p.value); message != "" && p.explicit && !refused {
			r.refuse(document.Path(p.field), message, hint)
		} else if odd := oddity(p.key, p.value); odd != "" && p.explicit && !p.optional && !refused {
			r.warn(p.field, odd)
		}
	}
}

// routerAdvertisements warns of a machine that forwards IPv6 and so takes no default route from routers any more, unless the document says of
// an interface what it takes. Source: kernel documentation, networking/ip-sysctl, accept_ra.
func (r *resolver) routerAdvertisements() {
	const conf, forwarding = "net/ipv6/conf/", "net/ipv6/conf/all/forwarding"
	p, set := r.byKey[forwarding]
	for key := range r.byKey {
		if path := string(key); strings.HasPrefix(path, conf) && strings.HasSuffix(path, "/accept_ra") {
			return
		}
	}
	if set && p.value != "0" {
		r.warn(p.field, "a machine that forwards IPv6 takes no default route from router advertisements"+
			" on an interface with accept_ra = 1: set net.ipv6.conf.NAME.accept_ra to 2 where it has to, or to 0 where it has not")
	}
}

// reversePath warns of a value for all interfaces that is not in force on each: the kernel uses the larger of both, and systemd sets 2 for each
// interface. Source: kernel documentation, networking/ip-sysctl, rp_filter, and sysctl.d/50-default.conf of systemd.
func (r *resolver) reversePath() {
	const conf, filter = "net/ipv4/conf/", "/rp_filter"
	all, set := r.byKey[conf+"all"+filter]
	for key := range r.byKey {
		name, ours := strings.CutPrefix(strings.TrimSuffix(string(key), filter), conf)
		if ours && strings.HasSuffix(string(key), filter) && name != "all" && name != "default" {
			return
		}
	}
	if set && all.value != "2" {
		r.warn(all.field, "each interface uses the larger of this value and its own, which systemd sets to 2: set net.ipv4.conf.NAME.rp_filter of the interfaces that need another one")
	}
}

// nodePorts is the default range of the ports of services.
const firstNodePort, lastNodePort = 30000, 32767

// localPorts warns of connections of the machine that use the ports of services. Source: kernel documentation, networking/ip-sysctl.
func (r *resolver) localPorts() {
	p, set := r.byKey["net/ipv4/ip_local_port_range"]
	_, reserved := r.byKey["net/ipv4/ip_local_reserved_ports"]
	var first, last int
	if _, err := fmt.Sscan(p.value, &first, &last); !set || err != nil || reserved || first > lastNodePort || last < firstNodePort {
		return
	}
	r.warn(p.field, fmt.Sprintf("connections of the machine take ports of services, %d to %d: begin with %d, or reserve those in net.ipv4.ip_local_reserved_ports",
		firstNodePort, lastNodePort, lastNodePort+1))
}

// writingOrder sorts parameters that reset others first: switching forwarding changes redirects and more, and the values
// of conf/all and conf/default spread to interfaces (kernel documentation, networking/ip-sysctl).
func writingOrder(a, b parameter) int {
	return cmp.Or(cmp.Compare(rank(a.key), rank(b.key)), strings.Compare(string(a.key), string(b.key)))
}

func rank(key sysctld.Key) int {
	path, net := strings.CutPrefix(string(key), "net/")
	switch {
	case key == ipForward, net && strings.HasSuffix(path, "/conf/all/forwarding"):
		return 0
	case net && strings.Contains(path, "/all/"):
		return 1
	case net && strings.Contains(path, "/default/"):
		return 2
	}
	return 3
}

// sameValue compares values as the kernel does, white space aside.
func sameValue(a, b string) bool { return slices.Equal(strings.Fields(a), strings.Fields(b)) }
