package sysctld

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// Source is where the files are.
type Source interface {
	// ReadDir lists the names in a directory; fs.ErrNotExist when there is none.
	ReadDir(name string) ([]string, error)
	// Regular says whether name, links followed, is a regular file; fs.ErrNotExist when nothing is there.
	Regular(name string) (bool, error)
	// ReadFile returns the content of a regular file, links followed.
	ReadFile(name string) ([]byte, error)
}

// File is a configuration file and its content.
type File struct {
	Path string
	Data []byte
}

// Configuration is what all files together say, in the order in which it is read.
type Configuration struct {
	rules   Rules
	entries []entry
	// literal maps a key, as it is written, to the entries that have it; named maps a simplified key to its last assignment.
	literal map[string][]int
	named   map[string]int
	// patterns are the entries whose key can match another one.
	patterns []int
}

type entry struct {
	Line
	file string
}

// Setting is what a configuration does to one key.
type Setting struct {
	// File and Line say where.
	File string
	Line int
	// Value is what is written; meaningless when Excluded.
	Value string
	// Excluded says that the key is not written at all, because of a later line "-key".
	Excluded bool
}

// Load reads all files that the rules name, as if replace had been written to its path already; a replace with no
// Data stands for a file that is not there. A file that is no regular one, such as a link to /dev/null, counts as
// empty and still hides the file of its name in a later directory.
func Load(source Source, rules Rules, replace File) (Configuration, error) {
	paths, err := list(source, rules, replace)
	if err != nil {
		return Configuration{}, err
	}
	configuration := Configuration{rules: rules}
	for _, name := range paths {
		data := replace.Data
		if name != replace.Path {
			if data, err = read(source, name); err != nil {
				return Configuration{}, err
			}
		}
		lines, _ := Parse(data, rules)
		for _, line := range lines {
			configuration.entries = append(configuration.entries, entry{line, name})
		}
	}
	if rules == Systemd {
		configuration.entries = latest(configuration.entries)
	}
	configuration.index()
	return configuration, nil
}

// index keeps the lookup of thousands of keys among thousands of lines linear.
func (c *Configuration) index() {
	c.literal, c.named = map[string][]int{}, map[string]int{}
	for i, e := range c.entries {
		c.literal[e.Key] = append(c.literal[e.Key], i)
		if !e.Exclude {
			c.named[simplify(e.Key)] = i
		}
		if isGlob(e.Key) || strings.Contains(e.Key, `\`) {
			c.patterns = append(c.patterns, i)
		}
	}
}

// list returns the files in reading order. For one base name the first directory wins; then base names decide, byte
// by byte. procps reads /etc/sysctl.conf after all of them, systemd does not know it.
// /lib/sysctl.d is the same directory as /usr/lib/sysctl.d except where /usr is not merged.
func list(source Source, rules Rules, replace File) ([]string, error) {
	found := map[string]string{}
	if len(replace.Data) > 0 {
		found[path.Base(replace.Path)] = replace.Path
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
			if !strings.HasSuffix(name, ".conf") || rules == Systemd && name[0] == '.' || full == replace.Path {
				continue
			}
			if _, hidden := found[name]; !hidden {
				found[name] = full
			}
		}
	}
	var paths []string
	for _, full := range found {
		paths = append(paths, full)
	}
	slices.SortFunc(paths, func(a, b string) int { return strings.Compare(path.Base(a), path.Base(b)) })
	if rules == Procps {
		paths = append(paths, "/etc/sysctl.conf")
	}
	return paths, nil
}

func read(source Source, name string) ([]byte, error) {
	regular, err := source.Regular(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !regular {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", name, err)
	}
	data, err := source.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return data, nil
}

// Effective says what the configuration does to a key; false when it does not mention the key.
func (c Configuration) Effective(key Key) (Setting, bool) {
	if c.rules == Procps {
		return c.procps(string(key))
	}
	return c.systemd(string(key))
}

// latest is what systemd-sysctl keeps of the lines: one option for each key or pattern, in the order in which they
// were said last. A line that repeats the option in force changes nothing.
func latest(entries []entry) []entry {
	at := map[string]int{}
	for i, e := range entries {
		if before, ok := at[e.Key]; !ok || entries[before].Exclude != e.Exclude || entries[before].Value != e.Value {
			at[e.Key] = i
		}
	}
	var options []entry
	for _, i := range slices.Sorted(maps.Values(at)) {
		options = append(options, entries[i])
	}
	return options
}

// systemd lets an option of the key itself, exclusions included, shut patterns out; of patterns the last one stays.
func (c Configuration) systemd(key string) (Setting, bool) {
	if own := c.literal[key]; len(own) > 0 {
		return c.entries[own[0]].setting(), true
	}
	for _, i := range slices.Backward(c.patterns) {
		if o := c.entries[i]; !o.Exclude && isGlob(o.Key) && matchPath(o.Key, key) {
			return o.setting(), true
		}
	}
	return Setting{}, false
}

// procps writes every assignment in turn, so that the last one stays. Patterns pass over a key that some line names, if
// that line spells it as the pattern finds it; for plain assignments the spelling does not matter, the kernel resolves
// it. An exclusion does nothing else, and since procps 4.0.5 may itself be a pattern, whose wildcards match slashes.
func (c Configuration) procps(key string) (Setting, bool) {
	passOver, excluded := false, -1
	for _, i := range c.literal[key] {
		passOver = true
		if c.entries[i].Exclude {
			excluded = max(excluded, i)
		}
	}
	for _, i := range c.patterns {
		if e := c.entries[i]; e.Exclude && matchText(e.Key, key) {
			passOver, excluded = true, max(excluded, i)
		}
	}
	assigned := -1
	if i, ok := c.named[key]; ok {
		assigned = i
	}
	for _, i := range c.patterns {
		if e := c.entries[i]; !passOver && !e.Exclude && isGlob(e.Key) && matchPath(simplify(e.Key), key) {
			assigned = max(assigned, i)
		}
	}
	switch {
	case assigned >= 0:
		return c.entries[assigned].setting(), true
	case excluded >= 0:
		return c.entries[excluded].setting(), true
	}
	return Setting{}, false
}

func (e entry) setting() Setting {
	return Setting{File: e.file, Line: e.Number, Value: e.Value, Excluded: e.Exclude}
}
