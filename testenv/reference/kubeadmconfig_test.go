package reference

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/blang/semver/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	kubeadm "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/types"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/types/upstream"

	"github.com/machineadm/machineadm/contract/document"
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

// TestKubeadmConfigRows: Cluster API renders the KubeadmConfig of a row to the fields of kubeadm that the document has in the test of the
// plugin, and each row that ends in the configuration of kubeadm is in the table.
func TestKubeadmConfigRows(t *testing.T) {
	t.Parallel()
	table, err := os.ReadFile(root + "/plugins/kubernetes-node/kubeadm/internal/render/testdata/kubeadmconfig.txt")
	require.NoError(t, err)
	rows := map[string]bool{}
	for line := range strings.Lines(string(table)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if strings.HasPrefix(line, "#") {
			continue
		}
		rows[cells[0]] = true
		if cells[1] == "-" {
			continue
		}
		kind, want, _ := strings.Cut(cells[3], " ")
		have := renderedByClusterAPI(t, kind, cells[1])
		assert.True(t, has(have, jsonOf(t, want)), "%s%v", line, have)
	}
	page, err := os.ReadFile(root + "/docs/coming-from-kubeadmconfig.md")
	require.NoError(t, err)
	for _, row := range regexp.MustCompile("(?m)^\\| `((?:cluster|init|join)Configuration\\.[^`]+)` \\| (.+) \\|$").FindAllStringSubmatch(string(page), -1) {
		elsewhere := strings.HasPrefix(row[2], "none, ") && !strings.Contains(row[2], "For one more: ") || strings.HasPrefix(row[2], "as ")
		assert.True(t, rows[row[1]] || elsewhere, "the table has no line for %s", row[1])
		delete(rows, row[1])
	}
	delete(rows, "joinConfiguration.nodeRegistration") // as initConfiguration.nodeRegistration
	delete(rows, "joinConfiguration.timeouts")
	assert.Empty(t, rows, "the page has no row for them")
}

// renderedByClusterAPI is what kubeadm gets of the fields of a KubeadmConfig.
func renderedByClusterAPI(t *testing.T, kind, fields string) any {
	t.Helper()
	data, err := document.JSON("", []byte(fields))
	require.NoError(t, err)
	var spec kubeadm.KubeadmConfigSpec
	require.NoError(t, json.Unmarshal(data, &spec), fields)
	version := semver.MustParse("1.37.1")
	var text string
	switch kind {
	case "Cluster":
		text, err = types.MarshalClusterConfigurationForVersion(&spec.ClusterConfiguration, version, &upstream.AdditionalData{})
	case "Init":
		text, err = types.MarshalInitConfigurationForVersion(&spec.InitConfiguration, version)
	case "Join":
		text, err = types.MarshalJoinConfigurationForVersion(&spec.JoinConfiguration, version)
	}
	require.NoError(t, err)
	return jsonOf(t, text)
}

func jsonOf(t *testing.T, text string) (value any) {
	t.Helper()
	data, err := document.JSON("", []byte(text))
	require.NoError(t, err, text)
	require.NoError(t, json.Unmarshal(data, &value))
	return value
}

// has reports whether a value has all that another one has. Durations are equal in each form.
func has(have, want any) bool {
	a, b := reflect.ValueOf(have), reflect.ValueOf(want)
	object, isObject := have.(map[string]any)
	switch want := want.(type) {
	case map[string]any:
		for name, value := range want {
			isObject = isObject && has(object[name], value)
		}
		return isObject
	case []any:
		same := a.Kind() == reflect.Slice && a.Len() == len(want)
		for i := 0; same && i < len(want); i++ {
			same = has(a.Index(i).Interface(), want[i])
		}
		return same
	case string:
		first, err := time.ParseDuration(fmt.Sprint(have))
		second, wrong := time.ParseDuration(want)
		return err == nil && wrong == nil && first == second || have == any(want)
	}
	return a.IsValid() && b.IsValid() && a.Equal(b)
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
