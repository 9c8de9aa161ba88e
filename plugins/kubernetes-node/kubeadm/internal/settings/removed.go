package settings

import (
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// removedArguments are arguments of earlier releases that no supported version of a component has, and with which it does not start. Those
// that a later version or a vendor has of its own are not known here. Source: the sources of Kubernetes 1.30.
func removedArguments() map[string]string {
	return map[string]string{
		"kubelet": "network-plugin network-plugin-mtu cni-conf-dir cni-bin-dir cni-cache-dir docker-endpoint image-pull-progress-deadline " +
			"non-masquerade-cidr container-runtime dynamic-config-dir master-service-namespace allow-privileged seccomp-profile-root cadvisor-port " +
			"redirect-container-streaming experimental-kernel-memcg-notification experimental-check-node-capabilities-before-mount",
		"kube-apiserver": "insecure-port insecure-bind-address basic-auth-file kubelet-https experimental-encryption-provider-config target-ram-mb " +
			"enable-swagger-ui repair-malformed-updates",
		"kube-controller-manager": "address port pod-eviction-timeout enable-taint-manager experimental-cluster-signing-duration " +
			"deployment-controller-sync-period register-retry-count horizontal-pod-autoscaler-use-rest-clients",
		"kube-scheduler": "address port algorithm-provider policy-config-file policy-configmap use-legacy-policy-config scheduler-name",
	}
}

// removedAdmission are admission plugins that no supported version has.
const removedAdmission = "PodSecurityPolicy SecurityContextDeny DenyEscalatingExec DenyExecOnPrivileged Initializers"

// removed refuses arguments and admission plugins with which a component of no supported version starts.
func (r *resolver) removed(at document.Path, component string, args []v1alpha1.Argument) {
	gone := strings.Fields(removedArguments()[component])
	for i, a := range args {
		r.refuse(slices.Contains(gone, a.Name), at.Index(i)+".name", "is an argument that "+component+" does not have since 1.29 or before, and with which it does not start", "remove it")
		if a.Name != "enable-admission-plugins" {
			continue
		}
		for plugin := range strings.SplitSeq(a.Value, ",") {
			r.refuse(slices.Contains(strings.Fields(removedAdmission), plugin), at.Index(i)+".value", plugin+" is an admission plugin that Kubernetes does not have since 1.30 or before, "+
				"and with which the API server does not start", "remove it; PodSecurity, which is on by default, replaces PodSecurityPolicy")
		}
	}
}
