// Package naming maps kind and provider to the file name of a plugin, and lists the plugin directories.
//
// File names are part of the contract: `machineadm-<kebab-case kind>-plugin-<provider>`, with `.exe` appended on
// Windows, and two irregular names of the proposal: `machineadm-remote-configuration-provider-<provider>`
// for RemoteConfig and ReportTarget, and `machineadm-plugin-encryption-provider-<provider>` for EncryptedConfig.
package naming

import "strings"

const (
	program = "machineadm-"
	infix   = "-plugin-"

	remoteConfigPrefix    = program + "remote-configuration-provider-"
	encryptedConfigPrefix = program + "plugin-encryption-provider-"
)

// Prefix returns the start of the binary's name, which the provider follows; "" for an invalid kind.
func Prefix(kind string) string {
	switch {
	case ValidKind(kind) != nil:
		return ""
	case kind == "RemoteConfig", kind == "ReportTarget":
		return remoteConfigPrefix
	case kind == "EncryptedConfig":
		return encryptedConfigPrefix
	default:
		return program + Kebab(kind) + infix
	}
}

// Binary returns the name of the plugin for kind and provider, without `.exe`; "" if either is invalid, so that unchecked
// text never becomes part of a path. The name contains only [a-z0-9-].
func Binary(kind, provider string) string {
	prefix := Prefix(kind)
	if prefix == "" || ValidProvider(provider) != nil {
		return ""
	}
	return prefix + provider
}

// File returns the file name of binary on goos (a GOOS value).
func File(goos, binary string) string {
	if goos == "windows" {
		return binary + ".exe"
	}
	return binary
}

// Trim is the inverse of File: it returns the binary's name, or false if file is not the name of a plugin. The comparison is
// case-sensitive, also on Windows.
func Trim(goos, file string) (binary string, ok bool) {
	binary = file
	if goos == "windows" {
		if binary, ok = strings.CutSuffix(file, ".exe"); !ok {
			return "", false
		}
	}
	if !isBinary(binary) {
		return "", false
	}
	return binary, true
}

// IsPlugin reports whether file, a name without directories, is the name of a plugin of any kind.
func IsPlugin(goos, file string) bool {
	_, ok := Trim(goos, file)
	return ok
}

func isBinary(name string) bool {
	for _, prefix := range []string{remoteConfigPrefix, encryptedConfigPrefix} {
		if provider, ok := strings.CutPrefix(name, prefix); ok && ValidProvider(provider) == nil {
			return true
		}
	}
	rest, ok := strings.CutPrefix(name, program)
	if !ok {
		return false
	}
	// Kind and provider may contain "-plugin-": one valid split is sufficient.
	for from := 0; ; {
		at := strings.Index(rest[from:], infix)
		if at < 0 {
			return false
		}
		at += from
		if isKebab(rest[:at]) && ValidProvider(rest[at+len(infix):]) == nil {
			return true
		}
		from = at + 1
	}
}

// SearchDirectories returns the plugin directories of goos (a GOOS value) in search order; none for an unsupported system.
func SearchDirectories(goos string) []string {
	switch goos {
	case "linux":
		return []string{
			"/usr/local/libexec/machineadm",
			"/usr/libexec/machineadm",
			"/opt/machineadm/plugins", // for a read-only /usr
		}
	case "windows":
		return []string{`C:\Program Files\machineadm\plugins`}
	default:
		return nil
	}
}
