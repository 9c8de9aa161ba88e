package cluster

import (
	"io"
	"runtime"
	"testing"

	"github.com/machineadm/machineadm/testenv/containerd"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/oci"
	"github.com/machineadm/machineadm/testenv/timeservers"
)

// KubeletConfiguration has the fields without which no kubelet runs on a node of this package: its control groups are of
// version 1 and not systemd's to make, and the machine may have swap. A document of a test carries them.
const KubeletConfiguration = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
failSwapOn: false
cgroupDriver: cgroupfs
`

// IgnoredPreflightErrors are kubeadm's checks that a node of this package fails: that of the kernel, which has no
// configuration to read and control groups of version 1.
const IgnoredPreflightErrors = "SystemVerification"

// controlPlaneImages and workerImages are the programs whose images a node of either role has.
func controlPlaneImages() []string {
	return append(workerImages(), "kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd", "coredns")
}

func workerImages() []string { return []string{"pause", "kube-proxy"} }

// ImageRepository is where kubeadm 1.36 takes the images of a node from: a name under which there is no registry.
const ImageRepository = "testenv.invalid"

// reference is the name that kubeadm 1.36 has for the image of a program in that repository.
func reference(program string) string {
	tag := V136.Patch()
	switch program {
	case "etcd":
		tag = "3.6.8-0"
	case "coredns":
		tag = "v1.14.2"
	case "pause":
		tag = "3.10.2"
	}
	return ImageRepository + "/" + program + ":" + tag
}

// Boot boots a node that kubeadm can make a member of a cluster, under a name of the network: with containerd 2.3, runc
// and CNI plugins, kubeadm 1.36 and a kubelet that waits for it, the images of its role, and chronyd without a server that
// answers. The programs are built first when the cache does not hold them, which takes minutes.
func Boot(t testing.TB, network *nodes.Network, name string, controlPlane bool, prepare ...func(root string) error) *nodes.Node {
	t.Helper()
	o := timeservers.Chrony.Options(nodes.Bookworm)
	o.Layers = append([]nodes.Layer{nodes.Kubernetes}, o.Layers...)
	o.Limits, o.Network, o.Hostname = true, network, name
	o.Prepare = nodes.InOrder(append([]func(string) error{
		o.Prepare, containerd.V23.Install(t), install(t, "kubeadm", "kubelet"), write(kubernetesFiles(network.Address(name).As4()[3])), enable,
	}, prepare...)...)
	n := nodes.Boot(t, o)
	awaited(t, "containerd", func() (bool, string) {
		r, err := n.Exec(t.Context(), "ctr", "version")
		return err == nil && r.ExitCode == 0, r.Stderr
	})
	programs := workerImages()
	if controlPlane {
		programs = controlPlaneImages()
	}
	load(t, n, programs)
	return n
}

// load streams the images into the node's containerd.
func load(t testing.TB, n *nodes.Node, programs []string) {
	t.Helper()
	images := make([]oci.Image, len(programs))
	for i, program := range programs {
		images[i] = oci.Image{
			Name: reference(program), Path: "/usr/local/bin/" + program, Programs: map[string]string{runtime.GOARCH: content(t, program)},
		}
	}
	read, write := io.Pipe()
	go func() { write.CloseWithError(oci.Write(write, images)) }()
	r, err := n.ExecInput(t.Context(), read, "ctr", "--namespace=k8s.io", "images", "import", "-")
	if closed := read.Close(); err == nil {
		err = closed
	}
	if err != nil || r.ExitCode != 0 {
		t.Fatalf("import images: exit status %d, %v\n%s%s", r.ExitCode, err, r.Stdout, r.Stderr)
	}
}

// content returns the program of an image. kube-proxy and CoreDNS could do nothing in a container here, and would take minutes
// to build.
func content(t testing.TB, program string) string {
	t.Helper()
	if program == "kube-proxy" || program == "coredns" {
		program = "pause"
	}
	return Program(t, program)
}
