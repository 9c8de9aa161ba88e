package linuxjoin

import (
	"context"

	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/directory"
	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/keytab"
	"github.com/machineadm/machineadm/sdk"
)

// planLeave adds what is left of a membership. A machine without keys of the account is none: then nothing is asked.
func (j *join) planLeave(ctx context.Context, result *sdk.Plan) error {
	keys, _ := keytab.Keys(j.entries, j.principal())
	if len(keys) == 0 && j.begun == nil {
		return nil
	}
	if err := j.open(ctx); err != nil {
		return err
	}
	have, _, why, err := j.observe(ctx)
	if err != nil {
		return err
	}
	// An account that is gone, or disabled if that is all that is asked for, needs no credentials.
	if have != stranger || !isCode(why, unknownAccount) && (!j.s.Disable || !isCode(why, revoked)) {
		if err := j.planEnd(ctx, result); err != nil {
			return err
		}
	}
	return j.planForget(result)
}

// planEnd adds the end of the account.
func (j *join) planEnd(ctx context.Context, result *sdk.Plan) error {
	name := j.s.Computer + "$"
	if j.s.Credentials == nil {
		return sdk.Preconditions(sdk.Violation{
			Field: "spec.credentials", Message: "the account " + name + " exists, and the document has no credentials to end it",
			Hint: "add credentials of an account that may delete or disable it",
		})
	}
	if err := j.logOn(ctx); err != nil {
		return err
	}
	account, err := j.session.Account(ctx, j.s.Computer)
	if err != nil {
		return explain(err, "look for the account "+name, "spec.computerName")
	}
	if account == nil || j.s.Disable && account.Disabled {
		return nil
	}
	word, end := "delete", (*directory.Session).Delete
	if j.s.Disable {
		word, end = "disable", (*directory.Session).Disable
	}
	doing := word + " the account " + account.DN
	result.Add(&sdk.Change{ID: "account", Summary: doing, Do: func(ctx context.Context, _ sdk.Progress) error {
		if err := j.open(ctx); err != nil {
			return err
		}
		if err := j.logOn(ctx); err != nil {
			return err
		}
		return explain(end(j.session, ctx, *account), doing, "spec.credentials")
	}})
	return nil
}

// planForget removes the keys of the account. The file goes with its last key.
func (j *join) planForget(result *sdk.Plan) error {
	spec := sdk.FileSpec{Path: j.s.Keytab.Path, Absent: true}
	if _, others := keytab.Split(j.entries, j.principal()); len(others) > 0 {
		spec = sdk.FileSpec{Path: j.s.Keytab.Path, Content: keytab.Marshal(others), Mode: j.s.Keytab.Mode, Owner: &j.s.Keytab.Owner, Sensitive: true}
	}
	change, err := sdk.File(j.m, spec)
	if err != nil {
		return sdk.At(err, "spec.keytab")
	}
	result.Add(change)
	if j.begun != nil {
		result.Add(&sdk.Change{
			ID: "password", Summary: "remove the stored password of the account",
			Do: func(context.Context, sdk.Progress) error { return j.unfinished.End() },
		})
	}
	return nil
}
