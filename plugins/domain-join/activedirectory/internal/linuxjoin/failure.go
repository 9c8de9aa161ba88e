package linuxjoin

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"time"

	"github.com/go-ldap/ldap/v3"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/internal/netfault"
	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/directory"
	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/kerberos"
	"github.com/machineadm/machineadm/sdk"
)

// reason explains a code of Kerberos or LDAP.
type reason struct{ message, hint string }

// The codes of RFC 4120 that an account meets.
const (
	unknownAccount   = 6
	unknownService   = 7
	policy           = 12
	noEncryptionType = 14
	revoked          = 18
	passwordExpired  = 23
	wrongPassword    = 24
	wrongTime        = 37
)

// statuses are Windows statuses that explain Kerberos errors.
func statuses() map[uint32]reason {
	return map[uint32]reason{
		0xc000006a: {"the password is wrong", "correct it"},
		0xc000006e: {"the account is restricted", "lift its restrictions in the domain, or use another account"},
		0xc000006f: {"the account may not log on at this time", "change its logon hours, or use another account"},
		0xc0000070: {"the account may not log on at this machine", "change the machines it may log on to, or use another account"},
		0xc0000071: {"the password has expired", "set a new one in the domain"},
		0xc0000072: {"the account is disabled", "enable it in the domain, or use another account"},
		0xc0000193: {"the account has expired", "extend it in the domain, or use another account"},
		0xc0000224: {"the password must be changed before it is used", "change it in the domain"},
		0xc0000234: {"the account is locked out", "unlock it in the domain, and find out what locks it"},
	}
}

func kerberosReasons() map[int32]reason {
	return map[int32]reason{
		unknownAccount:   {"the domain has no such account", "correct the name; it is the sAMAccountName, without the domain"},
		unknownService:   {"the domain controller has no such service", "check that its name in DNS is that of its account"},
		policy:           {"a policy of the domain refuses the account", "see the authentication policies of the domain"},
		noEncryptionType: {"the account has no key of the encryption types", "set its password again, or add the type in spec.encryptionTypes"},
		revoked:          {"the account is disabled, expired or locked out", "see the account in the domain"},
		passwordExpired:  {"the password has expired, or must be changed before it is used", "change it in the domain"},
		wrongPassword:    {"the password is wrong", "correct it"},
		wrongTime:        {"the clock differs too much from the domain controller's", "synchronize it first, with a Timesync document"},
	}
}

func ldapReasons() map[uint16]reason {
	return map[uint16]reason{
		ldap.LDAPResultStrongAuthRequired: {"the domain controller requires a protected connection", "set spec.transport to sealed or ldaps"},
		ldap.LDAPResultNoSuchObject:       {"the organizational unit does not exist", "correct spec.organizationalUnit"},
		ldap.LDAPResultConstraintViolation: {
			"a rule of the domain refuses the value",
			"see details.json; a machine may give itself the name of its account with the domain's, and other names need credentials",
		},
		ldap.LDAPResultInsufficientAccessRights: {"the account lacks a right", "grant it on the organizational unit, see the README of the plugin"},
		ldap.LDAPResultEntryAlreadyExists: {
			"another object has the name of the account",
			"choose another spec.computerName, or remove the object",
		},
		ldap.LDAPResultUnwillingToPerform: {"the domain controller refuses the change", "see details.json"},
		ldap.LDAPResultInvalidCredentials: {"the domain controller does not accept the ticket", "check that its name in DNS is that of its account"},
		ldap.LDAPResultReferral:           {"the domain controller sends to another one", "name a writable one in spec.servers"},
	}
}

// retryAfter is the pause before the next try after a connection broke.
const retryAfter = 2 * time.Second

// quotaExceeded is the Windows error of an account that has created as many computers as each user may.
const quotaExceeded = "0000216D"

// explain turns a refusal of the domain into an error of the document with its cause, remedy and codes. The SDK classifies other
// failures of the network.
func explain(err error, doing, field string) error {
	if _, known := errors.AsType[*pluginv1.Error](err); known || err == nil {
		return err
	}
	refused := func(r reason, facts map[string]string) error {
		return sdk.WithFacts(sdk.Preconditions(sdk.Violation{Field: field, Message: doing + ": " + r.message, Hint: r.hint}), facts)
	}
	var byKerberos *kerberos.Error
	var byLDAP *ldap.Error
	var byPassword *kerberos.PasswordError
	switch {
	case errors.As(err, &byKerberos):
		facts := map[string]string{"kerberosError": strconv.Itoa(int(byKerberos.Code))}
		r, ok := kerberosReasons()[byKerberos.Code]
		if byKerberos.Status != 0 {
			facts["windowsStatus"] = fmt.Sprintf("%#x", byKerberos.Status)
			if better, known := statuses()[byKerberos.Status]; known {
				r, ok = better, true
			}
		}
		if !ok {
			r = reason{byKerberos.Error(), "look up the code in RFC 4120, section 7.5.9"}
		}
		return refused(r, facts)
	case errors.As(err, &byPassword):
		r := reason{"the domain refuses to change the password", "see its rules for passwords, such as the minimum age"}
		return refused(r, map[string]string{"passwordResult": strconv.Itoa(int(byPassword.Result))})
	case errors.As(err, &byLDAP) && byLDAP.ResultCode < ldap.ErrorNetwork:
		facts := map[string]string{"ldapResult": strconv.Itoa(int(byLDAP.ResultCode))}
		r, ok := ldapReasons()[byLDAP.ResultCode]
		if code := regexp.MustCompile(`^([0-9A-F]{8}):`).FindStringSubmatch(byLDAP.Err.Error()); code != nil {
			facts["windowsError"] = code[1]
			if code[1] == quotaExceeded {
				r, ok = reason{"the account has created as many computers as it may", "grant it the right to create computers in the organizational unit"}, true
			}
		}
		if !ok {
			r = reason{fmt.Sprintf("LDAP result %d", byLDAP.ResultCode), "see details.json"}
		}
		return sdk.WithDetail(refused(r, facts), err.Error())
	case errors.Is(err, directory.ErrNoController):
		return refused(reason{directory.ErrNoController.Error(), "check the name servers of this machine, or set spec.servers"}, nil)
	case errors.Is(err, directory.ErrLost), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return sdk.Retry(retryAfter, doing+": "+err.Error())
	case errors.Is(err, directory.ErrReadOnly):
		return refused(reason{err.Error(), "name a writable one in spec.servers"}, nil)
	case netfault.Is(err, netfault.Certificate):
		field = "spec.ca"
	}
	expired := netfault.Is(err, netfault.Expired)
	err = sdk.At(fmt.Errorf("%s: %w", doing, err), field)
	if expired {
		err = sdk.Needs(err, "clock:")
	}
	if e, ok := errors.AsType[*pluginv1.Error](err); ok && e.Code == pluginv1.CodeInternal {
		return sdk.Retry(retryAfter, e.Message) // a reply that is unreadable: no defect of the plugin
	}
	return err
}

// refuses reports whether the domain has no such account or not with this secret, as opposed to a failure that says nothing.
func refuses(err error) bool {
	var e *kerberos.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code {
	case unknownAccount, noEncryptionType, revoked, passwordExpired, wrongPassword:
		return true
	}
	return false
}

// isCode reports whether the domain refuses with this code of Kerberos.
func isCode(err error, code int32) bool {
	var e *kerberos.Error
	return errors.As(err, &e) && e.Code == code
}
