package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

func (r *resolver) runtimes(field document.Path) []Runtime {
	var all []Runtime
	for _, name := range sortedKeys(r.spec.Runtimes) {
		at := field.Key(name)
		if !r.refuse(!regexp.MustCompile(`^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$`).MatchString(name), at,
			"is not a name that a RuntimeClass can have as its handler", "use at most 63 of a-z, 0-9 and -") {
			all = append(all, r.runtime(at, name, r.spec.Runtimes[name]))
		}
	}
	return all
}

func (r *resolver) runtime(at document.Path, name string, want v1alpha1.Runtime) Runtime {
	h := Runtime{Field: at, Name: name, shim: want.Type, binary: want.Binary, cgroupDriver: want.CgroupDriver}
	if h.shim == "" {
		h.shim = shimOf(name)
		r.refuse(h.shim == "", at+".type", "is missing, and cannot be derived from this name", "write it like "+runcShim)
	} else if r.refuse(!regexp.MustCompile(`^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)+\.v[0-9]+$`).MatchString(h.shim), at+".type",
		"is not a type of runtime", "write it like "+runcShim+": containerd runs containerd-shim-runc-v2 for it") {
		h.shim = ""
	}
	if name != "runc" && name != "crun" && h.shim == runcShim && h.binary == "" && h.cgroupDriver == "" && len(want.Options) == 0 && want.BaseSpec == nil {
		r.warn(at, "is runc by another name, unless the machine's own configuration has its binary: set binary to that of this runtime")
	}
	r.directory(at+".binary", h.binary)
	if program := h.binary[strings.LastIndexAny(h.binary, `/\`)+1:]; program != "" && h.shim != "" && !IsOCI(h.shim) && !strings.Contains(program, "shim") {
		r.warn(at+".binary", "is not named as a shim, which containerd starts for this type: write the path of containerd-shim-NAME-VERSION, unless this is one")
	}
	if h.binary == "" && name == "crun" && h.shim == runcShim {
		h.binary = name // the shim looks for it on the daemon's path; its default is runc
	}
	r.refuse(h.cgroupDriver != "" && h.shim != "" && !IsOCI(h.shim), at+".cgroupDriver",
		"is for OCI runtimes alone, of type "+runcShim, "remove it, and say it in the configuration of this runtime")
	h.options = r.options(at+".options", h.shim, want.Options)
	h.Rlimits, h.SpecPatch = r.baseSpec(at+".baseSpec", want.BaseSpec)
	return h
}

// shimOf is the type of a runtime with a well-known name, empty for any other.
func shimOf(name string) string {
	family, _, _ := strings.Cut(name, "-")
	switch {
	case name == "runc" || name == "crun":
		return runcShim
	case family == "kata":
		return "io.containerd.kata.v2"
	case name == "runsc":
		return "io.containerd.runsc.v1"
	case family == "runhcs":
		return "io.containerd.runhcs.v1"
	}
	return ""
}

// ociOptions are the options of the OCI shim and their types: containerd ignores any other option, and a wrong type fails
// every pod. Source: api/types/runc/options/oci.proto of containerd.
func ociOptions() map[string]string {
	return map[string]string{
		"NoPivotRoot": "a boolean", "NoNewKeyring": "a boolean", "ShimCgroup": "a string", "IoUid": "an integer",
		"IoGid": "an integer", "Root": "a string", "CriuPath": "a string", "CriuImagePath": "a string",
		"CriuWorkPath": "a string", "TaskApiAddress": "a string", "TaskApiVersion": "an integer",
	}
}

func (r *resolver) options(field document.Path, shim string, want map[string]json.RawMessage) map[string]any {
	all := map[string]any{}
	known := ociOptions()
	for _, name := range sortedKeys(want) {
		at := field.Key(name)
		value, err := fromJSON(want[name])
		if r.invalid(err, at, "") {
			continue
		}
		all[name] = value
		shape, ok := known[name]
		switch {
		case !IsOCI(shim):
			r.shimOption(at, shim, name, value, want)
		case name == "SystemdCgroup":
			r.refuse(true, at, "is set by cgroupDriver", "write cgroupDriver: systemd or cgroupfs instead")
		case name == "BinaryName":
			r.refuse(true, at, "is set by binary", "write binary: and the path instead")
		case !ok:
			r.refuse(true, at, "is no option of this type of runtime", "use one of "+strings.Join(sortedKeys(known), ", "))
		default:
			r.refuse(shape != shapeOf(value), at, "must be "+shape, "")
		}
	}
	return all
}

// shimOption looks at an option of a shim other than runc's: containerd passes on the path of its configuration alone. Sources:
// getRuntimeOptionsType of containerd, the documents of Kata Containers and of gVisor.
func (r *resolver) shimOption(at document.Path, shim, name string, value any, all map[string]json.RawMessage) {
	text, isText := value.(string)
	switch {
	case strings.HasPrefix(shim, "io.containerd.runhcs."):
	case !slices.ContainsFunc([]string{"TypeUrl", "ConfigPath", "ConfigBody"}, func(known string) bool { return strings.EqualFold(known, name) }):
		r.warn(at, "is no option of this type of runtime, and containerd ignores it: set it in the configuration of the runtime, which ConfigPath names")
	case strings.EqualFold(name, "ConfigPath"):
		r.refuse(!isText || !path.IsAbs(text) && !strings.Contains(text, `:\`) || strings.HasSuffix(text, "/"), at, "must be the absolute path of a file", "write it like /opt/kata/share/defaults/kata-containers/configuration.toml")
		if shim == "io.containerd.runsc.v1" && all["TypeUrl"] == nil {
			r.warn(at, "is refused by gVisor without TypeUrl: add TypeUrl: io.containerd.runsc.v1.options")
		}
	default:
		r.refuse(!isText, at, "must be a string", "")
	}
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

// decode decodes one JSON value, with numbers as text.
func decode(raw json.RawMessage, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if decoder.Decode(into) != nil { // its error may quote
		return errors.New("is not a value")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("is not a value")
	}
	return nil
}

// fromJSON converts a JSON value to one that TOML can express.
func fromJSON(raw json.RawMessage) (any, error) {
	var value any
	if err := decode(raw, &value); err != nil {
		return nil, err
	}
	return toTOML(value)
}

func toTOML(value any) (any, error) {
	var err error
	switch v := value.(type) {
	case nil:
		return nil, errors.New("holds null, which TOML cannot express")
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n, nil
		}
		if n, err := v.Float64(); err == nil && strings.ContainsAny(v.String(), ".eE") {
			return n, nil
		}
		return nil, errors.New("holds a number that TOML cannot express")
	case []any:
		for i := range v {
			if v[i], err = toTOML(v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for key := range v {
			if v[key], err = toTOML(v[key]); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}

func (r *resolver) baseSpec(at document.Path, want *v1alpha1.BaseSpec) (limits map[string]v1alpha1.Rlimit, patch map[string]any) {
	if want == nil {
		return nil, nil
	}
	if len(want.Patch) > 0 {
		patch = r.specPatch(at, want.Patch)
	}
	for _, name := range sortedKeys(want.Rlimits) {
		at, limit := (at + ".rlimits").Key(name), want.Rlimits[name]
		r.refuse(!slices.Contains(rlimits(), name), at, "is not the name of a limit", "use one of "+strings.Join(rlimits(), ", "))
		r.refuse(limit.Soft > limit.Hard, at, "has a soft limit above the hard one", "raise hard or lower soft")
	}
	return want.Rlimits, patch
}

// specPatch reads a merge patch of a specification. The contract refuses text that is no patch.
func (r *resolver) specPatch(at document.Path, raw json.RawMessage) map[string]any {
	var patch map[string]any
	if decode(raw, &patch) != nil {
		return nil
	}
	_, version := patch["ociVersion"]
	r.refuse(version, at+".patch.ociVersion", "belongs to the runtime's own specification", "remove it")
	table, _ := patch["process"].(map[string]any)
	_, limits := table["rlimits"]
	r.refuse(limits, at+".patch.process.rlimits", "is what baseSpec.rlimits is for", "move it to "+string(at)+".rlimits")
	r.specFields(at+".patch", "", patch)
	return patch
}

// rlimits are the limits of the OCI runtime specification on Linux.
func rlimits() []string {
	return []string{
		"RLIMIT_AS", "RLIMIT_CORE", "RLIMIT_CPU", "RLIMIT_DATA", "RLIMIT_FSIZE", "RLIMIT_LOCKS", "RLIMIT_MEMLOCK",
		"RLIMIT_MSGQUEUE", "RLIMIT_NICE", "RLIMIT_NOFILE", "RLIMIT_NPROC", "RLIMIT_RSS", "RLIMIT_RTPRIO", "RLIMIT_RTTIME",
		"RLIMIT_SIGPENDING", "RLIMIT_STACK",
	}
}
