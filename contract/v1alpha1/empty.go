package v1alpha1

import "reflect"

// Empty reports whether the document asks for nothing. Its plugin refuses it, because a part of it is missing.
func (s SysctlSpec) Empty() bool { return len(s.Parameters)+len(s.Profiles)+len(s.Modules) == 0 }

// Empty reports whether the document asks for nothing, as that of SysctlSpec. What providerConfig asks for is up to the provider.
func (s ContainerRuntimeSpec) Empty() bool {
	s.Provider = ""
	return reflect.ValueOf(s).IsZero()
}
