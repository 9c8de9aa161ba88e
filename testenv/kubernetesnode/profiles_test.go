package kubernetesnode

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/testenv/cluster"
	"github.com/machineadm/machineadm/testenv/nodes"
)

// rule is a line of the table in the plugin's README, which has every rule of every profile.
type rule struct {
	id           string // with the profile
	target, name string // as in settings.Rule
	value        string
}

// rules reads the table.
func rules(t *testing.T) []rule {
	t.Helper()
	text, err := os.ReadFile("../../plugins/kubernetes-node/kubeadm/README.md")
	require.NoError(t, err)
	setting := regexp.MustCompile("^(?:(\\w+) `([^`]+)` = `([^`]+)`|(kubelet) without `(\\w+)`|no `(hostname-override)`|mode (\\d+) of `([^`]+)`)$")
	var all []rule
	for _, line := range regexp.MustCompile("(?m)^\\| `([a-z0-9.-]+)` \\| ([^|]+) \\| ([^|]+) \\|").FindAllStringSubmatch(string(text), -1) {
		r := rule{id: line[1] + " " + line[2]}
		parts := setting.FindStringSubmatch(line[3])
		require.NotNil(t, parts, line[3])
		switch {
		case parts[1] != "":
			r.target, r.name, r.value = parts[1], parts[2], strings.Trim(parts[3], `"`)
		case parts[4] != "":
			r.target, r.name = "static pods", parts[5]
		case parts[6] != "":
			r.target, r.name = "argument", parts[6]
		default:
			r.target, r.name, r.value = "file", parts[8], parts[7]
		}
		all = append(all, r)
	}
	require.Greater(t, len(all), 40)
	return all
}

// byDefault are the rules that a node of kubeadm violates without a profile. It complies with the others, provided that the
// document overrides nothing, and that the name of the node is the host's. DISA demands that an argument is given even
// where that is the default of the program.
func byDefault() []string {
	return []string{
		"cis-1.11 1.2.15", "cis-1.11 1.2.30", "cis-1.11 1.3.2", "cis-1.11 1.4.1", "cis-1.11 4.1.9", "cis-1.11 4.2.12", "cis-1.11 4.2.14",
		"cis-1.11 4.2.5",
		"disa-k8s-v2r6 CNTR-K8-000150", "disa-k8s-v2r6 CNTR-K8-000160", "disa-k8s-v2r6 CNTR-K8-000170", "disa-k8s-v2r6 CNTR-K8-000180",
		"disa-k8s-v2r6 CNTR-K8-000190", "disa-k8s-v2r6 CNTR-K8-000440", "disa-k8s-v2r6 CNTR-K8-000910", "disa-k8s-v2r6 CNTR-K8-001300",
		"disa-k8s-v2r6 CNTR-K8-001400", "disa-k8s-v2r6 CNTR-K8-001620",
	}
}

// TestProfiles compares what runs on a control plane and on a worker with every rule, without profiles and with both. The
// sandbox has two exceptions: the kubelet requires values of the kernel (CNTR-K8-001620) of files that take the place of files of
// /proc/sys, and kube-proxy does not run, so that the configuration of its pods is compared.
func TestProfiles(t *testing.T) {
	t.Parallel()
	network := nodes.NewNetwork(t, "control", "worker")
	first, second := newApplicant(t, network, "control", true), newApplicant(t, network, "worker", false)
	made := func(profiles string) (violated []string) {
		t.Helper()
		first.applied(t, creating+"  profiles: "+profiles+"\n",
			"PULL", "Never", "KUBELET", "", "REGISTER", "true", "ETCD", "", "LEVEL", "Metadata", "WAIT", "3m")
		second.applied(t, joining+"  profiles: "+profiles+"\n",
			"TOKEN", token, "HASH", cluster.CACertHash(t, first.Node), "ENDPOINT", first.address+":6443", "ARGUMENT", "", "DIRECTORY", pki, "DISCOVERY", "1m", "WAIT", "3m")
		cluster.AwaitReady(t, first.Node, "/api/v1/nodes", 2)
		for _, n := range []applicant{first, second} {
			closed(t, n)
			state := observe(t, first, n)
			for _, r := range rules(t) {
				if !state.complies(r) {
					t.Logf("%s: %s", n.address, r.id)
					violated = append(violated, r.id)
				}
			}
		}
		slices.Sort(violated)
		return slices.Compact(violated)
	}
	assert.Equal(t, byDefault(), made("[]"))
	for _, n := range []applicant{second, first} {
		n.MustExec(t, "kubeadm", "reset", "--force")
	}
	assert.Empty(t, made("[disa-k8s-v2r6, cis-1.11]"))
	for _, n := range []applicant{first, second} {
		require.Zero(t, n.MustExec(t, "machineadm", "plan", "--path", stream).ExitCode)
	}
}

// observed is what runs on a node.
type observed struct {
	controlPlane bool
	arguments    map[string][]string // of the program of a target
	kubelet      map[string]any      // its configuration while it runs
	staticPods   bool                // whether it reads manifests
	kubeProxy    string
	mode         func(file string) string // in octal digits
}

func observe(t *testing.T, control, n applicant) observed {
	t.Helper()
	name := strings.TrimSpace(n.MustExec(t, "hostname").Stdout)
	o := observed{controlPlane: n == control, arguments: map[string][]string{}, mode: func(file string) string {
		return strings.TrimSpace(n.MustExec(t, "stat", "-c", "%a", file).Stdout)
	}}
	programs := map[string]string{"argument": "kubelet"}
	if o.controlPlane {
		programs["apiServer"], programs["controllerManager"] = "kube-apiserver", "kube-controller-manager"
		programs["scheduler"], programs["etcd"] = "kube-scheduler", "etcd"
	}
	for target, program := range programs {
		const script = `tr '\0' '\n' </proc/$(pgrep -xo "$1")/cmdline`
		said := n.MustExec(t, "sh", "-c", script, "sh", program[:min(len(program), 15)]).Stdout // as long as a name in the kernel
		o.arguments[target] = strings.Split(strings.TrimSpace(said), "\n")
		require.Contains(t, o.arguments[target][0], program)
	}
	var config struct {
		Kubelet map[string]any `json:"kubeletconfig"`
	}
	require.NoError(t, json.Unmarshal([]byte(cluster.API(t, control.Node, "/api/v1/nodes/"+name+"/proxy/configz")), &config))
	o.kubelet = config.Kubelet
	o.staticPods = strings.Contains(n.MustExec(t, "cat", "/var/lib/kubelet/config.yaml").Stdout, "staticPodPath") || o.kubelet["staticPodPath"] != nil
	o.kubeProxy = cluster.API(t, control.Node, "/api/v1/namespaces/kube-system/configmaps/kube-proxy")
	return o
}

func (o observed) complies(r rule) bool {
	switch r.target {
	case "kubelet":
		value := any(o.kubelet)
		for step := range strings.SplitSeq(r.name, ".") {
			object, _ := value.(map[string]any)
			value = object[step]
		}
		if value == nil && r.value == "0" {
			return true // JSON omits it
		}
		text, err := json.Marshal(value)
		got := strings.Trim(string(text), `"`)
		return err == nil && (got == r.value || got == strings.Replace(r.value, "5m", "5m0s", 1))
	case "static pods":
		return o.controlPlane || !o.staticPods
	case "argument":
		return !slices.ContainsFunc(o.arguments[r.target], func(a string) bool { return strings.HasPrefix(a, "--"+r.name) })
	case "file":
		return within(o.mode(r.name), r.value)
	case "kubeProxy": // the default of the program is the value of the rule
		return strings.Contains(o.kubeProxy, r.name+`: \"\"\n`) || strings.Contains(o.kubeProxy, r.name+": "+r.value+`\n`)
	default:
		arguments, ok := o.arguments[r.target]
		absent := !slices.ContainsFunc(arguments, func(a string) bool { return strings.HasPrefix(a, "--"+r.name+"=") })
		mayBeAbsent := strings.HasPrefix(r.id, "cis-") && r.target == "etcd" && r.value == "false" // CIS accepts the default
		return !ok || slices.Contains(arguments, "--"+r.name+"="+r.value) || absent && mayBeAbsent
	}
}

// closed compares the owner and mode of every file for which DISA has a rule, and that no profile sets: kubeadm and the kubelet
// create them so. Whether sshd runs (CNTR-K8-000400, 000410) is a matter of the image; this one has none.
func closed(t *testing.T, n applicant) {
	t.Helper()
	const find = `shopt -s nullglob globstar; for f in $1; do stat -L -c '%a %U:%G %n' "$f"; done`
	for ids, rule := range map[string][2]string{
		"CNTR-K8-000880, 000890, 003230, 003240": {"/var/lib/kubelet/config.yaml", "644"},
		"CNTR-K8-000900":                         {"/etc/kubernetes/manifests/*", "644"},
		"CNTR-K8-003130":                         {"/etc/kubernetes/*.conf", "644"},
		"CNTR-K8-003190, 003200":                 {"/etc/kubernetes/kubelet.conf", "644"},
		"CNTR-K8-003210, 003220":                 {"/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf", "644"}, // of the package
		"CNTR-K8-003330":                         {"/etc/kubernetes/pki/**/*.crt /var/lib/kubelet/pki/*.crt", "644"},
		"CNTR-K8-003340":                         {"/etc/kubernetes/pki/**/*.key /var/lib/kubelet/pki/*.key /var/lib/kubelet/pki/*.pem", "600"},
	} {
		lines := strings.Split(strings.TrimSpace(n.MustExec(t, "bash", "-c", find, "bash", rule[0]).Stdout), "\n")
		for _, line := range lines {
			fields := strings.Fields(line)
			if len(fields) < 3 {
				assert.Contains(t, rule[0], "/manifests/", ids+": no file") // a worker has none
				continue
			}
			assert.True(t, within(fields[0], rule[1]), "%s: %s", ids, line)
			assert.Equal(t, "root:root", fields[1], "%s: %s", ids, line)
		}
	}
	r, err := n.Exec(t.Context(), "pgrep", "-x", "sshd")
	require.NoError(t, err)
	assert.Equal(t, 1, r.ExitCode)
}

// within reports whether a mode has no permission beyond another.
func within(mode, most string) bool {
	have, err := strconv.ParseUint(mode, 8, 12)
	allowed, wrong := strconv.ParseUint(most, 8, 12)
	return err == nil && wrong == nil && have&^allowed == 0
}
