package serve

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
)

const (
	again    = time.Minute     // the least time between two renewals
	readTime = 5 * time.Second // of a Secret
)

// Certificates are the certificate of the endpoint and what machines trust. A connection that needs a newer one renews it, while
// others use the one before.
type Certificates struct {
	renew func(ctx context.Context, now time.Time) (issued, error)
	now   func() time.Time
	log   logr.Logger

	mutex   sync.Mutex
	current issued
	next    time.Time
	problem string // why the last renewal failed
}

// issued is a certificate with its key, what machines trust, and when it is renewed.
type issued struct {
	pair  *tls.Certificate
	trust []byte
	next  time.Time
}

// newCertificates fails if there is no certificate yet: without one it is not known what machines have to trust.
func newCertificates(ctx context.Context, log logr.Logger, now func() time.Time, renew func(context.Context, time.Time) (issued, error)) (*Certificates, error) {
	c := &Certificates{renew: renew, now: now, log: log}
	first, err := renew(ctx, now())
	c.current, c.next = first, first.next
	return c, err
}

// Trust returns the certificates of the authorities that a machine trusts for this endpoint, as PEM, or nil for its own.
func (c *Certificates) Trust() []byte { return c.newest(context.Background()).trust }

// get is the GetCertificate of a tls.Config.
func (c *Certificates) get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	return c.newest(hello.Context()).pair, nil
}

func (c *Certificates) newest(ctx context.Context) issued {
	now := c.now().Round(0) // the clock of the machine, and not the time that it was running
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if now.Before(c.next) {
		return c.current
	}
	c.next = now.Add(again)
	c.mutex.Unlock()
	ctx, cancel := context.WithTimeout(ctx, readTime)
	renewed, err := c.renew(ctx, now)
	cancel()
	c.mutex.Lock()
	if err != nil {
		if err.Error() != c.problem {
			c.problem = err.Error()
			c.log.Error(err, "the certificate for machines is not renewed", "validUntil", c.current.pair.Leaf.NotAfter)
		}
		return c.current
	}
	c.problem, c.current, c.next = "", renewed, renewed.next
	return c.current
}

// FromSecret returns the certificates of a Secret of type kubernetes.io/tls, whose data read returns: tls.crt, tls.key, and ca.crt if
// machines do not trust its authority anyway. The Secret is read again at most once a minute. host is a DNS name or an IP address.
func FromSecret(ctx context.Context, read func(context.Context) (map[string][]byte, error), host string, log logr.Logger, now func() time.Time) (*Certificates, error) {
	return newCertificates(ctx, log, now, func(ctx context.Context, now time.Time) (issued, error) {
		data, err := read(ctx)
		if err != nil {
			return issued{}, err
		}
		certificate, key, ca := data["tls.crt"], data["tls.key"], data["ca.crt"]
		if field, err := (contract.KeyPair{Certificate: string(certificate), Key: contract.NewSecret(key)}).Check(); err != nil {
			return issued{}, named(field, err)
		}
		pair, err := tls.X509KeyPair(certificate, key)
		if err == nil {
			err = check(&pair, ca, host, now)
		}
		return issued{&pair, ca, now.Add(again)}, err
	})
}

// named returns an error of a field of a contract.KeyPair with the key of the Secret.
func named(field string, err error) error {
	return fmt.Errorf("%s %w", map[string]string{"certificate": "tls.crt", "key": "tls.key"}[field], err)
}

// check returns why a machine that trusts the authorities of ca, or else its own, does not accept a certificate now.
func check(pair *tls.Certificate, ca []byte, host string, now time.Time) error {
	leaf := pair.Leaf
	if err := leaf.VerifyHostname(host); err != nil {
		return fmt.Errorf("tls.crt is not for the name or address in the URL of machines: %w", err)
	}
	options := x509.VerifyOptions{Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), CurrentTime: now}
	if len(ca) == 0 { // the authorities of machines are not known here
		if bytes.Equal(leaf.RawIssuer, leaf.RawSubject) {
			return errors.New("tls.crt is signed by itself: give it as ca.crt, too")
		}
		options.Roots.AddCert(leaf)
	} else if _, err := contract.CertificateOf(string(ca)); err != nil {
		return fmt.Errorf("ca.crt %w", err)
	}
	options.Roots.AppendCertsFromPEM(ca)
	for _, der := range pair.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil { // CertificateOf has read all
			options.Intermediates.AddCert(c)
		}
	}
	_, err := leaf.Verify(options)
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired { // err has the time
		err = fmt.Errorf("the certificate of %s is valid from %s to %s", invalid.Cert.Subject,
			invalid.Cert.NotBefore.Format(time.RFC3339), invalid.Cert.NotAfter.Format(time.RFC3339))
	}
	if err != nil {
		return fmt.Errorf("tls.crt is not accepted by machines: %w", err)
	}
	return nil
}
