package controller

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/machineadm/machineadm/contract/document"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/testenv/tools"
)

// accepted: the plugins accept every stream that any test has made with Ready=True, as far as its kinds have plugins.
func (r *rig) accepted(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, tools.All(t.Context(), dir))
	var configs bootstrap.MachineBootstrapConfigList
	require.NoError(t, r.List(t.Context(), &configs))
	count := 0
	for i := range configs.Items {
		c := &configs.Items[i]
		ready := meta.FindStatusCondition(c.Status.Conditions, bootstrap.ConditionReady)
		if ready == nil || ready.Status != "True" || c.Spec.Format.TemplateRef != nil || c.Status.DataSecretName == "" {
			continue
		}
		stream := streamOf(t, c.Spec.Format.Type, r.secret(t, c.Namespace, c.Status.DataSecretName).Data["value"])
		if stream == nil {
			continue
		}
		count++
		file := filepath.Join(t.TempDir(), "node.yaml")
		require.NoError(t, os.WriteFile(file, stream, 0o600))
		out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "machineadm"), "validate", "--plugin-dir", dir, "--path", file).CombinedOutput()
		if err != nil && bytes.Contains(stream, []byte("apiVersion: example.com/")) {
			assert.Equal(t, strings.Count(string(out), ": plugin machineadm-"), strings.Count(string(out), file+":"), "%s: %s", c.Name, out) // not installed
			continue
		}
		assert.NoError(t, err, "%s: %s", c.Name, out)
	}
	t.Logf("%d streams", count)
	require.Greater(t, count, 30, "too few streams were validated")
}

// streamOf is the stream in data, nil for a format that is not read here. testenv/bootstrapdata reads them all.
func streamOf(t *testing.T, format string, data []byte) []byte {
	t.Helper()
	decoded := func(text string, packed bool) []byte {
		data, err := base64.StdEncoding.DecodeString(text)
		require.NoError(t, err)
		if !packed {
			return data
		}
		reader, err := gzip.NewReader(bytes.NewReader(data))
		require.NoError(t, err)
		stream, err := io.ReadAll(reader)
		require.NoError(t, err)
		return stream
	}
	switch format {
	case bootstrap.FormatPlain:
		return data
	case "", bootstrap.FormatCloudConfig:
		text, err := document.JSON("", data)
		require.NoError(t, err)
		var config struct {
			WriteFiles []struct{ Content, Encoding string } `json:"write_files"` //nolint:tagliatelle // cloud-init's
		}
		require.NoError(t, json.Unmarshal(text, &config))
		if file := config.WriteFiles[0]; file.Encoding != "" {
			return decoded(file.Content, true)
		}
		return []byte(config.WriteFiles[0].Content)
	case bootstrap.FormatIgnition:
		var config struct {
			Storage struct {
				Files []struct {
					Contents struct{ Source, Compression string }
				}
			}
		}
		require.NoError(t, json.Unmarshal(data, &config))
		contents := config.Storage.Files[0].Contents
		_, text, _ := strings.Cut(contents.Source, ",")
		return decoded(text, contents.Compression != "")
	}
	return nil
}
