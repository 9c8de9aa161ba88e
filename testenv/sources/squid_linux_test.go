package sources

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/testenv/nodes"
)

// rules let squid connect to one server.
const rules = `http_port 127.0.0.1:3128
acl site dstdomain source.example
http_access allow CONNECT site
http_access deny all
access_log stdio:/var/log/squid/access.log
`

// TestSquid fetches through the proxy of the environment, which sees the server's name and nothing of the request.
func TestSquid(t *testing.T) {
	t.Parallel()
	m := boot(t, nodes.Squid)
	m.MustExec(t, "sh", "-c", "printf '127.0.0.1 source.example other.source.example\\n' >>/etc/hosts && printf '%s' \"$1\" >/etc/squid/squid.conf && systemctl restart squid", "sh", rules)
	bearer := map[string]any{"bearer": secret("t0ken")}
	through := func(c *Call) { c.Environment = map[string]string{"HTTPS_PROXY": "http://127.0.0.1:3128"} }
	r := m.fetch(t, "https://source.example/moved.yaml", bearer, through)
	require.Nil(t, r.Error, "%v", r.Error)
	assert.Equal(t, digest([]byte(stream)), r.SHA256)
	big := m.fetch(t, "https://source.example/big.yaml", nil, through)
	require.Nil(t, big.Error, "%v", big.Error)
	assert.Equal(t, digest(sized(15<<20)), big.SHA256)

	refused := func(uri, text string) {
		t.Helper()
		r := m.fetch(t, uri, nil, through)
		require.NotNil(t, r.Error, uri)
		assert.Equal(t, pluginv1.CodePrecondition, r.Error.Code, uri)
		assert.Contains(t, r.Error.Message, text, uri)
	}
	refused("https://other.source.example/stream.yaml", "other.source.example:443, through the proxy 127.0.0.1:3128, cannot be reached: the proxy answers with the status 403")
	refused("https://source.example/metadata-tls.yaml", "redirects to 169.254.169.254:443")
	log := m.MustExec(t, "timeout", "600", "sh", "-c", "until grep -q TCP_DENIED.*other /var/log/squid/access.log; do sleep 0.1; done; cat /var/log/squid/access.log").Stdout
	assert.Contains(t, log, "TCP_TUNNEL/200")
	for line := range strings.Lines(log) {
		assert.Regexp(t, ` CONNECT (other\.)?source\.example:443 `, line)
		assert.NotContains(t, line, "t0ken")
	}

	m.MustExec(t, "systemctl", "stop", "squid")
	r = m.fetch(t, "https://source.example/stream.yaml", nil, through)
	require.NotNil(t, r.Error)
	assert.Equal(t, pluginv1.CodeRetry, r.Error.Code)
	assert.Contains(t, r.Error.Message, "through the proxy 127.0.0.1:3128, cannot be reached: connection refused")
}
