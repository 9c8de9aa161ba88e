package netjoin

import (
	"strings"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

// Unsupported returns the fields whose values Windows cannot express. Settings refuse those that mean nothing on Windows.
// Source: NetJoinDomain, NETSETUP_MACHINE_PWD_PASSED; NetUnjoinDomain, NETSETUP_ACCT_DELETE.
func Unsupported(spec v1alpha1.DomainJoinSpec) (all []sdk.Violation) {
	if spec.OneTimePassword != nil {
		all = append(all, sdk.Violation{
			Field: "spec.oneTimePassword", Message: "Windows takes the password of a computer's account for an unsecured join alone, which is never made",
			Hint: "use spec.offlineJoinBlob: djoin.exe /provision /reuse makes its data for an existing account",
		})
	}
	if spec.State == "absent" && spec.Leave != "disable" {
		all = append(all, sdk.Violation{
			Field: "spec.leave", Message: "Windows disables its account when it leaves a domain, and cannot delete it",
			Hint: "set spec.leave: disable, and delete the account in the directory",
		})
	}
	if spec.FQDN != "" && !strings.EqualFold(spec.FQDN, spec.ComputerName+"."+spec.Domain) {
		all = append(all, sdk.Violation{
			Field: "spec.fqdn", Message: "the DNS name of a Windows machine is its name, followed by the domain of which it is a member",
			Hint: "leave it out; spec.computerName and spec.windows.rename change the name",
		})
	}
	return all
}
