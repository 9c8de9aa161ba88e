package kerberos

import (
	"context"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/iana/patype"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// The services that an account authenticates for.
const (
	PasswordService = "kadmin/changepw"
	ticketService   = "krbtgt/"
)

// Identity is an account with its password or with its keys.
type Identity struct {
	// Name is the sAMAccountName.
	Name string
	// Password is nil for Keys.
	Password []byte
	Keys     []Key
}

// Ticket lets an account use one service.
type Ticket struct {
	// Service is such as ldap/dc1.example.com.
	Service string
	account string
	ticket  messages.Ticket
	session types.EncryptionKey
}

// Authenticate returns the ticket with which the account gets others, or with PasswordService the one that changes its
// password, which an expired password gets as well.
func (c *Client) Authenticate(ctx context.Context, id Identity, service string) (*Ticket, error) {
	if service != PasswordService {
		service = ticketService + c.Realm
	}
	request, keys, err := c.preauthenticate(ctx, id, service)
	if err != nil {
		return nil, err
	}
	data, _, err := c.ask(ctx, &request)
	if err != nil {
		return nil, err
	}
	var reply messages.ASRep
	if err := unmarshal(&reply, data); err != nil {
		return nil, fmt.Errorf("read the reply of the authentication service: %w", err)
	}
	key, ok := find(keys, reply.EncPart.EType)
	if !ok {
		return nil, errors.New("the authentication service replies with an encryption type that was not asked for")
	}
	var part messages.EncKDCRepPart
	if err := open(&part, reply.EncPart, key.native(), keyusage.AS_REP_ENCPART); err != nil {
		return nil, fmt.Errorf("decrypt the reply of the authentication service: %w", err)
	}
	if part.Nonce != request.ReqBody.Nonce || !part.SName.Equal(request.ReqBody.SName) ||
		!strings.EqualFold(reply.CName.PrincipalNameString(), id.Name) || reply.CRealm != c.Realm {
		return nil, errors.New("the reply of the authentication service belongs to another request")
	}
	return &Ticket{Service: service, account: reply.CName.PrincipalNameString(), ticket: reply.Ticket, session: part.Key}, nil
}

// preauthenticate completes a request with the time of the client, encrypted with the account's key, and returns the keys of the
// account.
func (c *Client) preauthenticate(ctx context.Context, id Identity, service string) (messages.ASReq, []Key, error) {
	settings := c.settings()
	if len(id.Keys) > 0 { // a reply that no key decrypts is no use
		settings.LibDefaults.DefaultTktEnctypeIDs = slices.DeleteFunc(slices.Clone(c.EncryptionTypes), func(etype int32) bool {
			_, ok := find(id.Keys, etype)
			return !ok
		})
	}
	request, err := messages.NewASReq(c.Realm, settings, principal(id.Name), serviceName(service))
	if err != nil {
		return request, nil, err
	}
	salts, err := c.salts(ctx, &request)
	if err != nil {
		return request, nil, err
	}
	keys := id.Keys
	if id.Password != nil {
		if keys, err = derive(ctx, string(id.Password), salts); err != nil {
			return request, nil, err
		}
	}
	i := slices.IndexFunc(salts, func(s types.ETypeInfo2Entry) bool { _, ok := find(keys, s.EType); return ok })
	if i < 0 {
		return request, nil, &Error{Code: errorcode.KDC_ERR_ETYPE_NOSUPP}
	}
	key, _ := find(keys, salts[i].EType)
	now, err := types.GetPAEncTSEncAsnMarshalled()
	if err != nil {
		return request, nil, err
	}
	encrypted, err := crypto.GetEncryptedData(now, key.native(), keyusage.AS_REQ_PA_ENC_TIMESTAMP, 0)
	if err != nil {
		return request, nil, err
	}
	value, err := encrypted.Marshal()
	request.PAData = types.PADataSequence{{PADataType: patype.PA_ENC_TIMESTAMP, PADataValue: value}}
	return request, keys, err
}

// salts asks which salts the account's keys have, the controller's preferred encryption type first. They are not secret.
func (c *Client) salts(ctx context.Context, request *messages.ASReq) (types.ETypeInfo2, error) {
	_, data, err := c.ask(ctx, request)
	var refused *Error
	if !errors.As(err, &refused) || refused.Code != errorcode.KDC_ERR_PREAUTH_REQUIRED {
		if err == nil {
			err = errors.New("the account needs no preauthentication, which anybody can use to guess its password")
		}
		return nil, err
	}
	var offered types.PADataSequence
	if err := unmarshal(&offered, data); err != nil {
		return nil, fmt.Errorf("read the salts of the account: %w", err)
	}
	for _, o := range offered {
		if o.PADataType != patype.PA_ETYPE_INFO2 {
			continue
		}
		var info types.ETypeInfo2
		if err := unmarshal(&info, o.PADataValue); err != nil {
			return nil, fmt.Errorf("read the salts of the account: %w", err)
		}
		return slices.DeleteFunc(info, func(s types.ETypeInfo2Entry) bool {
			return !slices.Contains(request.ReqBody.EType, s.EType)
		}), nil
	}
	return nil, errors.New("the controller sends no salts of the account")
}

// Keys returns the keys that an account has with this password, of each of the client's encryption types that it supports.
func (c *Client) Keys(ctx context.Context, account, password string) ([]Key, error) {
	request, err := messages.NewASReq(c.Realm, c.settings(), principal(account), serviceName(ticketService+c.Realm))
	if err != nil {
		return nil, err
	}
	// A controller that lists only the best encryption type is asked for each one alone.
	var keys []Key
	for _, etype := range c.EncryptionTypes {
		request.ReqBody.EType = []int32{etype}
		salts, err := c.salts(ctx, &request)
		var refused *Error
		if errors.As(err, &refused) && refused.Code == errorcode.KDC_ERR_ETYPE_NOSUPP {
			continue
		}
		if err != nil {
			return nil, err
		}
		more, err := derive(ctx, password, salts)
		if err != nil {
			return nil, err
		}
		keys = append(keys, more...)
	}
	return keys, nil
}

// Service returns a ticket for a service.
func (c *Client) Service(ctx context.Context, granting *Ticket, service string) (*Ticket, error) {
	request, err := messages.NewTGSReq(principal(granting.account), c.Realm, c.settings(), granting.ticket, granting.session,
		serviceName(service), false)
	if err != nil {
		return nil, err
	}
	data, _, err := c.ask(ctx, &request)
	if err != nil {
		return nil, err
	}
	var reply messages.TGSRep
	if err := unmarshal(&reply, data); err != nil {
		return nil, fmt.Errorf("read the ticket for %s: %w", service, err)
	}
	var part messages.EncKDCRepPart
	if err := open(&part, reply.EncPart, granting.session, keyusage.TGS_REP_ENCPART_SESSION_KEY); err != nil {
		return nil, fmt.Errorf("decrypt the ticket for %s: %w", service, err)
	}
	if part.Nonce != request.ReqBody.Nonce || !part.SName.Equal(request.ReqBody.SName) {
		return nil, fmt.Errorf("the ticket for %s belongs to another request", service)
	}
	return &Ticket{Service: service, account: granting.account, ticket: reply.Ticket, session: part.Key}, nil
}

// Opens reports whether one of the keys decrypts the ticket: then the service that has them accepts its users.
func (t *Ticket) Opens(keys []Key) bool {
	key, ok := find(keys, t.ticket.EncPart.EType)
	if !ok {
		return false
	}
	_, err := decrypt(t.ticket.EncPart.Cipher, key.native(), keyusage.KDC_REP_TICKET)
	return err == nil
}

// The iterations of a salt can come from anybody: fewer than usual would make the password easier to guess, and many take hours.
const usualIterations, mostIterations = 4096, 1 << 16

// derive returns the keys of a password, one for each encryption type. It ends with the context before the next key.
func derive(ctx context.Context, password string, salts types.ETypeInfo2) ([]Key, error) {
	var keys []Key
	for _, s := range salts {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if _, known := find(keys, s.EType); known {
			continue
		}
		etype, err := crypto.GetEtype(s.EType)
		if err != nil {
			return nil, err
		}
		parameters := etype.GetDefaultStringToKeyParams()
		if p := s.S2KParams; len(p) > 0 {
			if len(p) != 4 || binary.BigEndian.Uint32(p) < usualIterations || binary.BigEndian.Uint32(p) > mostIterations {
				return nil, fmt.Errorf("a salt has the iterations %x, not between %d and %d", p, usualIterations, mostIterations)
			}
			parameters = hex.EncodeToString(p)
		}
		value, err := etype.StringToKey(password, s.Salt, parameters)
		if err != nil {
			return nil, fmt.Errorf("derive a key of encryption type %d: %w", s.EType, err)
		}
		keys = append(keys, Key{Type: s.EType, Value: value})
	}
	return keys, nil
}

func find(keys []Key, etype int32) (Key, bool) {
	i := slices.IndexFunc(keys, func(k Key) bool { return k.Type == etype })
	if i < 0 {
		return Key{}, false
	}
	return keys[i], true
}

// Equal takes the same time however much is equal.
func (k Key) Equal(other Key) bool {
	return k.Type == other.Type && subtle.ConstantTimeCompare(k.Value, other.Value) == 1
}

func (k Key) native() types.EncryptionKey {
	return types.EncryptionKey{KeyType: k.Type, KeyValue: k.Value}
}

func principal(name string) types.PrincipalName {
	return types.PrincipalName{NameType: nametype.KRB_NT_PRINCIPAL, NameString: []string{name}}
}

func serviceName(name string) types.PrincipalName {
	return types.NewPrincipalName(nametype.KRB_NT_SRV_INST, name)
}
