package controller

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/testenv/authority"
	"github.com/machineadm/machineadm/testenv/management"
)

// soon is far below the interval at which the manager reconciles everything again: what happens so soon is due to a watch, or to a
// token of which half of the life is over.
const soon = 3 * time.Minute

// workloadUser is the user of the kubeconfigs of clusters that a test makes itself.
const workloadUser = "workload"

// light runs a management cluster with the kinds of Cluster API and none of its managers: the test does what they would do.
// The cluster that machines join is the management cluster itself, so that there is one to connect to. Its API server wants the rights
// to owners of objects that OpenShift wants.
func light(t *testing.T, arguments ...string) *rig {
	t.Helper()
	r := begin(t, management.Start(t, "--enable-admission-plugins=OwnerReferencesPermissionEnforcement"), definitions, openshift)
	r.manager.Stop(t)
	r.run(t, arguments...)
	r.ca, r.workload = authority.New(t), r.User(t, workloadUser, "system:masters")
	r.published(t)
	r.cluster(t, "light")
	return r
}

// openshift installs the rights that the admission plugin asks for.
func openshift(c *management.Cluster, t testing.TB) *management.Process {
	t.Helper()
	role, err := os.ReadFile("../../examples/cluster-api/openshift-role.yaml")
	require.NoError(t, err)
	c.Install(t, role)
	return nil
}

// definitions installs the kinds of Cluster API.
func definitions(c *management.Cluster, t testing.TB) *management.Process {
	t.Helper()
	module, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-api").Output()
	if err != nil {
		t.Fatal(err)
	}
	var manifests []byte
	for _, directory := range []string{"core", "controlplane/kubeadm"} {
		objects, err := management.Objects(management.Render(t, strings.TrimSpace(string(module))+"/"+directory+"/config/crd"))
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			unstructured.RemoveNestedField(o.Object, "spec", "conversion") // no manager serves it, and the storage version is the one in use
			text, err := o.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			manifests = append(append(manifests, text...), "\n---\n"...)
		}
	}
	c.Install(t, manifests)
	return nil
}

// cluster makes a cluster that machines can join.
func (r *rig) cluster(t *testing.T, name string) {
	t.Helper()
	kubeconfig, err := os.ReadFile(cmp.Or(r.workload, r.Kubeconfig))
	require.NoError(t, err)
	r.put(t,
		secret(name+"-kubeconfig", map[string]string{"value": string(kubeconfig)}),
		secret(name+"-ca", map[string]string{"tls.crt": string(r.ca.Certificate)}),
		made(clusterv1.GroupVersion.String(), "Cluster", name, map[string]any{
			"spec": map[string]any{"controlPlaneEndpoint": map[string]any{"host": "light.example.com", "port": int64(6443)}},
			"status": map[string]any{
				"initialization": map[string]any{"infrastructureProvisioned": true, "controlPlaneInitialized": true},
				"conditions": []any{map[string]any{
					"type": clusterv1.ClusterControlPlaneInitializedCondition, "status": "True", "reason": "Test", "message": "",
					"lastTransitionTime": "2026-01-01T00:00:00Z",
				}},
			},
		}))
}

// machine makes a Machine, and a config that belongs to it.
func (r *rig) machine(t *testing.T, cluster, name string, spec map[string]any) {
	t.Helper()
	r.labeled(t, cluster, name, nil, spec)
}

func (r *rig) labeled(t *testing.T, cluster, name string, labels map[string]string, spec map[string]any) {
	t.Helper()
	ref := map[string]any{"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "TestMachine", "name": name}
	machine := made(clusterv1.GroupVersion.String(), "Machine", name, map[string]any{"spec": map[string]any{
		"clusterName": cluster, "version": "v1.36.3", "infrastructureRef": ref,
		"bootstrap": map[string]any{"configRef": configRef(name)},
	}})
	machine.SetLabels(labels)
	r.put(t, machine)
	r.put(t, owned(machine, cluster, spec))
}

func configRef(name string) map[string]any {
	return map[string]any{"apiGroup": bootstrap.Group, "kind": bootstrap.KindMachineBootstrapConfig, "name": name}
}

// owned is a config of a Machine or MachinePool, as its manager makes it.
func owned(by *unstructured.Unstructured, cluster string, spec map[string]any) *unstructured.Unstructured {
	o := made(bootstrap.GroupVersion().String(), bootstrap.KindMachineBootstrapConfig, by.GetName(), map[string]any{"spec": spec})
	o.SetLabels(map[string]string{clusterv1.ClusterNameLabel: cluster})
	o.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: by.GetAPIVersion(), Kind: by.GetKind(), Name: by.GetName(), UID: by.GetUID(), Controller: ptr.To(true),
	}})
	return o
}

// made is an object with the content.
func made(apiVersion, kind, name string, content map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: content}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetName(name)
	return o
}

func secret(name string, values map[string]string) *unstructured.Unstructured {
	data := map[string]any{}
	for key, value := range values {
		data[key] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	return made("v1", "Secret", name, map[string]any{"data": data})
}

// in is the rig with another namespace of what the test makes and awaits.
func (r *rig) in(namespace string) *rig {
	other := *r
	other.namespace = namespace
	return &other
}

// put applies objects, with the status that they have. Those of no namespace are in the rig's, unless their kind has none.
func (r *rig) put(t *testing.T, objects ...*unstructured.Unstructured) {
	t.Helper()
	for _, o := range objects {
		if o.GetNamespace() == "" && !strings.HasPrefix(o.GetKind(), "ClusterRole") && o.GetKind() != "CustomResourceDefinition" {
			o.SetNamespace(r.namespace)
		}
		status, hasStatus := o.Object["status"]
		delete(o.Object, "status")
		applied := client.ApplyConfigurationFromUnstructured(o)
		require.NoError(t, r.Apply(t.Context(), applied, client.FieldOwner("testenv"), client.ForceOwnership), "%s %s", o.GetKind(), o.GetName())
		if hasStatus {
			patch, err := json.Marshal(map[string]any{"status": status})
			require.NoError(t, err)
			require.NoError(t, r.Status().Patch(t.Context(), o.DeepCopy(), merge(string(patch))), "%s %s", o.GetKind(), o.GetName())
		}
	}
}

// awaitData waits for the data of a config.
func (r *rig) awaitData(t *testing.T, name string) *corev1.Secret {
	t.Helper()
	began := time.Now()
	var secrets corev1.SecretList
	var found *corev1.Secret
	management.Await(t, r, soon, &secrets, func() error {
		if len(secrets.Items) == 1 && metav1.GetControllerOf(&secrets.Items[0]) != nil {
			found = &secrets.Items[0]
			return nil
		}
		var c bootstrap.MachineBootstrapConfig
		if err := r.Get(t.Context(), client.ObjectKey{Namespace: r.namespace, Name: name}, &c); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		return fmt.Errorf("no data: %w", &unfinished{0, 1, []bootstrap.MachineBootstrapConfig{c}})
	}, client.InNamespace(r.namespace), client.MatchingFields{"metadata.name": name + dataSuffix})
	t.Logf("the data of %s is there after %s", name, time.Since(began).Round(time.Millisecond))
	return found
}
