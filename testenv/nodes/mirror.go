package nodes

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"
)

// source is one archive of apt's configuration, see sources.list(5). Only what choosing a mirror needs is kept.
type source struct {
	uri        string
	suite      string
	components []string
	signedBy   string
}

// debianMirror finds the URI of the Debian archive that this machine itself uses. apt is /etc/apt; codename is the
// machine's own release, which need not be the one that is going to be built. The URI may carry credentials:
// it must not reach logs or argument vectors.
func debianMirror(apt fs.FS, codename string) (string, error) {
	sources, err := readSources(apt)
	if err != nil {
		return "", err
	}
	releases := []string{codename, "stable", "oldstable", "testing", "unstable", "sid", string(Bookworm), string(Trixie)}
	for _, s := range sources {
		// Third parties also name their suites after Debian's, but sign with keys of their own.
		foreign := s.signedBy != "" && !strings.Contains(s.signedBy, "debian-archive")
		if !foreign && isWeb(s.uri) && slices.Contains(releases, s.suite) && slices.Contains(s.components, "main") {
			return s.uri, nil
		}
	}
	return "", errors.New("no Debian archive (http or https, component main) among the apt sources of this machine: " +
		"looked in sources.list, sources.list.d/*.list and sources.list.d/*.sources of /etc/apt")
}

// besideDebian is where a mirror that has several distributions keeps Ubuntu.
func besideDebian(debian string) (string, error) {
	u, err := url.Parse(debian)
	if err != nil {
		return "", errors.New("the URI of the Debian archive among the apt sources of this machine cannot be read") // it may hold a password
	}
	return u.JoinPath("../ubuntu").String(), nil
}

func isWeb(uri string) bool {
	u, err := url.Parse(uri)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// readSources reads in apt's order: the main list, then the directory by name.
func readSources(apt fs.FS) ([]source, error) {
	files := []string{"sources.list"}
	for _, pattern := range []string{"sources.list.d/*.list", "sources.list.d/*.sources"} {
		found, err := fs.Glob(apt, pattern)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	slices.Sort(files[1:])
	var all []source
	for _, file := range files {
		text, err := fs.ReadFile(apt, file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("apt sources: %w", err)
		}
		if path.Ext(file) == ".sources" {
			all = append(all, parseDeb822(string(text))...)
		} else {
			all = append(all, parseOneLine(string(text))...)
		}
	}
	return all, nil
}

// parseOneLine reads "deb [ option=value ... ] uri suite component..." lines. Lines that are not of this form are
// left out: apt checks its own files.
func parseOneLine(text string) []source {
	var all []source
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "deb")
		if !ok || strings.TrimLeft(rest, " \t") == rest {
			continue
		}
		rest = strings.TrimSpace(rest)
		s := source{}
		if inside, ok := strings.CutPrefix(rest, "["); ok {
			options, after, closed := strings.Cut(inside, "]")
			if !closed {
				continue
			}
			for _, option := range strings.Fields(options) {
				if key, value, _ := strings.Cut(option, "="); strings.EqualFold(key, "signed-by") {
					s.signedBy = value
				}
			}
			rest = after
		}
		words := strings.Fields(rest)
		if len(words) < 3 {
			continue
		}
		s.uri, s.suite, s.components = words[0], words[1], words[2:]
		all = append(all, s)
	}
	return all
}

// parseDeb822 reads stanzas of "Field: value" lines with continuation lines; "#" at the start of a line is a comment.
func parseDeb822(text string) []source {
	var all []source
	stanza := map[string]string{}
	field := ""
	flush := func() {
		all = append(all, sourcesOf(stanza)...)
		stanza, field = map[string]string{}, ""
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.TrimSpace(line) == "":
			flush()
		case line[0] == ' ' || line[0] == '\t':
			if field != "" {
				stanza[field] += "\n" + strings.TrimSpace(line)
			}
		default:
			name, value, _ := strings.Cut(line, ":")
			field = strings.ToLower(strings.TrimSpace(name))
			stanza[field] = strings.TrimSpace(value)
		}
	}
	flush()
	return all
}

func sourcesOf(stanza map[string]string) []source {
	if !slices.Contains(strings.Fields(stanza["types"]), "deb") || isNo(stanza["enabled"]) {
		return nil
	}
	var all []source
	for _, uri := range strings.Fields(stanza["uris"]) {
		for _, suite := range strings.Fields(stanza["suites"]) {
			all = append(all, source{
				uri: uri, suite: suite, components: strings.Fields(stanza["components"]), signedBy: stanza["signed-by"],
			})
		}
	}
	return all
}

// isNo reports whether apt reads a word as false; all others enable.
func isNo(word string) bool {
	return slices.Contains([]string{"no", "false", "without", "off", "disable", "0"}, strings.ToLower(word))
}
