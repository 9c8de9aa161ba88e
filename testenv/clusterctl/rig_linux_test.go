package clusterctl

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/testenv/management"
)

const limit = 10 * time.Minute // peers try again every 20 to 60 s

// side is a management cluster that clusterctl has initialized, with the managers of Cluster API's core and ours.
type side struct {
	*management.Cluster
	client.WithWatch
	// test is the one whose end ends the processes.
	test                    *testing.T
	ctl                     *management.Clusterctl
	manager, infrastructure *management.Process
}

// start installs a release with core and infrastructure, and the providers of kubeadm beside it. It runs the managers of core and ours:
// of the infrastructure there is one at a time.
func start(t *testing.T, version string) *side {
	t.Helper()
	c := management.Start(t)
	s := &side{test: t, Cluster: c, WithWatch: c.Client(t, clusterv1.AddToScheme, bootstrap.AddToScheme)}
	s.ctl = c.Clusterctl(t, withTemplates(t, append(c.Releases(t), release(t, version)))...)
	s.ctl.Run(t, c.Kubeconfig, "init", "--bootstrap=machineadm", "--bootstrap=kubeadm", "--control-plane=kubeadm", "--infrastructure=docker")
	c.Core(t)
	s.awaitRules(t)
	s.manager = c.Machineadm(t)
	return s
}

// awaitRules waits until our aggregated role has the rules of its parts.
func (s *side) awaitRules(t *testing.T) {
	t.Helper()
	var roles rbacv1.ClusterRoleList
	management.Await(t, s, limit, &roles, func() error {
		for i := range roles.Items {
			if roles.Items[i].Name == "machineadm-system-manager-role" && len(roles.Items[i].Rules) > 0 {
				return nil
			}
		}
		return errors.New("machineadm-system-manager-role has no rules")
	})
}

// running waits until so many Machines of a namespace have a node.
func (s *side) running(t *testing.T, in string, want int) {
	t.Helper()
	var machines clusterv1.MachineList
	management.Await(t, s, limit, &machines, func() error {
		running, states := 0, ""
		for i := range machines.Items {
			if machines.Items[i].Status.NodeRef.IsDefined() {
				running++
			}
			states += fmt.Sprintf("\n%s %s", machines.Items[i].Name, machines.Items[i].Status.Phase)
		}
		if running != want {
			return fmt.Errorf("%d of %d Machines have a node%s", running, want, states)
		}
		return nil
	}, client.InNamespace(in))
}

// settled waits until each config has its data, or conditions without an owner, and a config that is made now is reconciled:
// after those that were there.
func (s *side) settled(t *testing.T) {
	t.Helper()
	last := &bootstrap.MachineBootstrapConfig{}
	last.Namespace, last.Name = "default", "last"
	require.NoError(t, s.Create(t.Context(), last))
	s.configs(t, func(c *bootstrap.MachineBootstrapConfig) bool {
		return len(c.Status.Conditions) > 0 && (c.Status.DataSecretName != "" || c.Name == last.Name)
	})
	require.NoError(t, s.Delete(t.Context(), last))
}

// configs waits until every config meets a condition, and returns them by name.
func (s *side) configs(t *testing.T, met func(*bootstrap.MachineBootstrapConfig) bool) map[string]*bootstrap.MachineBootstrapConfig {
	t.Helper()
	var list bootstrap.MachineBootstrapConfigList
	found := map[string]*bootstrap.MachineBootstrapConfig{}
	management.Await(t, s, limit, &list, func() error {
		clear(found)
		for i := range list.Items {
			c := &list.Items[i]
			if found[c.Name] = c; !met(c) {
				return fmt.Errorf("%s: %s %+v", c.Name, c.Status.DataSecretName, c.Status.Conditions)
			}
		}
		return nil
	}, client.InNamespace("default"))
	return found
}

// content is a part of an object.
func content(t *testing.T, o runtime.Object) map[string]any {
	t.Helper()
	text, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	require.NoError(t, err)
	return text
}
