package release

import (
	"fmt"

	"github.com/machineadm/machineadm/sdk"
)

// Check returns what is wrong with versions of Kubernetes, kubeadm and the kubelet that are to work together. Source: the
// version skew policy of Kubernetes, and the checks of kubeadm. kubeadm serves control planes of its own minor version and of
// the one before; the kubelet is not newer than the control plane, and at most three minor versions older than kubeadm.
func Check(control, kubeadm, kubelet Version) []sdk.Violation {
	var all []sdk.Violation
	refuse := func(bad bool, message, hint string) {
		if bad {
			all = append(all, sdk.Violation{Field: "spec.kubernetesVersion", Message: message, Hint: hint})
		}
	}
	if !kubeadm.Supported() {
		refuse(true, fmt.Sprintf("the installed kubeadm is %s, and this plugin supports 1.%d to 1.%d", kubeadm, Oldest, Newest),
			"install a kubeadm of one of these versions, or a plugin that supports it")
		return all
	}
	refuse(control.Major != kubeadm.Major || control.Minor != kubeadm.Minor && control.Minor != kubeadm.Minor-1,
		fmt.Sprintf("the installed kubeadm is %s, which serves 1.%d and 1.%d", kubeadm, kubeadm.Minor, kubeadm.Minor-1),
		"install the kubeadm of this version of Kubernetes, or change spec.kubernetesVersion")
	refuse(kubelet.Major != control.Major || kubelet.Minor > control.Minor,
		fmt.Sprintf("the installed kubelet is %s, which is newer than the control plane", kubelet),
		"install the kubelet of this version of Kubernetes")
	refuse(kubelet.Major == kubeadm.Major && kubelet.Minor < kubeadm.Minor-3,
		fmt.Sprintf("the installed kubelet is %s, which is more than three minor versions older than kubeadm", kubelet),
		"install the kubelet of this version of Kubernetes")
	return all
}

// Supported reports whether this plugin supports a version of kubeadm.
func (v Version) Supported() bool { return v.Major == 1 && v.Minor >= Oldest && v.Minor <= Newest }

// Programs returns the programs that kubeadm of this version requires on Linux, for a control plane that it creates, which is the zero
// version for a node that joins. Source: addExecChecks in cmd/kubeadm/app/preflight/checks_linux.go, before 1.33 addExecutableChecks.
func (v Version) Programs(creates Version) []string {
	var all []string
	if v.Minor < 31 {
		all = append(all, "crictl")
	}
	if v.Minor < 32 || creates.Minor == 31 {
		all = append(all, "conntrack")
	}
	if v.Minor < 33 {
		return append(all, "ip", "iptables", "mount", "nsenter")
	}
	return append(all, "cp", "losetup", "mount")
}
