package containerd

import "testing"

// Proxy is an HTTP proxy in a node.
type Proxy struct {
	URL    string
	daemon *Daemon
}

const (
	proxyUnit  = "testenv-proxy.service"
	proxyPort  = "8888"
	proxyHosts = "/etc/hosts.proxy"
)

const proxyConfig = `Port ` + proxyPort + `
Listen 127.0.0.1
Timeout 60
MaxClients 10
LogLevel Connect
Allow 127.0.0.1
ConnectPort ` + registryPort + `
`

// StartProxy starts Debian's tinyproxy on the daemon's node, where it alone has the address of the registry from now on:
// who reaches the registry went through the proxy.
func (d *Daemon) StartProxy(t testing.TB) *Proxy {
	t.Helper()
	d.Write(t, "/etc/testenv-proxy.conf", proxyConfig)
	d.MustExec(t, "sh", "-ec", "cp /etc/hosts "+proxyHosts+"; sed -i '/"+registryName+"/d' /etc/hosts")
	d.serve(t, proxyUnit, proxyPort, "--property=BindReadOnlyPaths="+proxyHosts+":/etc/hosts", "tinyproxy", "-d", "-c", "/etc/testenv-proxy.conf")
	return &Proxy{URL: "http://127.0.0.1:" + proxyPort, daemon: d}
}

// Log returns the requests of the proxy.
func (p *Proxy) Log(t testing.TB) string {
	t.Helper()
	return p.daemon.Journal(t, proxyUnit)
}
