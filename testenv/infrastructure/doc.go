// Package infrastructure is an infrastructure provider of Cluster API whose machines are nodes of testenv/nodes. With it a test runs the
// whole chain, from an applied object to a Machine with a node: the managers of Cluster API and of this project as processes, the data
// that they make, cloud-init, the packages of a release, kubeadm, the kubelet and containerd.
//
// # The resources
//
// NodeCluster and NodeMachine, and their templates, have the fields that version v1beta2 of the contract of Cluster API asks for, and no
// others. Provider reconciles them in the process of the test:
//
//   - A NodeCluster gets an endpoint: a TCP proxy at the address of the test. It forwards each connection to a control plane whose API
//     server says that it is ready, and closes the connections to a machine that is removed.
//   - A NodeMachine waits for the Secret with the data of its Machine, and boots a node with it as the NoCloud seed. As on a cloud, the
//     metadata has the instance ID and the host name, both of which are the name of the NodeMachine. Its provider ID is Prefix and that name.
//     An Ignition configuration is applied to the files of the node before it boots, which then has the layers of Immutable.
//     Its image is the one that spec.image names, of those that the test has made, or the usual one.
//     A NodeMachine that is deleted ends by a power cut, and its disk is removed.
//
// A rig has places for some nodes; a NodeMachine waits for a free one. Linux gives all nodes 128 inotify instances, enough for five.
//
// # What is real
//
// A machine is a cluster.Machine: an image with the programs and images of Kubernetes, on which this package installs machineadm and its
// plugins as the Debian packages of a release do. Everything that happens on it begins with cloud-init, which reads the data, or with
// what Ignition has written. No test changes a file or runs a command on a machine to help; tests read there. A fault is a part of an image.
//
// The test, its processes and the machines share a network: see nodes.Network.Join. Its time server is in the test's process, and so is the
// server to which machines with a ReportTarget send their reports.
package infrastructure
