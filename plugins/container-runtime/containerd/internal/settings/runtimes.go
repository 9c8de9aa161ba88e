package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// wellKnown is the type of a runtime that goes by this name; empty when none does.
func wellKnown(name string) string {
	is := func(prefix string) bool { return name == prefix || strings.HasPrefix(name, prefix+"-") }
	switch {
	case name == "runc" || name == "crun":
		return runcType
	case is("kata"):
		return "io.containerd.kata.v2"
	case name == "runsc":
		return "io.containerd.runsc.v1"
	case is("runhcs"):
		return hcsType
	}
	return ""
}

func (r *resolver) runtimes(field document.Path) []handler {
	var all []handler
	for _, name := range sortedKeys(r.spec.Runtimes) {
		at := field.Key(name)
		if !regexp.MustCompile(`^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$`).MatchString(name) {
			r.refuse(at, "is not a name that a RuntimeClass can have as its handler", "use at most 63 of a-z, 0-9 and -")
			continue
		}
		all = append(all, r.runtime(at, name, r.spec.Runtimes[name]))
	}
	return all
}

func (r *resolver) runtime(at document.Path, name string, want v1alpha1.Runtime) handler {
	h := handler{Field: at, Name: name, kind: want.Type, binary: want.Binary, cgroupDriver: want.CgroupDriver}
	switch {
	case h.kind == "":
		if h.kind = wellKnown(name); h.kind == "" {
			r.refuse(at.Field("type"), "is missing, and this name is not one that tells it", "write it like "+runcType)
		}
	case !regexp.MustCompile(`^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)+\.v[0-9]+$`).MatchString(h.kind):
		r.refuse(at.Field("type"), "is not a type of runtime", "write it like "+runcType+": containerd runs containerd-shim-runc-v2 for it")
		h.kind = ""
	}
	r.directory(at.Field("binary"), h.binary)
	if h.binary == "" && name == "crun" && h.kind == runcType {
		h.binary = name // the shim looks for it on the daemon's path; without a name it would run runc
	}
	r.oneOf(at.Field("cgroupDriver"), h.cgroupDriver, cgroupDrivers()...)
	if h.cgroupDriver != "" && h.kind != "" && !IsOCI(h.kind) {
		r.refuse(at.Field("cgroupDriver"), "is for OCI runtimes alone, those of type "+runcType,
			"remove it, and say it in the configuration of this runtime")
	}
	h.options = r.options(at.Field("options"), h.kind, want.Options)
	h.Rlimits, h.SpecPatch = r.baseSpec(at.Field("baseSpec"), want.BaseSpec)
	return h
}

// ociOptions are the options of the OCI shim and their types; containerd passes over all others without a word, and a
// wrong type fails every pod. Source: api/types/runc/options/oci.proto of containerd.
func ociOptions() map[string]string {
	return map[string]string{
		"NoPivotRoot": "a boolean", "NoNewKeyring": "a boolean", "ShimCgroup": "a string", "IoUid": "an integer",
		"IoGid": "an integer", "Root": "a string", "CriuPath": "a string", "CriuImagePath": "a string",
		"CriuWorkPath": "a string", "TaskApiAddress": "a string", "TaskApiVersion": "an integer",
	}
}

func (r *resolver) options(field document.Path, kind string, want map[string]json.RawMessage) map[string]any {
	all := map[string]any{}
	for _, name := range sortedKeys(want) {
		at := field.Key(name)
		value, err := fromJSON(want[name])
		if err != nil {
			r.refuse(at, err.Error(), "")
			continue
		}
		all[name] = value
		if !IsOCI(kind) {
			continue
		}
		known := ociOptions()
		switch shape, ok := known[name]; {
		case name == "SystemdCgroup":
			r.refuse(at, "is said by cgroupDriver", "write cgroupDriver: systemd or cgroupfs instead")
		case name == "BinaryName":
			r.refuse(at, "is said by binary", "write binary: and the path instead")
		case !ok:
			r.refuse(at, "is no option of this type of runtime", "use one of "+strings.Join(sortedKeys(known), ", "))
		case shape != shapeOf(value):
			r.refuse(at, "must be "+shape, "")
		}
	}
	return all
}

func shapeOf(value any) string {
	switch v := value.(type) {
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case int64:
		if v >= 0 {
			return "an integer"
		}
	}
	return ""
}

// fromJSON makes of a value what TOML has for it.
func fromJSON(raw json.RawMessage) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil { // never %w: it may quote
		return nil, errors.New("is not a value")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("is not a value")
	}
	return toTOML(value)
}

func toTOML(value any) (any, error) {
	switch v := value.(type) {
	case nil:
		return nil, errors.New("holds null, which TOML cannot say")
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n, nil
		}
		if n, err := v.Float64(); err == nil && strings.ContainsAny(v.String(), ".eE") {
			return n, nil
		}
		return nil, errors.New("holds a number that TOML cannot say")
	case []any:
		for i := range v {
			part, err := toTOML(v[i])
			if err != nil {
				return nil, err
			}
			v[i] = part
		}
	case map[string]any:
		for key := range v {
			part, err := toTOML(v[key])
			if err != nil {
				return nil, err
			}
			v[key] = part
		}
	}
	return value, nil
}

func (r *resolver) baseSpec(at document.Path, want *v1alpha1.BaseSpec) (limits map[string]v1alpha1.Rlimit, patch map[string]any) {
	if want == nil {
		return nil, nil
	}
	if len(want.Patch) > 0 {
		patch = r.specPatch(at.Field("patch"), want.Patch)
	}
	field := at.Field("rlimits")
	if len(want.Rlimits)+len(want.Patch) == 0 {
		r.refuse(at, "asks for nothing", "give rlimits or patch, or remove it")
	}
	for _, name := range sortedKeys(want.Rlimits) {
		if !slices.Contains(rlimits(), name) {
			r.refuse(field.Key(name), "is not the name of a limit", "use one of "+strings.Join(rlimits(), ", "))
		}
		if limit := want.Rlimits[name]; limit.Soft > limit.Hard {
			r.refuse(field.Key(name), "has a soft limit above the hard one", "raise hard or lower soft")
		}
	}
	return want.Rlimits, patch
}

// specPatch reads a merge patch of a specification. Its errors quote nothing.
func (r *resolver) specPatch(at document.Path, raw json.RawMessage) map[string]any {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var patch map[string]any
	if err := decoder.Decode(&patch); err != nil || len(patch) == 0 {
		r.refuse(at, "must be a mapping with at least one key", "write it like an OCI runtime specification, as in {process: {oomScoreAdj: 100}}")
		return nil
	}
	if _, ok := patch["ociVersion"]; ok {
		r.refuse(at.Field("ociVersion"), "belongs to the runtime's own specification", "remove it")
	}
	process, given := patch["process"]
	table, ok := process.(map[string]any)
	if given && !ok {
		r.refuse(at.Field("process"), "must be a mapping", "")
	}
	if _, ok := table["rlimits"]; ok {
		r.refuse(at.Field("process").Field("rlimits"), "is what baseSpec.rlimits is for", "move it to "+string(at[:len(at)-len("patch")])+"rlimits")
	}
	return patch
}

// rlimits are those that the OCI runtime specification takes on Linux.
func rlimits() []string {
	return []string{
		"RLIMIT_AS", "RLIMIT_CORE", "RLIMIT_CPU", "RLIMIT_DATA", "RLIMIT_FSIZE", "RLIMIT_LOCKS", "RLIMIT_MEMLOCK",
		"RLIMIT_MSGQUEUE", "RLIMIT_NICE", "RLIMIT_NOFILE", "RLIMIT_NPROC", "RLIMIT_RSS", "RLIMIT_RTPRIO", "RLIMIT_RTTIME",
		"RLIMIT_SIGPENDING", "RLIMIT_STACK",
	}
}

func (r *resolver) defaultRuntime(field document.Path) {
	if r.spec.DefaultRuntime == nil {
		return
	}
	name := *r.spec.DefaultRuntime
	if _, listed := r.spec.Runtimes[name]; listed || name == "" {
		return
	}
	if own := builtin(r.at.Windows); !slices.Contains(own, name) {
		r.refuse(field, "is not one of spec.runtimes", "list it there, or use "+strings.Join(own, " or "))
	}
}
