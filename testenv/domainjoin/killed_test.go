package domainjoin

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/domain"
	"github.com/machineadm/machineadm/testenv/nodes"
)

var (
	rounds = flag.Int("rounds", 3, "how often a join is killed at a random moment")
	seed   = flag.Uint64("seed", 0, "of the random moments; 0 takes that of MACHINEADM_SEED, or another one that a failure shows")
)

// TestKilled: whenever a join ends, the next run completes it, although the document refuses accounts that exist, and a member
// that gets a new password keeps a working keytab.
func TestKilled(t *testing.T) {
	t.Parallel()
	network := nodes.NewNetwork(t, "dc1", "node-3")
	c := domain.Start(t, network, "dc1")
	m := newMachine(t, c, network, "node-3")
	reset := func() {
		m.MustExec(t, "machineadm", "apply", "--path", "/etc/machineadm/leave.yaml")
		m.forget(t)
	}
	m.write(t, "/etc/machineadm/leave.yaml", header+"  state: absent\n"+credentials(domain.Joiner()))
	spec := unit + credentials(domain.Joiner())
	again := unit + "  encryptionTypes: [aes256-cts-hmac-sha1-96, aes128-cts-hmac-sha1-96, rc4-hmac]\n"
	began := time.Now()
	m.applied(t, unit, credentials(domain.Joiner()))
	calm := time.Since(began)
	kill := func(t *testing.T, spec, until string) {
		t.Helper()
		m.write(t, stream, header+spec)
		m.MustExec(t, "sh", "-c", killed, "sh", until)
		m.completed(t, spec)
		require.Empty(t, m.MustExec(t, "sh", "-c", "find /var/lib/machineadm -name password").Stdout, "the password is not needed any more")
	}
	for n := 1; n <= 4; n++ { // account, keytab and the two files of Kerberos
		t.Run(fmt.Sprintf("after change %d", n), func(t *testing.T) {
			reset()
			kill(t, spec, fmt.Sprintf("until [ $(grep -c ' done: ' /run/out) -ge %d ]; do :; done", n))
		})
	}
	if *seed == 0 {
		var err error
		*seed, err = needs.Seed(t.Name())
		require.NoError(t, err)
	}
	t.Logf("-seed %d", *seed)
	random := rand.New(rand.NewPCG(*seed, 0))
	for i := range *rounds {
		wait := fmt.Sprintf("sleep %.3f", random.Float64()*calm.Seconds()/2) // the other half is the two plans
		t.Run(fmt.Sprintf("%d, %s", i, wait), func(t *testing.T) {
			reset()
			kill(t, spec, wait)
			m.write(t, stream, header+again) // a member: it needs no credentials, whenever the new password was sent
			kill(t, again, wait)
		})
	}
	t.Logf("-seed %d: an undisturbed run takes %v", *seed, calm)
}

// killed kills the host, with which its plugin ends, once a command has ended.
const killed = `: >/run/out
machineadm apply --path ` + stream + ` >/run/out 2>&1 & host=$!
timeout 10 sh -c "$1"
kill -KILL $host
wait $host
while pgrep machineadm >/dev/null; do :; done`

// write writes a file for root alone.
func (m machine) write(t *testing.T, path, text string) {
	t.Helper()
	r, err := m.ExecInput(t.Context(), strings.NewReader(text), "sh", "-c", `umask 077 && cat >"$1"`, "sh", path)
	require.NoError(t, err)
	require.Zero(t, r.ExitCode, r.Stderr)
}
