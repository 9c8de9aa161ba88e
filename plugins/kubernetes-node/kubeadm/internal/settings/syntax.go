package settings

import (
	"errors"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/internal/lazyregexp"
	"github.com/machineadm/machineadm/plugins/internal/form"
)

const dnsLabel = `[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?`

// The parts of the reference of an image. Source: github.com/distribution/reference.
const (
	registry  = dnsLabel + `(?:\.` + dnsLabel + `)*(?::[0-9]{1,5})?`
	imagePath = `(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)`
)

// The forms of values. The source of the forms of Kubernetes is k8s.io/apimachinery, pkg/util/validation.
var (
	label        = lazyregexp.New(`^` + dnsLabel + `$`)
	wildcard     = lazyregexp.New(`^(?:\*\.)?` + dnsLabel + `(?:\.` + dnsLabel + `)*$`)
	clusterName  = lazyregexp.New(`^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$`)
	labelName    = lazyregexp.New(`^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
	repository   = lazyregexp.New(`^` + registry + imagePath + `*$`)
	image        = lazyregexp.New(`^` + registry + imagePath + `+(?::[\w][\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$`)
	imageTag     = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	argumentName = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_.-]*$`)
	kubeletValue = lazyregexp.New("^[^\\s\"'\\\\$`]*$")
	variable     = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_.-]*$`)
	token        = lazyregexp.New(`^[a-z0-9]{6}\.[a-z0-9]{16}$`)
	hash         = lazyregexp.New(`^sha256:[0-9a-fA-F]{64}$`)
	hexKey       = lazyregexp.New(`^[0-9a-fA-F]{64}$`)
	check        = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	quantity     = lazyregexp.New(`^[0-9]+(?:\.[0-9]+)?(?:[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$`)
	threshold    = lazyregexp.New(`^[0-9]+(?:\.[0-9]+)?(?:%|[KMGTPE]i|[numkMGTPE])?$`)
	providerID   = lazyregexp.New(`^[!-~]{1,512}$`)
	linuxSocket  = lazyregexp.New(`^unix:///[A-Za-z0-9._/-]+$`)
	windowsPipe  = lazyregexp.New(`^npipe:////\./pipe/[A-Za-z0-9._-]+$`)
)

// matches refuses a value that is given and has another form.
func (r *resolver) matches(field document.Path, value string, form func() *regexp.Regexp, message, hint string) {
	if form().MatchString(strings.ToLower(value)) {
		hint = "write it in lower case"
	}
	r.refuse(value != "" && (len(value) > 512 || !form().MatchString(value)), field, message, hint)
}

func (r *resolver) componentImage(at document.Path, i *v1alpha1.ComponentImage, tag string) {
	if i != nil {
		r.matches(at+".repository", i.Repository, repository, "is not HOST/PATH", "write it like registry.example.com/kubernetes")
		r.matches(at+".tag", i.Tag, imageTag, "is not a tag", "write it like "+tag)
	}
}

// maxName is the longest name of a file in bytes, on every file system of Linux that a node has.
const maxName = 255

// path refuses a value that is not an absolute path in its shortest form. It reports whether the path is valid.
func (r *resolver) path(field document.Path, value string) bool {
	if r.result.Windows {
		return !r.refuse(!form.IsPath(value, true), field, "must be an absolute path in its shortest form", `write it like C:\ProgramData\example`)
	}
	return r.linuxPath(field, value)
}

func (r *resolver) linuxPath(field document.Path, value string) bool {
	tooLong := func(segment string) bool { return len(segment) > maxName }
	if r.refuse(slices.ContainsFunc(strings.Split(value, "/"), tooLong), field, "has a name of more than 255 bytes", "shorten it") {
		return false
	}
	return !r.refuse(!form.IsPath(value, false), field,
		"must be an absolute path in its shortest form", "write it like /etc/example, without . and .. and doubled or trailing slashes")
}

// duration refuses a value that is given and not a duration above zero.
func (r *resolver) duration(field document.Path, value string) {
	d, err := time.ParseDuration(value)
	r.refuse(value != "" && (err != nil || d <= 0), field, "must be a Go duration above zero", "write it like 90s, 4m or 8760h")
}

// address refuses a value that is given and not HOST:PORT.
func (r *resolver) address(field document.Path, value string) {
	if value != "" {
		r.invalid(v1alpha1.CheckAddress(value), field, "write it like api.example.com:6443, 192.0.2.1:6443 or [2001:db8::1]:6443")
	}
}

// checkURL accepts https://HOST:PORT, and http:// where plain is true.
func checkURL(text string, plain bool) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		return errors.New("must be a URL of scheme, host and port") // not %w: it quotes
	case u.Scheme != "https" && (u.Scheme != "http" || !plain):
		return errors.New("must begin with https://")
	}
	return nil
}

func checkName(text string) error {
	if !v1alpha1.IsSubdomain(text) {
		return errors.New("must be a DNS name: at most 253 lower-case letters, digits, dots and -")
	}
	return nil
}

const notPlain = "must not have a zone, nor be an IPv4 address in the form of IPv6"

// addressesOf reads one address, or one of each family separated by a comma.
func addressesOf(text string) ([]netip.Addr, error) {
	var all []netip.Addr
	for part := range strings.SplitSeq(text, ",") {
		ip, err := netip.ParseAddr(part)
		switch {
		case err != nil:
			return nil, errors.New("must be an IP address, or two of different families separated by a comma")
		case ip.Zone() != "" || ip.Is4In6():
			return nil, errors.New(notPlain)
		case ip.IsUnspecified() && part == text: // the kubelet takes the address of the default route of its family
		case !ip.IsGlobalUnicast(): // the kubelet does not register a node with one: validateNodeIP
			return nil, errors.New("must not be a loopback, link-local or multicast address, and unspecified only alone")
		case len(all) == 2, len(all) == 1 && all[0].Is4() == ip.Is4():
			return nil, errors.New("has two addresses of one family")
		}
		all = append(all, ip)
	}
	return all, nil
}
