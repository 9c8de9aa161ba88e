package outcome

// knownCheck says more of a preflight check than its name. In the message % is the rest of the name.
type knownCheck struct{ prefix, message, hint string }

func knownChecks() []knownCheck {
	const (
		leftover = "kubeadm reset, if the machine is no node; then run again"
		sysctl   = "set it with a Sysctl document before this one"
		larger   = "use a larger machine, or name the check in spec.ignorePreflightErrors"
		version  = "install the one of spec.kubernetesVersion, then run again"
		socket   = "put a ContainerRuntime document before this one; or see journalctl -u containerd"
	)
	return []knownCheck{
		{"Port-", "another process listens on the port %", "find it with ss -ltnp and stop it, then run again"},
		{"FileContent--proc-sys-net-ipv4-ip_forward", "net.ipv4.ip_forward is not 1", sysctl},
		{"FileContent--proc-sys-net-ipv6-conf-default-forwarding", "net.ipv6.conf.default.forwarding is not 1", sysctl},
		{"DirAvailable--var-lib-etcd", "the data directory of etcd is not empty", leftover},
		{"DirAvailable-", "a directory that must be empty is not", leftover},
		{"FileAvailable-", "a file of an earlier installation exists", leftover},
		{"ExternalEtcdVersion", "the external etcd does not answer, or is too old", "check it with etcdctl endpoint status"},
		{
			"ImagePull", "an image of the control plane cannot be pulled",
			"see which in details.json; check the registry and its mirrors, or import the image: ctr -n k8s.io images import FILE",
		},
		{"CRI", "the container runtime does not answer", socket},
		{"ContainerRuntimeVersion", "the container runtime does not answer, or is too old", socket},
		{"KubeletVersion", "the kubelet does not suit the control plane", version},
		{"KubernetesVersion", "kubeadm does not suit the control plane", version},
		{"NumCPU", "the machine has too few CPUs for a control plane", larger},
		{"Mem", "the machine has too little memory for a control plane", larger},
		{"Swap", "swap is on", "swapoff -a and remove it from /etc/fstab; or set failSwapOn: false in spec.kubelet.config"},
		{"SystemVerification", "the kernel or its cgroups lack what the kubelet requires", "see what in details.json"},
		{"FileExisting-", "the program % is missing", "install the package that it comes with, then run again"},
		{"IsPrivilegedUser", "kubeadm does not run as root", "run machineadm as root"},
	}
}

// cause is a known failure. Pattern is a regular expression of kubeadm's error. The first that matches counts.
type cause struct{ pattern, field, message, hint string }

// defect marks a cause that only the plugin can have.
const defect = "report a defect of the plugin"

// ofTheCluster are causes in the cluster that the machine joins, and in the credentials for it.
func ofTheCluster() []cause {
	const token = "create one on a control plane: kubeadm token create; put it into the document, then run again"
	return []cause{
		{
			`could not find a JWS signature|token id .* is invalid for this cluster or it has expired`,
			"spec.discovery.token", "the cluster does not know the bootstrap token, or it has expired", token,
		},
		{
			`cluster-info ConfigMap: client rate limiter Wait`, "spec.discovery.token",
			"the cluster does not know the bootstrap token, or its API server answers too slowly", token,
		},
		{`failed to verify JWS signature`, "spec.discovery.token", "the second part of the bootstrap token is wrong", token},
		{
			`none of the public keys .* are pinned`, "spec.discovery.caCertHashes",
			"another cluster answers, or its certificate authority has changed: its hash is not in the document",
			"compare the hash and the endpoint with kubeadm token create --print-join-command on a control plane",
		},
		{
			`x509: certificate has expired or is not yet valid`, "",
			"a certificate of the API server is not valid at the time of this machine",
			"compare the clocks; put a Timesync document before this one, or renew the certificate on the control plane",
		},
		{
			`x509: certificate is valid for`, "spec.cluster.endpoint", "the certificate of the API server is not for this address",
			"use an address that it has; or create the cluster with this one in spec.cluster.certificateSANs",
		},
		{
			`x509: `, "spec.discovery", "the certificate of the API server is from another certificate authority",
			"check that the endpoint and the credentials in spec.discovery are of one cluster",
		},
		{
			`a Node with name .* already exists in the cluster`, "spec.node.name", "the cluster has a ready node of this name",
			"kubectl delete node, if it is this machine before it was installed again; or choose another name",
		},
		{
			`Secret "kubeadm-certs" was not found`, "spec.certificateKey",
			"the cluster does not hold its certificate authorities: they are removed after two hours",
			"on a control plane: kubeadm init phase upload-certs --upload-certs; put the key into the document, then run again",
		},
		{
			`error decoding secret data with provided key`, "spec.certificateKey",
			"the certificate key does not decrypt the certificate authorities of the cluster",
			"put the key of the last kubeadm init phase upload-certs into the document, then run again",
		},
		{
			`doesn't have a stable controlPlaneEndpoint`, "spec.cluster.endpoint",
			"the cluster was created without an endpoint for several control planes", "create it with spec.cluster.endpoint",
		},
		{
			`conditions for hosting a new control plane instance|failure loading (certificate|key)`, "spec.certificateKey",
			"certificate authorities of the cluster are missing on this machine", "give spec.certificateKey, or all of spec.certificates",
		},
		{
			`"?cluster-info"?.* (not found|is forbidden)`, "spec.discovery",
			"the server publishes no cluster to join with a token", "on a control plane: kubeadm init phase bootstrap-token",
		},
		{
			`Unauthorized|asked for the client to provide credentials`, "spec.discovery", "the cluster does not accept the credentials",
			token,
		},
		{
			`(?s)(couldn't validate the identity|unable to fetch the kubeadm-config).*is forbidden`, "spec.discovery",
			"the cluster gives the credentials too few rights", "use a token of kubeadm token create",
		},
	}
}

// ofTheMachine are causes on the machine, and what several causes have in common.
func ofTheMachine() []cause {
	const detail = "see the state of the containers and the log of the kubelet in details.json"
	return []cause{
		{`old API spec|experimental API spec|no kind .* is registered`, "", "kubeadm does not read the plugin's configuration", defect},
		{
			`failed while waiting for TLS bootstrap`, "", "the cluster issued no certificate for the kubelet in time",
			"see kubectl get csr on a control plane, and the log of the kubelet in details.json",
		},
		{
			`failed while waiting for the kubelet to start|phase kubelet-(start|wait-bootstrap): .*(timed out|healthz|deadline)`, "",
			"the kubelet does not become healthy", "see the log of the kubelet in details.json, or journalctl -u kubelet",
		},
		{
			`phase wait-control-plane: |failed while waiting for the control plane to start|couldn't initialize a Kubernetes cluster`, "",
			"the control plane does not become healthy", detail,
		},
		{
			`phase (check-etcd|etcd-join|control-plane-join/etcd): |etcd cluster is not healthy`, "",
			"the etcd of the cluster is not healthy, or does not accept this machine",
			"on a control plane: etcdctl endpoint health and member list",
		},
		{`crictl is required`, "", "the program crictl is missing", "install the package cri-tools, then run again"},
		{
			`control plane version >=`, "spec.kubernetesVersion", "kubeadm does not support this version",
			"install the kubeadm of this version",
		},
		{
			`lookup .*|no such host|server misbehaving`, "spec.cluster.endpoint", "the name of the API server cannot be resolved",
			"check the name, and the name servers of this machine",
		},
		{
			`connection refused|no route to host|unreachable|timeout|deadline exceeded|EOF|connection reset`, "spec.cluster.endpoint",
			"the API server cannot be reached", "check the address, and from this machine: curl -k https://ENDPOINT/healthz",
		},
		{
			`Invalid value|Required value|Forbidden: |Unsupported value|cannot parse|couldn't parse`, "",
			"kubeadm refuses a value of the document", "see which in details.json",
		},
		{
			`invalid or incomplete external|failure loading|certificate and/or key`, "spec.certificates",
			"certificates on the machine are incomplete, or do not belong together", "see which in details.json",
		},
	}
}
