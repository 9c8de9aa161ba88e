// Package promise_test holds the host to one promise: a plan never lies. Random streams over random images go through
// validate, plan, apply and plan again, with the real host, the scripted plugin of testenv/noop and the sysctl plugin.
package promise_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
)

// streams is how many streams are tried; PROMISE_STREAMS says another number.
const streams = 200

// lanes is how many streams are tried at once.
const lanes = 4

func TestAPlanNeverLies(t *testing.T) {
	t.Parallel()
	count, seed := streams, uint64(time.Now().UnixNano()) //nolint:gosec // a time after 1970
	if text := os.Getenv("PROMISE_STREAMS"); text != "" {
		var err error
		count, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	if text := os.Getenv("PROMISE_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("PROMISE_SEED=%d PROMISE_STREAMS=%d", seed, count)
	plugins := build(t)
	for lane := range lanes {
		t.Run(strconv.Itoa(lane), func(t *testing.T) {
			t.Parallel()
			exits := map[string]int{}
			for i := lane; i < count && !t.Failed(); i += lanes {
				c := newCase(t, plugins, rand.New(rand.NewPCG(seed, uint64(i)))) //nolint:gosec // reproducible
				exits[c.hold(t)]++
				if t.Failed() {
					t.Logf("stream %d of seed %d:\n%s\nimage before: %v", i, seed, c.text, c.before)
				}
				require.NoError(t, os.RemoveAll(c.dir))
			}
			t.Log("validate, plan, apply, plan:", exits)
		})
	}
}

// build returns a directory with the host and the plugins.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, pkg := range map[string]string{
		"machineadm": "../../host/cmd/machineadm", "machineadm-noop-plugin-test": "../noop",
		"machineadm-sysctl-plugin-procfs": "../../plugins/sysctl/procfs",
	} {
		out, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, name), pkg).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	return dir
}

// step is one run of the host.
type step struct {
	exit    int
	output  string
	changes map[string][]string // of each document that was planned
	pending bool
}

// hold runs the commands, checks what has to agree, and returns the exit codes.
func (c *scene) hold(t *testing.T) string {
	t.Helper()
	validated := c.run(t, "validate", "--path", c.stream)
	planned := c.run(t, "plan", "-o", "json", "--root", c.root, "--path", c.stream)
	applied := c.run(t, "apply", "--root", c.root, "--path", c.stream)
	after := c.tree(t)
	again := c.run(t, "plan", "-o", "json", "--root", c.root, "--path", c.stream)
	all := fmt.Sprint(validated.exit, planned.exit, applied.exit, again.exit)
	show := func(what string) string {
		return fmt.Sprintf("%s: %s\nvalidate: %s\napply: %s", what, all, validated.output, applied.output)
	}
	if planned.exit == report.ExitUsage {
		assert.Equal(t, report.ExitUsage, validated.exit, show("what plan refuses as wrong, validate refuses"))
	}
	if validated.exit != report.ExitOK && !c.elsewhere {
		assert.NotContains(t, []int{report.ExitOK, report.ExitDiffers}, planned.exit, show("what validate refuses, plan refuses"))
	}
	switch planned.exit {
	case report.ExitOK:
		assert.Equal(t, report.ExitOK, applied.exit, show("nothing to do"))
		assert.Equal(t, c.before, after, show("an apply with nothing to do changes nothing"))
	case report.ExitDiffers:
		if !planned.pending && !c.fails {
			assert.Equal(t, report.ExitOK, applied.exit, show("a plan without Pending comes true"))
			c.comeTrue(t, planned, show)
		}
	default:
		assert.Equal(t, planned.exit, applied.exit, show("plan and apply refuse alike"))
		assert.Equal(t, c.before, after, show("what is refused changes nothing"))
	}
	if applied.exit == report.ExitOK {
		assert.Equal(t, report.ExitOK, again.exit, show("what was applied is converged"))
		assert.Equal(t, report.ExitOK, c.run(t, "apply", "--root", c.root, "--path", c.stream).exit, show("again"))
		assert.Equal(t, after, c.tree(t), show("a second apply changes nothing"))
	}
	return all
}

// comeTrue compares the planned changes with those of the report.
func (c *scene) comeTrue(t *testing.T, planned step, show func(string) string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(c.dir, "run", "report.json"))
	require.NoError(t, err)
	var r report.Report
	require.NoError(t, json.Unmarshal(data, &r))
	made := map[string]bool{}
	for _, d := range r.Documents {
		document := d.Kind + "/" + d.Name
		for _, change := range d.Changes {
			made[change.ID] = true
			assert.Contains(t, planned.changes[document], change.ID, show("every change was planned"))
		}
	}
	for document, ids := range planned.changes {
		for _, id := range ids { // by another document, where two own one thing
			assert.True(t, made[id], show("every planned change is made or left for first boot: "+document+" "+id))
		}
	}
}

func (c *scene) run(t *testing.T, args ...string) step {
	t.Helper()
	host := exec.CommandContext(t.Context(), filepath.Join(c.plugins, "machineadm"), append([]string{
		"--plugin-dir", c.plugins, "--state-dir", filepath.Join(c.dir, "state"), "--run-dir", filepath.Join(c.dir, "run"),
	}, args...)...)
	var out, problems bytes.Buffer
	host.Stdout, host.Stderr = &out, &problems
	err := host.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	s := step{exit: host.ProcessState.ExitCode(), output: out.String() + problems.String(), changes: map[string][]string{}}
	for line := range strings.Lines(out.String()) {
		var event struct {
			Type, Pending string
			Document      struct{ Kind, Name string }
			Planned       []struct{ ID string }
		}
		if json.Unmarshal([]byte(line), &event) != nil || event.Type != "document-planned" {
			continue
		}
		s.pending = s.pending || event.Pending != ""
		for _, change := range event.Planned {
			document := event.Document.Kind + "/" + event.Document.Name
			s.changes[document] = append(s.changes[document], change.ID)
		}
	}
	return s
}

// tree is every path of the image with its content, without what the host keeps there itself.
func (c *scene) tree(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, filepath.WalkDir(c.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, c.root)
		switch {
		case name == "/etc/machineadm":
			return fs.SkipDir
		case d.IsDir():
			out[name] = "directory"
		case d.Type() == fs.ModeSymlink:
			out[name], err = os.Readlink(path)
		default:
			var data []byte
			data, err = os.ReadFile(path)
			out[name] = string(data)
		}
		return err
	}))
	return out
}
