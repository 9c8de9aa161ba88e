package v1alpha1

// The kinds of this group and version.
const (
	KindContainerRuntime = "ContainerRuntime"
	KindTimesync         = "Timesync"
	KindSysctl           = "Sysctl"
	KindDomainJoin       = "DomainJoin"
	KindKubernetesNode   = "KubernetesNode"
	KindRemoteConfig     = "RemoteConfig"
	KindEncryptedConfig  = "EncryptedConfig"
	KindReportTarget     = "ReportTarget"
)

// Kinds returns every kind of this group and version.
func Kinds() []string {
	return append(MachineKinds(), KindRemoteConfig, KindEncryptedConfig, KindReportTarget)
}

// MachineKinds returns the kinds that configure the machine. The others say where documents and reports are.
func MachineKinds() []string {
	return []string{KindContainerRuntime, KindTimesync, KindSysctl, KindDomainJoin, KindKubernetesNode}
}

// New returns a pointer to an empty document of a kind, nil for one of another group.
func New(kind string) any {
	switch kind {
	case KindContainerRuntime:
		return &ContainerRuntime{}
	case KindTimesync:
		return &Timesync{}
	case KindSysctl:
		return &Sysctl{}
	case KindDomainJoin:
		return &DomainJoin{}
	case KindKubernetesNode:
		return &KubernetesNode{}
	case KindRemoteConfig:
		return &RemoteConfig{}
	case KindEncryptedConfig:
		return &EncryptedConfig{}
	case KindReportTarget:
		return &ReportTarget{}
	}
	return nil
}
