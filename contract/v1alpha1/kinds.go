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
)

// Kinds returns every kind of this group and version.
func Kinds() []string {
	return []string{
		KindContainerRuntime, KindTimesync, KindSysctl, KindDomainJoin,
		KindKubernetesNode, KindRemoteConfig, KindEncryptedConfig,
	}
}

// ServedKinds returns the kinds that have a specification and a plugin in this release.
func ServedKinds() []string {
	return []string{KindContainerRuntime, KindTimesync, KindSysctl, KindDomainJoin, KindKubernetesNode}
}

// New returns a pointer to an empty document of a kind that this release serves, nil for any other.
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
	}
	return nil
}
