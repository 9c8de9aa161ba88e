package outcome

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk/machine"
)

var update = flag.Bool("update", false, "write the golden files")

var errExit = &machine.CommandError{Name: "kubeadm", ExitCode: 1}

// read gives a text to an Output, and returns what it shows.
func read(o *Output, text string) []string {
	var shown []string
	for line := range strings.Lines(text) {
		if progress := o.Line(strings.TrimSuffix(line, "\n")); progress != "" {
			shown = append(shown, progress)
		}
	}
	return shown
}

// describe is an error in the form of the golden files.
func describe(err error) string {
	e := pluginv1.AsError(err)
	var b strings.Builder
	fmt.Fprintf(&b, "%v\nhint: %s\n", e.Code.String()+": "+e.Message, e.Hint)
	for _, v := range e.Violations {
		fmt.Fprintf(&b, "- %s: %s (%s)\n", v.Field, v.Message, v.Hint)
	}
	if cause, _, ok := strings.Cut(e.Detail, "\n\n"); ok && strings.HasPrefix(cause, pluginv1.CausePrefix) {
		b.WriteString(cause + "\n")
	}
	for _, key := range slices.Sorted(maps.Keys(e.Facts)) {
		fmt.Fprintf(&b, "%s=%s\n", key, e.Facts[key])
	}
	return b.String()
}

// TestRealOutput compares what is shown and said of the output of real programs, which testdata/README.md describes.
func TestRealOutput(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/1.*/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(file, "testdata/"), ".txt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			o := New(NewRedactor())
			got := strings.Join(read(o, string(text)), "\n")
			command, what, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".txt"), "-")
			if what != "success" {
				failure := o.Failure(Run{Command: command, Endpoint: "10.0.0.9:6443", Err: errExit, Duration: 1500 * time.Millisecond, Safe: func() bool { return true }})
				assert.NotEqual(t, pluginv1.CodeRetry, pluginv1.AsError(failure).Code)
				got += "\n\n" + describe(failure)
			}
			golden := strings.TrimSuffix(file, ".txt") + ".golden"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), got)
		})
	}
}

// TestMessages has messages of kubeadm's sources that are hard to cause: cmd/phases, discovery, phases/copycerts, util.
func TestMessages(t *testing.T) {
	t.Parallel()
	const join = "error execution phase preflight: couldn't validate the identity of the API Server: "
	for text, c := range map[string]struct {
		code       pluginv1.Code
		field, say string
	}{
		join + `token id "abcdef" is invalid for this cluster or it has expired. Use "kubeadm token create" on the control-plane node to create a new valid token`: {
			pluginv1.CodePrecondition, "spec.discovery.token", "does not know the bootstrap token",
		},
		join + `Get "https://api:6443/api": tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026`: {
			pluginv1.CodePrecondition, "", "not valid at the time of this machine",
		},
		join + `Get "https://api:6443/api": tls: failed to verify certificate: x509: certificate is valid for 10.96.0.1, not 10.0.0.9`: {
			pluginv1.CodePrecondition, "spec.cluster.endpoint", "not for this address",
		},
		join + `Get "https://api:6443/api": tls: failed to verify certificate: x509: certificate signed by unknown authority`: {
			pluginv1.CodePrecondition, "spec.discovery", "another certificate authority",
		},
		join + `failed to request the cluster-info ConfigMap: configmaps "cluster-info" not found`: {
			pluginv1.CodePrecondition, "spec.discovery", "publishes no cluster",
		},
		`error execution phase kubelet-start: a Node with name "n" and status "Ready" already exists in the cluster. You must delete the existing Node or change the name of this new joining Node`: {
			pluginv1.CodePrecondition, "spec.node.name", "a ready node of this name",
		},
		`error execution phase control-plane-prepare/download-certs: error downloading certs: error downloading the secret: Secret "kubeadm-certs" was not found in the "kube-system" Namespace. This Secret might have expired.`: {
			pluginv1.CodePrecondition, "spec.certificateKey", "phase control-plane-prepare/download-certs: the cluster does not hold",
		},
		`error execution phase control-plane-prepare/download-certs: error downloading certs: error decoding secret data with provided key: cipher: message authentication failed`: {
			pluginv1.CodePrecondition, "spec.certificateKey", "does not decrypt",
		},
		"error execution phase preflight: \nOne or more conditions for hosting a new control plane instance is not satisfied.\n\n" +
			"unable to add a new control plane instance to a cluster that doesn't have a stable controlPlaneEndpoint address": {
			pluginv1.CodePrecondition, "spec.cluster.endpoint", "without an endpoint",
		},
		"error execution phase preflight: \nOne or more conditions for hosting a new control plane instance is not satisfied.\n\n" +
			"[failure loading certificate for CA: couldn't load the certificate file /etc/kubernetes/pki/ca.crt": {
			pluginv1.CodePrecondition, "spec.certificateKey", "certificate authorities of the cluster are missing",
		},
		"error: error execution phase kubelet-wait-bootstrap: failed while waiting for TLS bootstrap: context deadline exceeded": {
			pluginv1.CodePrecondition, "", "no certificate for the kubelet in time",
		},
		"error: error execution phase kubelet-wait-bootstrap: failed while waiting for the kubelet to start: The HTTP call equal to 'curl -sSL http://127.0.0.1:10248/healthz' returned error: Get \"http://127.0.0.1:10248/healthz\": dial tcp 127.0.0.1:10248: connect: connection refused": {
			pluginv1.CodePrecondition, "", "the kubelet does not become healthy",
		},
		"error: error execution phase wait-control-plane: failed while waiting for the control plane to start: kube-apiserver check failed at https://10.0.0.1:6443/livez: client rate limiter Wait returned an error: context deadline exceeded": {
			pluginv1.CodePrecondition, "", "the control plane does not become healthy",
		},
		"error execution phase check-etcd: etcd cluster is not healthy: failed to dial endpoint https://10.0.0.1:2379 with maintenance client: context deadline exceeded": {
			pluginv1.CodePrecondition, "", "etcd of the cluster is not healthy",
		},
		"this version of kubeadm only supports deploying clusters with the control plane version >= 1.36.0. Current version: v1.30.0": {
			pluginv1.CodePrecondition, "spec.kubernetesVersion", "does not support this version",
		},
		"something new": {pluginv1.CodePrecondition, "", "kubeadm join failed: exit code 1"},
	} {
		o := New(NewRedactor())
		read(o, "[preflight] Running pre-flight checks\n"+text)
		o.prefix = "" // the error has the phase
		e := pluginv1.AsError(o.Failure(Run{Command: "join", Err: errExit, Safe: func() bool { return true }}))
		assert.Equal(t, c.code, e.Code, text)
		assert.Contains(t, e.Message, c.say, text)
		assert.NotEmpty(t, e.Hint)
		if c.field != "" && assert.Len(t, e.Violations, 1, text) {
			assert.Equal(t, c.field, e.Violations[0].Field)
		}
	}
}

// TestUnanswered: a request that the API server or etcd did not answer is repeated with kubeadm, if that is safe, and if no container
// explains it. The ends of the messages come from net/http, client-go and etcd; what comes before them is made up in the form of kubeadm.
func TestUnanswered(t *testing.T) {
	t.Parallel()
	const get = `Get "https://api:6443/api/v1/namespaces/kube-system/configmaps/kubeadm-config?timeout=10s": `
	for phase, text := range map[string]string{
		"preflight":               "unable to fetch the kubeadm-config ConfigMap: failed to get config map: " + get + "net/http: TLS handshake timeout",
		"kubelet-start":           `cannot get Node "n": ` + get + "context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
		"upload-config/kubeadm":   "error uploading the kubeadm ClusterConfiguration: unable to create ConfigMap: client rate limiter Wait returned an error: context deadline exceeded",
		"upload-config/kubelet":   "error creating kubelet configuration ConfigMap: unable to create ConfigMap: etcdserver: request timed out",
		"mark-control-plane":      "error patching Node: " + get + "dial tcp 10.0.0.1:6443: i/o timeout",
		"bootstrap-token":         "error updating or creating token: the server was unable to return a response in the time allotted, but may still be processing the request",
		"addon/coredns":           "unable to create Deployment: " + get + "read: connection reset by peer",
		"addon/kube-proxy":        "unable to create DaemonSet: " + get + "EOF",
		"kubelet-finalize":        get + "http2: client connection lost",
		"control-plane-join/mark": get + "dial tcp 10.0.0.1:6443: connect: connection refused",
	} {
		for _, safe := range []bool{true, false} {
			for pods, want := range map[string]pluginv1.Code{"": pluginv1.CodeRetry, ": etcd ends with exit code 1": pluginv1.CodePrecondition} {
				if !safe {
					want = pluginv1.CodePrecondition
				}
				o := New(NewRedactor())
				read(o, "[certs] Using certificateDir folder\nerror: error execution phase "+phase+": "+text)
				e := pluginv1.AsError(o.Failure(Run{Command: "init", Err: errExit, Pods: pods, Detail: "more", Safe: func() bool { return safe }}))
				require.Equal(t, want, e.Code, text)
				require.Contains(t, e.Message, "kubeadm init failed in the phase "+phase+": ")
				require.Contains(t, e.Detail, "more")
				require.Equal(t, phase, e.Facts["phase"])
			}
		}
	}
}

// TestEnds: what ended kubeadm counts for more than its last words, and containers say what they lack.
func TestEnds(t *testing.T) {
	t.Parallel()
	const text = "[preflight] Running pre-flight checks\n[certs] Using certificateDir folder\n"
	for want, r := range map[string]Run{
		"kubeadm init failed in the phase certs: the time limit of the document has passed": {Err: &machine.CommandError{Signal: "KILL", ExitCode: -1, Err: context.DeadlineExceeded}},
		"kubeadm init failed in the phase certs: it was ended by the signal KILL":           {Err: &machine.CommandError{Signal: "KILL", ExitCode: -1}},
		"kubeadm init failed in the phase certs: kubeadm: it does not start: bad":           {Err: &machine.CommandError{Name: "kubeadm", ExitCode: -1, Err: errors.New("it does not start: bad")}},
		"kubeadm init failed in the phase certs: etcd ends with exit code 1":                {Err: errExit, Pods: ": etcd ends with exit code 1"},
		"kubeadm init failed in the phase certs: exit code 1":                               {Err: errExit},
	} {
		o := New(NewRedactor())
		read(o, text)
		r.Command, r.Detail = "init", "more"
		e := pluginv1.AsError(o.Failure(r))
		require.Equal(t, want, e.Message)
		require.Equal(t, pluginv1.CodePrecondition, e.Code)
		require.Equal(t, strings.TrimSpace(text)+"\n\nmore", e.Detail)
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	shown := read(New(NewRedactor()), strings.Join([]string{
		"[init] Using Kubernetes version: v1.37.1", "[preflight] Running pre-flight checks",
		"\t[WARNING Hostname]: hostname \"n\" could not be reached", "W1122 20:44:59.987930      41 common.go:198] a warning",
		"I1122 20:44:59.987930      41 version.go:1] an information", "[preflight] Pulling images required for setting up a Kubernetes cluster",
		"[preflight] You can also perform this action beforehand", "[new-phase] what is that", `\x1b[0;37mno\x1b[0m prefix`, "",
		`\x1b[0;37mCONFIG_NAMESPACES\x1b[0m: \x1b[0;32menabled\x1b[0m`, `\x1b[0;37mCGROUPS_PIDS\x1b[0m: \x1b[0;31mmissing\x1b[0m`, "[certs] Generating",
		"[certs] Generating another", "[bootstrap-token] Using token: abcdef.0123456789abcdef", "Your Kubernetes control-plane has initialized successfully!",
		"kubeadm join 10.0.0.1:6443 --token abcdef.0123456789abcdef",
	}, "\n"))
	require.Equal(t, []string{
		"checking the machine", `kubeadm warns: hostname "n" could not be reached`, "kubeadm warns: a warning",
		"kubeadm: I1122 20:44:59.987930      41 version.go:1] an information", "pulling the images of the control plane",
		"kubeadm: [new-phase] what is that", "kubeadm: no prefix", "kubeadm: CGROUPS_PIDS: missing", "creating certificates", "creating the bootstrap token",
	}, shown)
}

func TestRedaction(t *testing.T) {
	t.Parallel()
	key := strings.Repeat("0123456789abcdef", 4)
	line := strings.Repeat("c4n4ry/+", 8)
	r := NewRedactor([]byte("abcdef.c4n4rysecret4567"), []byte("-----BEGIN PRIVATE KEY-----\n"+line+"\nc4n4rylastline==\n-----END"), nil)
	for _, text := range []string{
		"token abcdef.c4n4rysecret4567", "secret c4n4rysecret4567 alone", "key:\n" + strings.ReplaceAll(key, "abcdef", "c4f4d4"), line, " c4n4rylastline==",
		"eyJhbGciOiJSUzI1NiJ9.c4n4ry.c4n4ry", "other 0a1b2c.c4n4rysecret4568",
	} {
		got := r.Text(text)
		assert.NotContains(t, got, "c4n4ry")
		assert.NotContains(t, got, "c4f4d4")
		assert.Contains(t, got, "[redacted]")
	}
	require.Equal(t, "sha256:"+key, r.Text("sha256:"+key))
	o := New(r)
	shown := read(o, "abcdef.c4n4rysecret4567\n")
	require.NotContains(t, strings.Join(shown, "")+o.Text(), "c4n4ry")
}

func TestTheTailIsBounded(t *testing.T) {
	t.Parallel()
	o := New(NewRedactor())
	for i := range 10000 {
		o.Line(fmt.Sprintf("[certs] %d", i))
	}
	require.LessOrEqual(t, len(o.Text()), maxTail)
	require.Contains(t, o.Text(), "[certs] 9999")
}

func FuzzOutput(f *testing.F) {
	files, err := filepath.Glob("testdata/1.*/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		const token = "abcdef.c4n4ryc4n4ry1234"
		o := New(NewRedactor([]byte(token)))
		shown := strings.Join(read(o, text+"\n"+token), "\n")
		e := pluginv1.AsError(o.Failure(Run{Command: "join", Err: errExit}))
		if e.Code == pluginv1.CodeRetry || e.Message == "" || strings.Contains(shown+e.Error()+e.Detail, token) {
			t.Errorf("%v", e)
		}
	})
}
