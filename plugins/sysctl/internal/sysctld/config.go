package sysctld

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Source reads the files.
type Source interface {
	// ReadDir lists the names in a directory; fs.ErrNotExist when there is none.
	ReadDir(name string) ([]string, error)
	// ReadFile returns the content of a regular file, links followed. Anything else, such as /dev/null or a path where
	// nothing is, has no content and is no error.
	ReadFile(name string) ([]byte, error)
}

// Configuration is the configuration of all files.
type Configuration struct {
	rules Rules
	// settings are in reading order. The fields below hold indices of it: looking up thousands of keys stays linear.
	settings []Setting
	// literal maps a key, as a file spells it, to all of its lines.
	literal map[string][]int
	// assigned maps a simplified key to its last assignment.
	assigned map[string]int
	// globs are the lines whose key can match another one.
	globs map[int]*regexp.Regexp
}

// Setting is a line and its file.
type Setting struct {
	Line
	File string
}

// Load reads all files that the rules name. The files of replace, all in /etc/sysctl.d, have the content given there; one
// with no content counts as absent. A file that is not regular, such as a link to /dev/null, counts as empty and
// still hides the file of the same name in a later directory.
func Load(source Source, rules Rules, replace map[string][]byte) (Configuration, error) {
	paths, err := list(source, rules, replace)
	if err != nil {
		return Configuration{}, err
	}
	c := Configuration{
		rules: rules, literal: map[string][]int{}, assigned: map[string]int{}, globs: map[int]*regexp.Regexp{},
	}
	for _, name := range paths {
		data, replaced := replace[name]
		if !replaced {
			if data, err = source.ReadFile(name); err != nil {
				return Configuration{}, fmt.Errorf("read %s: %w", name, err)
			}
		}
		for _, line := range Parse(data, rules) {
			c.settings = append(c.settings, Setting{line, name})
		}
	}
	if rules == Systemd {
		c.settings = latest(c.settings)
	}
	for i, s := range c.settings {
		c.literal[s.Key] = append(c.literal[s.Key], i)
		pattern := s.Key
		if !s.Exclude {
			pattern = simplify(s.Key)
			c.assigned[pattern] = i
		}
		if isGlob(pattern) || s.Exclude && strings.Contains(pattern, `\`) {
			c.globs[i] = compileGlob(pattern)
		}
	}
	return c, nil
}

// list returns the files in reading order: of one base name the first directory counts, and base names are sorted by
// their bytes. Only procps reads /etc/sysctl.conf, after all others.
// /lib/sysctl.d is the same directory as /usr/lib/sysctl.d except where /usr is not merged.
func list(source Source, rules Rules, replace map[string][]byte) ([]string, error) {
	found := map[string]string{}
	for full, data := range replace {
		if len(data) > 0 {
			found[path.Base(full)] = full
		}
	}
	for _, directory := range []string{
		"/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d",
	} {
		names, err := source.ReadDir(directory)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("list %s: %w", directory, err)
		}
		for _, name := range names {
			full := path.Join(directory, name)
			_, replaced := replace[full]
			if !strings.HasSuffix(name, ".conf") || rules == Systemd && name[0] == '.' || replaced {
				continue
			}
			if _, hidden := found[name]; !hidden {
				found[name] = full
			}
		}
	}
	var paths []string
	for _, name := range slices.Sorted(maps.Keys(found)) {
		paths = append(paths, found[name])
	}
	if rules == Procps {
		paths = append(paths, "/etc/sysctl.conf")
	}
	return paths, nil
}

// latest returns what systemd-sysctl keeps of the lines: the last one of each key or pattern. A line that repeats the
// value in force does not move it behind others.
func latest(settings []Setting) []Setting {
	at := map[string]int{}
	for i, s := range settings {
		if before, ok := at[s.Key]; !ok || settings[before].Exclude != s.Exclude || settings[before].Value != s.Value {
			at[s.Key] = i
		}
	}
	var kept []Setting
	for _, i := range slices.Sorted(maps.Values(at)) {
		kept = append(kept, settings[i])
	}
	return kept
}

// Effective returns the line that decides about a key; false when no line applies to it.
//
// The last assignment of the key decides. A pattern counts where no line names the key; for procps a line counts only in
// the spelling that the pattern expands to, while assignments may have any spelling. For systemd, latest has removed what
// a later exclusion of the same key cancels; for procps an exclusion stops only patterns, and since procps 4.0.5 it may
// itself be a pattern, whose wildcards match slashes.
func (c Configuration) Effective(key Key) (Setting, bool) {
	assigned, excluded := -1, -1
	named := len(c.literal[string(key)]) > 0
	for _, i := range c.literal[string(key)] {
		if c.settings[i].Exclude {
			excluded = i
		}
	}
	for i, glob := range c.globs {
		if c.rules == Procps && c.settings[i].Exclude && glob.MatchString(string(key)) {
			named, excluded = true, max(excluded, i)
		}
	}
	if i, ok := c.assigned[string(key)]; ok {
		assigned = i
	}
	for i, glob := range c.globs {
		s := c.settings[i]
		if !named && !s.Exclude && matchPath(simplify(s.Key), glob, string(key)) {
			assigned = max(assigned, i)
		}
	}
	switch {
	case assigned >= 0:
		return c.settings[assigned], true
	case excluded >= 0:
		return c.settings[excluded], true
	}
	return Setting{}, false
}
