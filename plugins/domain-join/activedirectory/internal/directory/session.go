package directory

import (
	"context"
	"crypto"
	_ "crypto/sha256" // of bindings
	_ "crypto/sha512" // likewise
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	ber "github.com/go-asn1-ber/asn1-ber"
	"github.com/go-ldap/ldap/v3"

	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/kerberos"
)

// Options say where the directory is and how a connection to it is protected.
type Options struct {
	// Domain is the DNS name in lower case.
	Domain string
	// Servers are the names of controllers in order of preference; empty for the names in the DNS.
	Servers []string
	// Preferred is the controller of an unfinished join, or of an earlier session. While it is one of the domain no other is tried,
	// because it can have an account that the others lack still.
	Preferred string
	// TLS has the trusted authorities; nil for a connection that Kerberos seals.
	TLS *TLS

	dial func(ctx context.Context, network, address string) (net.Conn, error) // nil for net.Dialer
}

// TLS protects a connection.
type TLS struct {
	// CA is nil for the authorities of the system.
	CA *x509.CertPool
	// Start begins with an unprotected connection and protects it before anything is sent (StartTLS).
	Start bool
}

// Session is a connection to one controller.
type Session struct {
	// Name is the DNS name of the controller, Host its address.
	Name, Host string
	// Time is the controller's clock when the session began, and Read that of this machine.
	Time, Read time.Time

	// Fallback reports that the controller refuses Kerberos over TLS, so that Kerberos seals the connection instead.
	Fallback bool

	options Options
	base    string
	conn    *ldap.Conn
	wire    *wire
	binding []byte // of the TLS connection; nil without one
}

const (
	// perController bounds the connection to one of several controllers.
	perController = 2 * time.Second
	// perRequest bounds one request to the directory.
	perRequest = 5 * time.Second
	// readOnly is the capability of a controller that does not accept changes.
	readOnly = "1.2.840.113556.1.4.1920"
)

// ErrReadOnly says that a controller does not accept changes.
var ErrReadOnly = errors.New("the domain controller is read-only")

// connect opens a session with a controller and reads its clock. Nothing is authenticated yet unless TLS does it.
func connect(ctx context.Context, o Options, name string) (*Session, error) {
	port, config := "389", (*tls.Config)(nil)
	if o.TLS != nil {
		config = &tls.Config{ServerName: name, RootCAs: o.TLS.CA, MinVersion: tls.VersionTLS12}
		if !o.TLS.Start {
			port = "636"
		}
	}
	limited, cancel := context.WithTimeout(ctx, perController)
	defer cancel()
	dial := o.dial
	if dial == nil {
		dial = (&net.Dialer{Resolver: resolver("")}).DialContext
	}
	conn, err := dial(limited, "tcp", net.JoinHostPort(name, port))
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	s := &Session{Name: name, Host: host, options: o, base: "DC=" + strings.ReplaceAll(o.Domain, ".", ",DC=")}
	if o.TLS != nil {
		secure, err := protect(limited, conn, o.TLS.Start, config)
		if err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		s.binding, conn = binding(secure.ConnectionState()), secure
	}
	s.wire = &wire{Conn: conn, guard: newGuard()}
	s.conn = ldap.NewConn(s.wire, o.TLS != nil)
	s.conn.SetTimeout(perRequest)
	s.conn.Start()
	if err := s.rootDSE(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// protect returns a connection with TLS, which it requests before if start is set (RFC 4511, section 4.14). That of go-ldap would decode
// the reply without limits, and hide the cause of a failed handshake.
func protect(ctx context.Context, conn net.Conn, start bool, config *tls.Config) (*tls.Conn, error) {
	if start {
		defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
		name := "1.3.6.1.4.1.1466.20037"
		request := slices.Concat([]byte{0x30, 29, 2, 1, 1, 0x77, 24, 0x80, byte(len(name))}, []byte(name))
		if _, err := conn.Write(request); err != nil {
			return nil, err
		}
		reply, err := ber.ReadPacket(&wire{Conn: conn, guard: newGuard()}) // reads no byte behind the reply
		if err != nil {
			return nil, err
		}
		if err := ldap.GetLDAPError(reply); err != nil {
			return nil, err
		}
	}
	secure := tls.Client(conn, config)
	return secure, secure.HandshakeContext(ctx)
}

// Close ends the session.
func (s *Session) Close() { _ = s.conn.Close() } // it has nothing that is not answered

// ErrLost says that the connection broke, or that the controller did not answer in time.
var ErrLost = errors.New("the connection to the domain controller was lost")

// do runs a request, which ends with the context: the connection is closed then. go-ldap returns the text of some network errors
// alone, but closes the connection with each.
func (s *Session) do(ctx context.Context, request func() error) error {
	s.wire.guard.begin()
	defer context.AfterFunc(ctx, func() {
		_ = s.wire.SetDeadline(time.Unix(1, 0)) // Close waits for a request that is written
		s.Close()
	})()
	err := request()
	if err != nil && (s.conn.IsClosing() || ldap.IsErrorWithCode(err, ldap.ErrorNetwork)) {
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	return err
}

// search reads all entries below the domain.
func (s *Session) search(ctx context.Context, filter string, attributes ...string) ([]*ldap.Entry, error) {
	return s.find(ctx, ldap.NewSearchRequest(s.base, ldap.ScopeWholeSubtree, ldap.NeverDerefAliases, 0, 0, false, filter, attributes, nil))
}

// read reads one entry.
func (s *Session) read(ctx context.Context, dn string, attributes ...string) (*ldap.Entry, error) {
	entries, err := s.find(ctx, ldap.NewSearchRequest(dn, ldap.ScopeBaseObject, ldap.NeverDerefAliases, 1, 0, false, "(objectClass=*)", attributes, nil))
	if err == nil && len(entries) != 1 {
		err = ldap.NewError(ldap.LDAPResultNoSuchObject, errors.New("no such entry"))
	}
	if err != nil {
		return nil, err
	}
	return entries[0], nil
}

func (s *Session) find(ctx context.Context, request *ldap.SearchRequest) (entries []*ldap.Entry, err error) {
	err = s.do(ctx, func() error {
		r, err := s.conn.Search(request)
		if r != nil {
			entries = r.Entries
		}
		return err
	})
	return entries, err
}

// rootDSE reads what a controller shows without authentication.
func (s *Session) rootDSE(ctx context.Context) error {
	found, err := s.read(ctx, "", "currentTime", "supportedCapabilities")
	if err != nil {
		return err
	}
	if slices.Contains(found.GetAttributeValues("supportedCapabilities"), readOnly) {
		return ErrReadOnly
	}
	s.Read = time.Now()
	s.Time, err = time.Parse("20060102150405.0Z", found.GetAttributeValue("currentTime"))
	if err != nil {
		return fmt.Errorf("read the time of the controller: %w", err)
	}
	return nil
}

// Service is the name for which a ticket authenticates a session.
func (s *Session) Service() string { return "ldap/" + s.Name }

// Bind authenticates the session and the controller to each other. A controller that refuses Kerberos over TLS, as Samba before
// 4.21 does, gets a new connection that Kerberos seals.
func (s *Session) Bind(ctx context.Context, t *kerberos.Ticket) error {
	client := &mechanism{ticket: t, binding: s.binding}
	if s.binding == nil {
		client.wire = s.wire
	}
	err := s.do(ctx, func() error { return s.conn.GSSAPIBind(client, s.Service(), "") })
	if ldap.IsErrorWithCode(err, ldap.LDAPResultStrongAuthRequired) && client.wire == nil {
		o := s.options
		o.TLS = nil
		sealed, err := connect(ctx, o, s.Name)
		if err != nil {
			return err
		}
		s.Close()
		*s = *sealed
		s.Fallback = true
		return s.Bind(ctx, t)
	}
	if err == nil {
		s.wire.guard.trust()
	}
	if err == nil && client.wire != nil {
		client.wire.writes.Store(client.context)
	}
	return err
}

// binding ties an authentication to a TLS connection (tls-server-end-point of RFC 5929), so that it is worthless on any other
// connection.
func binding(state tls.ConnectionState) []byte {
	certificate := state.PeerCertificates[0]
	digest := crypto.SHA256
	switch certificate.SignatureAlgorithm {
	case x509.SHA384WithRSA, x509.ECDSAWithSHA384, x509.SHA384WithRSAPSS:
		digest = crypto.SHA384
	case x509.SHA512WithRSA, x509.ECDSAWithSHA512, x509.SHA512WithRSAPSS:
		digest = crypto.SHA512
	}
	hash := digest.New()
	hash.Write(certificate.Raw)
	return hash.Sum([]byte("tls-server-end-point:"))
}

// resolver asks the name servers of the system over this network; empty for the usual one.
func resolver(network string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, usual, address string) (net.Conn, error) {
		if network == "" {
			network = usual
		}
		return (&net.Dialer{Timeout: perController}).DialContext(ctx, network, address)
	}}
}
