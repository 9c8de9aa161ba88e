package aws

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

const stream = "apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: Sysctl # \u00fc\nmetadata: {name: node}\n"

// policy returns the actions of the policies in the README of a plugin, in their order.
func policy(t testing.TB, plugin string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../plugins", plugin, "README.md"))
	require.NoError(t, err)
	var all []string
	for _, block := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(text, -1) {
		var p struct {
			Version   string
			Statement []struct {
				Effect           string
				Action, Resource []string
			}
		}
		require.NoError(t, json.Unmarshal(block[1], &p))
		for _, s := range p.Statement {
			assert.Equal(t, "Allow", s.Effect)
			assert.NotContains(t, s.Resource, "*")
			all = append(all, s.Action...)
		}
	}
	require.NotEmpty(t, all, "%s has no policy", plugin)
	return all
}

func users(t testing.TB) (node, encrypter, admin user) {
	t.Helper()
	node = user{ID: "AKIDNODE", Secret: "c4n4ry/secret+key=", Token: "c4n4ry//session+token=="}
	for _, p := range []string{"remote-config/s3", "remote-config/ssm", "remote-config/secretsmanager", "encrypted-config/awskms"} {
		node.Actions = append(node.Actions, policy(t, p)[0])
	}
	encrypter = user{ID: "AKIDENCRYPTER", Secret: "anotherSecret", Token: "anotherToken==", Actions: policy(t, "encrypted-config/awskms")[1:]}
	admin = user{ID: "AKIDADMIN", Secret: "admin", Actions: append([]string{
		"kms:Encrypt", "kms:GenerateDataKey", "ssm:PutParameter", "ssm:DeleteParameter",
		"secretsmanager:CreateSecret", "secretsmanager:PutSecretValue", "secretsmanager:DeleteSecret",
	}, node.Actions...)}
	return node, encrypter, admin
}

func serving(t testing.TB) (r rig, node, encrypter, admin user) {
	t.Helper()
	node, encrypter, admin = users(t)
	expired := user{ID: "AKIDEXPIRED", Secret: "expired", Token: "token", Expired: true}
	r = start(t, state{
		Users:      map[string]user{node.ID: node, encrypter.ID: encrypter, admin.ID: admin, expired.ID: expired},
		Objects:    map[string]string{"/bucket/nodes/worker%201.yaml": stream},
		Parameters: map[string][]string{"/nodes/worker-1.yaml": {"old", stream}, "flat": {stream}},
		Secrets: map[string][]map[string]any{"nodes/worker-1": {
			{"VersionId": strings.Repeat("1", 36), "VersionStages": []string{"AWSPREVIOUS"}, "SecretBinary": base64.StdEncoding.EncodeToString([]byte("\x00old"))},
			{"VersionId": strings.Repeat("2", 36), "VersionStages": []string{"AWSCURRENT"}, "SecretString": stream},
		}},
	})
	return r, node, encrypter, admin
}

// TestParameters: each form of a name gives what awscli and curl get with it.
func TestParameters(t *testing.T) {
	r, node, _, _ := serving(t)
	p := plugin(t, "plugins/remote-config/ssm")
	for name, want := range map[string][2]string{
		"/nodes/worker-1.yaml": {stream, "2"}, "/nodes/worker-1.yaml:1": {"old", "1"}, "flat": {stream, "1"},
		"arn:aws:ssm:" + region + ":" + account + ":parameter/nodes/worker-1.yaml": {stream, "2"},
	} {
		data, revision, err := p.fetch(t, "ssm://"+name, r.config(node, nil))
		require.NoError(t, err, r.log())
		assert.Equal(t, want, [2]string{string(data), revision}, name)
		text, err := r.aws(t, node, "ssm", "get-parameter", "--with-decryption", "--name", name, "--endpoint-url", r.endpoint)
		require.NoError(t, err)
		var theirs struct{ Parameter struct{ Value string } }
		require.NoError(t, json.Unmarshal([]byte(text), &theirs))
		assert.Equal(t, want[0], theirs.Parameter.Value)
	}
	c := exec.CommandContext(t.Context(), "curl", "-sS", "--fail-with-body", "--cacert", r.caFile, "--aws-sigv4", "aws:amz:"+region+":ssm", "--user", node.ID+":"+node.Secret,
		"-H", "X-Amz-Security-Token: "+node.Token, "-H", "X-Amz-Target: AmazonSSM.GetParameter", "-H", "Content-Type: application/x-amz-json-1.1",
		"-d", `{"Name": "flat", "WithDecryption": true}`, r.endpoint+"/")
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s %s", out, r.log())
	assert.Contains(t, string(out), `"Version": 1`)
}

// TestStoredValues: what the plugins store is fetched with the rights of a machine, replaced, and removed.
func TestStoredValues(t *testing.T) {
	r, node, _, admin := serving(t)
	for provider, most := range map[string]int{"ssm": 8 << 10, "secretsmanager": 64 << 10} {
		p := plugin(t, "plugins/remote-config/"+provider)
		at := p.storage(t, provider+":///machines/", "role", r.config(admin, nil))
		for _, text := range []string{strings.Repeat("\u00fc", most/2), stream, stream} {
			stored := p.store(t, at, text)
			assert.Equal(t, pluginv1.Stored{URI: at.URIPrefix + object, ProviderConfig: stored.ProviderConfig}, stored)
			var handed map[string]any
			require.NoError(t, json.Unmarshal(stored.ProviderConfig, &handed))
			assert.Equal(t, map[string]any{"endpoint": r.endpoint, "ca": string(r.ca.Certificate), "region": region}, handed)
			data, _, err := p.fetch(t, stored.URI, r.config(node, handed))
			require.NoError(t, err, r.log())
			assert.Equal(t, text, string(data))
		}
		failed := func(change func(*pluginv1.StoreRequest)) *pluginv1.Error {
			request := pluginv1.StoreRequest{Storage: at, Name: object, Data: []byte(stream)}
			change(&request)
			_, err := p.Store(t.Context(), request)
			require.Error(t, err, provider)
			assert.NotContains(t, fmt.Sprintf("%+v", *pluginv1.AsError(err)), "c4n4ry")
			return pluginv1.AsError(err)
		}
		e := failed(func(r *pluginv1.StoreRequest) { r.Data = make([]byte, most+1) })
		assert.True(t, e.Final, "%v", e)
		e = failed(func(r *pluginv1.StoreRequest) { r.Storage.Access = "presigned" })
		assert.Equal(t, pluginv1.CodeUnsupported, e.Code)
		assert.Equal(t, "access", e.Violations[0].Field)
		e = failed(func(r *pluginv1.StoreRequest) { r.Storage.URIPrefix = provider + "://arn:aws:x:" })
		assert.Equal(t, "uriPrefix", e.Violations[0].Field)
		machine := p.storage(t, at.URIPrefix, "role", r.config(node, nil))
		e = failed(func(r *pluginv1.StoreRequest) { r.Storage = machine })
		assert.Contains(t, e.Message, "AccessDenied")
		require.Error(t, p.Remove(t.Context(), pluginv1.RemoveRequest{Storage: machine, Name: object}))
		for range 2 {
			require.NoError(t, p.Remove(t.Context(), pluginv1.RemoveRequest{Storage: at, Name: object}), r.log())
			_, _, err := p.fetch(t, at.URIPrefix+object, r.config(node, nil))
			require.ErrorContains(t, err, "NotFound")
		}
	}
}

// TestSecrets: a secret is text or bytes, and of any version.
func TestSecrets(t *testing.T) {
	r, node, _, _ := serving(t)
	p := plugin(t, "plugins/remote-config/secretsmanager")
	one, two := strings.Repeat("1", 36), strings.Repeat("2", 36)
	for _, test := range []struct {
		name, want, revision string
		config               map[string]any
	}{
		{"nodes/worker-1", stream, two, nil},
		{"arn:aws:secretsmanager:" + region + ":" + account + ":secret:nodes/worker-1", stream, two, nil},
		{"nodes/worker-1", "\x00old", one, map[string]any{"versionStage": "AWSPREVIOUS"}},
		{"nodes/worker-1", "\x00old", one, map[string]any{"versionId": one}},
	} {
		data, revision, err := p.fetch(t, "secretsmanager://"+test.name, r.config(node, test.config))
		require.NoError(t, err, r.log())
		assert.Equal(t, test.want, string(data))
		assert.Equal(t, test.revision, revision)
	}
	text, err := r.aws(t, node, "secretsmanager", "get-secret-value", "--secret-id", "nodes/worker-1", "--endpoint-url", r.endpoint)
	require.NoError(t, err)
	assert.Contains(t, text, two)
}

func (p process) decrypt(t testing.TB, uri string, config map[string]any) (string, error) {
	t.Helper()
	data, err := p.Passphrase(t.Context(), pluginv1.PassphraseRequest{
		Document: document(t, "EncryptedConfig", map[string]any{"provider": "awskms", "passphraseURI": uri, "providerConfig": config}), Target: here(),
	})
	return string(data), err
}

// TestKeys: passphrases of ours and of awscli are decrypted by both, with the key and the context of the document alone.
func TestKeys(t *testing.T) {
	r, node, encrypter, admin := serving(t)
	p := plugin(t, "plugins/encrypted-config/awskms")
	config := r.config(node, nil)
	delete(config, "region")
	context := map[string]any{"encryptionContext": map[string]any{"cluster": "a", "purpose": "b"}}
	made := func(key string, more map[string]any) pluginv1.NewPassphrase {
		own := r.config(encrypter, more)
		delete(own, "region")
		data, err := json.Marshal(own)
		require.NoError(t, err)
		n, err := p.NewPassphrase(t.Context(), pluginv1.NewPassphraseRequest{Key: key, Target: here(), ProviderConfig: data})
		require.NoError(t, err, r.log())
		assert.Len(t, n.Passphrase, 32)
		return n
	}
	for _, key := range []string{kmsKey, alias} {
		n := made(key, nil)
		assert.Regexp(t, `^kms://[A-Za-z0-9+/]+=*@`+kmsKey+`$`, n.URI)
		got, err := p.decrypt(t, n.URI, config)
		require.NoError(t, err, r.log())
		assert.Equal(t, string(n.Passphrase), got)
		file := filepath.Join(t.TempDir(), "blob")
		blob, err := base64.StdEncoding.DecodeString(strings.Split(strings.TrimPrefix(n.URI, "kms://"), "@")[0])
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, blob, 0o600))
		text, err := r.aws(t, admin, "kms", "decrypt", "--ciphertext-blob", "fileb://"+file, "--key-id", kmsKey, "--endpoint-url", r.endpoint, "--query", "Plaintext", "--output", "text")
		require.NoError(t, err)
		assert.Equal(t, base64.StdEncoding.EncodeToString(n.Passphrase), strings.TrimSpace(text))
	}
	text, err := r.aws(t, admin, "kms", "encrypt", "--key-id", alias, "--plaintext", base64.StdEncoding.EncodeToString([]byte("a passphrase of theirs")),
		"--endpoint-url", r.endpoint, "--query", "CiphertextBlob", "--output", "text")
	require.NoError(t, err)
	got, err := p.decrypt(t, "kms://"+strings.TrimSpace(text)+"@"+kmsKey, config)
	require.NoError(t, err)
	assert.Equal(t, "a passphrase of theirs", got)

	n := made(kmsKey, context)
	withContext := r.config(node, context)
	delete(withContext, "region")
	got, err = p.decrypt(t, n.URI, withContext)
	require.NoError(t, err)
	assert.Equal(t, string(n.Passphrase), got)
	for name, test := range map[string]struct {
		uri    string
		config map[string]any
		code   string
	}{
		"without the context": {n.URI, config, "InvalidCiphertextException"},
		"another key":         {strings.Replace(n.URI, kmsKey, otherKey, 1), withContext, "IncorrectKeyException"},
		"no such key":         {strings.Replace(n.URI, "1234abcd", "00000000", 1), withContext, "NotFoundException"},
		"changed":             {strings.Replace(n.URI, "kms://AQIC", "kms://AQID", 1), withContext, "InvalidCiphertextException"},
	} {
		if name == "no such key" { // which may be one of a moment ago
			_, err := p.decrypt(t, test.uri, test.config)
			assert.Equal(t, pluginv1.CodeRetry, pluginv1.AsError(err).Code, name)
			continue
		}
		_, err := p.decrypt(t, test.uri, test.config)
		require.Error(t, err, name)
		e := pluginv1.AsError(err)
		assert.Equal(t, pluginv1.CodePrecondition, e.Code, name)
		assert.Contains(t, e.Message, test.code, name)
		assert.NotContains(t, e.Message+e.Hint, "arn:")
	}
}

// TestClock: a service whose clock is a year behind refuses the signature, and the hint names the clock.
func TestClock(t *testing.T) {
	node, _, _ := users(t)
	r := start(t, state{Users: map[string]user{node.ID: node}, Parameters: map[string][]string{"flat": {stream}}, Clock: -365 * 24 * 3600})
	_, _, err := plugin(t, "plugins/remote-config/ssm").fetch(t, "ssm://flat", r.config(node, nil))
	require.Error(t, err)
	e := pluginv1.AsError(err)
	assert.Equal(t, pluginv1.CodePrecondition, e.Code, "%+v", e)
	assert.Contains(t, e.Message, "InvalidSignatureException")
	assert.Contains(t, e.Hint, "check the clock of this machine")
}

// TestLeastPrivilege: a user without one of the actions of the README is refused, and the code says why. Secrets are nowhere, also where the
// service repeats them.
func TestLeastPrivilege(t *testing.T) {
	r, node, encrypter, _ := serving(t)
	ssm, secrets, kms := plugin(t, "plugins/remote-config/ssm"), plugin(t, "plugins/remote-config/secretsmanager"), plugin(t, "plugins/encrypted-config/awskms")
	wrong, unknown := node, node
	wrong.Secret, unknown.ID = "c4n4ry", "AKIDUNKNOWN"
	expired := user{ID: "AKIDEXPIRED", Secret: "expired", Token: "token"}
	for _, u := range []user{encrypter, wrong, unknown, expired} {
		config := r.config(u, nil)
		_, _, first := ssm.fetch(t, "ssm://flat", config)
		_, _, second := secrets.fetch(t, "secretsmanager://nodes/worker-1", config)
		delete(config, "region")
		_, third := kms.decrypt(t, "kms://AQIC@"+kmsKey, config)
		for _, err := range []error{first, second, third} {
			e := pluginv1.AsError(err)
			text := fmt.Sprintf("%+v", *e)
			assert.NotContains(t, text, "c4n4ry")
			assert.NotContains(t, text, "AKID")
			if u.ID == expired.ID {
				assert.Equal(t, pluginv1.CodePrecondition, e.Code, text)
				assert.Equal(t, "401", e.Facts[pluginv1.FactStatus])
				assert.Contains(t, e.Hint, "expired")
				continue
			}
			assert.Equal(t, pluginv1.CodeRetry, e.Code, text) // of a plugin that has just started
			assert.Contains(t, e.Message, map[string]string{
				encrypter.ID: "AccessDeniedException", wrong.ID: "InvalidSignatureException", unknown.ID: "UnrecognizedClientException",
			}[u.ID])
		}
	}
	for _, p := range []process{ssm, secrets, kms} {
		assert.NotContains(t, p.stderr.String(), "c4n4ry")
		for _, file := range []string{"cmdline", "environ"} {
			data, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(p.PID()), file))
			require.NoError(t, err)
			assert.NotContains(t, string(data), "c4n4ry")
		}
	}
	assert.NotContains(t, r.log(), "ValidationException")
}
