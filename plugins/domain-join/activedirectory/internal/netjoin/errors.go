package netjoin

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/machineadm/machineadm/sdk"
)

const (
	logHint  = `see C:\Windows\debug\NetSetup.LOG, and net helpmsg with the number of the error`
	blobHint = "make new data with djoin.exe /provision /domain DOMAIN /machine NAME /savefile FILE, and set spec.offlineJoinBlob to the text of FILE"
)

// failure is what an error code means for a join. With retry it may pass.
type failure struct {
	reason, hint, field string
	retry               bool
}

// explain returns the cause and the remedy of an error of Windows, with its code as a fact.
func explain(err error, action string) error {
	code, ok := errors.AsType[CodeError](err)
	if !ok {
		return err
	}
	f := failureOf(code)
	message := fmt.Sprintf("Windows cannot %s: %s (error %d)", action, f.reason, uint32(code))
	switch {
	case f.retry:
		err = sdk.Retry(0, message+"; "+f.hint)
	case f.field == "":
		err = sdk.Precondition(message, f.hint)
	default:
		err = sdk.At(sdk.Precondition(message, f.hint), f.field)
	}
	return sdk.WithFacts(err, map[string]string{"windowsError": strconv.FormatUint(uint64(code), 10)})
}

// unreachable reports that another domain controller may answer.
func unreachable(err error) bool {
	code, ok := errors.AsType[CodeError](err)
	return ok && failureOf(code).retry
}

// failureOf returns the meaning of a code. Source: winerror.h, lmerr.h, and the return values of [MS-WKST].
func failureOf(code CodeError) failure {
	if f, ok := logonFailure(code); ok {
		f.field = "spec.credentials"
		return f
	}
	const (
		ports    = "check that the machine reaches the domain controllers on the ports 53, 88, 135, 389, 445 and 49152-65535"
		existing = "spec.existingAccount"
	)
	switch code {
	case 2, 8329, 8333: // FILE_NOT_FOUND of the unit; DS_NO_SUCH_OBJECT in two forms
		return failure{reason: "the organizational unit does not exist", hint: "correct it", field: "spec.organizationalUnit"}
	case 53, 1231: // BAD_NETPATH, NETWORK_UNREACHABLE
		return failure{reason: "the domain controller cannot be reached", hint: ports, retry: true}
	case 1722, 1727: // RPC_S_SERVER_UNAVAILABLE, RPC_S_CALL_FAILED_DNE
		return failure{reason: "the domain controller does not answer remote procedure calls", hint: ports, retry: true}
	case 1311: // NO_LOGON_SERVERS
		return failure{reason: "no domain controller is available for the logon", hint: ports, retry: true}
	case 1355: // NO_SUCH_DOMAIN
		return failure{
			reason: "the domain is not found, or none of its domain controllers answers", retry: true,
			hint: "check spec.domain, and that the name servers of the machine resolve _ldap._tcp.dc._msdcs of the domain",
		}
	case 87: // INVALID_PARAMETER
		return failure{reason: "a value is not valid", hint: "check spec.organizationalUnit and spec.servers; " + logHint}
	case 1398: // TIME_SKEW
		return failure{
			reason: "the clocks of the machine and of the domain controller differ",
			hint:   "synchronize the clock, with a Timesync document ahead of this one",
		}
	case 1219: // SESSION_CREDENTIAL_CONFLICT
		return failure{
			reason: "the machine is already connected to the domain controller as another user",
			hint:   "end those connections (net use * /delete), or restart the machine",
		}
	case 2224, 1316: // NERR_UserExists, USER_EXISTS
		return failure{
			reason: "the domain has an account of this name", field: existing,
			hint: "delete it if nothing uses it, as after an interrupted join, or set spec.existingAccount: reuse",
		}
	case 2732: // NERR_AccountReuseBlockedByPolicy
		return failure{
			reason: "the domain has an account of this name, and its policy forbids this user to reuse it", field: existing,
			hint: "use the credentials that created the account, have its owner added to the policy " +
				`"Domain controller: Allow computer account re-use during domain join" (KB5020276), or delete the account`,
		}
	case 2691: // NERR_SetupAlreadyJoined
		return failure{reason: "it is a member of a domain already", hint: "run again, which compares the domain with the document"}
	case 2692: // NERR_SetupNotJoined
		return failure{reason: "it is not a member of a domain any more", hint: "run again"}
	case 2693: // NERR_SetupDomainController
		return failure{reason: "it is a domain controller", hint: "demote it first, or remove the document"}
	case 2697: // NERR_ComputerAccountNotFound
		return failure{reason: "the domain has no account for the machine", hint: "check that the account of the machine was not deleted; " + logHint}
	case 2698: // NERR_PersonalSku
		return failure{reason: "this edition of Windows cannot join a domain", hint: "use another edition, such as Pro or Server"}
	case 2709, 2710, 2712, 2719: // NERR_NoOfflineJoinInfo, BadOfflineJoinInfo, BadDomainJoinInfo, ProvisioningBlobUnsupported
		return failure{reason: "the data of the offline join cannot be used", hint: blobHint, field: "spec.offlineJoinBlob"}
	default:
		return failure{reason: "it reports an error that this plugin has no explanation for", hint: logHint}
	}
}

// logonFailure explains what is wrong with the credentials.
func logonFailure(code CodeError) (failure, bool) {
	const unlock = "have an administrator of the domain "
	switch code {
	case 5: // ACCESS_DENIED
		return failure{
			reason: "access is denied",
			hint: "run as a local administrator, with credentials of an account that may create computers in the organizational unit, " +
				"and reset the account of this one where it exists",
		}, true
	case 86, 1326: // INVALID_PASSWORD, LOGON_FAILURE
		return failure{reason: "the user name or the password is wrong", hint: "correct spec.credentials"}, true
	case 2202, 2221, 1317: // NERR_BadUsername, NERR_UserNotFound, NO_SUCH_USER
		return failure{
			reason: "the domain has no such user", hint: "correct spec.credentials.username, which has no domain in it",
		}, true
	case 1327, 1328, 1329: // ACCOUNT_RESTRICTION, INVALID_LOGON_HOURS, INVALID_WORKSTATION
		return failure{
			reason: "a restriction of the user forbids the logon", hint: unlock + "check the user's hours, workstations and policies",
		}, true
	case 1330, 1907, 2701: // PASSWORD_EXPIRED, PASSWORD_MUST_CHANGE, NERR_PasswordMustChange
		return failure{
			reason: "the password of the user has expired or must be changed first",
			hint:   "change it, and set spec.credentials.password to the new one",
		}, true
	case 1331: // ACCOUNT_DISABLED
		return failure{reason: "the user is disabled", hint: unlock + "enable it"}, true
	case 1385: // LOGON_TYPE_NOT_GRANTED
		return failure{reason: "the user may not log on over the network", hint: unlock + "grant that right"}, true
	case 1793: // ACCOUNT_EXPIRED
		return failure{reason: "the account of the user has expired", hint: unlock + "extend it"}, true
	case 1909, 2702: // ACCOUNT_LOCKED_OUT, NERR_AccountLockedOut
		return failure{reason: "the user is locked out after too many wrong passwords", hint: unlock + "unlock it"}, true
	case 8557: // DS_MACHINE_ACCOUNT_QUOTA_EXCEEDED
		return failure{
			reason: "the user has created as many computers as the domain allows (ms-DS-MachineAccountQuota)",
			hint:   unlock + "delegate the right to create computers in the organizational unit, which no quota limits, or use another user",
		}, true
	default:
		return failure{}, false
	}
}
