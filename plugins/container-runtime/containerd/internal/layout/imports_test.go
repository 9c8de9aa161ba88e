package layout

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings/settingstest"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/tomledit"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

const dropIn = "/etc/containerd/conf.d/zz-machineadm.toml"

// TestForeignImportsStay: image-builder and gardener ship such lists. Of a list only the drop-in is ours.
func TestForeignImportsStay(t *testing.T) {
	t.Parallel()
	const pattern = "/etc/containerd/conf.d/*.toml"
	for name, c := range map[string]struct {
		list     []string // in the main file
		asked    []string
		one, two []string // under containerd 1.x and 2.x
	}{
		"a pattern that covers the drop-in": {list: []string{pattern}, one: []string{pattern}, two: []string{pattern}},
		"another pattern":                   {list: []string{"/etc/x/*.toml"}, one: []string{"/etc/x/*.toml"}, two: []string{"/etc/x/*.toml", dropIn}},
		"the drop-in of a containerd 2.x":   {list: []string{dropIn, "/a.toml"}, one: []string{"/a.toml"}, two: []string{"/a.toml", dropIn}},
		"both":                              {list: []string{dropIn, pattern}, one: []string{pattern}, two: []string{pattern}},
		"what the document asks for": {
			list: []string{pattern}, asked: []string{"/etc/y/*.toml", pattern}, one: []string{"/etc/y/*.toml", pattern}, two: []string{"/etc/y/*.toml", pattern},
		},
		"a relative pattern":       {list: []string{"conf.d/*.toml"}, one: []string{"conf.d/*.toml"}, two: []string{"conf.d/*.toml"}},
		"a pattern of directories": {list: []string{"/etc/*/conf.d/*.toml"}, one: []string{"/etc/*/conf.d/*.toml"}, two: []string{"/etc/*/conf.d/*.toml"}},
		"nothing":                  {two: []string{dropIn}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, r := range []settings.Release{{Major: 1, Minor: 7, Patch: 24}, {Major: 2, Minor: 1, Patch: 9}, {Major: 1, Minor: 7, Patch: 24}} {
				want := c.two
				if r.Major == 1 {
					want = c.one
				}
				f := machinetest.New(t)
				text := "version = 2\n"
				if c.list != nil {
					text += "imports = [\"" + strings.Join(c.list, `", "`) + "\"]\n"
				}
				f.WriteFiles(t, map[string]string{"/etc/containerd/config.toml": text, "/a.toml": ""})
				got, err := configured(f.Machine, r, settingstest.Core(r), c.asked...)
				require.NoError(t, err)
				d, err := tomledit.Parse(got.Main.Content)
				require.NoError(t, err)
				list, err := ImportsOf(d, "")
				require.NoError(t, err)
				assert.Equal(t, want, list, "containerd %s", r)
			}
		})
	}
}

// FuzzImports: an entry of other people leads to the files that containerd finds by it, and stays in the list.
func FuzzImports(f *testing.F) {
	for _, seed := range []string{
		"/etc/containerd/conf.d/*.toml", "/etc/*/conf.d/1*.toml", "conf.d/*", "/etc/containerd/[a-z]*.d/?0.toml", `/etc/cont\ainerd/conf.d/*`,
		"/etc/containerd/conf.d/[*.toml", "/*", "*", "../*/./config.toml", "//etc//**", "/etc/containerd/none/*", "/a.toml", "\x00*", "",
	} {
		f.Add(seed)
	}
	machine := machinetest.New(f)
	files := map[string]string{}
	for _, name := range []string{"/a.toml", "/etc/containerd/conf.d/10.toml", "/etc/containerd/conf.d/.hidden.toml", "/etc/containerd/certs.d/x", "/etc/other/conf.d/11.toml"} {
		files[name] = ""
	}
	machine.WriteFiles(f, files)
	f.Fuzz(func(t *testing.T, entry string) {
		if !utf8.ValidString(entry) || len(entry) > 200 { // no TOML holds it, no path is so long
			return
		}
		const main = "/etc/containerd/config.toml"
		found, err := ImportedFiles(machine.Machine, main, []string{entry}, "")
		want, bad := resolved(machine.Root, main, entry)
		if bad != nil || strings.ContainsFunc(entry, unicode.IsControl) {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		assert.Equal(t, want, found)

		d, err := tomledit.Parse(nil)
		require.NoError(t, err)
		require.NoError(t, d.Set([]string{"imports"}, []string{entry}))
		for _, withDropIn := range []bool{false, true, true, false} {
			list, err := listImports(machine.Machine, mainDocument{Document: d, path: main}, nil, withDropIn)
			require.NoError(t, err)
			assert.Equal(t, entry != dropIn, slices.Contains(list, entry) && entry != dropIn)
			files, err := ImportedFiles(machine.Machine, main, list, dropIn)
			require.NoError(t, err)
			assert.True(t, !withDropIn || slices.Contains(files, dropIn))
			require.NoError(t, d.Set([]string{"imports"}, list))
		}
	})
}

// resolved is what containerd makes of an entry: resolveImports in its cmd/containerd/server/config.
func resolved(root, parent, entry string) ([]string, error) {
	path := filepath.Clean(entry)
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(parent), path)
	}
	if !strings.Contains(path, "*") {
		return []string{path}, nil
	}
	matches, err := filepath.Glob(root + path)
	for i := range matches {
		matches[i] = strings.TrimPrefix(matches[i], root)
	}
	return matches, err
}

// TestLayers: a file that containerd cannot read together with the others, or that wins over the document, is refused
// when it is planned, so that an image gets the answer that a machine gets.
func TestLayers(t *testing.T) {
	t.Parallel()
	const three = "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia]\nruntime_type = 'io.containerd.runc.v2'\n"
	const cri2 = "version = 2\n[plugins.'io.containerd.grpc.v1.cri']\nmax_container_log_line_size = 1\n"
	imports := func(text string, list ...string) string {
		return "imports = ['" + strings.Join(list, "', '") + "']\n" + text
	}
	v17, v21, v23 := settings.Release{Major: 1, Minor: 7, Patch: 24}, settings.Release{Major: 2, Minor: 1, Patch: 9}, settings.Release{Major: 2, Minor: 3, Patch: 7}
	for name, c := range map[string]struct {
		release settings.Release
		files   map[string]string // config.toml first; below /etc/containerd
		want    string            // part of the error; none
	}{
		"version 3 below version 2":          {v21, map[string]string{"config.toml": imports(cri2, "conf.d/*.toml"), "conf.d/50.toml": three}, "config.toml is of format version 2 and /etc/containerd/conf.d/50.toml of version 3"},
		"version 3 behind the drop-in":       {v21, map[string]string{"config.toml": imports(cri2, "conf.d/*.toml", "z.toml"), "z.toml": "version = 3"}, "z.toml of version 3"},
		"version 2 below version 3":          {v21, map[string]string{"config.toml": imports(three, "a.toml"), "a.toml": cri2}, "a.toml is of format version 2"},
		"an import of an import":             {v21, map[string]string{"config.toml": imports(cri2, "a.toml"), "a.toml": imports("", "b.toml"), "b.toml": three}, "b.toml of version 3"},
		"translated one by one":              {v23, map[string]string{"config.toml": imports(cri2, "conf.d/*.toml"), "conf.d/50.toml": three}, ""},
		"version 3 and nothing of version 2": {v21, map[string]string{"config.toml": imports("version = 2\n", "a.toml"), "a.toml": three}, ""},
		"version 3 with containerd 1.7":      {v17, map[string]string{"config.toml": imports("version = 2\n", "a.toml"), "a.toml": three}, "reads none above 2"},
		"a file that is missing":             {v23, map[string]string{"config.toml": imports("version = 3\n", "a.toml")}, "which is not there"},
		"a directory":                        {v23, map[string]string{"config.toml": imports("version = 3\n", "site"), "site/a.toml": ""}, "is a directory"},
		"another value behind the drop-in":   {v23, map[string]string{"config.toml": imports("version = 3\n", "conf.d/*.toml", "z.toml"), "z.toml": "version = 2\n[plugins.'io.containerd.grpc.v1.cri'.containerd]\nsnapshotter='zfs'"}, "spec.snapshotter sets"},
		"another value before the drop-in":   {v23, map[string]string{"config.toml": imports("version = 3\n", "conf.d/*.toml"), "conf.d/50.toml": "version = 3\noom_score = 7"}, ""},
		"the same value behind the drop-in":  {v23, map[string]string{"config.toml": imports("version = 3\n", "conf.d/*.toml", "z.toml"), "z.toml": "version = 2\n[plugins.'io.containerd.grpc.v1.cri'.containerd]\nsnapshotter='native'"}, ""},
		"another value of an import of 1.7":  {v17, map[string]string{"config.toml": imports("version = 2\n", "z.toml"), "z.toml": "version = 2\noom_score = 7"}, "spec.oomScore sets oom_score"},
		"a circle":                           {v23, map[string]string{"config.toml": imports("version = 3\n", "a.toml"), "a.toml": imports("", "config.toml", "a.toml")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := machinetest.New(t)
			files := map[string]string{}
			for name, text := range c.files {
				files["/etc/containerd/"+name] = text
			}
			f.WriteFiles(t, files)
			_, err := configured(f.Machine, c.release, settingstest.Core(c.release))
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
			assert.Equal(t, pluginv1.CodePrecondition, pluginv1.AsError(err).Code)
		})
	}
}
