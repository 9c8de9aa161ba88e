package settings

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// The checks of this file say what is wrong and never quote what they read.

// isIdentifier: what containerd takes as the name of a plugin or a namespace (containerd's pkg/identifiers).
func isIdentifier(text string) bool {
	return len(text) <= 76 && regexp.MustCompile(`^[A-Za-z0-9]+(?:[._-][A-Za-z0-9]+)*$`).MatchString(text)
}

func HasControl(text string) bool { return strings.ContainsFunc(text, unicode.IsControl) }

// checkPath wants an absolute path in its shortest form, and not the root of everything.
func checkPath(text string, windows bool) error {
	notAbsolute := errors.New("must be an absolute path in its shortest form")
	if HasControl(text) {
		return errors.New("a path has no control characters")
	}
	if !windows {
		if !path.IsAbs(text) || path.Clean(text) != text || text == "/" {
			return notAbsolute
		}
		return nil
	}
	rest, ok := cutDrive(text)
	if !ok || strings.ContainsAny(rest, `/:*?"<>|`) {
		return notAbsolute
	}
	for segment := range strings.SplitSeq(rest, `\`) {
		if segment == "" || segment == "." || segment == ".." {
			return notAbsolute
		}
	}
	return nil
}

// cutDrive takes the drive and the backslash behind it off a path of Windows.
func cutDrive(text string) (rest string, ok bool) {
	if !regexp.MustCompile(`^[A-Za-z]:\\`).MatchString(text) {
		return "", false
	}
	return text[3:], true
}

// checkPattern wants an absolute path, of which the last part may be a pattern of filepath.Glob.
func checkPattern(text string, windows bool) error {
	separator := "/"
	if windows {
		separator = `\`
	}
	at := strings.LastIndex(text, separator)
	if at <= 0 {
		return checkPath(text, windows)
	}
	directory, last := text[:at], text[at+1:]
	if strings.ContainsAny(directory, "*?[") {
		return errors.New("a pattern may stand in the name of the file alone")
	}
	if _, err := path.Match(last, ""); err != nil {
		return errors.New("is not a pattern of file names")
	}
	plain := strings.NewReplacer("*", "x", "?", "x", "[", "x", "]", "x").Replace(last)
	return checkPath(directory+separator+plain, windows)
}

// portOf checks HOST or HOST:PORT, where HOST is a name, an IPv4 address or an IPv6 address in brackets. The port is empty
// when there is none.
func portOf(text string) (port string, err error) {
	host := text
	if at := strings.LastIndexByte(text, ':'); at >= 0 && !strings.HasSuffix(text, "]") {
		host, port = text[:at], text[at+1:]
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 || port[0] == '0' || port[0] == '+' {
			return "", errors.New("must have a port from 1 to 65535 behind its last colon")
		}
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, closed := strings.CutSuffix(inner, "]")
		if address, err := netip.ParseAddr(inner); err != nil || !closed || !address.Is6() || address.Zone() != "" {
			return "", errors.New("must have an IPv6 address between its brackets")
		}
		return port, nil
	}
	if strings.Contains(host, ":") {
		return "", errors.New("must have an IPv6 address in brackets")
	}
	if !isHostName(host) {
		return "", errors.New("is not a host: labels of letters, digits and -, joined by dots")
	}
	return port, nil
}

// isHostName is true for the names and the IPv4 addresses that a reference of an image can begin with.
func isHostName(text string) bool {
	const label = `[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?`
	return len(text) <= 253 && regexp.MustCompile(`^`+label+`(?:\.`+label+`)*$`).MatchString(text)
}

// checkAddress wants HOST:PORT.
func checkAddress(text string) error {
	if port, err := portOf(text); err != nil {
		return err
	} else if port == "" {
		return errors.New("must have a port")
	}
	return nil
}

// checkURL wants SCHEME://HOST[:PORT][/PATH] and nothing else.
func checkURL(text string, schemes ...string) (*url.URL, error) {
	u, err := url.Parse(text)
	known := false
	for _, scheme := range schemes {
		known = known || strings.HasPrefix(text, scheme+"://")
	}
	switch {
	case err != nil: // never %w: it quotes
		return nil, errors.New("is not a URL")
	case !known:
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

// checkImage wants the whole reference of an image: HOST[:PORT]/NAME with a tag or a digest. containerd keeps an image
// from its garbage collection by this text, so that what it would complete or shorten does not count.
// Source: distribution/reference.
func checkImage(text string) error {
	name, digest, hasDigest := strings.Cut(text, "@")
	if hasDigest && !regexp.MustCompile(`^(?:sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$`).MatchString(digest) {
		return errors.New("is not the reference of an image: its digest is none")
	}
	host, rest, ok := strings.Cut(name, "/")
	if _, err := portOf(host); err != nil || !ok || !isRegistryHost(host) {
		return errors.New("must be a whole reference, with the host of its registry")
	}
	repository, tag, hasTag := strings.Cut(rest, ":")
	if hasTag && !regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`).MatchString(tag) {
		return errors.New("is not the reference of an image: its tag is none")
	}
	const part = `[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*`
	if !regexp.MustCompile(`^`+part+`(?:/`+part+`)*$`).MatchString(repository) || len(host)+1+len(repository) > 255 {
		return errors.New("is not the reference of an image: its name is none")
	}
	if hasTag == hasDigest {
		return errors.New("must have either a tag or a digest")
	}
	return nil
}

// isRegistryHost says whether the first part of a reference is a host; else it belongs to the name of an image of Docker
// Hub. Source: distribution/reference.
func isRegistryHost(host string) bool {
	return strings.ContainsAny(host, ".:") || host == "localhost" || strings.ToLower(host) != host
}
