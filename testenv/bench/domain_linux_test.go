package bench

import (
	"testing"

	"github.com/machineadm/machineadm/testenv/domain"
	"github.com/machineadm/machineadm/testenv/nodes"
)

const (
	domainDocument = `apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: DomainJoin
metadata: {name: domain}
spec:
  provider: activedirectory
  domain: ` + domain.Name + `
  organizationalUnit: ` + domain.Servers + `
`
	adcliScript = `#!/bin/sh
exec adcli join --domain=` + domain.Name + ` --login-user=joiner --domain-ou=` + domain.Servers + ` --stdin-password </opt/bench/password
`
)

// BenchmarkDomainJoin joins a Samba domain from nothing, in turn with adcli, and plans a member.
func BenchmarkDomainJoin(b *testing.B) {
	s := newScene(b)
	network := nodes.NewNetwork(b, "dc1", "bench")
	c := domain.Start(b, network, "dc1")
	p := place{scene: s, node: c.Member(b, network, "bench")}
	const plugins = "/usr/local/libexec/machineadm/"
	p.node.MustExec(b, "mkdir", "-p", "/opt/bench", plugins)
	for from, to := range map[string]string{
		"measure": "/opt/bench/measure", "machineadm": "/usr/bin/machineadm", domainPlugin: plugins + domainPlugin,
	} {
		p.put(p.path(from), to, 0o755)
	}
	joiner := domain.Joiner()
	p.putText("/opt/bench/member.yaml", domainDocument, 0o600)
	p.putText("/opt/bench/join.yaml", domainDocument+"  credentials: {username: "+joiner.Name+", password: {value: "+joiner.Password+"}}\n", 0o600)
	p.putText("/opt/bench/password", joiner.Password, 0o600)
	p.putText("/opt/bench/adcli-join", adcliScript, 0o755)
	leave := func() {
		b.Helper()
		p.node.MustExec(b, "sh", "-c", "rm -rf /etc/krb5.*")
		c.MustExec(b, "samba-tool", "computer", "delete", "BENCH")
	}
	apply := func() Usage { return p.inside("machineadm", "apply", "--path", "/opt/bench/join.yaml") }
	apply()
	leave()
	var join, adcli, member Samples
	for b.Loop() {
		for range 10 {
			adcli = append(adcli, p.inside("/opt/bench/adcli-join"))
			leave()
			join = append(join, apply())
			member = append(member, p.inside("machineadm", "plan", "--path", "/opt/bench/member.yaml"))
			leave()
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(adcli.Wall(), "adcli-wall-ms")
	b.ReportMetric(join.Wall(), "join-wall-ms")
	b.ReportMetric(member.Wall(), "member-wall-ms")
}
