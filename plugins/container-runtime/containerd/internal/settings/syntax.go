package settings

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/internal/form"
)

// The errors of these checks never quote the text.

// isIdentifier reports whether containerd accepts the name of a plugin (containerd's pkg/identifiers).
func isIdentifier(text string) bool {
	return len(text) <= 76 && regexp.MustCompile(`^[A-Za-z0-9]+(?:[._-][A-Za-z0-9]+)*$`).MatchString(text)
}

// checkPath accepts an absolute path in its shortest form, except the root.
func checkPath(text string, windows bool) error {
	switch {
	case form.HasControl(text):
		return errors.New("a path has no control characters")
	case !form.IsPath(text, windows):
		return errors.New("must be an absolute path in its shortest form")
	}
	return nil
}

// checkPattern accepts an absolute path whose last part may be a pattern of filepath.Glob.
func checkPattern(text string, windows bool) error {
	separator := "/"
	if windows {
		separator = `\`
	}
	at := strings.LastIndex(text, separator)
	if at <= 0 {
		return checkPath(text, windows)
	}
	directory, last := text[:at], text[at:]
	if strings.ContainsAny(directory, "*?[") {
		return errors.New("a pattern may stand in the name of the file alone")
	}
	if _, err := path.Match(last[1:], ""); err != nil {
		return errors.New("is not a pattern of file names")
	}
	return checkPath(directory+strings.NewReplacer("*", "x", "?", "x", "[", "x", "]", "x").Replace(last), windows)
}

// portOf checks HOST or HOST:PORT, where HOST is a name, an IPv4 address or an IPv6 address in brackets. The port is empty
// where the text has none.
func portOf(text string) (port string, err error) {
	host := text
	if at := strings.LastIndexByte(text, ':'); at >= 0 && !strings.HasSuffix(text, "]") {
		host, port = text[:at], text[at+1:]
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n < 1 || port[0] == '0' {
			return "", errors.New("must have a port from 1 to 65535 behind its last colon")
		}
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, closed := strings.CutSuffix(inner, "]")
		if address, err := netip.ParseAddr(inner); err != nil || !closed || !address.Is6() || address.Zone() != "" {
			return "", errors.New("must have an IPv6 address between its brackets")
		}
	} else if strings.Contains(host, ":") {
		return "", errors.New("must have an IPv6 address in brackets")
	} else if !v1alpha1.IsHostName(host) {
		return "", errors.New("is not a host: labels of letters, digits and -, joined by dots")
	}
	return port, nil
}

// checkAddress accepts HOST:PORT.
func checkAddress(text string) error {
	port, err := portOf(text)
	if err == nil && port == "" {
		return errors.New("must have a port")
	}
	return err
}

// checkURL accepts SCHEME://HOST[:PORT][/PATH].
func checkURL(text string, schemes ...string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil: // never %w: it quotes
		return nil, errors.New("is not a URL")
	case !slices.ContainsFunc(schemes, func(scheme string) bool { return strings.HasPrefix(text, scheme+"://") }):
		return nil, fmt.Errorf("must begin with %s://", strings.Join(schemes, ":// or "))
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(text, "#"):
		return nil, errors.New("must end with its path: no ? and no #")
	}
	if _, err := portOf(u.Host); err != nil {
		return nil, fmt.Errorf("its host %w", err)
	}
	if p := u.EscapedPath(); p != u.Path || p != "" && p != "/" && path.Clean(p) != strings.TrimSuffix(p, "/") {
		return nil, errors.New("its path must be in its shortest form and without percent encoding")
	}
	return u, nil
}

// checkImage accepts a whole reference: HOST[:PORT]/NAME with a tag or a digest. containerd exempts an image from garbage
// collection by this text, so that a reference which containerd would complete does not match. Source:
// distribution/reference.
func checkImage(text string) error {
	name, digest, hasDigest := strings.Cut(text, "@")
	host, rest, ok := strings.Cut(name, "/")
	repository, tag, hasTag := strings.Cut(rest, ":")
	const part = `[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*`
	_, err := portOf(host)
	switch {
	case hasDigest && !regexp.MustCompile(`^(?:sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$`).MatchString(digest):
		return errors.New("is not the reference of an image: its digest is none")
	case err != nil || !ok || !isRegistryHost(host):
		return errors.New("must be a whole reference, with the host of its registry")
	case hasTag && !regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`).MatchString(tag):
		return errors.New("is not the reference of an image: its tag is none")
	case len(name)-len(tag) > 255 || !regexp.MustCompile(`^`+part+`(?:/`+part+`)*$`).MatchString(repository):
		return errors.New("is not the reference of an image: its name is none")
	case hasTag == hasDigest:
		return errors.New("must have either a tag or a digest")
	}
	return nil
}

// isRegistryHost reports whether the first part of a reference is a host. Else it belongs to the name of an image of
// Docker Hub. Source: distribution/reference.
func isRegistryHost(host string) bool {
	return strings.ContainsAny(host, ".:") || host == "localhost" || strings.ToLower(host) != host
}

// checkNoProxy accepts an exception that Go's programs support. Source: golang.org/x/net/http/httpproxy.
func checkNoProxy(text string) error {
	if text == "*" {
		return nil
	}
	if strings.Contains(text, "/") {
		if _, err := netip.ParsePrefix(text); err != nil {
			return errors.New("is not a network")
		}
		return nil
	}
	// A zone can be any text, line ends included, and no exception matches it.
	if address, err := netip.ParseAddr(text); err == nil && address.Zone() == "" {
		return nil
	}
	if first, last, is := strings.Cut(text, "-"); is && strings.Trim(first+last, "0123456789.") == "" {
		return errors.New("is a range of addresses, which no program supports")
	}
	_, err := portOf(strings.TrimPrefix(strings.TrimPrefix(text, "*"), "."))
	return err
}
