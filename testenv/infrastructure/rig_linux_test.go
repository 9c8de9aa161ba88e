package infrastructure

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/testenv/cluster"
	"github.com/machineadm/machineadm/testenv/management"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/objectstores"
	"github.com/machineadm/machineadm/testenv/timeservers"
	"github.com/machineadm/machineadm/testenv/tools"
)

// limit bounds each wait: a node boots in seconds, or in minutes beside much else.
const limit = 20 * time.Minute

// rig is a management cluster with the core provider, our manager and the provider of this package.
type rig struct {
	*management.Cluster
	client.WithWatch
	*Provider
	*reports
	manager, core    *management.Process
	managerArguments []string
	bucket           *objectstores.S3 // nil without one
}

// layout is what a test wants of its rig beside places for machines: images, and arguments of our manager.
type layout struct {
	machines int
	images   map[string]func(root string) error
	manager  []string
	// serve makes our manager serve documents to the machines.
	serve bool
	// bucket makes our manager store documents in one.
	bucket bool
	// versions gives a machine the programs of the version of its Machine, 1.36 or 1.37. Other machines have 1.36.
	versions bool
}

// start runs a rig with places for so many machines.
func start(t testing.TB, machines int) *rig {
	t.Helper()
	return layout{machines: machines}.start(t)
}

func (l layout) start(t testing.TB) *rig {
	t.Helper()
	const test, timeServer = "management", "ntp1.example.com" // as in the examples
	var places []string
	for i := range l.machines {
		places = append(places, fmt.Sprintf("place-%d", i+1))
	}
	network := nodes.NewNetwork(t, append([]string{domainController, test, timeServer, nodes.Gateway, domainMember}, places...)...)
	timeservers.Respond(t, network.ListenPacket(t, timeServer, 123), timeservers.Correct)
	network.Join(t, test)
	c := management.Start(t)
	core := c.Core(t)
	root, err := tools.Root(".")
	require.NoError(t, err)
	c.Install(t, management.Render(t, filepath.Join(root, "host/controller/config/default")))
	if l.serve {
		address := netip.AddrPortFrom(network.Address(test), 9443).String()
		l.manager = append(l.manager, "--server-address="+address, "--server-url=https://"+address, "--leader-elect-namespace=machineadm-system")
	}
	var bucket *objectstores.S3
	if l.bucket {
		plugins := t.TempDir()
		require.NoError(t, tools.Products(t.Context(), plugins, map[string]string{"machineadm-remote-configuration-provider-s3": "plugins/remote-config/s3"}))
		l.manager = append(l.manager, "--storage-providers=s3", "--plugins="+plugins)
		bucket = startBucket(t, c, network.Address(test).String())
	}
	manager := c.Machineadm(t, l.manager...)
	packages := Packages(t)
	p := Start(t, c, network, network.Address(test), places, l.images,
		func(place, version string, controlPlane bool, seed func(string) error) nodes.Options {
			v := cluster.V136
			if l.versions && version == cluster.V137.Patch() {
				v = cluster.V137
			}
			return v.Machine(t, network, place, controlPlane, packages, seed)
		})
	if l.serve {
		c.Install(t, stored(t))
	}
	return &rig{c, c.Client(t, clusterv1.AddToScheme, bootstrap.AddToScheme), p, collect(t, network.Address(test)), manager, core, l.manager, bucket}
}

// stored is the storage of the examples.
func stored(t testing.TB) []byte {
	t.Helper()
	text, err := kind(t, example(t, "storage.yaml"), bootstrap.KindMachineBootstrapStorage).MarshalJSON()
	require.NoError(t, err)
	return text
}

// example returns the objects of examples of docs/cluster-api.md, with objects of this package in the place of objects of the user's
// infrastructure provider, and adapted to containers.
func example(t testing.TB, files ...string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, file := range files {
		text, err := os.ReadFile("../../examples/cluster-api/" + file)
		require.NoError(t, err)
		objects, err := management.Objects([]byte(strings.NewReplacer("DevCluster", kindCluster, "DevMachine", kindMachine, "openstack:///", Prefix).Replace(string(text))))
		require.NoError(t, err)
		for _, o := range objects {
			adapt(t, o)
			all = append(all, o)
			for _, path := range [][]string{{"spec", "infrastructureRef"}, {"spec", "template", "spec", "infrastructureRef"}} {
				if ref, _, _ := unstructured.NestedStringMap(o.Object, path...); ref != nil {
					made := object(ref["kind"])
					made.SetNamespace(o.GetNamespace())
					made.SetName(ref["name"])
					if strings.HasSuffix(ref["kind"], "Template") {
						require.NoError(t, unstructured.SetNestedMap(made.Object, map[string]any{"image": ""}, "spec", "template", "spec"))
					}
					all = append(all, made)
				}
			}
		}
	}
	return all
}

// adapt changes what an example cannot have when its machine is a container: control groups are of version 1, which systemd does not
// manage, there may be swap, and the images are on the machine, under names without a registry. The container shares the disk of the
// machine that runs the tests: by default a kubelet evicts pods when less than 10 per cent of it is free, 15 of the disk with images.
func adapt(t testing.TB, o *unstructured.Unstructured) {
	t.Helper()
	ignored := []any{cluster.IgnoredPreflightErrors}
	switch o.GetKind() {
	case "ContainerRuntime":
		set(t, o, "cgroupfs", "spec", "cgroupDriver")
		set(t, o, cluster.ImageRepository+"/pause:3.10.2", "spec", "sandboxImage")
	case "KubernetesNode":
		set(t, o, cluster.ImageRepository, "spec", "cluster", "imageRepository")
		set(t, o, "cgroupfs", "spec", "kubelet", "cgroupDriver")
		set(t, o, map[string]any{"failCgroupV1": false, "failSwapOn": false, "imageGCHighThresholdPercent": int64(100)}, "spec", "kubelet", "config")
		set(t, o, map[string]any{"memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%"},
			"spec", "kubelet", "evictionHard")
		set(t, o, ignored, "spec", "ignorePreflightErrors")
	case "KubernetesNodeTemplate":
		set(t, o, "cgroupfs", "spec", "template", "spec", "kubelet", "cgroupDriver")
		set(t, o, ignored, "spec", "template", "spec", "ignorePreflightErrors")
	}
}

// apply applies objects.
func (r *rig) apply(t testing.TB, objects ...*unstructured.Unstructured) {
	t.Helper()
	var text bytes.Buffer
	for _, o := range objects {
		data, err := json.Marshal(o)
		require.NoError(t, err)
		text.Write(append(data, "\n---\n"...))
	}
	r.Install(t, text.Bytes())
}

// running waits until there are exactly so many Machines, all of which run with a ready node, and returns them.
func (r *rig) running(t testing.TB, want int, of ...client.ListOption) []clusterv1.Machine {
	t.Helper()
	var machines clusterv1.MachineList
	management.Await(t, r, limit, &machines, func() error {
		running, states := 0, ""
		for i := range machines.Items {
			m := &machines.Items[i]
			states += "\n" + m.Name + " " + m.Status.Phase
			ready := m.DeletionTimestamp == nil && meta.IsStatusConditionTrue(m.Status.Conditions, clusterv1.MachineReadyCondition)
			for _, c := range m.Status.Conditions {
				if c.Status != "True" {
					states += "; " + c.Type + " " + c.Reason + " " + c.Message
				}
			}
			if ready && m.Status.GetTypedPhase() == clusterv1.MachinePhaseRunning && m.Status.NodeRef.IsDefined() {
				running++
			}
		}
		if running != want || len(machines.Items) != want {
			return fmt.Errorf("%d of %d Machines run, %d are there%s", running, want, len(machines.Items), states)
		}
		return nil
	}, of...)
	return machines.Items
}
