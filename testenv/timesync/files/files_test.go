package files

import (
	"bytes"
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	needs "github.com/machineadm/machineadm/internal/require"
)

// format is how a daemon is configured.
type format struct {
	lens    string
	unknown *regexp.Regexp // what the lens does not know
	files   []string
	check   func(t *testing.T, directives []node, want v1alpha1.TimesyncSpec)
}

var formats = map[string]format{
	"chronyd": {
		"Chrony", regexp.MustCompile(`(?m)\r$|^leapseclist .*`),
		[]string{"etc/chrony.conf", "etc/chrony/*.conf", "etc/chrony/conf.d/*.conf", "etc/chrony.d/*.conf"},
		chrony,
	},
	"ntpd": {
		"Ntp", regexp.MustCompile(`(?m)\r$| nts$|^refclock .*|^tos minclock .*`),
		[]string{"etc/ntp.conf", "etc/ntpsec/ntp.conf", "etc/ntpsec/ntp.d/*.conf", "etc/ntp.d/*.conf"},
		ntp,
	},
	"systemd": {"Systemd", regexp.MustCompile(`\r`), []string{"etc/systemd/timesyncd.conf.d/zz-machineadm.conf"}, timesyncd},
}

// TestParsedBack: each configuration that a conformance case expects has the sources and settings of its document.
func TestParsedBack(t *testing.T) {
	t.Parallel()
	augtool := needs.Tool(t, "augtool")
	for provider, f := range formats {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			cases := "../../../plugins/timesync/" + provider + "/testdata/conformance"
			for name, directives := range f.read(t, augtool, cases) {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					want := spec(t, filepath.Join(cases, name, "config.yaml"))
					f.check(t, directives, want)
				})
			}
		})
	}
}

// spec is the document of a case, the last one of its stream.
func spec(t *testing.T, path string) v1alpha1.TimesyncSpec {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	stream, err := document.Decode(path, bytes.NewReader(text))
	require.NoError(t, err)
	require.NotEmpty(t, stream.Documents)
	data, err := stream.Documents[len(stream.Documents)-1].JSON()
	require.NoError(t, err)
	var doc v1alpha1.Timesync
	require.Empty(t, document.Unmarshal(data, &doc))
	return doc.Spec
}

// node is a node of the tree of Augeas: a directive, or an option of it.
type node struct {
	Label string `xml:"label,attr"`
	Value string `xml:"value"`
	Nodes []node `xml:"node"`
}

// options are the options of a directive.
func (n node) options() map[string]string {
	all := map[string]string{}
	for _, o := range n.Nodes {
		all[o.Label] = o.Value
	}
	return all
}

// read returns the directives of each case whose files Augeas reads.
func (f format) read(t *testing.T, augtool, cases string) map[string][]node {
	t.Helper()
	root, script, number := t.TempDir(), "", 0
	for _, pattern := range f.files {
		found, err := filepath.Glob(filepath.Join(cases, "*/expect", pattern))
		require.NoError(t, err)
		for _, path := range found {
			name, err := filepath.Rel(cases, path)
			require.NoError(t, err)
			if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
				continue // an absolute link leads out of the case
			}
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(root, name), f.unknown.ReplaceAll(text, nil), 0o600))
			script += "transform " + f.lens + ".lns incl /" + name + "\n"
			number++
		}
	}
	require.NotZero(t, number)
	run := func(last string) []byte {
		command := exec.CommandContext(t.Context(), augtool, "--noautoload", "--root", root)
		command.Stdin, command.Stderr = strings.NewReader(script+"load\n"+last+"\n"), os.Stderr
		out, err := command.Output()
		require.NoError(t, err)
		return out
	}
	require.Empty(t, string(run("print /augeas//error")), "Augeas cannot read these")
	var tree struct {
		Files node `xml:"node"`
	}
	require.NoError(t, xml.Unmarshal(run("dump-xml /files"), &tree))
	all := map[string][]node{}
	for _, c := range tree.Files.Nodes {
		all[c.Label] = directives(c)
	}
	require.LessOrEqual(t, len(all), number)
	return all
}

// directives are the directives of all files below a directory.
func directives(n node) []node {
	var all []node
	for _, child := range n.Nodes {
		if strings.HasSuffix(n.Label, ".conf") {
			all = append(all, child)
		} else {
			all = append(all, directives(child)...)
		}
	}
	return all
}
