package infrastructure

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/cluster"
	"github.com/machineadm/machineadm/testenv/management"
)

// kubeadmWorker does for the bootstrap provider of kubeadm what the documents of the examples do.
const kubeadmWorker = `
apiVersion: bootstrap.cluster.x-k8s.io/v1beta2
kind: KubeadmConfigTemplate
metadata: {name: kubeadm, namespace: default}
spec:
  template:
    spec:
      files:
      - {path: /etc/sysctl.d/99-kubernetes.conf, content: "net.ipv4.ip_forward = 1\nnet.bridge.bridge-nf-call-iptables = 1\nnet.bridge.bridge-nf-call-ip6tables = 1\n"}
      - {path: /etc/modules-load.d/kubernetes.conf, content: "overlay\nbr_netfilter\n"}
      - {path: /etc/chrony/chrony.conf, content: "server ntp1.example.com iburst\ndriftfile /var/lib/chrony/drift\nmakestep 1 3\nrtcsync\n"}
      - path: /etc/containerd/config.toml
        append: true
        content: |
          [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
          runtime_type = 'io.containerd.runc.v2'
          [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
          SystemdCgroup = false
      preKubeadmCommands:
      - sysctl -p /etc/sysctl.d/99-kubernetes.conf
      - systemctl restart chrony
      - chronyc waitsync 600 0 0 0.1
      - systemctl restart containerd
      - until ctr version; do sleep 0.1; done
`

// kubeadmDeployment is deployment with the bootstrap provider of kubeadm.
func (r *rig) kubeadmDeployment(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	config, err := management.Objects([]byte(kubeadmWorker))
	require.NoError(t, err)
	spec, _, err := unstructured.NestedMap(config[0].Object, "spec", "template", "spec")
	require.NoError(t, err)
	files, _, err := unstructured.NestedSlice(spec, "files")
	require.NoError(t, err)
	spec["files"] = append(files, map[string]any{"path": "/etc/kubernetes/patches/kubeletconfiguration0+merge.yaml", "content": kubelet})
	spec["joinConfiguration"] = registration()
	set(t, config[0], spec, "spec", "template", "spec")
	all := r.deployment(t, "kubeadm")
	deployment := kind(t, all, "MachineDeployment")
	set(t, deployment, "KubeadmConfigTemplate", "spec", "template", "spec", "bootstrap", "configRef", "kind")
	return []*unstructured.Unstructured{config[0], kind(t, all, kindMachine+"Template"), deployment}
}

// TestFirstBootSpeed prints what a first boot takes, beside a first boot by kubeadm's bootstrap provider with the same preparation. It has no
// limits: the times of a machine that does something else as well say nothing.
func TestFirstBootSpeed(t *testing.T) {
	needs.Campaign(t)
	r := start(t, 2)
	r.KubeadmBootstrap(t)
	r.controlPlane(t)
	ours := r.deployment(t, "ours")
	unstructured.RemoveNestedField(kind(t, ours, "MachineBootstrapConfigTemplate").Object, "spec", "template", "spec", "documents")
	const rounds = 3
	figures := map[string][]boot{}
	for range rounds {
		for name, objects := range map[string][]*unstructured.Unstructured{"ours": ours, "kubeadm": r.kubeadmDeployment(t)} {
			figures[name] = append(figures[name], r.timed(t, name, objects))
		}
	}
	data, registered := map[string]time.Duration{}, map[string]time.Duration{}
	for name, boots := range figures {
		for _, b := range boots {
			t.Logf("%-8s %+v", name, b)
		}
		data[name] = median(boots, func(b boot) time.Duration { return b.data })
		registered[name] = median(boots, func(b boot) time.Duration { return b.registered })
		t.Logf("%-8s median: Machine to data %v, cloud-init to node %v, %d bytes of user data", name, data[name], registered[name], boots[0].bytes)
	}
	t.Logf("cloud-init to node: %.2f of the bootstrap provider of kubeadm", registered["ours"].Seconds()/registered["kubeadm"].Seconds())
	r.deleted(t)
}

// boot has the figures of one machine.
type boot struct {
	data       time.Duration // from the Machine to its data
	registered time.Duration // from the start of cloud-init to the node
	bytes      int           // of user data
	processor  time.Duration // of machineadm and its plugins, without the programs that they start
	peak       string        // memory of the largest of them
	kubeadm    []string      // each start of it
}

func median(boots []boot, of func(boot) time.Duration) time.Duration {
	var all []time.Duration
	for _, b := range boots {
		all = append(all, of(b))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// timed makes a MachineDeployment of one machine, and deletes it when the machine runs.
func (r *rig) timed(t *testing.T, name string, objects []*unstructured.Unstructured) boot {
	t.Helper()
	machines, secrets := r.firstSeen(t, &clusterv1.MachineList{}), r.firstSeen(t, &corev1.SecretList{})
	used := measure()
	r.apply(t, objects...)
	machine := r.running(t, 1, ofDeployment(name))[0]
	on := r.Node(machine.Spec.InfrastructureRef.Name)
	var b boot
	used(on.Name(), &b)
	var data corev1.Secret
	require.NoError(t, r.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: *machine.Spec.Bootstrap.DataSecretName}, &data))
	b.bytes = len(data.Data["value"])
	b.data = secrets()[data.Name].Sub(machines()[machine.Name])
	said := on.MustExec(t, "sh", "-c", `systemctl show -P ExecMainStartTimestampMonotonic cloud-init-local
		journalctl -u kubelet -o short-monotonic --no-pager | grep -m1 "Successfully registered node" | sed 's/^[^0-9]*\([0-9.]*\).*/\1/'`)
	lines := strings.Fields(said.Stdout)
	require.Len(t, lines, 2, said.Stdout)
	began, err := strconv.ParseInt(lines[0], 10, 64)
	require.NoError(t, err)
	ended, err := strconv.ParseFloat(lines[1], 64)
	require.NoError(t, err)
	b.registered = time.Duration(ended*float64(time.Second)) - time.Duration(began)*time.Microsecond
	require.NoError(t, r.Delete(t.Context(), kind(t, objects, "MachineDeployment")))
	r.running(t, 0, ofDeployment(name))
	return b
}

// firstSeen notes when each object of a kind is there. The result ends it.
func (r *rig) firstSeen(t *testing.T, list client.ObjectList) func() map[string]time.Time {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	events, err := r.Watch(ctx, list, client.InNamespace("default"))
	require.NoError(t, err)
	found := make(chan map[string]time.Time)
	go func() {
		seen := map[string]time.Time{}
		for e := range events.ResultChan() {
			if o, ok := e.Object.(client.Object); ok && seen[o.GetName()].IsZero() {
				seen[o.GetName()] = time.Now()
			}
		}
		found <- seen
	}()
	return func() map[string]time.Time { stop(); return <-found }
}

// measure looks at the processes of machineadm and kubeadm until the result is called, which notes what the processes of a node have used.
func measure() func(node string, b *boot) {
	type process struct {
		ticks  int64
		kib    int
		cgroup []byte
		name   string
		line   string
	}
	stop, found := make(chan struct{}), make(chan map[string]process)
	highest := regexp.MustCompile(`VmHWM:\s+([0-9]+)`)
	go func() {
		seen, others := map[string]process{}, map[string]bool{}
		ticks := time.NewTicker(20 * time.Millisecond)
		defer ticks.Stop()
		for n := 0; ; n++ {
			if n%10 == 0 {
				clear(others) // a process becomes another by exec
			}
			pids, _ := os.ReadDir("/proc")
			for _, pid := range pids {
				dir := filepath.Join("/proc", pid.Name())
				if others[dir] {
					continue
				}
				arguments, _ := os.ReadFile(filepath.Join(dir, "cmdline")) // as below, the process may have ended
				path, _, _ := strings.Cut(string(arguments), "\x00")
				name := filepath.Base(path)
				if !strings.HasPrefix(name, "machineadm") && name != "kubeadm" {
					others[dir] = true
					continue
				}
				stat, _ := os.ReadFile(filepath.Join(dir, "stat"))
				status, _ := os.ReadFile(filepath.Join(dir, "status"))
				p := process{name: name, line: strings.ReplaceAll(string(arguments), "\x00", " ")}
				p.cgroup, _ = os.ReadFile(filepath.Join(dir, "cgroup"))
				_, after, _ := strings.Cut(string(stat), ") ")
				if fields := strings.Fields(after); len(fields) > 12 && len(p.cgroup) > 0 {
					user, _ := strconv.ParseInt(fields[11], 10, 64)
					system, _ := strconv.ParseInt(fields[12], 10, 64)
					p.ticks = user + system
					if m := highest.FindSubmatch(status); m != nil {
						p.kib, _ = strconv.Atoi(string(m[1]))
					}
					seen[dir] = p
				}
			}
			select {
			case <-ticks.C:
			case <-stop:
				found <- seen
				return
			}
		}
	}()
	return func(node string, b *boot) {
		close(stop)
		largest, all := process{}, 0
		for _, p := range <-found {
			switch {
			case !bytes.Contains(p.cgroup, []byte(node)):
			case p.name == "kubeadm":
				b.kubeadm = append(b.kubeadm, p.line)
			default:
				const ofTick = 10 * time.Millisecond // 100 Hz, which Linux shows on every machine
				b.processor += time.Duration(p.ticks) * ofTick
				if all++; p.kib > largest.kib {
					largest = p
				}
			}
		}
		b.peak = fmt.Sprintf("%s %d MiB, of %d processes", largest.name, largest.kib>>10, all)
	}
}

// registration is how a node of the bootstrap provider of kubeadm registers in a container.
func registration() map[string]any {
	return map[string]any{"nodeRegistration": map[string]any{
		"criSocket": "unix:///run/containerd/containerd.sock", "ignorePreflightErrors": []any{cluster.IgnoredPreflightErrors},
		"kubeletExtraArgs": []any{map[string]any{"name": "provider-id", "value": Prefix + "{{ ds.meta_data.instance_id }}"}},
	}, "patches": map[string]any{"directory": "/etc/kubernetes/patches"}}
}
