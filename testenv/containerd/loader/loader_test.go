// Package loader has containerd's own code read what the plugin renders: the configuration loader with every plugin of
// containerd, and the parser of hosts.toml. What they refuse or drop fails.
//
// It complements the daemons of testenv/containerd: a daemon only logs a key that it drops, and its log differs between
// releases. The module is nested, so that containerd's module graph stays out of the product's.
package loader

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	_ "github.com/containerd/containerd/v2/cmd/containerd/builtins"
	"github.com/containerd/containerd/v2/cmd/containerd/server/config"
	"github.com/containerd/containerd/v2/version"
	"github.com/containerd/log"
	"github.com/containerd/plugin"
	"github.com/containerd/plugin/registry"
	"github.com/sirupsen/logrus"
)

// testdata has the golden files of the plugin.
const testdata = "../../../plugins/container-runtime/containerd/testdata"

// golden is a tree that the plugin renders, and what was there before: files by their absolute path.
type golden struct {
	name          string
	before, files map[string]string
}

// goldens returns the trees of the text files and of the conformance cases that have a file with this name.
func goldens(t *testing.T, file string) []golden {
	t.Helper()
	var out []golden
	err := filepath.WalkDir(testdata, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(testdata, name)
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir() && entry.Name() == "expect":
			files, err := tree(name)
			before, missing := tree(filepath.Join(filepath.Dir(name), "root"))
			out = append(out, golden{filepath.ToSlash(filepath.Dir(below)), before, files})
			if err := errors.Join(err, missing); err != nil {
				return err
			}
			return fs.SkipDir
		case strings.HasSuffix(name, ".txt"):
			data, err := os.ReadFile(name)
			if text := settings(string(data), path.Base(filepath.ToSlash(below))); text != "" {
				files := map[string]string{"/etc/containerd/config.toml": text}
				out = append(out, golden{filepath.ToSlash(below) + " settings", nil, files})
			}
			for i, stage := range strings.Split(string(data), "\n#### ") {
				out = append(out, golden{fmt.Sprintf("%s %d", filepath.ToSlash(below), i), present(below), sections(stage)})
			}
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(out, func(g golden) bool { return find(g.files, file) == "" })
}

// settings returns the list of settings of a golden text as a configuration: each is a line `KEY = JSON  (FIELD)`.
func settings(text, name string) string {
	_, list, _ := strings.Cut(text, "# settings\n")
	list, _, _ = strings.Cut("\n"+list, "\n\n")
	list = regexp.MustCompile(`(?m)  \([^()]*\)$`).ReplaceAllString(list, "")
	list = regexp.MustCompile(`"(\w+)":`).ReplaceAllString(list, "$1 = ")          // an inline table
	list = regexp.MustCompile(`(?m) = \*+$`).ReplaceAllString(list, ` = "secret"`) // a secret
	switch {
	case strings.TrimSpace(list) == "":
		return ""
	case strings.HasPrefix(name, "1."):
		return "version = 2\n" + list
	}
	return "version = 3\n" + list
}

// find returns the path of the file with this name, the first of several.
func find(files map[string]string, name string) string {
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if path.Base(file) == name {
			return file
		}
	}
	return ""
}

// present returns the configuration that a golden text begins with: present/NAME.toml for NAME.txt and NAME-RELEASE.txt.
func present(below string) map[string]string {
	name := strings.TrimSuffix(filepath.Base(below), ".txt")
	for _, name := range []string{name, name[:max(0, strings.LastIndex(name, "-"))]} {
		if data, err := os.ReadFile(filepath.Join(testdata, "present", name+".toml")); err == nil {
			return map[string]string{"/etc/containerd/config.toml": string(data)}
		}
	}
	return nil
}

func tree(dir string) (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // a case without root/ begins with an empty tree
			return nil
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(name)
		files[strings.TrimPrefix(filepath.ToSlash(name), filepath.ToSlash(dir))] = string(data)
		return err
	})
	return files, err
}

// sections returns the files of a golden text: each begins with a line "== PATH MODE".
func sections(text string) map[string]string {
	files, at := map[string]string{}, ""
	for line := range strings.Lines(text) {
		if heading, ok := strings.CutPrefix(line, "== "); ok {
			at, _, _ = strings.Cut(strings.ReplaceAll(strings.TrimPrefix(heading, "C:"), `\`, "/"), " 0")
		} else if at != "" {
			files[at] += line
		}
	}
	return files
}

// known are the keys that containerd 2.4 drops and that the plugin writes for the releases up to 2.3.
func known() []string {
	return []string{
		"io.containerd.cri.v1.runtime enable_cdi",  // always on since 2.4
		"io.containerd.cri.v1.runtime cni bin_dir", // releases before 2.1 have no bin_dirs
	}
}

// TestConfiguration loads each configuration as containerd does, then decodes the table of each of its plugins. Keys that
// the administrator's own configuration has already may be dropped.
func TestConfiguration(t *testing.T) {
	t.Parallel()
	c := newContainerd()
	all := goldens(t, "config.toml")
	if len(all) < 60 || len(c.byURI) < 40 {
		t.Fatalf("%d configurations, %d plugins of containerd", len(all), len(c.byURI))
	}
	for _, g := range all {
		t.Run(g.name, func(t *testing.T) {
			dropped, err := c.load(t, g.files)
			if err != nil {
				t.Fatal(err)
			}
			before, _ := c.load(t, g.before) // what is not loaded has no keys
			for _, key := range dropped {
				if !slices.Contains(before, key) && !slices.Contains(known(), key) {
					t.Errorf("containerd drops %s", key)
				}
			}
		})
	}
}

// containerd are the plugins that are built into containerd.
type containerd struct {
	all   []plugin.Registration
	byURI map[string]plugin.Registration
}

func newContainerd() containerd {
	c := containerd{registry.Graph(func(*plugin.Registration) bool { return false }), map[string]plugin.Registration{}}
	for _, r := range c.all {
		c.byURI[r.URI()] = r
	}
	return c
}

// load lays the files below a directory, has containerd load its configuration, and returns the keys that it drops.
func (c containerd) load(t *testing.T, files map[string]string) (dropped []string, err error) {
	t.Helper()
	main := find(files, "config.toml")
	if main == "" {
		return nil, nil
	}
	dir := t.TempDir()
	for name, content := range files {
		write(t, filepath.Join(dir, name), strings.ReplaceAll(content, "/etc/containerd/conf.d", filepath.Join(dir, "etc/containerd/conf.d")))
	}
	var log bytes.Buffer
	ctx := logTo(t.Context(), &log)
	loaded := config.Config{Version: version.ConfigVersion}
	plugins := func() iter.Seq[plugin.Registration] { return slices.Values(c.all) }
	if err := config.LoadConfigWithPlugins(ctx, filepath.Join(dir, main), plugins, &loaded); err != nil {
		return nil, err
	}
	for id := range loaded.Plugins {
		r, ok := c.byURI[id]
		if !ok || r.Config == nil {
			dropped = append(dropped, id)
			continue
		}
		if _, err := loaded.Decode(ctx, id, reflect.New(reflect.TypeOf(r.Config).Elem()).Interface()); err != nil {
			return nil, fmt.Errorf("plugin %s: %w", id, err)
		}
	}
	keys, err := droppedKeys(log.String())
	return append(dropped, keys...), err
}

// logTo returns a context in which containerd logs JSON to the buffer.
func logTo(ctx context.Context, buffer *bytes.Buffer) context.Context {
	logger := logrus.New()
	logger.SetOutput(buffer)
	logger.SetFormatter(&logrus.JSONFormatter{})
	return log.WithLogger(ctx, logrus.NewEntry(logger))
}

// droppedKeys returns the keys that the log reports as unknown, each behind its plugin.
func droppedKeys(log string) (keys []string, err error) {
	for line := range strings.Lines(log) {
		var entry struct{ Msg, Key, Plugin string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			return nil, err
		}
		if strings.HasPrefix(entry.Msg, "Ignoring unknown key") {
			keys = append(keys, strings.TrimSpace(entry.Plugin+" "+entry.Key))
		}
	}
	return keys, nil
}
