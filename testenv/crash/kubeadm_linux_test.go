package crash

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/testenv/containerd"
	"github.com/machineadm/machineadm/testenv/kubeadm"
	"github.com/machineadm/machineadm/testenv/nodes"
)

const (
	nodePlugin = "machineadm-kubernetes-node-plugin-kubeadm"
	// standIn is the program that stands in for kubeadm and for the kubelet.
	standIn = "kubeadm"
	// pace is how long the stand-in waits before each change of a file, so that moments of all steps are hit.
	pace = "8ms"

	kubeadmPath = "/usr/local/bin/kubeadm"
	token       = "c4n4rytoken54321"
	key         = "c4f4e4c4f4e4c4f4e4c4f4e4c4f4e4c4f4e4c4f4e4c4f4e4c4f4e4c4f4e4c4f4"
)

// kubelet is the unit of the kubelet; the package's own differs in its arguments.
const kubelet = "[Unit]\nStartLimitIntervalSec=0\n[Service]\nExecStart=/usr/local/bin/kubelet\nRestart=always\nRestartSec=200ms\n"

// kubernetes prints the state of a node: what is below the directories of Kubernetes, the kubelet, and the work directory of the
// plugin, which no run leaves.
const kubernetes = `set -eu
find /etc/kubernetes /etc/kms /var/lib/kubelet /var/lib/etcd 2>/dev/null -printf 'state %p %m %u %l\n' \
	-type f -exec sha256sum {} + | sed 's/^\([0-9a-f]\)/state \1/' | sort
systemctl show --property=ActiveState kubelet | sed 's/^/state /'
ls -d /run/machineadm-kubernetes-node 2>/dev/null | sed 's/^/state /'
`

// resetNode removes the node, as an administrator does, and what kubeadm reset leaves.
const resetNode = `set -eu
systemctl reset-failed
systemctl stop kubelet
rm -rf /etc/kubernetes /etc/kms /var/lib/kubelet /var/lib/etcd /run/machineadm-kubernetes-node
find /var/lib -path '/var/lib/machineadm/*' -name kubeadm -delete
`

// joining is the way of a machine to a node.
type joining struct {
	*machine
	secrets []string // that no process and no file may have, except the ones in allowed
	// allowed are the files in which the secrets belong, transient those that have one until a run has ended.
	allowed, transient []string
}

const nodeHeader = `apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: KubernetesNode
metadata: {name: node}
spec:
  kubernetesVersion: v1.37.1
  cluster: {endpoint: "192.0.2.1:6443"}
  node: {name: node-1}
  kubelet: {maxPods: 50, config: {failSwapOn: false}}
`

// nodeStreams are the documents by their names, and the line of the private key that one of them has.
func nodeStreams(t *testing.T) (streams map[string]string, line string) {
	t.Helper()
	ca, err := kubeadm.Authority()
	require.NoError(t, err)
	hash, err := ca.Hash()
	require.NoError(t, err)
	quoted := func(text []byte) string {
		data, err := json.Marshal(string(text))
		require.NoError(t, err)
		return string(data)
	}
	conf := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'https://192.0.2.1:6443', certificate-authority-data: " +
		ca.Base64() + "}}]\nusers: [{name: u, user: {token: abcdef." + token + "}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
	return map[string]string{
		"token": nodeHeader + "  role: worker\n  discovery: {token: {value: abcdef." + token + "}, caCertHashes: [\"" + hash + "\"]}\n" +
			"  profiles: [cis-1.11]\n  files: [{path: /etc/kms/after, content: a, when: afterKubernetes}]\n",
		"kubeconfig": nodeHeader + "  role: worker\n  discovery: {kubeconfig: {value: " + quoted([]byte(conf)) + "}}\n",
		"create": nodeHeader + "  role: controlPlaneInit\n  discovery: {token: {value: abcdef." + token + "}}\n" +
			"  certificateKey: {value: " + key + "}\n" +
			"  certificates: {ca: {certificate: " + quoted(ca.Certificate) + ", key: {value: " + quoted(ca.Key) + "}}}\n" +
			"  files: [{path: /etc/kms/token, secretContent: {value: " + token + "}}]\n" +
			"  staticPods: [{name: proxy, manifest: \"{apiVersion: v1, kind: Pod, metadata: {name: proxy}, spec: {containers: [{name: a, image: b}]}}\"}]\n",
	}, strings.Split(string(ca.Key), "\n")[1]
}

// TestKubernetesNode disturbs runs that make a machine a node, and runs that remove what the disturbed ones left. The secrets of
// the documents are in no process and no file but those for which they are meant.
func TestKubernetesNode(t *testing.T) {
	streams, line := nodeStreams(t)
	files := map[string]string{otherFile: otherStream, kubeadm.PaceFile: pace}
	for name, text := range streams {
		files["/etc/machineadm/"+name+".yaml"] = text
	}
	o := nodes.Options{
		Suite: nodes.Trixie, Hostname: "node-1", Layers: []nodes.Layer{nodes.Containerd},
		Prepare: nodes.InOrder(containerd.V17.Install(t), installKubernetes),
	}
	m := bootMachine(t, o, files, nodePlugin)
	m.values, m.reset = kubernetes, resetNode
	const begin = `echo 1 >/proc/sys/net/ipv4/ip_forward; until ctr version >/dev/null 2>&1; do sleep 0.1; done`
	m.MustExec(t, "timeout", strconv.Itoa(int(waitLimit.Seconds())), "sh", "-c", begin)
	first := 1 << 34 // no number of the other tests
	for _, name := range []string{"token", "kubeconfig", "create"} {
		t.Run(name, func(t *testing.T) {
			m.stream = "/etc/machineadm/" + name + ".yaml"
			j := joining{machine: m, secrets: []string{token, key, line}, transient: []string{"/etc/kubernetes/bootstrap-kubelet.conf"}}
			for other := range streams {
				j.allowed = append(j.allowed, "/etc/machineadm/"+other+".yaml")
			}
			switch name {
			case "kubeconfig":
				j.transient = append(j.transient, "/run/machineadm-kubernetes-node/discovery.conf")
			case "create":
				j.allowed = append(j.allowed, "/etc/kubernetes/pki/ca.key", "/etc/kms/token")
			}
			j.campaign(t, first)
		})
		first += 2 * joinRounds()
	}
}

// installKubernetes installs the stand-in under both names, and the unit of the kubelet.
func installKubernetes(root string) error {
	data, err := os.ReadFile(filepath.Join(built, standIn))
	if err != nil {
		return err
	}
	return errors.Join(
		install(root, kubeadmPath, data, 0o755), install(root, "/usr/local/bin/kubelet", data, 0o755),
		install(root, "/etc/systemd/system/kubelet.service", []byte(kubelet), 0o644),
	)
}

// campaign disturbs runs. Its rounds have numbers from first on, twice as many as there are.
func (j joining) campaign(t *testing.T, first int) {
	t.Helper()
	j.MustExec(t, "sh", "-c", j.reset)
	want, calm := j.undisturbed(t)
	require.NotContains(t, want.state, "/run/machineadm-kubernetes-node")
	j.concealed(t, j.allowed)
	for i := range joinRounds() {
		t.Run(fmt.Sprintf("%04d", i), func(t *testing.T) {
			round(t, planned(first+2*i), calm, func(a attack, calm measure) (bool, time.Duration) {
				return j.crash(t, a, planned(first+2*i+1), calm, want, i%2 == 0)
			})
		})
	}
	t.Logf("-seed %d: an undisturbed run takes %v", *seed, calm)
}

// crash disturbs one run, and in every second round the run after it as well, and checks what they left, a run of another
// stream, and the run that makes the machine a node.
func (j joining) crash(t *testing.T, a, second attack, calm measure, want observation, twice bool) (hit bool, lasted time.Duration) {
	t.Helper()
	j.MustExec(t, "sh", "-c", j.reset)
	before := j.look(t)
	if before.state == want.state || len(before.left) > 0 {
		t.Fatalf("the machine was not reset: %+v", before)
	}
	for i, a := range []attack{a, second}[:1+bit(twice)] {
		watched := watchProcesses(j.secrets)
		one, struck, took := disturb(t, j, a, calm)
		if found := watched.close(); found != "" {
			left(t, "a secret is in %s", found)
		}
		if i == 0 {
			hit, lasted = struck, took
		}
		now := j.look(t)
		if err := errors.Join(afterKill(now, before, want, true), checkExit(now, a, one.code)); err != nil {
			diverged(t, "after the %s: %v\n%s", a, err, one.words)
		}
		j.concealed(t, slices.Concat(j.allowed, j.transient))
		for _, secret := range j.secrets {
			if strings.Contains(one.words, secret) {
				left(t, "a secret is in the output")
			}
		}
	}
	other := apply(t, j, "--path", otherFile, "--phase", "provisioning")
	now := j.look(t)
	if err := afterKill(now, before, want, true); err != nil || other.code != report.ExitOK {
		diverged(t, "another stream: exit %d, %v\n%s", other.code, err, other.words)
	}
	j.clean(t, now)
	rerun := j.complete(t)
	now = j.look(t)
	if err := afterRerun(now, want, rerun.code); err != nil {
		diverged(t, "%v\n%s", err, rerun.words)
	}
	if r, err := j.Exec(t.Context(), hostBinary, "plan", "--path", j.stream, "--plugin-dir", j.mark); err != nil || r.ExitCode != report.ExitOK {
		diverged(t, "plan: exit %d, %v\n%s", r.ExitCode, err, r.Stdout+r.Stderr)
	}
	j.concealed(t, j.allowed)
	j.clean(t, now)
	for _, p := range marked(processes(t), kubeadmPath, 0) {
		left(t, "lives after the run (killed now: %t): %v", kill(t, p), p)
	}
	return hit, lasted
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// complete applies until the API server of an interrupted creation answers: before that nothing proves that a reset is safe.
func (j joining) complete(t *testing.T) *running {
	t.Helper()
	for deadline := time.Now().Add(waitLimit); ; {
		r := apply(t, j)
		waits := r.code == report.ExitPrecondition && strings.Contains(r.words, "it is unknown whether other nodes have joined")
		if !waits || time.Now().After(deadline) {
			return r
		}
	}
}

// concealed checks that only these files have a secret.
func (j joining) concealed(t *testing.T, allowed []string) {
	t.Helper()
	r, err := j.ExecInput(t.Context(), strings.NewReader(strings.Join(j.secrets, "\n")),
		"sh", "-c", "grep -rlsFD skip -f - /etc /run /var /tmp /root /dev/shm || true")
	require.NoError(t, err)
	for _, file := range strings.Fields(r.Stdout) {
		if !slices.Contains(allowed, file) {
			left(t, "a secret is in %s", file)
		}
	}
}

// processWatch searches the arguments and the environment of every process again and again, and the limits of kubeadm, which it
// has from the plugin, for core dumps.
type processWatch struct {
	stop  chan struct{}
	done  sync.WaitGroup
	found string
}

func watchProcesses(secrets []string) *processWatch {
	w := &processWatch{stop: make(chan struct{})}
	w.done.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond) // leaves the processor to the run
		defer tick.Stop()
		for w.found == "" {
			w.found = exposed(secrets)
			select {
			case <-w.stop:
				return
			case <-tick.C:
			}
		}
	})
	return w
}

// close ends the watch and returns the first finding, empty without one: a file of a process that had a secret.
func (w *processWatch) close() string {
	close(w.stop)
	w.done.Wait()
	return w.found
}

// exposed returns a file of a process that has one of the secrets, or could get one.
func exposed(secrets []string) string {
	noDumps := regexp.MustCompile(`(?m)^Max core file size +0 +0 `)
	for _, name := range []string{"cmdline", "environ"} {
		files, err := filepath.Glob("/proc/[0-9]*/" + name)
		if err != nil {
			return err.Error()
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				continue // the process has ended
			}
			if slices.ContainsFunc(secrets, func(s string) bool { return strings.Contains(string(data), s) }) {
				return file + " (" + strings.ReplaceAll(string(data), "\x00", " ") + ")"
			}
			limits, err := os.ReadFile(filepath.Join(filepath.Dir(file), "limits"))
			if err == nil && strings.HasPrefix(string(data), kubeadmPath+"\x00") && !noDumps.Match(limits) {
				return "the core dumps of " + file
			}
		}
	}
	return ""
}
