// Package measure asks NTP servers for the time, as any client would, so that a document can say what each server answered.
package measure

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/beevik/ntp"

	"github.com/machineadm/machineadm/internal/netfault"
	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
)

const (
	// timeout bounds one request and its answer.
	timeout = 3 * time.Second
	// mostAddresses is the number of addresses of one name that are tried in turn.
	mostAddresses = 3
	// mostAtOnce bounds the requests under way.
	mostAtOnce = 32
)

// Answer is what a server answered.
type Answer struct {
	Source settings.Source
	// Offset is the time of the server minus that of this machine, if Err is nil.
	Offset time.Duration
	// Stratum is the server's distance from a reference clock, and Distance bounds the error of its time.
	Stratum  uint8
	Distance time.Duration
	// Err is why the server cannot be used, nil if it can.
	Err error
}

// Usable reports whether a clock can be synchronized with the server.
func (a Answer) Usable() bool { return a.Err == nil }

// String returns the address and the answer.
func (a Answer) String() string {
	if a.Err != nil {
		return a.Source.Address + ": " + a.Err.Error()
	}
	return fmt.Sprintf("%s: stratum %d, offset %v, root distance %v", a.Source.Address, a.Stratum, rounded(a.Offset), rounded(a.Distance))
}

func rounded(d time.Duration) time.Duration { return d.Round(time.Microsecond) }

// Client asks servers. The zero Client uses the network of this machine.
type Client struct {
	// Resolver resolves names; nil is the default one.
	Resolver *net.Resolver
	// Port is the port of the servers, "" for 123.
	Port string
}

// Ask asks every source at once and returns the answers in the order of the sources. It takes no longer than the slowest
// source, and ends with ctx. A source that requires NTS is asked without it.
func (c Client) Ask(ctx context.Context, sources []settings.Source) []Answer {
	answers := make([]Answer, len(sources))
	slots := make(chan struct{}, mostAtOnce)
	var all sync.WaitGroup
	for i, source := range sources {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			answers[i] = c.ask(ctx, source)
		})
	}
	all.Wait()
	return answers
}

// ask asks the addresses of a source in turn, until one gives a usable answer.
func (c Client) ask(ctx context.Context, source settings.Source) Answer {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	resolver := c.Resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	addresses, err := resolver.LookupHost(limited, source.Address)
	if err != nil {
		return Answer{Source: source, Err: unresolved(err)}
	}
	var answer Answer
	for _, address := range addresses[:min(len(addresses), mostAddresses)] {
		if answer = c.query(ctx, source, address); answer.Usable() || ctx.Err() != nil {
			break
		}
	}
	return answer
}

func unresolved(err error) error {
	if netfault.Is(err, netfault.UnknownName) {
		return errors.New("the name does not exist in DNS; correct it, or add it to DNS or /etc/hosts")
	}
	return fmt.Errorf("the name cannot be resolved; check the DNS servers of this machine (%w)", err)
}

func (c Client) query(ctx context.Context, source settings.Source, address string) Answer {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer := Answer{Source: source}
	port := c.Port
	if port == "" {
		port = "123"
	}
	response, err := ntp.QueryWithOptions(net.JoinHostPort(address, port), ntp.QueryOptions{
		Timeout: timeout, Auth: authentication(source.Key),
		Dialer: func(_, remote string) (net.Conn, error) {
			connection, err := (&net.Dialer{}).DialContext(limited, "udp", remote)
			if err == nil {
				context.AfterFunc(limited, func() { _ = connection.Close() }) // ends the read
			}
			return connection, err
		},
	})
	if err == nil {
		answer.Offset, answer.Stratum, answer.Distance = response.ClockOffset, response.Stratum, response.RootDistance
		err = refused(response)
	}
	answer.Err = explained(ctx, err, source.Key != nil)
	return answer
}

// refused returns why an answer cannot be used. The distance is not limited here: daemons have limits of their own.
func refused(r *ntp.Response) error {
	switch {
	case r.KissCode == "RATE":
		return errors.New("it limits its clients (kiss code RATE); use a longer minPoll, or another server")
	case r.KissCode != "":
		return fmt.Errorf("it denies this machine its service (kiss code %s); allow this machine there, or use another server", r.KissCode)
	case r.Leap == ntp.LeapNotInSync || r.Stratum == 0 || r.Stratum > 15:
		return fmt.Errorf("it is not synchronized itself (stratum %d); correct that server, or use another one", r.Stratum)
	}
	return r.Validate()
}

// explained says what an error means. The errors of the library quote no key.
func explained(ctx context.Context, err error, key bool) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, ntp.ErrAuthFailed), errors.Is(err, ntp.ErrAuthNAK):
		return errors.New("it does not accept the key; compare id, type and value with the server's")
	case key && (errors.Is(err, net.ErrClosed) || netfault.Is(err, netfault.Timeout)):
		return fmt.Errorf("no answer within %v; compare id, type and value of the key with the server's, because chronyd does not "+
			"answer a wrong key; check the address and whether UDP port 123 is open", timeout)
	case errors.Is(err, net.ErrClosed), netfault.Is(err, netfault.Timeout):
		return fmt.Errorf("no answer within %v; check the address and whether UDP port 123 is open", timeout)
	case strings.Contains(err.Error(), "refused"):
		return errors.New("nothing listens on UDP port 123 there; check the address and the server")
	}
	return err
}

// authentication returns the key in the form of the library. It has no SHA384: such a server is asked without its key.
func authentication(k *settings.Key) ntp.AuthOptions {
	types := map[string]ntp.AuthType{
		"MD5": ntp.AuthMD5, "SHA1": ntp.AuthSHA1, "SHA256": ntp.AuthSHA256, "SHA512": ntp.AuthSHA512,
		"AES128": ntp.AuthAES128, "AES256": ntp.AuthAES256,
	}
	if k == nil || types[k.Type] == ntp.AuthNone {
		return ntp.AuthOptions{}
	}
	value := string(k.Value.Reveal())
	if !strings.HasPrefix(value, "HEX:") {
		value = "ASCII:" + value
	}
	return ntp.AuthOptions{Type: types[k.Type], Key: value, KeyID: uint32(k.ID)}
}

// History has the last usable answer of each source of a run.
type History map[string]seen

type seen struct {
	answer Answer
	at     time.Time
}

// Complete returns the answers with those that were lost replaced by the last usable one of the same source, whose offset is
// adjusted to what has been done to the clock since. Otherwise a daemon that follows a wrong server would be confirmed by that
// server alone whenever the correct ones lose a packet.
func (h History) Complete(answers []Answer) []Answer {
	all, now := slices.Clone(answers), time.Now()
	for i, a := range all {
		if a.Usable() {
			h[a.Source.Address] = seen{a, now}
		} else if last, ok := h[a.Source.Address]; ok {
			elapsed := now.Sub(last.at) // of the monotonic clock
			last.answer.Offset += elapsed - now.Round(0).Sub(last.at.Round(0))
			all[i] = last.answer
		}
	}
	return all
}

// Confirm reports whether more than half of the usable answers have an offset of at most most, as a client of the protocol
// follows the majority. Without usable answers it returns false, unless a server with NTS may answer only to requests that
// have it.
func Confirm(answers []Answer, most time.Duration) bool {
	usable, near := 0, 0
	for _, a := range answers {
		if a.Usable() {
			usable++
			if a.Offset.Abs() <= most {
				near++
			}
		}
	}
	if usable == 0 {
		return len(answers) > 0 && !NoneUsable(answers)
	}
	return 2*near > usable
}

// NoneUsable reports whether no server can be used. A server with NTS may answer only to requests that have it.
func NoneUsable(answers []Answer) bool {
	return len(answers) > 0 && !slices.ContainsFunc(answers, func(a Answer) bool { return a.Usable() || a.Source.NTS })
}

// Disagreement returns the two usable answers that differ most, if their difference is larger than most.
func Disagreement(answers []Answer, most time.Duration) (low, high Answer, found bool) {
	usable := slices.DeleteFunc(slices.Clone(answers), func(a Answer) bool { return !a.Usable() })
	if len(usable) == 0 {
		return low, high, false
	}
	byOffset := func(a, b Answer) int { return int(min(max(a.Offset-b.Offset, -1), 1)) }
	low, high = slices.MinFunc(usable, byOffset), slices.MaxFunc(usable, byOffset)
	return low, high, high.Offset-low.Offset > most
}
