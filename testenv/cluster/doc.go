// Package cluster provides tests with real Kubernetes: kubeadm of three versions, and of one of them every program of
// a control plane and the kubelet, built from the modules in testenv/tools.
//
// APIServer boots a control plane without a kubelet, which is what a join talks to first. Boot boots a node on which
// kubeadm init and kubeadm join do all that they do.
//
// Real are the programs, the nodes with their init, containerd, runc and CNI plugins, the network between the nodes, and
// the limits of control groups. Not real are the images, which have a program each and no other file, in a
// repository of their own. Those of kube-proxy and CoreDNS sleep: the one would lack iptables, and so the other would not
// reach the API server through its service address. Pods of two nodes do not reach each other.
// etcd syncs nothing to a disk. chronyd follows a server of the network, but does not set the clock, which is the machine's.
//
// The work-arounds of a container in the place of a machine are KubeletConfiguration, IgnoredPreflightErrors and the
// files of files.go. They belong to a test's documents, never to the product. Nodes have control groups of version 1,
// and the kubelet's stand-ins for files of /proc/sys take any value and have no effect.
package cluster
