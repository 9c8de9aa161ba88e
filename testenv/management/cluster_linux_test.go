package management

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machine "github.com/machineadm/machineadm/internal/require"
)

// TestCluster: users have the rights that RBAC gives them, the audit log shows it, and owned objects are deleted.
func TestCluster(t *testing.T) {
	began := time.Now()
	c := Start(t)
	t.Logf("the API server is ready after %s", time.Since(began))
	admin := c.Client(t)

	config, err := clientcmd.BuildConfigFromFlags("", c.User(t, "reader", "readers"))
	require.NoError(t, err)
	reader, err := client.New(config, client.Options{})
	require.NoError(t, err)
	err = reader.List(t.Context(), &corev1.SecretList{})
	require.True(t, errors.IsForbidden(err), "%v", err)
	var denied []Request
	for _, r := range c.Audit(t) {
		if r.User.Name == "reader" && r.Object.Resource == "secrets" {
			denied = append(denied, r)
		}
	}
	require.Len(t, denied, 1)
	require.Equal(t, "list forbid 403", fmt.Sprintf("%s %s %d", denied[0].Verb, denied[0].Notes.Decision, denied[0].Response.Code))

	require.NoError(t, admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: meta.ObjectMeta{Name: "short"}}))
	require.NoError(t, admin.Create(t.Context(), &corev1.Secret{ObjectMeta: meta.ObjectMeta{Name: "s", Namespace: "short"}}))
	require.NoError(t, admin.Delete(t.Context(), &corev1.Namespace{ObjectMeta: meta.ObjectMeta{Name: "short"}}))
	var namespaces corev1.NamespaceList
	Await(t, admin, time.Minute, &namespaces, func() error {
		if len(namespaces.Items) > 0 {
			return fmt.Errorf("phase %s", namespaces.Items[0].Status.Phase)
		}
		return nil
	}, client.MatchingFields{"metadata.name": "short"})
}

// TestSeveral: clusters do not share anything, and a killed server can be followed by another.
func TestSeveral(t *testing.T) {
	one, other := Start(t), Start(t)
	require.NotEqual(t, one.Config.Host, other.Config.Host)
	require.NoError(t, one.Client(t).Create(t.Context(), &corev1.Namespace{ObjectMeta: meta.ObjectMeta{Name: "mine"}}))
	err := other.Client(t).Get(t.Context(), client.ObjectKey{Name: "mine"}, &corev1.Namespace{})
	require.True(t, errors.IsNotFound(err), "%v", err)
	one.APIServer.Kill(t)
	require.Error(t, one.Client(t).Get(t.Context(), client.ObjectKey{Name: "mine"}, &corev1.Namespace{}))
	one.startAPIServer(t)
	require.NoError(t, one.Client(t).Get(t.Context(), client.ObjectKey{Name: "mine"}, &corev1.Namespace{}))
}

// TestNamespace: the loopback device is there, and no other.
func TestNamespace(t *testing.T) {
	machine.Root(t)
	devices, err := net.Interfaces()
	require.NoError(t, err)
	require.Len(t, devices, 1)
	require.NotZero(t, devices[0].Flags&net.FlagUp)
}
