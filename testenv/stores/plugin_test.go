package stores

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/tools"
)

const (
	// canary is a part of every secret of these tests.
	canary = "c4n4ry"
	stream = "apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: Sysctl\nmetadata: {name: node}\nspec: {parameters: {net.core.somaxconn: 8191}}\n"
)

// plugin is a running plugin.
type plugin struct {
	t       testing.TB
	process *launch.Process
	name    string
}

// start builds a plugin and runs it until the test ends. What it writes has no secret.
func start(t testing.TB, source string) plugin {
	t.Helper()
	needs.Tier(t, needs.System)
	dir, err := os.MkdirTemp("", "stores-") //nolint:usetesting // the path of a socket has to be short
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	binary := filepath.Join(dir, "plugin")
	require.NoError(t, tools.Products(t.Context(), dir, map[string]string{"plugin": source}))
	info, err := os.Stat(binary)
	require.NoError(t, err)
	t.Logf("%s: %.1f MiB", source, float64(info.Size())/(1<<20))
	var said output
	p, err := launch.Start(t.Context(), launch.Options{
		Command: exec.Command(binary), SocketDir: dir, Stderr: &said,
		Environment: launch.Environment(runtime.GOOS, func(string) (string, bool) { return "", false }),
	})
	require.NoError(t, err)
	t.Cleanup(func() { p.Kill(); assert.NotContains(t, said.String(), canary) })
	return plugin{t, p, filepath.Base(source)}
}

// object is what a plugin fetched.
type object struct {
	data     []byte
	revision string
}

// document is one with this provider.
func (p plugin) document(kind string, spec map[string]any) []byte {
	p.t.Helper()
	spec["provider"] = p.name
	data, err := json.Marshal(map[string]any{"apiVersion": v1alpha1.APIVersion, "kind": kind, "metadata": map[string]any{"name": "a"}, "spec": spec})
	require.NoError(p.t, err)
	return data
}

func here() target.Target { return target.Target{OS: runtime.GOOS, Architecture: runtime.GOARCH} }

// fetch fetches the object of a RemoteConfig.
func (p plugin) fetch(uri string, config any) (o object, e *pluginv1.Error) {
	p.t.Helper()
	doc := p.document(v1alpha1.KindRemoteConfig, map[string]any{"uri": uri, "providerConfig": config})
	err := p.process.Fetch(p.t.Context(), pluginv1.FetchRequest{Document: doc, Target: here(), MaxBytes: 16 << 20}, func(c pluginv1.Chunk) error {
		if c.Begin {
			o = object{revision: c.Revision}
		}
		o.data = append(o.data, c.Data...)
		return nil
	})
	return o, p.failure(err)
}

// report sends the report of a RemoteConfig, beside its object if to is empty.
func (p plugin) report(uri, to string, config any, sequence uint64, text string) *pluginv1.Error {
	p.t.Helper()
	spec := map[string]any{"uri": uri, "providerConfig": config}
	if to != "" {
		spec["report"] = map[string]any{"uri": to}
	}
	return p.failure(p.process.Report(context.WithoutCancel(p.t.Context()), pluginv1.ReportRequest{
		Document: p.document(v1alpha1.KindRemoteConfig, spec), Target: here(), Report: []byte(text), Sequence: sequence,
	}))
}

// reportAll sends the reports 1 to n at once, each until it is not a Retry: whatever their order, the newest one stays.
func (p plugin) reportAll(uri string, config any, n int) {
	p.t.Helper()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			for p.t.Context().Err() == nil {
				e := p.report(uri, "", config, uint64(i+1), fmt.Sprintf(`{"report": %d}`, i+1))
				if e == nil {
					return
				}
				if !assert.Equal(p.t, pluginv1.CodeRetry, e.Code, "%v", e) {
					return
				}
			}
		})
	}
	all.Wait()
}

// passphrase gets the passphrase of an EncryptedConfig.
func (p plugin) passphrase(uri string, config any) ([]byte, *pluginv1.Error) {
	p.t.Helper()
	doc := p.document(v1alpha1.KindEncryptedConfig, map[string]any{
		"passphraseURI": uri, "salt": "AAAAAAAAAAAAAAAAAAAAAA==", "iv": "AAAAAAAAAAAAAAAA", "cipherAlgorithm": "aes-256-gcm",
		"digestAlgorithm": "sha-512", "iterations": "210000", "keyDerivationAlgorithm": "pbkdf2", "providerConfig": config,
	})
	data, err := p.process.Passphrase(p.t.Context(), pluginv1.PassphraseRequest{Document: doc, Target: here()})
	return data, p.failure(err)
}

// newPassphrase makes a passphrase that a key protects.
func (p plugin) newPassphrase(key string, config any) (pluginv1.NewPassphrase, *pluginv1.Error) {
	p.t.Helper()
	text, err := json.Marshal(config)
	require.NoError(p.t, err)
	made, err := p.process.NewPassphrase(p.t.Context(), pluginv1.NewPassphraseRequest{Key: key, Target: here(), ProviderConfig: text})
	return made, p.failure(err)
}

// failure returns an error of the contract, which quotes no secret.
func (p plugin) failure(err error) *pluginv1.Error {
	p.t.Helper()
	if err == nil {
		return nil
	}
	e := pluginv1.AsError(err)
	assert.NotEqual(p.t, pluginv1.CodeInternal, e.Code, "%v", e)
	assert.NotContains(p.t, fmt.Sprintf("%+v", *e), canary)
	p.t.Log(e)
	return e
}

// refused requires a Precondition with the status of the server's answer, or without one.
func refused(t testing.TB, e *pluginv1.Error, status string) {
	t.Helper()
	require.NotNil(t, e)
	assert.Equal(t, pluginv1.CodePrecondition, e.Code, "%v", e)
	assert.Equal(t, status, e.Facts[pluginv1.FactStatus], "%v", e)
}

func secret(text string) map[string]any { return map[string]any{"value": text} }

// with returns a providerConfig with one field more, or replaced.
func with(config map[string]any, field string, value any) map[string]any {
	all := map[string]any{field: value}
	for name, old := range config {
		if name != field {
			all[name] = old
		}
	}
	return all
}

// output collects what a plugin writes to stderr.
type output struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.Write(p)
}

// String returns what was written so far.
func (o *output) String() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.String()
}
