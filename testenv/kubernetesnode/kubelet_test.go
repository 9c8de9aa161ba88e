package kubernetesnode

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/document"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/cluster"
	"github.com/machineadm/machineadm/testenv/tools"
)

// TestKubeletConfiguration: the table of configurations is true of the kubelet.
func TestKubeletConfiguration(t *testing.T) {
	t.Parallel()
	kubelet := exec.CommandContext(t.Context(), tools.For(t, "kubeletconfig"))
	table, err := os.ReadFile("../../plugins/kubernetes-node/kubeadm/internal/settings/testdata/kubelet.txt")
	require.NoError(t, err)
	var lines, results []string
	var input strings.Builder
	for line := range strings.Lines(string(table)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		config, _, _ := strings.Cut(line, " # ")
		result, config, _ := strings.Cut(config, " ")
		// This machine has version 1 of control groups.
		data, err := document.JSON("", []byte(strings.TrimSpace(config)))
		require.NoError(t, err, line)
		switch result {
		case "later":
			result = "no"
		case "ends": // and not as soon as this
			result = "yes"
		}
		lines, results = append(lines, line), append(results, result)
		input.WriteString(`{"apiVersion":"kubelet.config.k8s.io/v1beta1","kind":"KubeletConfiguration","failCgroupV1":false` +
			strings.Replace(","+strings.TrimPrefix(string(data), "{"), ",}", "}", 1) + "\n")
	}
	kubelet.Stdin = strings.NewReader(input.String())
	out, err := kubelet.Output()
	require.NoError(t, err)
	answers := strings.Split(string(out), "\n")
	require.Len(t, answers, len(lines)+1)
	for i, result := range results {
		got := "no"
		switch {
		case answers[i] == "":
			got = "yes"
		case strings.HasPrefix(answers[i], "dropped: "):
			got = "drops"
		}
		assert.Equal(t, result, got, "%s%s", lines[i], answers[i])
	}
}

// TestCommandLines: the table of arguments is true of the programs. Help that is asked for last is shown after the others were read.
func TestCommandLines(t *testing.T) {
	t.Parallel()
	table, err := os.ReadFile("../../plugins/kubernetes-node/kubeadm/internal/settings/testdata/arguments.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); f[0] != "#" {
			out, err := exec.CommandContext(t.Context(), cluster.Program(t, f[1]), "--"+f[2], "--help").CombinedOutput()
			assert.Equal(t, f[0] == "yes", err == nil, "%s%.300s", line, out)
		}
	}
}

// TestValuesOfCommandLines: the table of values and of pairs is true of the programs. Each program gets a command line that it refuses for one reason,
// and reports all reasons at once, so that it never starts; a value that it takes adds none.
func TestValuesOfCommandLines(t *testing.T) {
	t.Parallel()
	table, err := os.ReadFile("../../plugins/kubernetes-node/kubeadm/internal/settings/testdata/values.txt")
	require.NoError(t, err)
	refusal := func(program string, args ...string) string {
		base := map[string][]string{
			"kube-apiserver":          {"--secure-port=70000", "--etcd-servers=http://127.0.0.1:1", "--authorization-mode=Node,RBAC"},
			"kube-controller-manager": {"--secure-port=70000"}, "kube-scheduler": {"--secure-port=70000"},
		}[program]
		if slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--authorization-mode") }) || len(args) > 0 && strings.HasPrefix(args[0], "--authorization-config") {
			base = slices.DeleteFunc(base, func(arg string) bool { return strings.HasPrefix(arg, "--authorization-mode") })
		}
		out, err := exec.CommandContext(t.Context(), cluster.Program(t, program), append(base, args...)...).CombinedOutput()
		require.Error(t, err)
		i := strings.LastIndex(string(out), "rror: ")
		if i < 0 {
			i = max(strings.LastIndex(string(out), `err="`), 0)
		}
		return string(out[i:])
	}
	for line := range strings.Lines(string(table)) {
		f := strings.Fields(line)
		if f[0] == "#" {
			continue
		}
		args := make([]string, 0, len(f))
		for _, arg := range f[2:] {
			args = append(args, "--"+arg)
		}
		before, after := refusal(f[1]), refusal(f[1], args...)
		assert.Equal(t, f[0] == "yes", before == after, "%s%.600s", line, after)
	}
}

// TestEveryArgumentIsKnown: the table of arguments has every argument that the programs list, so that another name is a fault of the document.
func TestEveryArgumentIsKnown(t *testing.T) {
	t.Parallel()
	table, err := os.ReadFile("../../plugins/kubernetes-node/kubeadm/internal/settings/arguments.txt")
	require.NoError(t, err)
	for _, program := range []string{"kubelet", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"} {
		out, _ := exec.CommandContext(t.Context(), cluster.Program(t, program), "--help").CombinedOutput() // some exit with 1 after help
		listed := regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z][a-z0-9-]+)`).FindAllStringSubmatch(string(out), -1)
		require.Greater(t, len(listed), 50, "%s%.300s", program, out)
		for _, m := range listed {
			if m[1] != "help" && m[1] != "version" { // with which the program ends at once
				assert.Regexp(t, "(?m)^"+program+" "+m[1]+" ", string(table))
			}
		}
	}
}

// TestEveryControllerIsKnown: the table has every controller that kube-controller-manager lists, and it takes every name of the table.
func TestEveryControllerIsKnown(t *testing.T) {
	t.Parallel()
	table, err := os.ReadFile("../../plugins/kubernetes-node/kubeadm/internal/settings/arguments.txt")
	require.NoError(t, err)
	program := cluster.Program(t, "kube-controller-manager")
	out, err := exec.CommandContext(t.Context(), program, "--help").CombinedOutput()
	require.NoError(t, err)
	listed := regexp.MustCompile(`(?m)All controllers: (.*)$`).FindStringSubmatch(string(out))
	require.Len(t, listed, 2, "%.300s", out)
	for _, name := range strings.Split(listed[1], ", ") {
		assert.Regexp(t, "(?m)^controllers "+name+" ", string(table))
	}
	names := []string{"*", "another"} // it refuses all that it lacks at once
	for _, m := range regexp.MustCompile(`(?m)^controllers (\S+) name \d+ 3[67]$`).FindAllStringSubmatch(string(table), -1) {
		names = append(names, m[1], "-"+m[1])
	}
	out, err = exec.CommandContext(t.Context(), program, "--controllers="+strings.Join(names, ",")).CombinedOutput()
	require.Error(t, err)
	assert.Equal(t, 1, strings.Count(string(out), "not in the list of known controllers"), "%s", out)
}

// TestTablesOfKubernetes: the tables of fields, of feature gates and of arguments are as the sources of Kubernetes have them, which are downloaded
// into the module cache.
func TestTablesOfKubernetes(t *testing.T) {
	t.Parallel()
	needs.Tier(t, needs.Cluster)
	for table, args := range map[string][]string{"fields.txt": nil, "gates.txt": {"gates"}, "arguments.txt": {"arguments"}} {
		want, err := os.ReadFile("../../plugins/kubernetes-node/kubeadm/internal/settings/" + table)
		require.NoError(t, err)
		got, err := exec.CommandContext(t.Context(), "go", append([]string{"run", "../tools/cmd/fields"}, args...)...).Output()
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got), "write it with go run ./testenv/tools/cmd/fields %v", args)
	}
}
