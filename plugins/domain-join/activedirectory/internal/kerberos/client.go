// Package kerberos authenticates with the Kerberos services of one domain controller: it gets tickets, changes a password and
// establishes the security context of an LDAP connection. Source: RFC 4120, RFC 3244, RFC 4121.
//
// The messages and the cryptography are gokrb5's. Its client is not used, because it has no contexts and time limits of the
// caller, and hides the salts and the status that a controller sends with an error.
package kerberos

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// Client exchanges messages with one controller.
type Client struct {
	// Realm is the realm of the domain, in upper case.
	Realm string
	// Host is the address of the controller, without port.
	Host string
	// EncryptionTypes are those that the client accepts, the preferred one first. Numbers of RFC 3961.
	EncryptionTypes []int32

	dial func(ctx context.Context, network, address string) (net.Conn, error) // nil for net.Dialer
}

// Key is a key of an account.
type Key struct {
	Type  int32
	Value []byte
}

const (
	// exchange bounds one request and its answer.
	exchange = 5 * time.Second
	// maxMessage is four times the largest ticket that Windows accepts (MaxTokenSize). To read it takes 50 times as much memory at most,
	// before the controller is authenticated.
	maxMessage = 256 << 10

	kdcPort, passwordPort = "88", "464"
)

// Error is the refusal of a controller.
type Error struct {
	// Code is that of RFC 4120, section 7.5.9.
	Code int32
	// Status is the Windows status that explains the code, 0 if there is none.
	Status uint32
}

// Error implements error, without names and values.
func (e *Error) Error() string {
	if e.Status == 0 {
		return fmt.Sprintf("Kerberos error %d", e.Code)
	}
	return fmt.Sprintf("Kerberos error %d, status %#x", e.Code, e.Status)
}

// send exchanges one message over TCP.
func (c *Client) send(ctx context.Context, port string, message []byte) (reply []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, exchange)
	defer cancel()
	dial := c.dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	conn, err := dial(ctx, "tcp", net.JoinHostPort(c.Host, port))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	if _, err := conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)); err != nil { //nolint:gosec // ours
		return nil, err
	}
	head := make([]byte, 4)
	if _, err := io.ReadFull(conn, head); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head)
	if size > maxMessage {
		return nil, fmt.Errorf("the reply of port %s has %d bytes", port, size)
	}
	reply = make([]byte, size)
	_, err = io.ReadFull(conn, reply)
	return reply, err
}

// ask sends a request to the key distribution center. A refusal is an *Error; data is what came with it.
func (c *Client) ask(ctx context.Context, request interface{ Marshal() ([]byte, error) }) (reply, data []byte, err error) {
	message, err := request.Marshal()
	if err != nil {
		return nil, nil, err
	}
	if reply, err = c.send(ctx, kdcPort, message); err != nil {
		return nil, nil, err
	}
	var refused messages.KRBError
	if unmarshal(&refused, reply) == nil {
		return nil, refused.EData, refusal(refused)
	}
	return reply, nil, nil
}

// refusal has the status of [MS-KILE] section 2.2.1 if the error carries one: data of type 3, which Windows sends alone and
// Samba in a list.
func refusal(e messages.KRBError) *Error {
	result := &Error{Code: e.ErrorCode}
	var one types.PAData
	var all types.PADataSequence
	if unmarshal(&all, e.EData) != nil && unmarshal(&one, e.EData) == nil {
		all = types.PADataSequence{one}
	}
	for _, data := range all {
		if data.PADataType == 3 && len(data.PADataValue) >= 4 {
			result.Status = binary.LittleEndian.Uint32(data.PADataValue)
		}
	}
	return result
}

// settings are the settings of the requests.
func (c *Client) settings() *config.Config {
	settings := config.New()
	l := &settings.LibDefaults
	l.DefaultTktEnctypeIDs, l.DefaultTGSEnctypeIDs = c.EncryptionTypes, c.EncryptionTypes
	l.NoAddresses, l.TicketLifetime = true, time.Hour
	return settings
}
