package v1alpha1

import (
	_ "embed"
	"encoding/json"
)

// SysctlProfile is a set of kernel parameters, and the modules that provide them.
type SysctlProfile struct {
	// Parameters maps a key, with dots, to its value.
	Parameters map[string]string `json:"parameters"`
	// Modules are the kernel modules that provide the parameters.
	Modules []string `json:"modules"`
}

// TimesyncProfile has the sources that the operator of a platform recommends.
type TimesyncProfile struct {
	Servers   []TimeServer   `json:"servers"`
	RefClocks []ProfileClock `json:"refClocks"`
}

// ProfileClock is a clock of a profile.
type ProfileClock struct {
	RefClock
	// Options are further options of chrony's refclock directive. A daemon without them does without.
	Options string `json:"options"`
}

// KubernetesNodeRule is a rule of a benchmark that a profile takes up.
type KubernetesNodeRule struct {
	// ID is the rule's name in the benchmark.
	ID string `json:"id"`
	// Target is apiServer, controllerManager, scheduler or etcd for an argument, kubelet or kubeProxy for a field of their
	// configuration, file for a mode, or "host name".
	Target string `json:"target"`
	// Name is the argument, the path of the field or the file.
	Name string `json:"name"`
	// Value is an argument, a value in JSON, or a mode. null removes the field.
	Value string `json:"value"`
	// Others are further values that the rule accepts.
	Others []string `json:"others"`
	// Flag is the argument of the kubelet that would override the field.
	Flag string `json:"flag"`
	// Meaning says what the setting does.
	Meaning string `json:"meaning"`
}

var (
	//go:embed profiles/Sysctl.json
	sysctlProfiles []byte
	//go:embed profiles/Timesync.json
	timesyncProfiles []byte
	//go:embed profiles/KubernetesNode.json
	kubernetesNodeProfiles []byte
)

// SysctlProfiles returns the profiles of Sysctl by name. kubernetes is what Kubernetes' page of container runtimes requires, which
// kubeadm's preflight checks in part. Of kubernetes-ipv6 the kernel forwards by all, and kubeadm's preflight reads default ("Dual-stack
// support with kubeadm"). Without kubelet-protect-defaults a kubelet with protectKernelDefaults does not start (kubernetes pkg/kubelet/cm).
func SysctlProfiles() map[string]SysctlProfile { return profilesIn[SysctlProfile](sysctlProfiles) }

// TimesyncProfiles returns the profiles of Timesync by name. Sources: Amazon EC2, Set the time reference on your EC2 instance; Compute
// Engine, Configure NTP; Azure, Time sync for Linux VMs; VMware, driver ptp_vmw of the Precision Clock.
func TimesyncProfiles() map[string]TimesyncProfile {
	return profilesIn[TimesyncProfile](timesyncProfiles)
}

// KubernetesNodeProfiles returns the profiles of KubernetesNode by name. Sources: DISA, Kubernetes STIG Version 2 Release 6; CIS
// Kubernetes Benchmark 1.11.
func KubernetesNodeProfiles() map[string][]KubernetesNodeRule {
	return profilesIn[[]KubernetesNodeRule](kubernetesNodeProfiles)
}

func profilesIn[P any](data []byte) (all map[string]P) {
	if err := json.Unmarshal(data, &all); err != nil {
		panic(err) // a test reads them
	}
	return all
}
