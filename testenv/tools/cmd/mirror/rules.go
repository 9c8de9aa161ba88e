package main

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// bound limits the values of one field: a marker of controller-gen. Max is MaxItems or MaxProperties.
type bound struct{ name, value string }

func values(all ...string) []bound {
	for i, v := range all {
		all[i] = fmt.Sprintf("%q", v)
	}
	return []bound{{"Enum", strings.Join(all, ";")}}
}

func text(pattern string) []bound { return []bound{{"Pattern", pattern}} }

func least(n int) []bound { return []bound{{"Minimum", fmt.Sprint(n)}} }

func between(from, to int) []bound { return append(least(from), bound{"Maximum", fmt.Sprint(to)}) }

// few bounds a list or map whose items have rules of their own: the API server refuses rules whose cost has no bound.
func few() []bound { return []bound{{"Max", "1000"}} }

func filledList() []bound { return []bound{{"MinItems", "1"}} }

// The forms of values that are the same for every provider.
const (
	absolute = `(?:/|[A-Za-z]:\\).*` // of Linux or Windows
	period   = `(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+`
	duration = `\+?` + period // above zero, as time.ParseDuration reads it
	offset   = `[-+]?(?:0|` + period + `)`
	dnsLabel = `[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?`
	dnsName  = dnsLabel + `(?:\.` + dnsLabel + `)*`
	label    = `[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?`
	octal    = `0*[1-7][0-7]{0,2}`
	private  = `0*[1-7][0-7]?0` // no permission for others
	owner    = `([A-Za-z_][A-Za-z0-9_.-]*|[0-9]{1,10}):([A-Za-z_][A-Za-z0-9_.-]*|[0-9]{1,10})`
)

// bounds returns the bounds of fields, by struct and JSON name. They are what the comments of the contract say in words, so that
// no provider accepts what they refuse. A bound of a list is that of its items.
func bounds() map[string][]bound {
	all := nodeBounds()
	for name, b := range map[string][]bound{
		"ContainerRuntimeSpec.cgroupDriver":           values("systemd", "cgroupfs"),
		"ContainerRuntimeSpec.rootDir":                text(absolute),
		"ContainerRuntimeSpec.stateDir":               text(absolute),
		"ContainerRuntimeSpec.maxConcurrentDownloads": least(1),
		"ContainerRuntimeSpec.logLevel":               values("trace", "debug", "info", "warn", "error", "fatal", "panic"),
		"ContainerRuntimeSpec.oomScore":               between(-1000, 1000),
		"ContainerRuntimeSpec.registries":             few(),
		"ContainerRuntimeSpec.registryDirs":           text(absolute),
		"ContainerRuntimeSpec.imports":                text(absolute),
		"Runtime.binary":                              text(absolute),
		"Runtime.cgroupDriver":                        values("systemd", "cgroupfs"),
		"CDI.specDirs":                                text(absolute),
		"CNI.binDirs":                                 text(absolute),
		"CNI.confDir":                                 text(absolute),
		"RegistryAccess.capabilities":                 values("pull", "resolve", "push", "referrers"),
		"RegistryAccess.dialTimeout":                  text(duration),

		"TimesyncSpec.profile":   values("aws", "gcp", "azure", "vmware"),
		"TimesyncSpec.servers":   few(),
		"TimesyncSpec.pools":     few(),
		"TimeSource.minPoll":     between(-6, 24),
		"TimeSource.maxPoll":     between(-6, 24),
		"TimePool.maxSources":    between(1, 16),
		"TimeKey.id":             between(1, 65535),
		"TimeKey.type":           values("MD5", "SHA1", "SHA256", "SHA384", "SHA512", "AES128", "AES256"),
		"RefClock.driver":        values("phc", "pps", "sock"),
		"RefClock.device":        text(`/[A-Za-z0-9._/:+-]+`),
		"RefClock.poll":          between(-6, 24),
		"RefClock.offset":        text(offset),
		"MakeStep.threshold":     text(duration),
		"MakeStep.limit":         least(-1),
		"WaitForSync.timeout":    text(duration),
		"WaitForSync.maxOffset":  text(duration),
		"SysctlSpec.profiles":    values("kubernetes", "kubernetes-ipv6", "kubelet-protect-defaults"),
		"SysctlSpec.modules":     text(`[A-Za-z0-9_][A-Za-z0-9_-]{0,54}`),
		"DomainJoinSpec.state":   values("present", "absent"),
		"DomainJoinSpec.leave":   values("delete", "disable"),
		"DomainJoinSpec.domain":  text(dnsLabel + `(?:\.` + dnsLabel + `)+`),
		"DomainJoinSpec.fqdn":    text(dnsLabel + `(?:\.` + dnsLabel + `)+`),
		"DomainJoinSpec.servers": text(dnsName),

		"DomainJoinSpec.computerName":    text(`[A-Za-z0-9](?:[A-Za-z0-9-]{0,13}[A-Za-z0-9])?`),
		"DomainJoinSpec.transport":       values("ldaps", "starttls", "sealed"),
		"DomainJoinSpec.encryptionTypes": append(values("aes256-cts-hmac-sha1-96", "aes128-cts-hmac-sha1-96", "rc4-hmac"), filledList()...),
		"DomainJoinSpec.existingAccount": values("refuse", "reuse"),
		"DomainCredentials.username":     text(`[^\\@]+`),
		"Keytab.path":                    text(`/.+`),
		"Keytab.owner":                   text(owner),
		"Keytab.mode":                    text(private),
	} {
		all[name] = b
	}
	return all
}

// nodeBounds returns the bounds of KubernetesNode.
func nodeBounds() map[string][]bound {
	version := `v(?:0|[1-9][0-9]{0,3})(?:\.(?:0|[1-9][0-9]{0,3})){2}(?:[+-][0-9A-Za-z.+-]{1,64})?`
	return map[string][]bound{
		"KubernetesNodeSpec.role":                    values("controlPlaneInit", "controlPlaneJoin", "worker"),
		"KubernetesNodeSpec.kubernetesVersion":       text(version),
		"KubernetesNodeSpec.files":                   few(),
		"KubernetesNodeSpec.profiles":                values("disa-k8s-v2r6", "cis-1.11"),
		"KubernetesCluster.certificatesDir":          text(`/.+`),
		"KubernetesCluster.keyAlgorithm":             values("RSA-2048", "RSA-3072", "RSA-4096", "ECDSA-P256", "ECDSA-P384"),
		"KubernetesCluster.certificateValidity":      text(duration),
		"KubernetesCluster.caCertificateValidity":    text(duration),
		"KubernetesNodeRegistration.imagePullPolicy": values("Always", "IfNotPresent", "Never"),
		"KubernetesNodeRegistration.cloudProvider":   values("external"),
		"KubernetesNodeRegistration.swap":            values("off", "keep"),
		"MachineValue.hostname":                      values("short", "fqdn"),
		"MachineValue.family":                        values("ipv4", "ipv6", "ipv4,ipv6", "ipv6,ipv4"),
		"MachineValue.file":                          text(absolute),
		"MachineValue.jsonKeys":                      append(text(`[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*`), filledList()...),
		"Taint.effect":                               values("NoSchedule", "PreferNoSchedule", "NoExecute"),
		"Argument.name":                              text(`[^-].*`),
		"Kubelet.cgroupDriver":                       values("systemd", "cgroupfs"),
		"Kubelet.maxPods":                            least(1),
		"KubeProxy.mode":                             values("iptables", "ipvs", "nftables"),
		"Discovery.caCertHashes":                     text(`sha256:[0-9a-fA-F]{64}`),
		"KubernetesNodeRegistration.advertisePort":   between(1, 65535),
		"LocalEtcd.dataDir":                          text(absolute),
		"ExternalEtcd.endpoints":                     filledList(),
		"HostVolume.name":                            text(label),
		"HostVolume.hostPath":                        text(absolute),
		"HostVolume.mountPath":                       text(absolute),
		"HostVolume.pathType":                        values("File", "FileOrCreate", "Directory", "DirectoryOrCreate", "Socket"),
		"NodeFile.path":                              text(absolute),
		"NodeFile.encoding":                          values("base64"),
		"NodeFile.owner":                             text(owner),
		"NodeFile.mode":                              text(octal),
		"NodeFile.when":                              values("beforeKubernetes", "afterKubernetes"),
		"StaticPod.name":                             text(label),
		"ComponentPatch.type":                        values("strategic", "merge", "json"),
		"ComponentPatch.target":                      values(v1alpha1.PatchTargets()...),
		"NodeTimeouts.controlPlane":                  text(duration),
		"NodeTimeouts.kubelet":                       text(duration),
		"NodeTimeouts.kubernetesAPI":                 text(duration),
		"NodeTimeouts.etcdAPI":                       text(duration),
		"NodeTimeouts.tlsBootstrap":                  text(duration),
		"NodeTimeouts.discovery":                     text(duration),
	}
}

// rule is a CEL rule of a struct. {field} in its text says that the field has a value. The API server names field in its error,
// or the struct if it is empty.
type rule struct{ text, message, field string }

// listed returns "a, b and c".
func listed(conjunction string, all ...string) string {
	last := len(all) - 1
	if last == 0 {
		return all[0]
	}
	return strings.Join(all[:last], ", ") + " " + conjunction + " " + all[last]
}

// excludes refuses a field beside any of others.
func excludes(field string, others ...string) rule {
	given := make([]string, len(others))
	for i, o := range others {
		given[i] = "{" + o + "}"
	}
	return rule{fmt.Sprintf("!({%s} && (%s))", field, strings.Join(given, " || ")), field + " excludes " + listed("and", others...), field}
}

// needs refuses a field without another.
func needs(field, other string) rule {
	return rule{fmt.Sprintf("!{%s} || {%s}", field, other), field + " is for " + other + " only", field}
}

func exactlyOne(fields ...string) rule {
	return rule{fmt.Sprintf("[{%s}].exists_one(x, x)", strings.Join(fields, "}, {")), "must have exactly one of " + listed("and", fields...), ""}
}

// forRoles refuses a field of KubernetesNodeSpec, that given says is there, if the object has another role. The controller fills in the
// role of most objects. The API server names the field at.
func forRoles(field, given, at string, roles []string) rule {
	return rule{
		fmt.Sprintf("!({role} && %s) || self.role in ['%s']", given, strings.Join(roles, "', '")),
		field + " is for the role " + listed("or", roles...) + " only", at,
	}
}

// roleRules are those of the fields with the tag roles, and of the two kinds of etcd.
func roleRules() []rule {
	var all []rule
	tagged := func(of reflect.Type, ruleOf func(name string, roles []string) rule) {
		for _, f := range reflect.VisibleFields(of) {
			if roles := f.Tag.Get("roles"); roles != "" {
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				all = append(all, ruleOf(name, strings.Split(roles, ",")))
			}
		}
	}
	tagged(reflect.TypeFor[v1alpha1.KubernetesNodeSpec](), func(name string, roles []string) rule {
		return forRoles(name, "{"+name+"}", name, roles)
	})
	tagged(reflect.TypeFor[v1alpha1.Etcd](), func(name string, roles []string) rule {
		return forRoles("etcd."+name, "{etcd} && has(self.etcd."+name+")", "etcd", roles)
	})
	return all
}

// rules returns the rules of structs, which hold for every provider, as bounds do.
func rules() map[string][]rule {
	return map[string][]rule{
		"ContainerRuntimeSpec": {{"!({rootDir} && {stateDir}) || self.rootDir != self.stateDir", "stateDir must differ from rootDir", "stateDir"}},
		"RegistryAuth": {
			{"{identityToken} != ({username} || {password})", "must have username and password, or identityToken", ""},
			{"{username} == {password}", "username and password require each other", ""},
		},
		"Proxy": {excludes("httpSecret", "http"), excludes("httpsSecret", "https")},
		"TimeSource": {
			excludes("key", "nts"),
			{"!({minPoll} && {maxPoll}) || self.minPoll <= self.maxPoll", "maxPoll must be at least minPoll", "maxPoll"},
		},
		"DomainJoinSpec": {
			excludes("oneTimePassword", "credentials"),
			excludes("offlineJoinBlob", "credentials", "oneTimePassword"),
			{"!{leave} || {state} && self.state == 'absent'", "leave is for state absent only", "leave"},
			{"!{oneTimePassword} || !{state} || self.state != 'absent'", "oneTimePassword is for state present only", "oneTimePassword"},
			{"!{offlineJoinBlob} || !{state} || self.state != 'absent'", "offlineJoinBlob is for state present only", "offlineJoinBlob"},
			{"!{ca} || !{transport} || self.transport != 'sealed'", "ca is for the transports ldaps and starttls only", "ca"},
		},
		"KubernetesNodeSpec": append(
			roleRules(), excludes("ignorePreflightErrors", "ignoreAllPreflightErrors"),
			rule{
				"!({role} && {discovery}) || self.role == 'controlPlaneInit' || !has(self.discovery.token) || " +
					"has(self.discovery.caCertHashes) && size(self.discovery.caCertHashes) > 0",
				"a token to join requires caCertHashes", "discovery",
			},
		),
		"KubernetesNodeRegistration": {excludes("nameFrom", "name"), excludes("ipFrom", "ip"), excludes("advertiseAddressFrom", "advertiseAddress"), excludes("providerIDFrom", "providerID")},
		"MachineValue":               {exactlyOne("hostname", "interface", "file"), needs("family", "interface"), needs("key", "file"), needs("jsonKeys", "file"), excludes("jsonKeys", "key"), excludes("prefix", "interface")},
		"KubeProxy":                  {excludes("skip", "mode", "config")},
		"Discovery":                  {excludes("kubeconfig", "token", "caCertHashes", "endpoint")},
		"Etcd":                       {exactlyOne("local", "external")},
		"ExternalEtcd":               {{"{cert} == {key}", "cert and key require each other", "key"}},
		"NodeFile": {
			exactlyOne("content", "secretContent"),
			{"!{secretContent} || !{mode} || self.mode.endsWith('0') || self.mode.endsWith('4')", "mode lets others change or run a secret", "mode"},
		},
	}
}

// filled returns the fields that the contract requires and the controller fills in, with a sentence for their comments.
func filled() map[string]string {
	return map[string]string{
		"KubernetesNodeSpec.role":              "By default the controller derives it from the Machine.",
		"KubernetesNodeSpec.kubernetesVersion": "By default the controller takes it from the Machine.",
	}
}
