package sources

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/machineadm/machineadm/contract/conformance"
	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/tools"
)

const (
	libexec  = "usr/libexec/machineadm/"
	stateDir = "/var/lib/machineadm"
	// rebooting bounds a run with a reboot, on a busy machine.
	rebooting = 4 * time.Minute
	// Stream is one that a Node can validate.
	Stream = "apiVersion: example.com/v1\nkind: Noop\nmetadata: {name: a}\nspec: {provider: test, touch: [/var/a]}\n"
)

// Node is a booted node with the host and plugins.
type Node struct {
	*nodes.Node
	// Serve lets the node reach the servers until it boots again.
	Serve  func()
	t      *testing.T
	served bool
	said   strings.Builder // by machineadm
}

// BootNode boots a node with the host and these plugins, such as remote-config/http.
func BootNode(t *testing.T, plugins ...string) *Node {
	t.Helper()
	require.Tier(t, require.System)
	programs := map[string]string{
		"usr/bin/machineadm": "host/cmd/machineadm", libexec + "machineadm-noop-plugin-test": "testenv/noop",
	}
	for _, plugin := range plugins {
		programs[libexec+binary(plugin)] = "plugins/" + plugin
	}
	dir := t.TempDir()
	check(t, tools.Products(t.Context(), dir, programs))
	return &Node{t: t, Node: nodes.Boot(t, nodes.Options{
		Suite: nodes.Trixie, Prepare: func(root string) error { return os.CopyFS(root, os.DirFS(dir)) },
	})}
}

// binary is the name of a plugin, such as remote-config/http.
func binary(plugin string) string {
	of, provider := path.Split(plugin)
	kind := v1alpha1.KindRemoteConfig
	if of == "encrypted-config/" {
		kind = v1alpha1.KindEncryptedConfig
	}
	return naming.Binary(kind, provider)
}

// Conforms runs the conformance checks of a plugin with this document, whose object has this digest unless it is empty.
func Conforms(t *testing.T, plugin string, document []byte, digest string) {
	t.Helper()
	require.Tier(t, require.System)
	dir, name := t.TempDir(), binary(plugin)
	at := filepath.Join(dir, "cases", path.Base(plugin))
	expected := []byte("{}\n")
	if digest != "" {
		expected = object(t, map[string]string{"sha256": digest})
	}
	check(t, errors.Join(
		tools.Products(t.Context(), dir, map[string]string{name: "plugins/" + plugin}), os.MkdirAll(at, 0o700),
		os.WriteFile(filepath.Join(at, "config.yaml"), document, 0o600), os.WriteFile(filepath.Join(at, "expect.yaml"), expected, 0o600),
	))
	conformance.Run(t, filepath.Join(dir, name), filepath.Dir(at))
}

// Write writes a file that root alone reads, and returns its path.
func (n *Node) Write(name string, data []byte) string {
	n.t.Helper()
	at := "/root/" + name
	got, err := n.ExecInput(n.t.Context(), bytes.NewReader(data), "sh", "-c", `umask 077 && cat >"$0"`, at)
	check(n.t, err)
	if got.ExitCode != 0 {
		n.t.Fatal(got.Stderr)
	}
	return at
}

// Run runs machineadm, which has to succeed, and returns its output.
func (n *Node) Run(arguments ...string) string {
	n.t.Helper()
	got := n.MustExec(n.t, append([]string{"machineadm", "--log-level", "debug"}, arguments...)...)
	n.said.WriteString(got.Stdout + got.Stderr)
	return got.Stdout
}

// Remote returns a RemoteConfig.
func Remote(t testing.TB, name, provider, uri string, config any) []byte {
	t.Helper()
	return object(t, map[string]any{
		"apiVersion": v1alpha1.APIVersion, "kind": v1alpha1.KindRemoteConfig, "metadata": map[string]any{"name": name},
		"spec": map[string]any{"provider": provider, "uri": uri, "providerConfig": config},
	})
}

// Encrypt returns an EncryptedConfig with config, made with own.
func (n *Node) Encrypt(name, provider, key string, config, own any, plain []byte) []byte {
	n.t.Helper()
	got := n.MustExec(n.t, "machineadm", "encrypt", "--path", n.Write("plain", plain), "--name", name, "--provider", provider, "--key", key,
		"--provider-config", n.Write("config", object(n.t, config)), "--encrypter-config", n.Write("own", object(n.t, own)), "--log-level", "debug")
	n.said.WriteString(got.Stderr)
	return []byte(got.Stdout)
}

// Converges applies what build makes of a stream of two documents: at once, and with a reboot between the two, after which no server
// answers. tree is what the stream resolves to, such as "kube > vault > gcs".
func (n *Node) Converges(t *testing.T, tree string, build func(stream []byte) []byte) {
	t.Helper()
	for _, reboot := range []string{"", ", reboot: BeforeNext"} {
		label := fmt.Sprintf("%s-%t", strings.ReplaceAll(tree, " > ", "-"), reboot != "")
		first, second := "/var/"+label+"-first", "/var/"+label+"-second"
		n.reach()
		at := n.Write(label, build([]byte(noop("first", first, reboot)+"---\n"+noop("second", second, ""))))
		resolved := n.Run("resolve", "--path", at)
		for _, provider := range strings.Split(tree, " > ") {
			_, rest, found := strings.Cut(resolved, " by "+provider+": resolved")
			if !found {
				t.Fatalf("no %s after those before it in:\n%s", provider, resolved)
			}
			resolved = rest
		}
		if reboot == "" {
			n.Run("apply", "--path", at)
		} else {
			n.MustExec(t, "systemd-run", "--no-block", "--unit="+label, "machineadm", "--bootstrap", "--log-level", "debug", "--path", at)
			n.awaitReboot(t, second)
			n.served = false
			n.reach()
		}
		n.MustExec(t, "test", "-e", first, "-a", "-e", second, "-a", "-s", "/run/cluster-api/bootstrap-success.complete")
		// Its timer may send the report as well.
		n.MustExec(t, "timeout", "600", "sh", "-c", "until machineadm report send --now && ! test -e "+stateDir+"/outbox.json; do sleep 0.2; done")
		n.MustExec(t, "test", "!", "-e", stateDir+"/resolved", "-a", "!", "-e", stateDir+"/resume.json")
	}
}

func (n *Node) reach() {
	if !n.served {
		n.Serve()
		n.served = true
	}
}

// awaitReboot waits until the run that reboots the node has ended. A command within the node
// would hold up its shutdown, so there are few.
func (n *Node) awaitReboot(t *testing.T, last string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), rebooting)
	defer cancel()
	ended := "test -e " + last + ` && test "$(systemctl show -P ActiveState machineadm-resume.service)" != activating`
	ticks := time.NewTicker(500 * time.Millisecond)
	defer ticks.Stop()
	for {
		err := n.Settle(ctx)
		if err == nil {
			got, failed := n.Exec(ctx, "sh", "-c", ended)
			if failed == nil && got.ExitCode == 0 {
				return
			}
			err = failed
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the run does not end: %v\n%s", err, n.MustExec(t, "machineadm", "status").Stdout)
		case <-ticks.C:
		}
	}
}

// Kept fails the test if a secret is in what machineadm has printed, in its files or in the journal.
func (n *Node) Kept(t *testing.T, secrets ...string) {
	t.Helper()
	journal := n.MustExec(t, "journalctl", "--no-pager").Stdout
	for i, secret := range secrets {
		if strings.Contains(n.said.String(), secret) || strings.Contains(journal, secret) {
			t.Errorf("secret %d was printed", i)
		}
		got, err := n.Exec(t.Context(), "grep", "-rlIF", "--", secret, stateDir, "/run/machineadm", "/var/log", "/tmp", "/etc")
		check(t, err)
		if got.ExitCode != 1 {
			t.Errorf("secret %d is left in %s", i, got.Stdout)
		}
	}
}

func noop(name, touch, more string) string {
	return fmt.Sprintf("apiVersion: example.com/v1\nkind: Noop\nmetadata: {name: %s}\nspec: {provider: test, touch: [%s]%s}\n", name, touch, more)
}

func object(t testing.TB, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	check(t, err)
	return text
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
