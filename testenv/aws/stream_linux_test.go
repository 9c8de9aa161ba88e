package aws

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/testenv/tools"
)

// TestStream applies what a chain of three documents stands for: an object of S3, whose keys are in the document, is encrypted by KMS and
// names a parameter. The role of the instance decrypts it and reads the parameter. Neither secrets nor values are in what machineadm
// prints or keeps.
func TestStream(t *testing.T) {
	s, own, u := store(t)
	r, node, encrypter, _ := serving(t)
	m := &Metadata{Region: region, Role: "machineadm-node", ID: encrypter.ID, Secret: encrypter.Secret, Token: encrypter.Token}
	serveMetadata(t, m, "[fd00:ec2::254]:80") // of an instance without IPv4
	dir := t.TempDir()
	plugins := filepath.Join(dir, "plugins")
	require.NoError(t, tools.Products(t.Context(), plugins, map[string]string{
		"machineadm-remote-configuration-provider-s3": s3Plugin, "machineadm-remote-configuration-provider-ssm": "plugins/remote-config/ssm",
		"machineadm-plugin-encryption-provider-awskms": "plugins/encrypted-config/awskms", "machineadm-sysctl-plugin-procfs": "plugins/sysctl/procfs",
	}))
	require.NoError(t, tools.Products(t.Context(), dir, map[string]string{"machineadm": "host/cmd/machineadm"}))
	run := func(arguments ...string) (stdout, stderr string) {
		c := exec.CommandContext(t.Context(), filepath.Join(dir, "machineadm"), append(arguments, "--plugin-dir", plugins, "--log-level", "debug")...)
		var out, problem bytes.Buffer
		c.Stdout, c.Stderr = &out, &problem
		require.NoError(t, c.Run(), "%v: %s%s", arguments, &out, &problem)
		return out.String(), problem.String()
	}
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	block := func(indent string, rig rig) string { // the fields that each document needs here
		return fmt.Sprintf("%sendpoint: %s\n%sca: |\n%s  %s\n", indent, rig.endpoint, indent, indent,
			strings.ReplaceAll(strings.TrimSpace(string(rig.ca.Certificate)), "\n", "\n"+indent+"  "))
	}
	header := func(kind, name, provider string) string {
		return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %s}\nspec:\n  provider: %s\n", v1alpha1.APIVersion, kind, name, provider)
	}
	inner := file("inner.yaml", header("RemoteConfig", "inner", "ssm")+"  uri: ssm:///sysctl\n  providerConfig:\n"+block("    ", r))
	encrypted, _ := run("encrypt", "--path", inner, "--name", "sealed", "--provider", "awskms", "--key", alias, "--provider-config", file("config.yaml", block("", r)))
	assert.Contains(t, encrypted, "@"+kmsKey)
	s.Put(t, "nodes/worker.yaml", []byte(encrypted))
	outer := file("outer.yaml", header("RemoteConfig", "outer", "s3")+"  uri: s3://"+s.Bucket+"/nodes/worker.yaml\n  providerConfig:\n    region: "+region+"\n"+
		"    accessKeyID: "+u.ID+"\n    secretAccessKey: {value: "+u.Secret+"}\n"+block("    ", own))

	m.ID, m.Secret, m.Token = node.ID, node.Secret, node.Token
	tree, said := run("resolve", "--path", outer)
	assert.Regexp(t, `(?s)RemoteConfig/outer.*EncryptedConfig/sealed.*RemoteConfig/inner.*Sysctl/network`, tree)
	root := filepath.Join(dir, "root")
	require.NoError(t, os.Mkdir(root, 0o755)) //nolint:gosec // as an image is
	out, more := run("apply", "--path", outer, "--root", root, "--state-dir", filepath.Join(dir, "state"), "--run-dir", filepath.Join(dir, "run"))
	kept := ""
	require.NoError(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || !strings.HasPrefix(path, filepath.Join(dir, "r")) && !strings.HasPrefix(path, filepath.Join(dir, "state")) {
			return err
		}
		data, err := os.ReadFile(path)
		kept += path + "\n" + string(data)
		return err
	}))
	assert.Contains(t, kept, "net.core.somaxconn")
	for _, text := range []string{tree, said, out, more, kept} {
		for _, secret := range []string{"c4n4ry", u.Secret, encrypter.Secret} {
			assert.NotContains(t, text, secret)
		}
	}
}
