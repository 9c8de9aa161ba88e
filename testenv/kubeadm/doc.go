// Package kubeadm is a stand-in for kubeadm 1.37 and for the kubelet, for tests that make a node hundreds of times and for
// systems on which neither runs. It reads the same configuration, writes, links and removes the same files in the same order,
// and prints the same secrets. There are no containers: the stand-in for the kubelet answers for the API server and for etcd
// what the plugin asks before a reset. The cluster has one certificate authority, and all keys derive from names, so that two
// runs write the same bytes.
package kubeadm
