package document

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// envelope reads the fields that all kinds share.
type envelope struct {
	chunk  chunk
	doc    *Document
	faults []fault
	object bool // a field of an object in a cluster was reported
}

// entry is a field of a mapping. Null means absent.
type entry struct {
	path       Path
	key, value *yaml.Node
}

func (f entry) given() bool { return f.value != nil && f.value.Tag != "!!null" }

func (e *envelope) fault(field Path, at *yaml.Node, message, hint string) {
	e.faults = append(e.faults, fault{field: field, at: e.chunk.at(at), message: message, hint: hint})
}

// fields reads a mapping and reports unknown fields. The result has a (possibly empty) entry for each of known.
func (e *envelope) fields(p Path, n *yaml.Node, known ...string) map[string]entry {
	found := make(map[string]entry, len(known))
	for _, name := range known {
		found[name] = entry{path: p.Field(name), key: n}
	}
	var unknown []int
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode || key.Tag == "!!merge" || len(key.Value) > MaxKeyBytes {
			continue // the checker reports it
		}
		f, ok := found[key.Value]
		switch {
		case !ok:
			unknown = append(unknown, i)
		case f.value == nil: // the first of duplicates
			found[key.Value] = entry{path: f.path, key: key, value: n.Content[i+1]}
		}
	}
	for _, i := range unknown[:min(len(unknown), MaxErrors)] {
		e.unknown(p, n.Content[i], n.Content[i+1], found, known)
	}
	return found
}

// unknown reports an unknown field. One that is written in another case than a field that is absent is read as that field, so
// that only the case is reported.
func (e *envelope) unknown(p Path, key, value *yaml.Node, found map[string]entry, known []string) {
	name, message := key.Value, unknownField
	hint := instead(name, known)
	switch meant := Nearest(name, known); {
	case isObjectField(p, name):
		if e.object {
			return
		}
		e.object = true
		message = "is a field of an object in a cluster, not of a document"
		hint = "remove it and the other fields of this sort, such as " + strings.Join(objectFields[:3], ", ") + " and status"
	case strings.EqualFold(name, meant) && found[meant].value == nil:
		found[meant] = entry{path: found[meant].path, key: key, value: value}
	case outdented(found, name) != "":
		hint = "indent it, if it belongs to " + outdented(found, name)
	}
	e.fault(p.Field(name), key, message, hint)
}

// objectFields are the fields of metadata that objects of Kubernetes have and documents do not. Source: k8s.io/apimachinery,
// pkg/apis/meta/v1, ObjectMeta.
var objectFields = []string{ //nolint:gochecknoglobals // a constant table
	"namespace", "labels", "annotations", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
	"managedFields", "ownerReferences", "finalizers", "generateName", "selfLink",
}

func isObjectField(p Path, name string) bool {
	return p == "metadata" && slices.Contains(objectFields, name) || p == "" && name == "status"
}

var metadataFields = []string{"name", "timeout", "when"} //nolint:gochecknoglobals // a constant table

// outdented returns the field of the document, metadata or spec, that has no value although its key is there, and that an unknown
// field of the document may belong to, or "".
func outdented(found map[string]entry, name string) string {
	empty := func(field string) bool { return found[field].value != nil && !found[field].given() }
	switch {
	case empty("metadata") && slices.Contains(metadataFields, name):
		return "metadata"
	case empty("spec"):
		return "spec"
	}
	return ""
}

func (e *envelope) read(root *yaml.Node) {
	if root.Kind != yaml.MappingNode {
		e.fault("", root, "must be a mapping", "write the fields apiVersion, kind, metadata and spec")
		return
	}
	fields := e.fields("", root, "apiVersion", "kind", "metadata", "spec")
	versionHint := "write one, such as " + v1alpha1.APIVersion
	if version := fields["apiVersion"]; version.given() && Nearest(version.value.Value, []string{v1alpha1.APIVersion}) != "" {
		versionHint = "did you mean " + v1alpha1.APIVersion + "?"
	}
	e.text(fields["apiVersion"], true, validAPIVersion, versionHint, &e.doc.APIVersion)
	kindHint := "write one, such as Sysctl"
	if kind := fields["kind"]; kind.given() {
		if near := SuggestKind(kind.value.Value); near != "" {
			kindHint = "did you mean " + near + "?"
		}
	}
	e.text(fields["kind"], true, naming.ValidKind, kindHint, &e.doc.Kind)
	if metadata := fields["metadata"]; e.mapping(metadata, "add metadata with a name") {
		e.metadata(metadata)
	}
	if spec := fields["spec"]; e.mapping(spec, "indent its fields below it, or write spec: {} for an empty spec") {
		e.spec(spec)
	}
}

// mapping reports a missing field, and a field that is not a mapping.
func (e *envelope) mapping(f entry, hint string) bool {
	switch {
	case !f.given():
		e.fault(f.path, f.key, "is required", hint)
		return false
	case f.value.Kind == yaml.AliasNode:
		return false // the checker reports it
	case f.value.Kind != yaml.MappingNode:
		e.fault(f.path, f.key, "must be a mapping", "")
		return false
	}
	return true
}

// text reads a valid string into into. A plain value of another type that is invalid as a string, too, gets the error of
// valid, because quotes would not help.
func (e *envelope) text(f entry, required bool, valid func(string) error, hint string, into *string) {
	switch {
	case !f.given():
		if required {
			e.fault(f.path, f.key, "is required", hint)
		}
	case f.value.Kind == yaml.AliasNode:
	case f.value.Kind != yaml.ScalarNode:
		e.fault(f.path, f.key, "must be a string", hint)
	case valid(f.value.Value) != nil:
		e.fault(f.path, f.key, valid(f.value.Value).Error(), hint)
	case f.value.Tag != "!!str" && f.value.Tag != "!!timestamp" && f.value.Tag != "!!merge":
		e.fault(f.path, f.key, "must be a string", "put the value in quotes")
	default:
		*into = f.value.Value
	}
}

func (e *envelope) metadata(metadata entry) {
	fields := e.fields(metadata.path, metadata.value, metadataFields...)
	// A missing field is reported at the key metadata, not at its first field.
	for name, f := range fields {
		if f.value == nil {
			f.key = metadata.key
			fields[name] = f
		}
	}
	e.text(fields["name"], true, naming.ValidName, "write one, such as site-time", &e.doc.Name)
	e.doc.nameAt = e.chunk.at(fields["name"].key)
	var timeout string
	e.text(fields["timeout"], false, validTimeout, "write a number with its unit, such as 90s, 5m or 1h30m", &timeout)
	if timeout != "" {
		e.doc.Timeout, _ = time.ParseDuration(timeout) // valid by validTimeout
	}
	e.when(fields["when"])
}

// when reads the selector strictly.
func (e *envelope) when(when entry) {
	if !when.given() || when.value.Kind == yaml.AliasNode {
		return
	}
	check := checker{chunk: e.chunk}
	check.value(when.value, 2)
	if len(check.faults) > 0 {
		return // already reported
	}
	var selector target.Selector
	violations := Unmarshal(check.out, &selector)
	places := e.chunk.placeOf("", when.key, when.value)
	for _, v := range violations {
		e.faults = append(e.faults, fault{
			field: when.path.join(v.Field), at: places.find(v.Field), message: v.Message, hint: v.Hint,
		})
	}
	e.identifiers(when)
	e.doc.When = selector
}

// identifiers refuses names that match no machine, with which the document would silently never apply.
func (e *envelope) identifiers(when entry) {
	if when.value.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(when.value.Content); i += 2 {
		list := when.value.Content[i+1]
		if list.Kind != yaml.SequenceNode {
			continue // already reported
		}
		field := when.path.Field(when.value.Content[i].Value)
		if name := when.value.Content[i].Value; len(list.Content) == 0 && slices.Contains([]string{"os", "distributions", "architectures"}, name) {
			e.fault(field, list, "is empty", "name what the document is for, or remove the field")
		}
		for j, item := range list.Content {
			if item.Kind == yaml.ScalarNode && item.Tag != "!!null" {
				e.identifier(when.value.Content[i].Value, field.Index(j), item)
			}
		}
	}
}

// identifier checks a name of a selector: operating systems and architectures are closed sets, distributions are not.
func (e *envelope) identifier(list string, at Path, item *yaml.Node) {
	var known []string
	switch list {
	case "os":
		known = target.OperatingSystems()
	case "architectures":
		known = target.Architectures()
	}
	switch {
	case item.Tag != "!!str" && item.Tag != "!!timestamp": // already reported: 386 needs quotes
	case known == nil && !isIdentifier(item.Value):
		e.fault(at, item, "must consist of a-z, 0-9, dots, dashes and underscores", "write it in lower case, as os-release(5) does")
	case known == nil && distributionID(item.Value) != item.Value:
		e.fault(at, item, "is the ID of no distribution", "use "+distributionID(item.Value)+": an ID is that of os-release(5), and has no version")
	case known != nil && !slices.Contains(known, item.Value):
		message := "is not an operating system that machineadm supports"
		if list == "architectures" {
			message = "is not the GOARCH name of an architecture"
		}
		e.fault(at, item, message, instead(goName(item.Value), known))
	}
}

// distributionID returns the ID that os-release(5) has for another common name of a distribution, or for its ID with a version.
func distributionID(name string) string {
	base := strings.TrimRight(name, "0123456789.-_")
	id := map[string]string{
		"redhat": "rhel", "red-hat": "rhel", "centos-stream": "centos", "rockylinux": "rocky", "alma": "almalinux", "oracle": "ol", "oraclelinux": "ol",
		"amazon": "amzn", "amazonlinux": "amzn", "al": "amzn", "sle": "sles", "photonos": "photon", "flatcar-linux": "flatcar",
	}[base]
	switch {
	case id != "":
		return id
	case slices.Contains(strings.Fields("almalinux alpine amzn azurelinux centos debian fedora flatcar ol photon rhel rocky sles ubuntu"), base):
		return base
	}
	return name
}

// goName returns the GOARCH name for another common name of an architecture.
func goName(name string) string {
	switch strings.ToLower(name) {
	case "x86_64", "x86-64", "x64":
		return "amd64"
	case "aarch64":
		return "arm64"
	}
	return name
}

func (e *envelope) spec(spec entry) {
	n := spec.value
	for i := 0; i+1 < len(n.Content); i += 2 {
		if key := n.Content[i]; key.Kind == yaml.ScalarNode && key.Value == "provider" {
			provider := entry{path: spec.path.Field("provider"), key: key, value: n.Content[i+1]}
			e.text(provider, false, naming.ValidProvider, "write one, such as chronyd", &e.doc.Provider)
			return
		}
	}
}

// validAPIVersion accepts GROUP/VERSION, such as machineadm.cluster.x-k8s.io/v1alpha1, or VERSION.
func validAPIVersion(text string) error {
	group, version, found := "", text, false
	if i := strings.LastIndexByte(text, '/'); i >= 0 {
		group, version, found = text[:i], text[i+1:], true
	}
	if found && naming.ValidName(group) != nil || naming.ValidProvider(version) != nil {
		return fmt.Errorf("must be a group, which is a DNS subdomain, a slash and a version")
	}
	return nil
}

func validTimeout(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return fmt.Errorf("must be a duration above zero") // not %w: time quotes the value
	}
	return nil
}

func isIdentifier(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '.' && c != '-' && c != '_' {
			return false
		}
	}
	return s != ""
}
