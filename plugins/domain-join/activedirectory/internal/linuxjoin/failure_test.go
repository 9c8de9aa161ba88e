//go:build linux

package linuxjoin

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/go-ldap/ldap/v3"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/directory"
	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/kerberos"
)

// TestExplain compares what an operator reads for each code of the tables, and for some others.
func TestExplain(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	show := func(title string, cause error) {
		e := pluginv1.AsError(explain(fmt.Errorf("dc1: %w", cause), "do it", "spec.x"))
		fmt.Fprintf(&b, "== %s\n%v\n", title, e)
		if e.Hint != "" {
			fmt.Fprintf(&b, "hint: %s\n", e.Hint)
		}
		for _, name := range slices.Sorted(maps.Keys(e.Facts)) {
			fmt.Fprintf(&b, "%s=%s\n", name, e.Facts[name])
		}
		require.NotContains(t, fmt.Sprint(e, e.Hint, e.Facts), "c4n4ry")
		require.NotEqual(t, pluginv1.CodeInternal, e.Code, title)
	}
	codes := append(slices.Sorted(maps.Keys(kerberosReasons())), 60)
	for _, code := range codes {
		show(fmt.Sprint("Kerberos ", code), &kerberos.Error{Code: code})
	}
	for _, status := range append(slices.Sorted(maps.Keys(statuses())), 0xc00000ff) {
		show(fmt.Sprintf("Kerberos 18, status %#x", status), &kerberos.Error{Code: revoked, Status: status})
	}
	refused := func(code uint16, text string) error { return ldap.NewError(code, errors.New(text)) }
	for _, code := range append(slices.Sorted(maps.Keys(ldapReasons())), 80) {
		show(fmt.Sprint("LDAP ", code), refused(code, "00002035: c4n4ry"))
	}
	show("LDAP, quota", refused(53, quotaExceeded+": SvcErr: c4n4ry"))
	show("LDAP, a name that looks like a code", refused(50, "error in module acl: CN=DEADBEEF,CN=c4n4ry"))
	for _, result := range []uint16{2, 4} {
		show(fmt.Sprint("password ", result), &kerberos.PasswordError{Result: result})
	}
	show("no controller", directory.ErrNoController)
	show("read-only", errors.Join(directory.ErrReadOnly, syscall.ECONNREFUSED))
	show("unknown authority", x509.UnknownAuthorityError{})
	show("wrong name", x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"dc2"}}, Host: "dc1"})
	show("connection refused", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED})
	show("no such host", &net.DNSError{Err: "no such host", Name: "dc1", IsNotFound: true})
	show("closed by KDC", io.EOF)
	show("closed within a reply", io.ErrUnexpectedEOF)
	show("closed by LDAP", fmt.Errorf("%w: %w", directory.ErrLost, refused(ldap.ErrorNetwork, "ldap: connection closed")))
	show("closed within LDAP", fmt.Errorf("%w: %s", directory.ErrLost, "unable to read LDAP response packet: unexpected EOF"))
	show("unreadable", errors.New("a message is malformed"))
	golden(t, "explain.txt", []byte(b.String()))
}

// TestExplainKeeps: the output of a domain controller is for the administrator alone, and the end of a context is not explained.
func TestExplainKeeps(t *testing.T) {
	t.Parallel()
	require.NoError(t, explain(nil, "do it", "spec.x"))
	once := explain(io.EOF, "do it", "spec.x")
	require.Equal(t, once, explain(once, "do more", "spec.y"))
	err := explain(ldap.NewError(53, errors.New("0000001F: c4n4ry")), "do it", "spec.x")
	require.Contains(t, pluginv1.AsError(err).Detail, "0000001F: c4n4ry")
	for _, ended := range []error{context.Canceled, context.DeadlineExceeded} {
		require.ErrorIs(t, explain(ended, "do it", "spec.x"), ended)
	}
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	for code, want := range map[int32]bool{
		6: true, 14: true, 18: true, 23: true, 24: true, 7: false, 12: false, 37: false, 60: false,
	} {
		require.Equal(t, want, refuses(fmt.Errorf("x: %w", &kerberos.Error{Code: code})), code)
		require.True(t, isCode(fmt.Errorf("x: %w", &kerberos.Error{Code: code}), code))
	}
	require.False(t, refuses(io.EOF))
	require.False(t, isCode(io.EOF, 0))
}
