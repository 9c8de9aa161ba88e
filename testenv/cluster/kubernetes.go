package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/machineadm/machineadm/testenv/containerd"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/oci"
	"github.com/machineadm/machineadm/testenv/timeservers"
)

// KubeletConfiguration has the fields without which no kubelet runs on a node of this package. The node has control groups of version 1,
// which systemd does not manage, and it may have swap. Its disk is that of the machine that runs the tests: by default a kubelet evicts
// pods when less than 10 per cent of it is free. The documents of tests have these fields.
const KubeletConfiguration = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
failSwapOn: false
cgroupDriver: cgroupfs
evictionHard: {nodefs.available: 0%}
imageGCHighThresholdPercent: 100
`

// IgnoredPreflightErrors are kubeadm's checks that a node of this package fails: that of the kernel, which has no
// configuration to read and control groups of version 1.
const IgnoredPreflightErrors = "SystemVerification"

// controlPlaneImages and workerImages are the programs whose images a node of either role has.
func controlPlaneImages() []string {
	return append(workerImages(), "kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd", "coredns")
}

func workerImages() []string { return []string{"pause", "kube-proxy"} }

// ImageRepository is where kubeadm takes the images of a node from: a name under which there is no registry.
const ImageRepository = "testenv.invalid"

// reference is the name that the version's kubeadm has for the image of a program in that repository.
func (v Version) reference(program string) string {
	tag, newest := v.Patch(), v == V137
	switch {
	case program == "etcd" && newest:
		tag = "3.7.0-0"
	case program == "etcd":
		tag = "3.6.8-0"
	case program == "coredns" && newest:
		tag = "v1.14.6"
	case program == "coredns":
		tag = "v1.14.2"
	case program == "pause":
		tag = "3.10.2"
	}
	return ImageRepository + "/" + program + ":" + tag
}

// Boot boots a Machine and waits until its boot is finished.
func Boot(t testing.TB, network *nodes.Network, name string, controlPlane bool, prepare ...func(root string) error) *nodes.Node {
	t.Helper()
	return nodes.Boot(t, Machine(t, network, name, controlPlane, prepare...))
}

// Machine has the options of a node of version 1.36.
func Machine(t testing.TB, network *nodes.Network, name string, controlPlane bool, prepare ...func(root string) error) nodes.Options {
	t.Helper()
	return V136.Machine(t, network, name, controlPlane, prepare...)
}

// Machine has the options of a node that kubeadm can make a member of a cluster, under a name of the network: with containerd 2.3, runc
// and CNI plugins, kubeadm and kubelet of 1.36 or 1.37, which waits for it, the images of its role, and chronyd without a server that
// answers. The programs are built first when the cache does not hold them, which takes minutes.
func (v Version) Machine(t testing.TB, network *nodes.Network, name string, controlPlane bool, prepare ...func(root string) error) nodes.Options {
	t.Helper()
	o := System()
	o.Limits, o.Network, o.Hostname = true, network, name
	programs := workerImages()
	if controlPlane {
		programs = controlPlaneImages()
	}
	o.Prepare = nodes.InOrder(append([]func(string) error{
		o.Prepare, containerd.V23.Install(t), v.install(t, "kubeadm", "kubelet"), write(kubernetesFiles(network.Address(name).As4()[3])), enable,
		v.archive(t, programs),
	}, prepare...)...)
	return o
}

// System is the system of each Machine, without the files of Kubernetes: what nodes.BuildCache needs.
func System() nodes.Options {
	o := timeservers.Chrony.Options(nodes.Bookworm)
	o.Layers = append([]nodes.Layer{nodes.Kubernetes}, o.Layers...)
	return o
}

// archive returns the step that writes the images, which testenv-images.service imports at each boot: containerd keeps them in memory.
func (v Version) archive(t testing.TB, programs []string) func(root string) error {
	t.Helper()
	all := make([]oci.Image, len(programs))
	for i, program := range programs {
		all[i] = oci.Image{
			Name: v.reference(program), Path: "/usr/local/bin/" + program, Programs: map[string]string{runtime.GOARCH: v.content(t, program)},
		}
	}
	return func(root string) (err error) {
		f, err := os.Create(filepath.Join(root, imageArchive))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		return oci.Write(f, all)
	}
}

// content returns the program of an image. kube-proxy and CoreDNS could do nothing in a container here, and would take minutes
// to build.
func (v Version) content(t testing.TB, program string) string {
	t.Helper()
	if program == "kube-proxy" || program == "coredns" {
		program = "pause"
	}
	return v.program(t, program)
}
