package reference

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	kubeadm "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// TestComingFromKubeadmConfig: each field of a KubeadmConfig has a row, or one above it has, and each field that a row names is one.
func TestComingFromKubeadmConfig(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(root + "/docs/coming-from-kubeadmconfig.md")
	require.NoError(t, err)
	theirs := paths(reflect.TypeFor[kubeadm.KubeadmConfigSpec]())
	require.Contains(t, theirs, "clusterConfiguration.etcd.local.dataDir")
	ours := map[string]map[string]bool{
		"KubernetesNode": paths(reflect.TypeFor[contract.KubernetesNodeSpec]()), "Timesync": paths(reflect.TypeFor[contract.TimesyncSpec]()),
		"Sysctl": paths(reflect.TypeFor[contract.SysctlSpec]()), "Config": paths(reflect.TypeFor[bootstrap.MachineBootstrapConfigSpec]()),
	}
	rows := map[string]bool{}
	named := regexp.MustCompile("(KubernetesNode|Timesync|Sysctl|Config) `([^`]+)`")
	fields := 0
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (.+) \\|$").FindAllStringSubmatch(string(page), -1) {
		assert.True(t, theirs[row[1]], "KubeadmConfig has no field %s", row[1])
		assert.False(t, rows[row[1]], "two rows are for %s", row[1])
		rows[row[1]] = true
		for _, field := range named.FindAllStringSubmatch(row[2], -1) {
			fields++
			assert.True(t, ours[field[1]][field[2]], "%s: %s has no field %s", row[1], field[1], field[2])
		}
	}
	assert.Greater(t, fields, 60, "little was checked")
	for field := range theirs {
		covered := false
		for at := field; at != "" && !covered; at = strings.TrimSuffix(at[:max(strings.LastIndex(at, "."), 0)], "[]") {
			covered = rows[at]
		}
		assert.True(t, covered || above(rows, field), "KubeadmConfig has %s, the page has no row for it", field)
	}
}

// above says whether rows are for the fields of a field.
func above(rows map[string]bool, field string) bool {
	for row := range rows {
		if strings.HasPrefix(row, field+".") || strings.HasPrefix(row, field+"[]") {
			return true
		}
	}
	return false
}

// paths are the fields of a struct at every depth, as in YAML: a.b and list[].c.
func paths(of reflect.Type) map[string]bool {
	all := map[string]bool{}
	var walk func(at string, of reflect.Type)
	walk = func(at string, of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice && of != reflect.TypeFor[json.RawMessage]() {
			if of.Kind() == reflect.Slice {
				at += "[]"
			}
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || !strings.Contains(of.PkgPath(), "machineadm") && !strings.Contains(of.PkgPath(), "cluster-api") {
			return
		}
		for i := range of.NumField() {
			f := of.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case f.Anonymous && name == "":
				walk(at, f.Type)
			case name != "" && name != "-":
				field := strings.TrimPrefix(at+"."+name, ".")
				all[field] = true
				walk(field, f.Type)
			}
		}
	}
	walk("", of)
	return all
}
