package v1alpha1

import "github.com/machineadm/machineadm/internal/lazyregexp"

// These aliases are the forms that several fields share: plain strings in Go, whose rules apply to every field with the name.

// AbsolutePath is an absolute path of Linux or Windows.
//
// +kubebuilder:validation:Pattern=`^(?:/|[A-Za-z]:\\).*$`
type AbsolutePath = string

// CgroupDriver is systemd or cgroupfs.
//
// +kubebuilder:validation:Enum=systemd;cgroupfs
type CgroupDriver = string

// DNSLabel is a label of a DNS name in lower case.
//
// +kubebuilder:validation:Pattern=`^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$`
type DNSLabel = string

// DNSName is a DNS name of one or more labels.
//
// +kubebuilder:validation:Pattern=`^[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$`
type DNSName = string

var dnsName = lazyregexp.New(`^[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$`)

// IsHostName reports whether a text is a DNSName of at most 253 characters. An IPv4 address has this form as well.
func IsHostName(text string) bool { return len(text) <= 253 && dnsName().MatchString(text) }

// QualifiedDNSName is a DNS name of two or more labels.
//
// +kubebuilder:validation:Pattern=`^[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)+$`
type QualifiedDNSName = string

// Duration is a Go duration above zero, such as 1m30s.
//
// +kubebuilder:validation:Pattern=`^\+?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+$`
type Duration = string

// FileOwner is USER:GROUP, each a name or a number.
//
// +kubebuilder:validation:Pattern=`^([A-Za-z_][A-Za-z0-9_.-]*|[0-9]{1,10}):([A-Za-z_][A-Za-z0-9_.-]*|[0-9]{1,10})$`
type FileOwner = string
