package cluster

import (
	"crypto/x509"
	"fmt"
	"net"
	"testing"

	"github.com/machineadm/machineadm/testenv/authority"
	"github.com/machineadm/machineadm/testenv/nodes"
)

// etcdUnit asks every client for a certificate of the authority.
const etcdUnit = `[Service]
Type=notify
TimeoutStartSec=180
ExecStart=/usr/bin/etcd --data-dir=/var/lib/etcd --unsafe-no-fsync \
  --listen-client-urls=https://0.0.0.0:2379 --advertise-client-urls=%s \
  --cert-file=/etc/etcd/server.crt --key-file=/etc/etcd/server.key --client-cert-auth --trusted-ca-file=/etc/etcd/ca.crt
`

// Etcd boots a node with an etcd alone, under a name of the network, and returns its URL. Servers and clients have certificates of the
// authority.
func Etcd(t testing.TB, network *nodes.Network, name string, ca authority.Authority) (url string) {
	t.Helper()
	address := network.Address(name)
	url = fmt.Sprintf("https://%s:2379", address)
	certificate, key := ca.Issue(t, name, func(c *x509.Certificate) {
		c.IPAddresses = []net.IP{address.AsSlice()}
		c.ExtKeyUsage = append(c.ExtKeyUsage, x509.ExtKeyUsageClientAuth) // the server is a client of itself
	})
	n := nodes.Boot(t, nodes.Options{Suite: nodes.Bookworm, Network: network, Hostname: name, Prepare: nodes.InOrder(V136.install(t, "etcd"), write(map[string]string{
		"etc/etcd/ca.crt": string(ca.Certificate), "etc/etcd/server.crt": string(certificate), "etc/etcd/server.key": string(key),
		"etc/systemd/system/etcd.service": fmt.Sprintf(etcdUnit, url),
	}))})
	n.MustExec(t, "systemctl", "start", "etcd")
	return url
}
