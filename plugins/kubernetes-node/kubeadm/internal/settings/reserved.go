package settings

import "slices"

// ownPaths returns the files and directories of Kubernetes that this provider, kubeadm, the kubelet or etcd writes. Everything
// else below /etc/kubernetes, /var/lib/kubelet and the directory of certificates is the document's: cloud providers, and the
// kubelet's own documentation, have fixed places there, such as /etc/kubernetes/cloud.conf, /var/lib/kubelet/config.json and
// /var/lib/kubelet/seccomp.
func (r *resolver) ownPaths() []string {
	data := "/var/lib/etcd"
	if e := r.spec.Etcd; e != nil && e.Local != nil && e.Local.DataDir != "" {
		data = e.Local.DataDir
	}
	return slices.Concat(
		[]string{data},
		in("/etc/kubernetes", kubernetesFiles()),
		in("/var/lib/kubelet", kubeletFiles()),
		in(DefaultCertificatesDir, certificateFiles()),
		in(r.spec.Cluster.CertificatesDir, certificateFiles()),
	)
}

func in(directory string, names []string) []string {
	var all []string
	for _, name := range names {
		all = append(all, directory+"/"+name)
	}
	return all
}

// kubernetesFiles are below /etc/kubernetes. The kubelet runs every file in manifests; kubeadm works in tmp. Source: kubeadm,
// app/constants.
func kubernetesFiles() []string {
	return []string{
		"manifests", "tmp", "admin.conf", "super-admin.conf", "kubelet.conf", "bootstrap-kubelet.conf", "controller-manager.conf", "scheduler.conf",
	}
}

// kubeletFiles are below /var/lib/kubelet. Sources in k8s.io/kubernetes: cmd/kubeadm/app/constants for the first four,
// pkg/kubelet/kubeletconfig/defaults.go, and the state files of pkg/kubelet/cm, allocation, images/pullmanager, kuberuntime, nodeshutdown
// and, until 1.32, status.
func kubeletFiles() []string {
	return []string{
		"config.yaml", "instance-config.yaml", "kubeadm-flags.env", "pki",
		"pods", "plugins", "plugins_registry", "plugin-containers", "device-plugins", "pod-resources", "pods-api", "checkpoints", "image_manager",
		"cpu_manager_state", "memory_manager_state", "dra_manager_state", "dra_health_state", "allocated_pods_state", "actuated_pods_state",
		"graceful_node_shutdown_state", "pod_status_manager_state",
	}
}

// certificateFiles are in a directory of certificates; this provider writes external-etcd. Source: kubeadm, app/constants.
func certificateFiles() []string {
	all := []string{"sa.key", "sa.pub", "external-etcd"}
	for _, name := range []string{
		"ca", "apiserver", "apiserver-kubelet-client", "apiserver-etcd-client", "front-proxy-ca", "front-proxy-client",
		"etcd/ca", "etcd/server", "etcd/peer", "etcd/healthcheck-client",
	} {
		all = append(all, name+".crt", name+".key")
	}
	return all
}
