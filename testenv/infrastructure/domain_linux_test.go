package infrastructure

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/testenv/domain"
)

const (
	// domainController is the first name of the network, so that the cache has the directory of the domain controller: see domain.Start.
	domainController = "dc1"
	// domainMember is the name of a node with the programs that check a join.
	domainMember = "member"
)

// resolving makes the domain controller the name server of a machine.
func resolving(r *rig, root string) error {
	text := fmt.Sprintf("nameserver %s\nsearch %s\n", r.network.Address(domainController), domain.Name)
	return os.WriteFile(filepath.Join(root, "etc/resolv.conf"), []byte(text), 0o644) //nolint:gosec // an image's
}

// memberOfDomain: a worker joins a domain before it joins its cluster, under an account with a name shorter than its own. MIT Kerberos
// accepts its keytab.
func (r *rig) memberOfDomain(t *testing.T) {
	c, joiner := domain.Start(t, r.network, domainController), domain.Joiner()
	password := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "joiner"}, StringData: map[string]string{"password": joiner.Password},
	}
	require.NoError(t, r.Create(t.Context(), password))
	objects := r.deployment(t, "domain")
	set(t, kind(t, objects, kindMachine+"Template"), "resolving", "spec", "template", "spec", "image")
	set(t, kind(t, objects, "MachineBootstrapConfigTemplate"), []any{map[string]any{
		"apiVersion": contract.APIVersion, "kind": contract.KindDomainJoin, "name": "site", "before": []any{"KubernetesNode"},
		"spec": map[string]any{
			"domain": domain.Name, "organizationalUnit": domain.Servers,
			"credentials": map[string]any{
				"username": joiner.Name,
				"password": map[string]any{"valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": password.Name, "key": "password"}}},
			},
		},
	}, r.target()}, "spec", "template", "spec", "documents")
	r.apply(t, objects...)
	machine := r.running(t, 1, ofDeployment("domain"))[0].Spec.InfrastructureRef.Name
	r.prepared(t, machine, 6)
	r.secret(t, machine, joiner.Password, "^/var/lib/cloud/")

	keytab, err := r.Node(machine).CopyOut(t.Context(), "/etc/krb5.keytab")
	require.NoError(t, err)
	other := c.Member(t, r.network, domainMember, func(root string) error {
		return os.WriteFile(filepath.Join(root, "etc/krb5.keytab"), keytab, 0o600)
	})
	fqdn := machine + "." + domain.Name
	domain.Kvno(t, other, "host/"+fqdn)
	var account string
	for _, e := range domain.Klist(t, other) {
		if name, ok := strings.CutSuffix(e.Principal, "$@"+domain.Realm); ok {
			account = name
		}
	}
	assert.Equal(t, []string{fqdn}, c.Computer(t, account)["dNSHostName"])
	assert.Less(t, len(account), len(machine))
	require.NoError(t, r.Delete(t.Context(), password))
}
