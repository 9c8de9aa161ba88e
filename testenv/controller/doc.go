// Package controller tests the controller in a real management cluster: etcd, the API server, and the managers of Cluster API's
// core, its kubeadm providers and its in-memory infrastructure. The controller runs as its manifests say, under their roles.
package controller
