package management

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/clientcmd"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machineadm/machineadm/testenv/tools"
)

// Account is the user of our manager, by its manifests.
const Account = "system:serviceaccount:machineadm-system:machineadm-manager"

// Machineadm runs our manager under its account. What installs its manifests, such as clusterctl, comes first.
func (c *Cluster) Machineadm(t testing.TB, arguments ...string) *Process {
	t.Helper()
	built := t.TempDir()
	if err := tools.Products(t.Context(), built, map[string]string{"manager": "host/cmd/manager"}); err != nil {
		t.Fatal(err)
	}
	health := c.Address(t)
	kubeconfig := c.User(t, Account, "system:serviceaccounts", "system:serviceaccounts:machineadm-system")
	manager := c.Run(t, kubeconfig, filepath.Join(built, "manager"), append([]string{
		"--health-addr=" + health, "--diagnostics-address=" + c.Address(t), "--insecure-diagnostics", "--v=1",
	}, arguments...)...)
	manager.AwaitReady(t, "http://"+health+"/readyz")
	return manager
}

// Workload returns a client of a cluster in memory, as an administrator.
func (c *Cluster) Workload(t testing.TB, namespace, name string) client.WithWatch {
	t.Helper()
	var secret corev1.Secret
	if err := c.Client(t).Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name + "-kubeconfig"}, &secret); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["value"])
	if err != nil {
		t.Fatal(err)
	}
	k, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Tokens waits until a cluster has so many bootstrap tokens, and returns them.
func Tokens(t testing.TB, workload client.WithWatch, want int) []corev1.Secret {
	t.Helper()
	var secrets corev1.SecretList
	var found []corev1.Secret
	Await(t, workload, 3*time.Minute, &secrets, func() error {
		found = nil
		for i := range secrets.Items {
			if secrets.Items[i].Type == bootstrapapi.SecretTypeBootstrapToken {
				found = append(found, secrets.Items[i])
			}
		}
		if len(found) != want {
			return fmt.Errorf("%d tokens are there, not %d", len(found), want)
		}
		return nil
	}, client.InNamespace("kube-system"), client.MatchingFieldsSelector{Selector: fields.Everything()})
	return found
}
