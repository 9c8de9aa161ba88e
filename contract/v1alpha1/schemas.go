package v1alpha1

import _ "embed"

// The JSON schemas are variables rather than one file system, so that a plugin has the schemas of its own kinds alone.
var (
	//go:embed schema/ContainerRuntime.json
	containerRuntimeSchema []byte
	//go:embed schema/Timesync.json
	timesyncSchema []byte
	//go:embed schema/Sysctl.json
	sysctlSchema []byte
	//go:embed schema/DomainJoin.json
	domainJoinSchema []byte
	//go:embed schema/KubernetesNode.json
	kubernetesNodeSchema []byte
	//go:embed schema/RemoteConfig.json
	remoteConfigSchema []byte
	//go:embed schema/EncryptedConfig.json
	encryptedConfigSchema []byte
	//go:embed schema/ReportTarget.json
	reportTargetSchema []byte
)

// JSONSchema returns the JSON schema (draft 2020-12) of the kind.
func (ContainerRuntime) JSONSchema() []byte { return containerRuntimeSchema }

// JSONSchema returns the JSON schema (draft 2020-12) of the kind.
func (Timesync) JSONSchema() []byte { return timesyncSchema }

// JSONSchema returns the JSON schema (draft 2020-12) of the kind.
func (Sysctl) JSONSchema() []byte { return sysctlSchema }

// JSONSchema returns the JSON schema (draft 2020-12) of the kind.
func (DomainJoin) JSONSchema() []byte { return domainJoinSchema }

// JSONSchema returns the JSON schema (draft 2020-12) of the kind.
func (KubernetesNode) JSONSchema() []byte { return kubernetesNodeSchema }

// JSONSchema returns the JSON schema (draft 2020-12) of the kind.
func (RemoteConfig) JSONSchema() []byte { return remoteConfigSchema }

// JSONSchema returns the JSON schema (draft 2020-12) of the kind.
func (EncryptedConfig) JSONSchema() []byte { return encryptedConfigSchema }

// JSONSchema returns the JSON schema (draft 2020-12) of the kind.
func (ReportTarget) JSONSchema() []byte { return reportTargetSchema }
