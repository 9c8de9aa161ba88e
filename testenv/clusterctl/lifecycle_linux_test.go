package clusterctl

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machineadm/machineadm/testenv/management"
	"github.com/machineadm/machineadm/testenv/tools"
)

// TestLifecycle follows one management cluster from init to delete. The steps share it, because machines take their time.
//
//machineadm:core
func TestLifecycle(t *testing.T) {
	one := start(t, first)
	t.Run("components have no variable without a value", func(t *testing.T) { variables(t, one) })
	t.Run("init installs the provider", func(t *testing.T) { installed(t, one, first) })
	one.KubeadmBootstrap(t) // for the control plane of the ClusterClass
	one.KubeadmControlPlane(t)
	one.infrastructure = one.InMemory(t)
	one.generate(t)
	management.Publish(t, one, "first")
	other := start(t, second)
	t.Run("machines of the templates run", func(t *testing.T) {
		one.running(t, "default", 4)
		one.running(t, "classy", 2)
	})
	t.Run("a Secret that a move leaves behind is a warning", func(t *testing.T) { warned(t, one) })
	t.Run("all objects belong to the Cluster", func(t *testing.T) { owned(t, one) })
	t.Run("an upgrade changes no object", func(t *testing.T) { upgraded(t, one) })
	t.Run("a move there and back loses nothing", func(t *testing.T) { movedThereAndBack(t, one, other) })
	t.Run("delete leaves the workloads", func(t *testing.T) { removed(t, one) })
}

// generate makes a cluster of each template: a control plane and two workers in default, with what is in testdata, and a
// topology of a control plane and a worker in classy.
func (s *side) generate(t *testing.T) {
	t.Helper()
	root, err := tools.Root(".")
	require.NoError(t, err)
	require.NoError(t, s.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "classy"}}))
	s.Install(t, []byte(s.ctl.Run(t, s.Kubeconfig, "generate", "cluster", "first", "--target-namespace=default",
		"--from="+filepath.Join(root, "host/controller/release/cluster-template.yaml"), "--kubernetes-version=v1.36.3",
		"--worker-machine-count=2")))
	more, err := os.ReadFile("testdata/more.yaml")
	require.NoError(t, err)
	s.Install(t, more)
	s.Install(t, []byte(s.ctl.Run(t, s.Kubeconfig, "generate", "cluster", "classy", "--target-namespace=classy",
		"--flavor=development", "--kubernetes-version=v1.36.3", "--control-plane-machine-count=1", "--worker-machine-count=1")))
}

// installed: clusterctl has the provider in its inventory, and its Deployment.
func installed(t *testing.T, s *side, version string) {
	t.Helper()
	var p clusterctlv1.Provider
	k := s.Client(t, clusterctlv1.AddToScheme)
	require.NoError(t, k.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: provider}, &p))
	require.Equal(t, version, p.Version)
	require.Equal(t, "BootstrapProvider", p.Type)
	var policies admissionv1.ValidatingAdmissionPolicyList
	var bindings admissionv1.ValidatingAdmissionPolicyBindingList
	require.NoError(t, s.List(t.Context(), &policies, client.MatchingLabels{"cluster.x-k8s.io/provider": provider}))
	require.NoError(t, s.List(t.Context(), &bindings, client.MatchingLabels{"cluster.x-k8s.io/provider": provider}))
	require.Len(t, policies.Items, 4)
	require.Len(t, bindings.Items, 4)
	for i := range policies.Items {
		require.Equal(t, policies.Items[i].Name, bindings.Items[i].Spec.PolicyName)
		require.Empty(t, policies.Items[i].Namespace)
		if checked := policies.Items[i].Status.TypeChecking; checked != nil {
			require.Empty(t, checked.ExpressionWarnings, policies.Items[i].Name)
		}
	}
	var d appsv1.Deployment
	require.NoError(t, s.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "machineadm-controller-manager"}, &d))
	c := d.Spec.Template.Spec.Containers[0]
	require.Equal(t, image+":"+version, c.Image)
	require.Contains(t, c.Args, "--bootstrap-token-ttl=15m")
}

func warned(t *testing.T, s *side) {
	t.Helper()
	var events eventsv1.EventList
	management.Await(t, s.Client(t, eventsv1.AddToScheme), limit, &events, func() error {
		var found []string
		for i := range events.Items {
			if e := &events.Items[i]; e.Reason == "SecretNotMoved" {
				found = append(found, e.Type+" "+e.Regarding.Name+": "+e.Note)
			}
		}
		if len(found) == 0 {
			return errors.New("no event is there")
		}
		require.Len(t, found, 1)
		require.True(t, strings.HasPrefix(found[0], "Warning slow: clusterctl move does not take Secret left along"), found[0])
		return nil
	}, client.InNamespace("default"))
}

func owned(t *testing.T, s *side) {
	t.Helper()
	objects := s.all(t)
	for _, want := range []string{
		"Secret/first-machineadm", "Secret/first-ca", "Secret/proxied-machineadm-data", "Secret/first-control-plane-0-machineadm-data", "ContainerRuntime/proxied",
		"KubernetesNodeTemplate/first", "SysctlTemplate/first", "MachineBootstrapConfigTemplate/first-worker", "MachineBootstrapConfig/proxied",
	} {
		require.Contains(t, objects, want)
	}
	others := []string{"Secret/left", "Secret/labelled", "MachineBootstrapStorage/later", "Sysctl/later", "SysctlTemplate/later", "MachineBootstrapConfigTemplate/later"}
	for name, o := range objects {
		require.Equal(t, !slices.Contains(others, name), s.reaches(t, o), "%s: %v", name, o.GetOwnerReferences())
	}
}

// upgraded: the second release replaces the first, and its manager finds everything as it is to be.
func upgraded(t *testing.T, s *side) {
	t.Helper()
	s.ctl.Add(t, release(t, second))
	plan := s.ctl.Run(t, s.Kubeconfig, "upgrade", "plan")
	require.Regexp(t, provider+` +`+namespace+` +BootstrapProvider +`+first+` +`+second, plan)
	before, mark := s.all(t), len(s.Audit(t))
	s.manager.Stop(t)
	s.ctl.Run(t, s.Kubeconfig, "upgrade", "apply", "--bootstrap=machineadm:"+second)
	installed(t, s, second)
	s.awaitRules(t)
	s.manager = s.Machineadm(s.test)
	s.settled(t)
	require.Equal(t, before, s.all(t), "resource versions too")
	require.Empty(t, s.writes(t, mark))
}

// removed: what clusterctl has installed goes, without the kinds and the namespace.
func removed(t *testing.T, s *side) {
	t.Helper()
	before := s.all(t)
	s.manager.Stop(t)
	s.ctl.Run(t, s.Kubeconfig, "delete", "--bootstrap=machineadm")
	label := client.MatchingLabels{"cluster.x-k8s.io/provider": provider}
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &corev1.ServiceAccountList{}, &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleList{},
		&admissionv1.ValidatingAdmissionPolicyList{}, &admissionv1.ValidatingAdmissionPolicyBindingList{},
	} {
		require.NoError(t, s.List(t.Context(), list, label))
		require.Empty(t, content(t, list)["items"], "%T", list)
	}
	err := s.Client(t, clusterctlv1.AddToScheme).Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: provider}, &clusterctlv1.Provider{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	require.NoError(t, s.Get(t.Context(), client.ObjectKey{Name: namespace}, &corev1.Namespace{}))
	require.Equal(t, before, s.all(t))
}
