package cli

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
)

const (
	passphraseCanary = "c4n4ry-of-the-passphrase"
	plainCanary      = "c4n4ry-of-the-stream"
)

// keys installs a key provider with a passphrase for key://a and this script, or changes its script.
func (b *bench) keys(script map[string]any) {
	b.t.Helper()
	whole := map[string]any{
		"passphrases": map[string]any{"key://a": map[string]any{"value": passphraseCanary}}, "log": filepath.Join(b.dir, "keys.log"),
	}
	maps.Copy(whole, script)
	data, err := json.Marshal(map[string]any{"keys": whole, "witness": filepath.Join(b.dir, "keys.process")})
	require.NoError(b.t, err)
	b.scripted(keysPlugin, string(data))
}

// plain is a stream with a secret.
func plain(name string) string {
	return noopDoc(name, "password: {value: "+plainCanary+"}, touch: [/"+name+"]")
}

// encrypt encrypts a stream, and returns the document.
func (b *bench) encrypt(name, stream string) string {
	b.t.Helper()
	got := execute(b.t, strings.NewReader(stream), b.flags("encrypt", "--path", "-", "--name", name, "--provider", "test", "--key", "key://a")...)
	require.Equal(b.t, report.ExitOK, got.code, "%s", got)
	require.Empty(b.t, got.errOut)
	return "---\n" + strings.TrimPrefix(got.out, "---\n")
}

func TestEncryptAndDecrypt(t *testing.T) {
	b := newBench(t)
	b.noop("")
	b.keys(nil)
	config := filepath.Join(b.dir, "config.yaml")
	write(t, config, "region: eu\nlist:\n- 1\n- {a: b}\n")
	own := writeTo(t, b, "own.yaml", "token: {value: c4n4ry-of-the-encrypter}\n")
	got := b.run("encrypt", "-f", b.stream(plain("a")), "--name", "node", "--provider", "test", "--key", "key://a",
		"--provider-config", config, "--encrypter-config", own, "--log-level", "debug")
	require.Equal(t, report.ExitOK, got.code, "%s", got)
	assert.NotContains(t, got.String(), "c4n4ry")
	for _, canary := range []string{passphraseCanary, plainCanary} {
		assert.NotContains(t, got.String(), canary)
	}
	assert.Contains(t, got.out, "region: eu")
	assert.Contains(t, got.out, "passphraseURI: key://a")
	sealed := filepath.Join(b.dir, "sealed.yaml")
	write(t, sealed, got.out)
	got = b.run("decrypt", "-f", sealed)
	assert.Equal(t, result{out: plain("a")}, got)
	got = b.run("decrypt", "-f", sealed, "--log-level", "debug")
	assert.NotContains(t, got.errOut, "c4n4ry")
	process, err := os.ReadFile(filepath.Join(b.dir, "keys.process"))
	require.NoError(t, err)
	assert.NotContains(t, string(process), "c4n4ry", "arguments, environment and standard input of the plugin")
	got = b.run("validate", "-f", sealed)
	assert.Equal(t, report.ExitOK, got.code, "%s", got)
	again := b.encrypt("node", plain("a"))
	write(t, sealed, again+b.encrypt("other", plain("b")))
	assert.Equal(t, result{out: plain("b")}, b.run("decrypt", "-f", sealed, "--name", "other"))
	for args, says := range map[string]string{"": "holds several EncryptedConfig documents", "--name=none": "holds no such EncryptedConfig document"} {
		got = b.run(strings.Fields("decrypt -f " + sealed + " " + args)...)
		assert.Equal(t, report.ExitUsage, got.code, "%s", got)
		assert.Contains(t, got.errOut, says)
		assert.Empty(t, got.out)
	}
}

func TestEncryptRefuses(t *testing.T) {
	b := newBench(t)
	b.noop("")
	stream := b.stream(plain("a"))
	bad, empty := filepath.Join(b.dir, "bad.yaml"), filepath.Join(b.dir, "empty.yaml")
	write(t, bad, noopDoc("A_", "password: {value: "+plainCanary+"}"))
	write(t, empty, "")
	invalid := filepath.Join(b.dir, "invalid.yaml")
	write(t, invalid, noopDoc("a", "password: {value: "+plainCanary+"}, plan: invalid, field: spec.plan"))
	all := func(more ...string) []string {
		return append([]string{"encrypt", "-f", stream, "--name", "n", "--provider", "test", "--key", "key://a"}, more...)
	}
	inner := func(name, stream string) []string { return all("-f", writeTo(t, b, name, plain("a")+stream)) }
	b.source(map[string]any{})
	b.keys(nil)
	nested := b.encrypt("n", plain("b"))
	short := map[string]any{"passphrases": map[string]any{"key://a": map[string]any{"value": "c4n4ry"}}}
	failing := func(answer string) map[string]any {
		return map[string]any{"passphrases": map[string]any{"key://a": map[string]any{"answer": answer}}}
	}
	for name, tt := range map[string]struct {
		keys map[string]any
		args []string
		code int
		says string
	}{
		"no path":                     {nil, []string{"encrypt", "--name", "n", "--provider", "test", "--key", "k"}, report.ExitUsage, "--path is required"},
		"no name":                     {nil, []string{"encrypt", "-f", stream, "--provider", "test", "--key", "k"}, report.ExitUsage, "--name is required"},
		"no provider":                 {nil, []string{"encrypt", "-f", stream, "--name", "n", "--key", "k"}, report.ExitUsage, "--provider is required"},
		"no key":                      {nil, []string{"encrypt", "-f", stream, "--name", "n", "--provider", "test"}, report.ExitUsage, "--key is required"},
		"a name that is none":         {nil, all("--name", "N_"), report.ExitUsage, "--name"},
		"a provider that is a path":   {nil, all("--provider", "../x"), report.ExitUsage, "--provider"},
		"no such stream":              {nil, all("-f", filepath.Join(b.dir, "none.yaml")), report.ExitUsage, "none.yaml"},
		"an empty stream":             {nil, all("-f", empty), report.ExitUsage, "contains no document"},
		"a stream that is wrong":      {nil, all("-f", bad), report.ExitUsage, "bad.yaml:4:12"},
		"a stream that a plugin bars": {nil, all("-f", invalid), report.ExitUsage, "invalid.yaml:5:"},
		"a target of the report":      {nil, inner("target.yaml", ourDoc("ReportTarget", "t", "uri: test://c4n4ry")), report.ExitUsage, "target.yaml:7: ReportTarget/t: InvalidConfig: kind: the stream"},
		"a report's destination":      {nil, inner("report.yaml", ourDoc("RemoteConfig", "r", "uri: test://a, report: {uri: test://c4n4ry}")), report.ExitUsage, "must not say where the report goes"},
		"a document of the same name": {nil, inner("nested.yaml", nested), report.ExitUsage, "EncryptedConfig/n: InvalidConfig: metadata.name: "},
		"no such provider":            {nil, all("--provider", "none"), report.ExitPrecondition, "machineadm-plugin-encryption-provider-none"},
		"no such key":                 {nil, all("--key", "key://b"), report.ExitPrecondition, "provider test: "},
		"a provider that makes none":  {map[string]any{"noNew": true}, all(), report.ExitPrecondition, "makes no passphrases"},
		"a key that is not there yet": {failing("retry"), all(), report.ExitDeadline, "noop says retry"},
		"a plugin with a defect":      {failing("internal"), all(), report.ExitFailed, "noop says internal"},
		"a plugin that crashes":       {failing("crash"), all(), report.ExitFailed, "provider test: "},
		"a short passphrase":          {short, all(), report.ExitFailed, "fewer than 14"},
		"a config that is no YAML":    {nil, all("--provider-config", writeTo(t, b, "wrong.yaml", "a: {\n  c4n4ry: *x\n")), report.ExitUsage, "wrong.yaml:"},
		"a config that is a list":     {nil, all("--provider-config", writeTo(t, b, "list.yaml", "- a\n")), report.ExitUsage, "is not a YAML mapping"},
		"a config that is no object":  {nil, all("--provider-config", writeTo(t, b, "text.yaml", "a\n")), report.ExitUsage, "is not a YAML mapping"},
		"a config of two documents":   {nil, all("--provider-config", writeTo(t, b, "two.yaml", "a: b\n---\nc: c4n4ry\n")), report.ExitUsage, "is a second document"},
		"a config that is not there":  {nil, all("--provider-config", filepath.Join(b.dir, "none")), report.ExitUsage, "--provider-config"},
		"no config of the encrypter":  {nil, all("--encrypter-config", filepath.Join(b.dir, "none")), report.ExitUsage, "--encrypter-config"},
	} {
		b.keys(tt.keys)
		got := b.run(tt.args...)
		assert.Equal(t, tt.code, got.code, "%s: %s", name, got)
		assert.Contains(t, got.errOut, tt.says, name)
		assert.Empty(t, got.out, name)
		assert.NotContains(t, got.errOut, "c4n4ry", name)
	}
}

func writeTo(t *testing.T, b *bench, name, text string) string {
	t.Helper()
	path := filepath.Join(b.dir, name)
	write(t, path, text)
	return path
}

func TestDecryptRefuses(t *testing.T) {
	b := newBench(t)
	b.noop("")
	b.keys(nil)
	sealed := b.encrypt("node", plain("a"))
	const wrong = "cannot be decrypted: the passphrase is another one"
	other := map[string]any{"passphrases": map[string]any{"key://a": map[string]any{"value": passphraseCanary + "-no"}}}
	gone := map[string]any{"passphrases": map[string]any{"key://a": map[string]any{"answer": "precondition", "status": "404"}}}
	for name, tt := range map[string]struct {
		keys   map[string]any
		stream string
		code   int
		says   string
	}{
		"another passphrase":        {other, sealed, report.ExitUsage, wrong},
		"another name":              {nil, strings.Replace(sealed, "name: node", "name: nod", 1), report.ExitUsage, wrong},
		"a passphrase that is gone": {gone, sealed, report.ExitPrecondition, "noop says precondition"},
		"another algorithm":         {nil, strings.Replace(sealed, "pbkdf2", "hkdf-sha512", 1), report.ExitPrecondition, "Unsupported"},
		"a digit for a string":      {nil, strings.Replace(sealed, "iterations: \"210000\"", "iterations: 210000", 1), report.ExitUsage, "spec.iterations"},
		"an unknown field":          {nil, strings.Replace(sealed, "  iv:", "  vi:", 1), report.ExitUsage, "spec.vi"},
		"no such document":          {nil, plain("a"), report.ExitUsage, "holds no such EncryptedConfig document"},
		"a stream that is wrong":    {nil, sealed + "---\n{[" + plainCanary, report.ExitUsage, "stream.yaml:"},
		"nothing":                   {nil, "", report.ExitUsage, "contains no document"},
		"no such provider":          {nil, strings.Replace(sealed, "provider: test", "provider: none", 1), report.ExitPrecondition, "machineadm-plugin-encryption-provider-none"},
	} {
		b.keys(tt.keys)
		got := b.run("decrypt", "-f", b.stream(tt.stream))
		assert.Equal(t, tt.code, got.code, "%s: %s", name, got)
		assert.Contains(t, got.errOut, tt.says, name)
		assert.Empty(t, got.out, name)
		assert.NotContains(t, got.errOut, "c4n4ry", name)
	}
	b.keys(map[string]any{"passphrases": map[string]any{"key://a": map[string]any{"answer": "hang"}}})
	got := b.run("decrypt", "-f", b.stream(sealed), "--timeout", "1s")
	assert.Equal(t, report.ExitDeadline, got.code, "%s", got)
	assert.Contains(t, got.errOut, "provider test: no answer in time")
	for _, args := range [][]string{{"decrypt"}, {"decrypt", "-f", filepath.Join(b.dir, "none")}, {"decrypt", "x"}} {
		assert.Equal(t, report.ExitUsage, b.run(args...).code, args)
	}
}

// TestDecryptToATerminal: of any kind, also without TERM, it needs --show.
func TestDecryptToATerminal(t *testing.T) {
	b := newBench(t)
	b.noop("")
	b.keys(nil)
	stream := b.stream(b.encrypt("node", plain("a")))
	for _, term := range []string{"xterm", "dumb", ""} {
		t.Setenv("TERM", term)
		terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
		require.NoError(t, err)
		var errOut bytes.Buffer
		run := func(args ...string) int {
			return Execute(t.Context(), b.flags(append([]string{"decrypt", "-f", stream}, args...)...), streams{in: strings.NewReader(""), out: terminal, err: &errOut})
		}
		assert.Equal(t, report.ExitUsage, run(), term)
		assert.Contains(t, errOut.String(), "pass --show")
		assert.Equal(t, report.ExitOK, run("--show"), "%s: %s", term, errOut.String())
		assert.NotContains(t, errOut.String(), "c4n4ry")
		require.NoError(t, terminal.Close())
	}
}

// TestDocumentsForAnotherSystem: validate and encrypt accept a stream for several operating systems, and say what they did not check.
func TestDocumentsForAnotherSystem(t *testing.T) {
	b := newBench(t)
	b.noop("")
	b.keys(nil)
	stream := b.stream(plain("a") + "---\napiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: DomainJoin\nmetadata: {name: domain, when: {os: [windows]}}\n" +
		"spec: {domain: ad.example.com, windows: {rename: true}}\n")
	const warning = "DomainJoin/domain: warning: only the names, types, values and bounds of its fields are checked"
	got := b.run("validate", "-f", stream)
	assert.Equal(t, report.ExitOK, got.code, "%s", got)
	assert.Equal(t, "2 documents: no configuration errors\n", got.out)
	assert.Contains(t, got.errOut, warning)
	got = b.run("encrypt", "-f", stream, "--name", "node", "--provider", "test", "--key", "key://a")
	assert.Equal(t, report.ExitOK, got.code, "%s", got)
	assert.Contains(t, got.out, "kind: EncryptedConfig")
	assert.Contains(t, got.errOut, warning)
}
