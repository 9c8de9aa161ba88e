package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
)

// reference is a document that refers to an object.
func reference(name string) string { return ourDoc("RemoteConfig", name, "uri: test://"+name) }

// object is an entry of a source's script.
func object(body string) map[string]any { return map[string]any{"body": body, "revision": "1"} }

// chained installs plugins for a stream in which a RemoteConfig refers to an EncryptedConfig that refers to a RemoteConfig,
// each with a document that touches a file. It returns that stream.
func chained(b *bench) string {
	b.t.Helper()
	b.noop("")
	b.keys(nil)
	b.source(map[string]any{})
	sealed := b.encrypt("sealed", plain("two")+reference("inner"))
	b.source(map[string]any{"objects": map[string]any{"test://outer": object(plain("one") + sealed), "test://inner": object(plain("three"))}})
	return reference("outer") + plain("four")
}

func TestResolve(t *testing.T) {
	b := newBench(t)
	stream := chained(b)
	got := b.run("resolve", "--path", b.stream(stream), "--log-level", "debug")
	assert.Equal(t, report.ExitOK, got.code, "%s", got)
	assert.Equal(t, `1 RemoteConfig/outer by test: resolved
  1.1 Noop/one by test
  1.2 EncryptedConfig/sealed by test: resolved
    1.2.1 Noop/two by test
    1.2.2 RemoteConfig/inner by test: resolved
      1.2.2.1 Noop/three by test
2 Noop/four by test
`, got.out)
	assert.NotContains(t, got.errOut, "c4n4ry")
	assert.NoDirExists(t, b.state, "it keeps nothing")
	got = b.run("resolve", "--path", b.stream(stream), "-o", "json")
	assert.Equal(t, report.ExitOK, got.code, "%s", got)
	assert.NotContains(t, got.String(), "c4n4ry")
}

func TestResolveRefuses(t *testing.T) {
	b := newBench(t)
	b.noop("")
	b.keys(nil)
	sealed := b.encrypt("sealed", plain("a"))
	sum := sha256.Sum256([]byte(plain("a")))
	digest := hex.EncodeToString(sum[:])
	b.source(map[string]any{"objects": map[string]any{
		"test://sealed": object(sealed), "test://a": object(plain("a")), "test://self": object(reference("self")),
		"test://bad":   object(plain("a") + noopDoc("B_", "password: {value: c4n4ry}")),
		"test://empty": object(""), "test://evil": object(strings.Replace(reference("x"), "provider: test", "provider: file", 1)),
		"test://later": map[string]any{"answer": "retry"}, "test://broken": map[string]any{"answer": "crash"},
	}})
	withDigest := func(name, digest string) string {
		return ourDoc("RemoteConfig", name, "uri: test://a, sha256: \""+digest+"\"")
	}
	for name, tt := range map[string]struct {
		stream string
		code   int
		says   string
	}{
		"right digest":          {withDigest("d", digest), report.ExitOK, ""},
		"wrong digest":          {withDigest("d", strings.Repeat("0", 64)), report.ExitPrecondition, "RemoteConfig/d: spec.sha256: "},
		"a digest that is none": {withDigest("d", "abc"), report.ExitUsage, "stream.yaml:5:"},
		"not there":             {reference("none"), report.ExitPrecondition, "RemoteConfig/none: "},
		"not there yet":         {reference("later"), report.ExitDeadline, "RemoteConfig/later: "},
		"a plugin that crashes": {reference("broken"), report.ExitFailed, "RemoteConfig/broken: "},
		"a cycle":               {reference("self"), report.ExitUsage, "refers to itself: RemoteConfig/self > RemoteConfig/self"},
		"a name twice":          {reference("a") + plain("a"), report.ExitUsage, "has the same name as Noop/a"},
		"an error below":        {reference("bad"), report.ExitUsage, "RemoteConfig/bad:9:12: "},
		"an empty object":       {reference("empty"), report.ExitUsage, "contains no document"},
		"from the network":      {reference("evil"), report.ExitUsage, "must not read files of the machine"},
		"no plugin":             {strings.Replace(reference("a"), "provider: test", "provider: none", 1), report.ExitPrecondition, "machineadm-remote-configuration-provider-none"},
		"no provider":           {strings.Replace(reference("a"), "provider: test, ", "", 1), report.ExitUsage, "spec.provider"},
		"no YAML":               {"{[", report.ExitUsage, "stream.yaml:1:"},
	} {
		got := b.run("resolve", "--path", b.stream(tt.stream))
		assert.Equal(t, tt.code, got.code, "%s: %s", name, got)
		assert.Contains(t, got.errOut, tt.says, name)
		assert.NotContains(t, got.String(), "c4n4ry", name)
	}
	for _, args := range [][]string{{"resolve"}, {"resolve", "-f", filepath.Join(b.dir, "none")}, {"resolve", "x"}, {"resolve", "-f", b.stream(""), "-o", "xml"}} {
		got := b.run(args...)
		assert.Equal(t, report.ExitUsage, got.code, "%q: %s", args, got)
	}
}

// TestResolvedStream: a stream of references is validated, planned and applied to an image as the documents of its references.
func TestResolvedStream(t *testing.T) {
	b := newBench(t)
	stream := b.stream(chained(b))
	secret := []string{"--root", b.root, "--path", stream, "--allow-secrets"}
	got := b.run("validate", "--path", stream)
	require.Equal(t, report.ExitOK, got.code, "%s", got)
	assert.NoFileExists(t, filepath.Join(b.dir, "source.log"), "validate makes no connection")
	got = b.run("apply", "--root", b.root, "--path", stream)
	assert.Equal(t, report.ExitUsage, got.code, "a secret in a bake: %s", got)
	got = b.run(append([]string{"plan"}, secret...)...)
	require.Equal(t, report.ExitDiffers, got.code, "%s", got)
	all := []string{got.String()}
	for range 2 {
		got = b.run(append([]string{"apply", "--log-level", "debug"}, secret...)...)
		require.Equal(t, report.ExitOK, got.code, "%s", got)
		all = append(all, got.String())
		for _, name := range []string{"one", "two", "three", "four"} {
			assert.FileExists(t, filepath.Join(b.root, name))
		}
	}
	got = b.run(append([]string{"plan"}, secret...)...)
	assert.Equal(t, report.ExitOK, got.code, "it converged: %s", got)
	assert.NotContains(t, strings.Join(all, "")+got.String(), "c4n4ry")
	b.nowhere("c4n4ry")
	ids := make([]string, 0, 7)
	for _, d := range b.report().Documents {
		ids = append(ids, d.ID)
	}
	assert.Equal(t, "1 1.1 1.2 1.2.1 1.2.2 1.2.2.1 2", strings.Join(ids, " "))
	assert.NoDirExists(t, filepath.Join(b.state, "resolved"))
}

// calls counts the lines of a log that hold a text.
func (b *bench) calls(log, text string) int {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, log))
	if os.IsNotExist(err) {
		return 0
	}
	require.NoError(b.t, err)
	return strings.Count(string(data), text+"\n")
}

// TestKilledWhileResolving kills the run at each step of a stream of references, and runs it again: the end is the same, nothing
// of it stays, and no object is needed twice.
func TestKilledWhileResolving(t *testing.T) {
	const outer, inner, key = "test://outer", "test://inner", "key://a"
	for name, tt := range map[string]struct {
		hang       string // the URI at which the run is killed
		log, line  string
		apply      bool // it is killed in the apply of the last document
		onceServed []string
	}{
		"the first fetch":  {hang: outer, log: "source.log", line: "fetch " + outer},
		"the passphrase":   {hang: key, log: "keys.log", line: "passphrase " + key, onceServed: []string{outer}},
		"the second fetch": {hang: inner, log: "source.log", line: "fetch " + inner, onceServed: []string{outer}},
		"the apply":        {log: "source.log", apply: true, onceServed: []string{outer, inner}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.noop("")
			b.keys(nil)
			b.source(map[string]any{})
			up, hang := filepath.Join(b.dir, "up"), filepath.Join(b.dir, "hangs")
			last := noopDoc("last", "touch: ["+hang+"]")
			if tt.apply {
				last = noopDoc("last", "touch: ["+hang+"], apply: hang, applyUntil: "+up)
			}
			secret := func(name string) string {
				return strings.Replace(b.touch(name), "provider: test,", "provider: test, password: {value: "+plainCanary+"},", 1)
			}
			sealed := b.encrypt("sealed", secret("two")+reference("inner"))
			// An object that was served once is gone at the next run, as by a link for one use.
			script := func(gone bool) map[string]any {
				objects := map[string]any{outer: object(secret("one") + sealed), inner: object(secret("three") + last)}
				for uri, o := range objects {
					o, ok := o.(map[string]any)
					require.True(t, ok)
					if uri == tt.hang {
						o["answer"], o["until"] = "hang", up
					}
					for _, once := range tt.onceServed {
						if gone && uri == once {
							o["answer"], o["status"] = "precondition", "410"
						}
					}
				}
				return map[string]any{"objects": objects}
			}
			passphrase := map[string]any{"value": passphraseCanary}
			if tt.hang == key {
				passphrase["answer"], passphrase["until"] = "hang", up
			}
			b.keys(map[string]any{"passphrases": map[string]any{key: passphrase}})
			b.source(script(false))
			stream := b.stream(home() + reference("outer") + b.touch("four"))
			before := b.calls(tt.log, tt.line)
			c := b.process("apply", "--phase", "preparation", "--path", stream)
			require.NoError(t, c.Start())
			eventually(t, "the step began", func() bool {
				if tt.apply {
					return exists(t, filepath.Join(b.dir, "touched/three")) && b.report().Outcome == report.RunRunning
				}
				return b.calls(tt.log, tt.line) > before
			})
			require.NoError(t, c.Process.Kill())
			require.Error(t, c.Wait())
			write(t, up, "")
			b.source(script(true))
			got := b.live(home() + reference("outer") + b.touch("four"))
			require.Equal(t, report.ExitOK, got.code, "%s", got)
			for _, name := range []string{"one", "two", "three", "four"} {
				assert.FileExists(t, filepath.Join(b.dir, "touched", name))
			}
			assert.FileExists(t, hang)
			assert.NotContains(t, got.String(), "c4n4ry")
			b.nowhere("c4n4ry")
			assert.NoDirExists(t, filepath.Join(b.state, "resolved"))
			require.Len(t, b.arrivals(), 1)
			assert.Equal(t, report.RunSucceeded, b.arrivals()[0].Report.Outcome)
		})
	}
}
