package netjoin

import (
	"context"
	"fmt"
	"strings"

	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// Plan returns the changes that make the machine a member of the domain, or end its membership. A member needs no credentials.
func Plan(_ context.Context, m sdk.Machine, want settings.Settings, calls Calls) (sdk.Plan, error) {
	if m.Offline() {
		return sdk.Plan{}, sdk.Precondition("Windows joins and leaves a domain only while it runs", "apply the document on the machine itself")
	}
	m.Claim("machine:domain", "spec.domain", fmt.Sprint(want.Domain, !want.Absent))
	now, err := calls.Observe()
	if err != nil {
		return sdk.Plan{}, sdk.Precondition("Windows does not show of which domain the machine is a member: "+err.Error(),
			"check that the services LanmanWorkstation and SamSs run, and that the run is one of an administrator")
	}
	// Windows names the domain of a member by its NetBIOS name; only the DNS name is unique.
	if now.member() && !strings.EqualFold(now.DNS, want.Domain) {
		return sdk.Plan{}, refuse("spec.domain", "the machine is a member of another domain, "+now.NetBIOS+" "+now.DNS,
			"let it leave that domain first: a DomainJoin with that domain and state: absent, in a run of its own")
	}
	j := join{want: want, calls: calls, now: now}
	if want.Absent {
		return j.leaving()
	}
	return j.joining()
}

// refuse is a precondition that no other document of the stream can fulfil.
func refuse(field, message, hint string) error {
	return sdk.Final(sdk.At(sdk.Precondition(message, hint), field))
}

type join struct {
	want  settings.Settings
	calls Calls
	now   State
}

func (j join) joining() (sdk.Plan, error) {
	renamed := !strings.EqualFold(j.now.NextName, j.want.Computer)
	var plan sdk.Plan
	switch {
	case j.now.member() && renamed:
		return plan, refuse("spec.computerName", fmt.Sprintf("the machine is a member as %s and not as %s", j.now.NextName, j.want.Computer),
			"set spec.computerName: "+j.now.NextName+"; to rename it, let it leave the domain first (state: absent)")
	case j.now.member() && (j.now.Mark != "" || !strings.EqualFold(j.now.Name, j.now.NextName)), j.now.Mark == Provisioned:
		plan.Add(reboot())
		return plan, nil
	case j.now.member():
		return plan, nil
	case j.want.OfflineJoinBlob != nil: // it brings the name of the machine too
		plan.Add(&sdk.Change{
			ID: "domain:join", Summary: "join " + j.want.Domain + " with the data of an offline join", Reboot: sdk.RebootBeforeNext, Do: j.provision,
		})
		return plan, nil
	case j.want.Credentials == nil:
		return plan, j.noCredentials("join")
	case renamed && !j.want.Rename:
		return plan, refuse("spec.computerName", fmt.Sprintf("the name of the machine is %s and not %s", j.now.NextName, j.want.Computer),
			"set spec.windows.rename: true, or spec.computerName: "+j.now.NextName)
	case renamed:
		plan.Add(&sdk.Change{
			ID: "computer:name", Summary: "rename the machine from " + j.now.NextName + " to " + j.want.Computer,
			Reboot: sdk.RebootBeforeNext, Do: j.rename,
		})
	}
	plan.Add(&sdk.Change{
		ID: "domain:join", Summary: "join " + j.want.Domain + " as " + j.want.Computer, Reboot: sdk.RebootBeforeNext, Do: j.join,
	})
	return plan, nil
}

func (j join) leaving() (sdk.Plan, error) {
	var plan sdk.Plan
	switch {
	case !j.now.member() && j.now.Mark != "":
		plan.Add(reboot())
	case !j.now.member():
	case j.want.Credentials == nil:
		return plan, j.noCredentials("leave")
	default:
		plan.Add(&sdk.Change{
			ID: "domain:leave", Summary: "leave " + j.want.Domain + " and disable the account " + j.now.Name,
			Reboot: sdk.RebootBeforeNext, Do: j.leave,
		})
	}
	return plan, nil
}

func (j join) noCredentials(action string) error {
	return refuse("spec.credentials", "the machine has to "+action+" "+j.want.Domain+", and the document has no credentials for it",
		"set spec.credentials")
}

// reboot repeats the request of a change that this boot has made.
func reboot() *sdk.Change {
	return &sdk.Change{
		ID: "reboot", Summary: "reboot, which the new membership or name waits for", Reboot: sdk.RebootBeforeNext,
		Do: func(context.Context, sdk.Progress) error { return nil },
	}
}

func (j join) rename(context.Context, sdk.Progress) error {
	if err := j.calls.Rename(strings.ToLower(j.want.Computer)); err != nil {
		return explain(err, "rename the machine")
	}
	return nil
}

// join asks the domain controllers in turn, until one can be reached.
func (j join) join(context.Context, sdk.Progress) error {
	r := Request{
		Unit: j.want.Unit, Account: j.account(), Password: j.want.Credentials.Password.Reveal(), Flags: JoinDomain | Create,
	}
	if !j.want.Reuse {
		r.Flags |= NoReuse
	}
	if !strings.EqualFold(j.now.Name, j.want.Computer) {
		r.Flags |= WithNewName
	}
	if err := j.calls.Mark(Begun); err != nil {
		return err
	}
	targets := []string{j.want.Domain}
	for i, server := range j.want.Servers {
		targets = append(targets[:i], j.want.Domain+`\`+server)
	}
	var err error
	for _, r.Domain = range targets {
		if err = j.calls.Join(r); !unreachable(err) {
			break
		}
	}
	if err != nil {
		return explain(err, "join "+j.want.Domain)
	}
	return j.check(true)
}

// provision has no membership to check before the next boot.
func (j join) provision(context.Context, sdk.Progress) error {
	blob, err := provisioningData(j.want.OfflineJoinBlob.Reveal())
	if err != nil {
		return refuse("spec.offlineJoinBlob", err.Error(), blobHint)
	}
	defer clear(blob)
	if err := j.calls.Join(Request{Blob: blob}); err != nil {
		return explain(err, "prepare the offline join of "+j.want.Domain)
	}
	return j.calls.Mark(Provisioned)
}

func (j join) leave(context.Context, sdk.Progress) error {
	if err := j.calls.Mark(Begun); err != nil {
		return err
	}
	if err := j.calls.Leave(j.account(), j.want.Credentials.Password.Reveal()); err != nil {
		return explain(err, "leave "+j.want.Domain)
	}
	return j.check(false)
}

func (j join) account() string { return j.want.Credentials.Username + "@" + j.want.Domain }

// check reads the membership back.
func (j join) check(member bool) error {
	now, err := j.calls.Observe()
	if err == nil && (now.member() != member || member && !strings.EqualFold(now.DNS, j.want.Domain)) {
		return sdk.Precondition("Windows reports success, and shows the domain "+now.NetBIOS+" "+now.DNS+" afterwards", logHint)
	}
	return err
}
