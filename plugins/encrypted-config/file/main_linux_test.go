package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/sdk"
)

const key = "\x00 raw bytes, with a line end\n"

func document(uri, config string) []byte {
	return fmt.Appendf(nil, `{"apiVersion": "machineadm.cluster.x-k8s.io/v1alpha1", "kind": "EncryptedConfig", "metadata": {"name": "a"},
		"spec": {"provider": "file", "passphraseURI": %q, "providerConfig": %s}}`, uri, config)
}

func ask(t *testing.T, uri, config string) ([]byte, error) {
	t.Helper()
	p := sdk.NewKeyProvider(provider(), "linux")
	return p.Passphrase(t.Context(), pluginv1.PassphraseRequest{Document: document(uri, config), Target: target.Target{OS: "linux"}})
}

// keyFile returns the path of a key, in a directory that only this user can write.
func keyFile(t *testing.T, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "node.key")
	require.NoError(t, os.WriteFile(path, []byte(content), mode))
	require.NoError(t, os.Chmod(path, mode))
	return path
}

func TestPassphrase(t *testing.T) {
	t.Parallel()
	path := keyFile(t, key, 0o600)
	got, err := ask(t, "file://"+path, "{}")
	require.NoError(t, err)
	assert.Equal(t, key, string(got))
	made, err := sdk.NewKeyProvider(provider(), "linux").NewPassphrase(t.Context(), pluginv1.NewPassphraseRequest{Key: path, Target: target.Target{OS: "linux"}})
	require.NoError(t, err)
	assert.Equal(t, pluginv1.NewPassphrase{Passphrase: []byte(key), URI: "file://" + path}, made)
}

func TestRefusedFiles(t *testing.T) {
	t.Parallel()
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(keyFile(t, key, 0o600), link))
	open := keyFile(t, key, 0o600)
	require.NoError(t, os.Chmod(filepath.Dir(open), 0o777)) //nolint:gosec // what is refused
	for path, want := range map[string]string{
		keyFile(t, key, 0o640):                       "can be read by others",
		keyFile(t, key, 0o602):                       "can be written",
		keyFile(t, "too short", 0o600):               "fewer than 14 bytes",
		keyFile(t, strings.Repeat("x", 4097), 0o600): "more than 4 KiB",
		filepath.Join(t.TempDir(), "none"):           "does not exist",
		link:                                         "link",
		open:                                         "can be written",
		filepath.Dir(keyFile(t, key, 0o600)):         "",
	} {
		_, err := ask(t, "file://"+path, "{}")
		e := pluginv1.AsError(err)
		require.Error(t, err, want)
		assert.Equal(t, pluginv1.CodePrecondition, e.Code, want)
		assert.Contains(t, e.Message, want)
		assert.NotContains(t, e.Error()+e.Hint, path, "the location is a value of the document")
		assert.NotEmpty(t, e.Hint)
	}
}

func TestRefusedDocuments(t *testing.T) {
	t.Parallel()
	for uri, config := range map[string]string{
		"file://relative": "{}", "file:///a/../b": "{}", "file:///a%20b": "{}", "file://x@/a": "{}", "http:///a": "{}", "/a": "{}",
		"file:///a": `{"key": 1}`,
	} {
		_, err := ask(t, uri, config)
		e := pluginv1.AsError(err)
		assert.Equal(t, pluginv1.CodeInvalidConfig, e.Code, uri)
		assert.Len(t, e.Violations, 1, uri)
	}
	_, err := ask(t, "file://relative", `{"key": 1}`)
	assert.Len(t, pluginv1.AsError(err).Violations, 2, "all at once")
	text, err := json.Marshal(pluginv1.AsError(err).Violations)
	require.NoError(t, err)
	assert.NotContains(t, string(text), "relative")
}
