package v1alpha1

import (
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/internal/lazyregexp"
)

var subdomain = lazyregexp.New(`^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$`)

// IsSubdomain reports whether a text is a DNS name of at most 253 lower-case letters, digits, dots and -. Source:
// k8s.io/apimachinery, pkg/util/validation, IsDNS1123Subdomain; its labels have at most 63 characters here.
func IsSubdomain(text string) bool { return len(text) <= 253 && subdomain().MatchString(text) }

// CheckAddress returns an error if a text is not HOST:PORT, where HOST is a DNS name, an IPv4 address, or an IPv6 address in brackets.
// The error does not quote the text.
func CheckAddress(text string) error {
	host, port, err := net.SplitHostPort(text)
	if err != nil && !strings.Contains(text, ":") {
		return errors.New("must have a port")
	}
	n, numberErr := strconv.ParseUint(port, 10, 16)
	ip, ipErr := netip.ParseAddr(host)
	numeric := strings.Trim(host, "0123456789.") == ""
	isHost := ipErr == nil && ip.Zone() == "" && ip.Is6() == strings.HasPrefix(text, "[") || ipErr != nil && !numeric && IsSubdomain(host)
	switch {
	case err != nil || numberErr != nil || n == 0 || port[0] == '0':
		return errors.New("must be HOST:PORT")
	case !isHost && !numeric && text[0] != '[' && IsSubdomain(strings.ToLower(host)):
		return errors.New("has capital letters: the name of a host must be in lower case")
	case !isHost:
		return errors.New("must be HOST:PORT")
	}
	return nil
}

// ParseMode returns the permission bits that a text gives in octal. The error does not quote the text.
func ParseMode(text string) (fs.FileMode, error) {
	bits, err := strconv.ParseUint(text, 8, 12)
	mode := fs.FileMode(bits) //nolint:gosec // at most 12 bits
	owner := mode >> 6
	switch {
	case err != nil || mode == 0 || mode > fs.ModePerm:
		return 0, errors.New("is not a mode")
	case (mode>>3|mode)&7&^owner != 0: // decimal 420, which is 0644, would become r---w----
		return 0, errors.New("gives others a right that the owner does not have")
	}
	return mode, nil
}

// IsKubeletLabel reports whether a kubelet may set a label on its node. Source: k8s.io/kubelet, pkg/apis.
func IsKubeletLabel(key string) bool {
	namespace, _, _ := strings.Cut(key, "/")
	within := func(suffix string) bool { return namespace == suffix || strings.HasSuffix(namespace, "."+suffix) }
	if !strings.Contains(key, "/") || !within("kubernetes.io") && !within("k8s.io") || within("kubelet.kubernetes.io") || within("node.kubernetes.io") {
		return true
	}
	return slices.Contains([]string{
		"kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch", "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
		"beta.kubernetes.io/instance-type", "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
		"failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
	}, key)
}
