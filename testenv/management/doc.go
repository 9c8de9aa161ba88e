// Package management provides tests with a real management cluster: etcd, the API server and controllers of Kubernetes, the
// managers of Cluster API and clusterctl, as processes of the test.
//
// Main gives the tests of a package a network namespace of their own, with a loopback device alone; a TestMain calls it.
// Start runs a cluster for a test and its subtests, and there can be several. Root is needed. Every process ends with
// its test, and with the test binary however that ends. When a test fails it shows the end of each log.
//
// # What is real
//
// Programs, their versions and flags, RBAC and webhooks, conversion included. A manager runs as the service account
// of its manifests, by a client certificate with that name; leader election is off. The audit log has every request.
// Of Kubernetes' controllers there are the garbage collector, which finds new kinds within 30 seconds, and the controllers of
// namespaces and of aggregated roles. There are no nodes: Install leaves out Deployments, Services and objects of cert-manager,
// and a webhook has a URL in the place of a Service. etcd does not sync to the disk.
//
// # The infrastructure provider
//
// InMemory is the provider of Cluster API's own tests, docker, for a DevCluster and DevMachines with backend.inMemory. It
// pretends to be machines, and answers as the API server and etcd of each cluster, as far as Cluster API asks.
//
//   - It listens on port 19000, so one runs in a network namespace. Its clusters have ports from 20000 to 30000. Kill or Stop
//     ends it, and its clusters are empty when it runs again, in this or another management cluster: it makes their nodes
//     and pods again from its machines.
//   - A DevCluster without any annotation makes it panic at every try. Clones of templates have some, as does what kubectl applies.
//   - The endpoint of a control plane is 127.0.0.1 and a port, in spec.controlPlaneEndpoint of the DevCluster.
//   - It reads the Secrets CLUSTER-ca and CLUSTER-etcd, with tls.crt and tls.key, when the first control-plane machine comes up. A
//     KubeadmControlPlane, or the bootstrap provider of kubeadm, makes them, with CLUSTER-proxy and CLUSTER-sa, which kubeadm needs;
//     without these providers a test does. CLUSTER-kubeconfig is made by KubeadmControlPlane, or by the core provider for
//     a Cluster without a control-plane object.
//   - A machine waits for Cluster.status.initialization.infrastructureProvisioned, then for spec.bootstrap.dataSecretName of
//     the Machine. It does not read the data: parse or boot them elsewhere. A Machine counts as one of the control plane by its
//     label cluster.x-k8s.io/control-plane.
//   - spec.version of the Machine is the version of its node. The provider ID is in-memory://NAME of the DevMachine.
//   - Conditions of a DevMachine: VMProvisioned, NodeProvisioned, EtcdProvisioned, APIServerProvisioned, Ready. In its
//     spec, backend.inMemory.{vm,node,apiServer,etcd}.provisioning.startupDuration delays each; the default is none.
//
// # Times
//
// Cluster API connects to a new cluster by polling, so the first machines run 45 seconds after their cluster is made (its cache of
// connections tries again after 30)
// whatever the machine that tests run on. A KubeadmConfigTemplate with an empty spec.template.spec is refused.
package management
