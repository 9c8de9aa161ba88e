// Package naming maps a document's kind and provider to the file name of the plugin that serves it,
// and says in which directories plugins are installed.
//
// File names are part of the contract: `machineadm-<kebab-case kind>-plugin-<provider>`, with `.exe` appended on
// Windows, and two names that keep the proposal's irregular form: `machineadm-remote-configuration-provider-<provider>`
// for RemoteConfig and `machineadm-plugin-encryption-provider-<provider>` for EncryptedConfig.
package naming

import "strings"

const (
	program = "machineadm-"
	infix   = "-plugin-"

	remoteConfigPrefix    = program + "remote-configuration-provider-"
	encryptedConfigPrefix = program + "plugin-encryption-provider-"
)

// Prefix is the part of the binary's name that all providers of the kind share; the provider follows it.
// It is empty when kind is not valid (ValidKind).
func Prefix(kind string) string {
	switch {
	case ValidKind(kind) != nil:
		return ""
	case kind == "RemoteConfig":
		return remoteConfigPrefix
	case kind == "EncryptedConfig":
		return encryptedConfigPrefix
	default:
		return program + Kebab(kind) + infix
	}
}

// Binary is the name of the plugin that serves kind with provider, without `.exe`. It is empty when either is not
// valid (ValidKind, ValidProvider), so that no path is ever made of unchecked text: otherwise only [a-z0-9-] occur.
func Binary(kind, provider string) string {
	prefix := Prefix(kind)
	if prefix == "" || ValidProvider(provider) != nil {
		return ""
	}
	return prefix + provider
}

// File is the name of the file that holds binary on the operating system goos (a GOOS value).
func File(goos, binary string) string {
	if goos == "windows" {
		return binary + ".exe"
	}
	return binary
}

// Trim is the inverse of File: the binary's name, or "" and false when file is not the name of a plugin.
// Letters are compared exactly, on Windows too: the contract's names are lower-case.
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
	// A provider or a kind may itself contain "-plugin-": any reading that is valid will do.
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

// SearchDirectories lists where plugins are installed on goos (a GOOS value), in the order in which they are searched.
// It is empty for an operating system that has none yet.
func SearchDirectories(goos string) []string {
	switch goos {
	case "linux":
		return []string{
			"/usr/local/libexec/machineadm",
			"/usr/libexec/machineadm",
			"/opt/machineadm/plugins", // for systems whose /usr cannot be written
		}
	case "windows":
		return []string{`C:\Program Files\machineadm\plugins`}
	default:
		return nil
	}
}
