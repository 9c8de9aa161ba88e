package controller

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// TestTenant is the way by which a user who may create configs, and no Secrets, could leave the namespace, step by step.
func TestTenant(t *testing.T) {
	r := light(t)
	plain := func() map[string]any {
		return map[string]any{
			"documents": []any{map[string]any{"apiVersion": "machineadm.cluster.x-k8s.io/v1alpha1", "kind": "Sysctl", "name": "s", "spec": map[string]any{"profiles": []any{"kubernetes"}}}},
			"format":    map[string]any{"type": "plain"},
		}
	}
	ref := map[string]any{"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "TestMachine", "name": "x"}
	machine := func(name, config string) *unstructured.Unstructured {
		m := made(clusterv1.GroupVersion.String(), "Machine", name, map[string]any{"spec": map[string]any{
			"clusterName": "light", "version": "v1.36.3", "infrastructureRef": ref, "bootstrap": map[string]any{"configRef": configRef(config)},
		}})
		r.put(t, m)
		return m
	}
	other := machine("anybodys", "anybodys")
	forged := func(t *testing.T, name string, change func(*unstructured.Unstructured)) {
		o := owned(other, "light", plain())
		o.SetName(name)
		change(o)
		r.put(t, o)
		r.condition(t, bootstrap.ConditionReady, "Unknown", "no Machine or MachinePool refers to the config", name)
	}
	t.Run("forged owners", func(t *testing.T) {
		forged(t, "a-kubeconfig", func(*unstructured.Unstructured) {})
		forged(t, "anybodys", func(o *unstructured.Unstructured) {
			refs := o.GetOwnerReferences()
			refs[0].UID = types.UID("made-up")
			o.SetOwnerReferences(refs)
		})
	})
	t.Run("owner is no controller", func(t *testing.T) {
		m := machine("third", "third")
		o := owned(m, "light", plain())
		refs := o.GetOwnerReferences()
		refs[0].Controller = nil
		o.SetOwnerReferences(refs)
		r.put(t, o)
		r.condition(t, bootstrap.ConditionReady, "Unknown", "no Machine or MachinePool refers to the config", "third")
	})
	t.Run("a Machine that refers to a config named victim-kubeconfig", func(t *testing.T) {
		r.put(t, owned(machine("victim-kubeconfig", "victim-kubeconfig"), "light", plain()))
		require.Contains(t, string(r.awaitData(t, "victim-kubeconfig").Data["value"]), "Sysctl")
		err := r.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "victim-kubeconfig"}, &corev1.Secret{})
		require.True(t, apierrors.IsNotFound(err), "%v", err)
	})
	t.Run("a key that another has made is not taken", func(t *testing.T) {
		r.put(t, secret("early-machineadm", map[string]string{"value": strings.Repeat("k", 32)}))
		r.cluster(t, "early")
		r.machine(t, "early", "early-1", joining())
		r.condition(t, bootstrap.ConditionReady, "False", "Secret early-machineadm is not of type", "early-1")
		require.NoError(t, r.Delete(t.Context(), r.secret(t, "default", "early-machineadm")))
		r.awaitData(t, "early-1")
	})
	t.Run("a key that is cut is not taken", func(t *testing.T) {
		cut := secret("cut-machineadm", map[string]string{"value": strings.Repeat("k", 31)})
		cut.Object["type"] = "machineadm.cluster.x-k8s.io/cluster-key"
		r.put(t, cut)
		r.cluster(t, "cut")
		r.machine(t, "cut", "cut-1", joining())
		r.condition(t, bootstrap.ConditionReady, "False", "Secret cut-machineadm has no key value of 32 bytes: delete it", "cut-1")
		require.NoError(t, r.Delete(t.Context(), r.secret(t, "default", "cut-machineadm")))
		r.awaitData(t, "cut-1")
	})
	t.Run("another namespace", func(t *testing.T) {
		require.NoError(t, r.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}}))
		other := r.in("elsewhere")
		other.machine(t, "light", "far", plain())
		r.condition(t, bootstrap.ConditionReady, "Unknown", "Cluster light does not exist in namespace elsewhere", "far")
		r.put(t, secret("near", map[string]string{"proxy": "http://near.example.com"}))
		other.cluster(t, "far")
		other.machine(t, "far", "reaching", map[string]any{"documents": []any{map[string]any{
			"apiVersion": "machineadm.cluster.x-k8s.io/v1alpha1", "kind": "ContainerRuntime", "name": "c", "spec": map[string]any{"proxy": map[string]any{
				"httpSecret": map[string]any{"valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "near", "key": "proxy"}}},
			}},
		}}})
		r.condition(t, bootstrap.ConditionReady, "Unknown", "Secret near does not exist in namespace elsewhere", "reaching")
	})
	t.Run("kubeconfig with a tokenFile", func(t *testing.T) {
		var requests atomic.Int64
		server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
		t.Cleanup(server.Close)
		file := filepath.Join(t.TempDir(), "token")
		require.NoError(t, os.WriteFile(file, []byte("c4n4ry"), 0o600))
		r.cluster(t, "evil")
		ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		r.put(t, secret("evil-kubeconfig", map[string]string{"value": `{"apiVersion":"v1","kind":"Config","current-context":"x","contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],
			"clusters":[{"name":"c","cluster":{"server":"` + server.URL + `","certificate-authority-data":"` + encoded(ca) + `"}}],"users":[{"name":"u","user":{"tokenFile":"` + file + `"}}]}`}))
		r.machine(t, "evil", "evil-1", joining())
		r.condition(t, bootstrap.ConditionReady, "False", "Secret evil-kubeconfig: kubeconfig: only server, ", "evil-1")
		r.condition(t, bootstrap.ConditionReady, "False", "remove tokenFile", "evil-1")
		require.Zero(t, requests.Load())
		require.NoError(t, r.Patch(t.Context(), r.secret(t, "default", "evil-kubeconfig"), merge(`{"data":{"value":"`+encoded(r.secret(t, "default", "light-kubeconfig").Data["value"])+`"}}`)))
		r.awaitData(t, "evil-1")
	})
	t.Run("of a Secret that no config names, the name alone is in memory", func(t *testing.T) {
		name, value := "unnamed-"+strings.ToLower(rand.Text()), rand.Text()
		r.put(t, secret(name, map[string]string{"value": value}))
		require.Eventually(t, func() bool { return inMemory(t, r.manager.PID(), []byte(name)) }, limit, 100*time.Millisecond)
		for _, form := range forms([]byte(value)) {
			require.False(t, inMemory(t, r.manager.PID(), form), "%q", form)
		}
	})
}

// inMemory reports whether the memory that a process has written has a text.
func inMemory(t *testing.T, pid int, text []byte) bool {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	require.NoError(t, err)
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	require.NoError(t, err)
	defer func() { _ = memory.Close() }()
	for line := range strings.Lines(string(maps)) {
		var from, to uint64 // vsyscall is at the end of the address space
		var permissions string
		_, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &permissions)
		require.NoError(t, err)
		if !strings.HasPrefix(permissions, "rw") {
			continue
		}
		region := make([]byte, to-from)
		n, _ := memory.ReadAt(region, int64(from)) // what the process has given back since cannot be read
		if bytes.Contains(region[:n], text) {
			return true
		}
	}
	return false
}

func encoded(data []byte) string { return base64.StdEncoding.EncodeToString(data) }
