package render_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// withoutEffect returns fields that neither kubeadm nor a file shows, with the reason.
func withoutEffect() map[string]string {
	return map[string]string{
		"spec.provider":                            "selects the plugin",
		"spec.providerConfig":                      "is free, see kubeadmconfig.txt",
		"spec.kubernetesVersion":                   "is compared with the programs when a node joins",
		"spec.cluster.name":                        "identifies the cluster when a node joins",
		"spec.node.ipFrom.interface":               "depends on the machine, see the tests of settings",
		"spec.node.ipFrom.family":                  "depends on the machine, see the tests of settings",
		"spec.node.swap":                           "is of the machine, see TestSwapOff",
		"spec.node.ipFrom.hostname":                "is refused",
		"spec.node.ipFrom.jsonKeys":                "see the tests of settings",
		"spec.node.nameFrom.jsonKeys":              "see the tests of settings",
		"spec.node.providerIDFrom.hostname":        "see the tests of settings",
		"spec.node.providerIDFrom.key":             "see the tests of settings",
		"spec.node.ipFrom.prefix":                  "is refused by the form of an address",
		"spec.node.advertiseAddressFrom.interface": "depends on the machine, see the tests of settings",
		"spec.node.advertiseAddressFrom.family":    "depends on the machine, see the tests of settings",
		"spec.node.advertiseAddressFrom.hostname":  "is refused",
		"spec.node.advertiseAddressFrom.jsonKeys":  "see the tests of settings",
		"spec.node.advertiseAddressFrom.prefix":    "is refused by the form of an address",
		"spec.node.nameFrom.interface":             "is refused",
		"spec.node.nameFrom.family":                "is refused",
		"spec.node.providerIDFrom.interface":       "is refused",
		"spec.node.providerIDFrom.family":          "is refused",
	}
}

// TestEveryField: each field of the specification is in one of the documents, and what kubeadm reads or the machine gets
// changes when it is removed. For every release, a field is either rendered or refused.
func TestEveryField(t *testing.T) {
	t.Parallel()
	known, exempt := map[string]bool{}, withoutEffect()
	for _, name := range documents(t) {
		leaves(read(t, name, "v1.37.1"), "", func(path string) { known[generic(path)] = true })
	}
	fields := specFields(reflect.TypeFor[v1alpha1.KubernetesNodeSpec](), "spec")
	for _, field := range fields {
		within := func(path string) bool {
			return path == field || strings.HasPrefix(path, field+".") || strings.HasPrefix(path, field+"[")
		}
		assert.True(t, exempt[field] != "" || slices.ContainsFunc(slices.Collect(maps.Keys(known)), within), "no document has %s", field)
	}
	for _, kubeadm := range []string{"v1.30.14", "v1.37.1"} {
		for _, name := range documents(t) {
			t.Run(kubeadm+"/"+name, func(t *testing.T) {
				t.Parallel()
				tree := read(t, name, kubeadm)
				m := host(t, name)
				whole := rendered(t, m, kubeadm, tree)
				want := effect(t, whole)
				leaves(tree["spec"], "spec", func(path string) {
					refused := slices.ContainsFunc(whole.refused, func(v sdk.Violation) bool { return strings.HasPrefix(path, strings.TrimSuffix(v.Field, ".target")) })
					if refused || exempt[generic(path)] != "" {
						return
					}
					reduced := without(t, tree, path)
					if _, violations, err := resolve(t, m, reduced); len(violations) == 0 && err == nil {
						assert.False(t, want == effect(t, rendered(t, m, kubeadm, reduced)), "%s has no effect", path)
					}
				})
			})
		}
	}
}

// effect is all that a document leads to.
func effect(t testing.TB, r rendering) string {
	t.Helper()
	var all strings.Builder
	fmt.Fprintf(&all, "%s\n%q\n%s\n", r.Config, r.Flags, r.Kubeconfig)
	for _, p := range r.Patches {
		fmt.Fprintf(&all, "%s %s\n", p.Name, p.Content)
	}
	for _, list := range [][]settings.File{r.settings.Files, r.settings.Credentials} {
		for _, f := range list {
			fmt.Fprintf(&all, "%s %v %v %v %v\n%s\n", f.Path, f.Mode, f.Owner, f.Sensitive, f.After, f.Content)
		}
	}
	fmt.Fprintln(&all, r.settings.Modes)
	return all.String()
}

// generic replaces indexes and keys of maps by [].
func generic(path string) string {
	path = regexp.MustCompile(`\[[^]]*\]`).ReplaceAllString(path, "[]")
	return regexp.MustCompile(`(\.(?:labels|systemReserved|kubeReserved|evictionHard|config))[.\[].*`).ReplaceAllString(path, "$1")
}

// leaves calls visit for each value that is no mapping or list, each Secret, and each empty list.
func leaves(value any, path string, visit func(string)) {
	switch v := value.(type) {
	case map[string]any:
		if _, secret := v["value"].(string); secret && len(v) == 1 {
			visit(path)
			return
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			step := "." + key
			if strings.ContainsAny(key, "./") {
				quoted, _ := json.Marshal(key) //nolint:errchkjson // a string
				step = "[" + string(quoted) + "]"
			}
			leaves(v[key], strings.TrimPrefix(path+step, "."), visit)
		}
	case []any:
		for i, item := range v {
			leaves(item, fmt.Sprintf("%s[%d]", path, i), visit)
		}
		if len(v) == 0 {
			visit(path)
		}
	default:
		visit(path)
	}
}

// specFields returns the paths of all fields of a struct.
func specFields(of reflect.Type, path string) []string {
	switch {
	case of.Kind() == reflect.Pointer:
		return specFields(of.Elem(), path)
	case of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Struct:
		return specFields(of.Elem(), path+"[]")
	case of.Kind() != reflect.Struct || of == reflect.TypeFor[v1alpha1.Secret]():
		return []string{path}
	}
	var all []string
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		all = append(all, specFields(of.Field(i).Type, path+"."+name)...)
	}
	return all
}
