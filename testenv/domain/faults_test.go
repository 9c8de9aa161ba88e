package domain

import (
	"crypto/x509"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/testenv/authority"
)

func TestFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	works := func(t *testing.T) {
		t.Helper()
		code, out := w.ldap(t, Joiner(), "-b", BaseDN, "dn")
		require.Zero(t, code, out)
	}
	works(t)
	t.Run("capture", func(t *testing.T) { testCapture(t, w) })
	t.Run("strong authentication", func(t *testing.T) { testStrongAuthentication(t, w) })
	t.Run("cut", func(t *testing.T) { testCut(t, w) })
	works(t)
	t.Run("certificate", func(t *testing.T) { testCertificate(t, w) })
	t.Run("clock", func(t *testing.T) { testClock(t, w) })
	works(t)
	t.Run("down", func(t *testing.T) {
		undo := w.Down(t)
		require.Contains(t, w.connect(t, "tcp/389"), "refused")
		undo()
		require.Empty(t, w.connect(t, "tcp/389"))
	})
	works(t)
}

// testCapture: of a password on an unprotected connection a byte string is recorded, of one within TLS none.
func testCapture(t *testing.T, w world) {
	plain := Account{Plain().Name, "c4n4ry.open"}
	open, sealed := w.network.Capture(t), w.network.Capture(t)
	w.ldap(t, Joiner(), "-b", "")
	require.NotContains(t, string(sealed()), Joiner().Password)
	code, _ := w.ldapOver(t, "ldap", plain, "-b", "")
	require.Equal(t, 8, code)
	frames := string(open())
	require.Contains(t, frames, plain.Password)
	require.NotContains(t, frames, Joiner().Password)
}

// testStrongAuthentication: without TLS or a security layer of SASL no bind is accepted, and within TLS no such layer.
func testStrongAuthentication(t *testing.T, w world) {
	ask := func(args ...string) (int, string) {
		t.Helper()
		argv := append([]string{
			"sh", "-c", `export KRB5CCNAME=/tmp/strong LDAPTLS_CACERT=` + CAFile + `; kinit joiner@` + Realm + ` >/dev/null; exec "$@"`,
			"sh", "ldapsearch", "-Y", "GSSAPI", "-Q", "-s", "base", "-b", BaseDN, "dn",
		}, args...)
		r, err := w.member.ExecInput(t.Context(), strings.NewReader(Joiner().Password), argv...)
		require.NoError(t, err)
		return r.ExitCode, r.Stderr
	}
	for _, c := range []struct {
		code   int
		answer string
		args   []string
	}{
		{0, "", []string{"-H", "ldap://" + w.FQDN}},
		{8, "Sign or Seal are required", []string{"-H", "ldap://" + w.FQDN, "-O", "maxssf=0"}},
		{8, "Sign or Seal are required", []string{"-H", "ldaps://" + w.FQDN, "-O", "maxssf=0"}},
		{53, "Sign or Seal are not allowed if TLS is used", []string{"-H", "ldaps://" + w.FQDN}},
	} {
		code, answer := ask(c.args...)
		require.Equal(t, c.code, code, answer)
		require.Contains(t, answer, c.answer)
	}
	code, answer := w.ldapOver(t, "ldap", Joiner(), "-b", "")
	require.Equal(t, 8, code)
	require.Contains(t, answer, "BindSimple: Transport encryption required.")
	code, answer = w.ldapOver(t, "ldap", Joiner(), "-ZZ", "-b", BaseDN, "dn")
	require.Zero(t, code, answer)
}

// testCertificate asks OpenSSL, which gives the reason.
func testCertificate(t *testing.T, w world) {
	verify := func() string {
		t.Helper()
		r, err := w.member.Exec(t.Context(), "openssl", "s_client", "-connect", w.FQDN+":636", "-CAfile", CAFile,
			"-verify_hostname", w.FQDN, "-verify_return_error")
		require.NoError(t, err)
		return r.Stdout + r.Stderr
	}
	require.Contains(t, verify(), "Verification: OK")
	w.Certify(t, w.CA, "other."+Name)
	require.Contains(t, verify(), "verify error:num=62:hostname mismatch")
	w.Certify(t, w.CA, w.FQDN, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) })
	require.Contains(t, verify(), "verify error:num=10:certificate has expired")
	undo := w.Certify(t, authority.New(t), w.FQDN)
	require.Contains(t, verify(), "verify error:num=20:unable to get local issuer certificate")
	undo()
	require.Contains(t, verify(), "Verification: OK")
}

// testClock: the controller's own time is off, and the others' are not.
func testClock(t *testing.T, w world) {
	const off = -20 * time.Minute
	undo := w.Skew(t, off)
	_, out := w.ldap(t, Account{}, "-b", "", "currentTime")
	_, value, _ := strings.Cut(strings.TrimSpace(out), "currentTime: ")
	now, err := time.Parse("20060102150405.0Z", value)
	require.NoError(t, err, out)
	require.WithinDuration(t, time.Now().Add(off), now, 10*time.Second)
	node, err := time.Parse(time.RFC3339+"\n", w.MustExec(t, "date", "--utc", "+%FT%TZ").Stdout)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), node, 10*time.Second)
	// A client of MIT corrects for the difference; its ticket begins at the controller's time.
	w.member.MustExec(t, "sh", "-c", "echo "+Joiner().Password+" | kinit -c /tmp/skewed joiner@"+Realm)
	ticket := w.member.MustExec(t, "klist", "-c", "/tmp/skewed").Stdout
	begin, err := time.Parse("01/02/06 15:04:05", regexp.MustCompile(`\d\d/\d\d/\d\d \d\d:\d\d:\d\d`).FindString(ticket))
	require.NoError(t, err, ticket)
	require.WithinDuration(t, time.Now().Add(off), begin, 10*time.Second)
	undo()
}

func testCut(t *testing.T, w world) {
	for _, port := range []string{"tcp/53", "tcp/88", "tcp/389", "tcp/464", "tcp/636"} {
		require.Empty(t, w.connect(t, port), port)
		undo := w.Cut(t, strings.Replace(port, "/", " dport ", 1)+" reject with tcp reset")
		require.Contains(t, w.connect(t, port), "refused", port)
		undo()
	}
	undo := w.Cut(t, "tcp dport 636 drop")
	require.Contains(t, w.connect(t, "tcp/636"), "timeout")
	undo()
	lookup := []string{"timeout", "3", "getent", "ahostsv4", w.FQDN}
	w.member.MustExec(t, lookup...)
	undo = w.Cut(t, "udp dport 53 reject")
	r, err := w.member.Exec(t.Context(), lookup...)
	require.NoError(t, err)
	require.NotZero(t, r.ExitCode)
	undo()
	// The connection is accepted, and what follows has no answer.
	undo = w.Cut(t, "tcp sport 636 quota over 500 bytes drop")
	require.Empty(t, w.connect(t, "tcp/636"))
	code, out := w.ldap(t, Joiner(), "-b", BaseDN, "dn")
	require.Equal(t, 124, code, out)
	undo()
}

// connect opens a connection from the member, and returns why it cannot.
func (w world) connect(t *testing.T, port string) string {
	t.Helper()
	const script = `timeout 2 bash -c "exec 3<>/dev/$0" || { test $? != 124 || echo timeout; }`
	r, err := w.member.Exec(t.Context(), "bash", "-c", script, fmt.Sprintf("%s/%s/%s", port[:3], w.Address(), port[4:]))
	require.NoError(t, err)
	return r.Stdout + r.Stderr
}
