package settings

import (
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// ciphers refuses a list of cipher suites with which net/http does not serve HTTP/2, and so not at all. Source: ConfigureServer of
// golang.org/x/net/http2.
func (r *resolver) ciphers(at document.Path, args []v1alpha1.Argument) {
	i := lastArgument(args, "tls-cipher-suites")
	if i < 0 || args[i].Value == "" {
		return
	}
	version := ""
	if j := lastArgument(args, "tls-min-version"); j >= 0 {
		version = args[j].Value
	}
	http2 := true
	if j := lastArgument(args, "disable-http2-serving"); j >= 0 && args[j].Value != "false" {
		http2 = false
	}
	r.cipherList(at.Index(i)+".value", strings.Split(args[i].Value, ","), version, http2)
}

func (r *resolver) cipherList(at document.Path, suites []string, version string, http2 bool) {
	if version == "VersionTLS13" {
		r.warn(at, "has no effect with the minimum version VersionTLS13, whose cipher suites are fixed: remove it")
		return
	}
	needed := func(suite string) bool {
		return suite == "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256" || suite == "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
	}
	r.refuse(http2 && !r.refused(at) && !slices.ContainsFunc(suites, needed), at, "has neither of the cipher suites that HTTP/2 requires, and the component does not start",
		"add TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 or, for keys of ECDSA, TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256")
}
