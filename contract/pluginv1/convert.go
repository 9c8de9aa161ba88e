package pluginv1

import (
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1/pb"
	"github.com/machineadm/machineadm/contract/target"
)

func targetToPB(t target.Target) *pb.Target {
	return &pb.Target{
		Os: t.OS, Architecture: t.Architecture, Distribution: t.Distribution, Like: t.Like,
		Version: t.Version, Name: clean(t.Name), Kernel: t.Kernel, Hostname: clean(t.Hostname), Init: t.Init,
	}
}

func targetFromPB(t *pb.Target) target.Target {
	return target.Target{
		OS: t.GetOs(), Architecture: t.GetArchitecture(), Distribution: t.GetDistribution(), Like: t.GetLike(),
		Version: t.GetVersion(), Name: t.GetName(), Kernel: t.GetKernel(), Hostname: t.GetHostname(), Init: t.GetInit(),
	}
}

func descriptionToPB(d Description) *pb.DescribeResponse {
	out := &pb.DescribeResponse{
		Name: d.Name, Version: clean(d.Version), FitnessReason: clean(d.FitnessReason),
		Distributions: d.Distributions, Capabilities: d.Capabilities,
		Fitness: map[Fitness]pb.Fitness{
			FitnessUnsupported: pb.Fitness_FITNESS_UNSUPPORTED, FitnessAbsent: pb.Fitness_FITNESS_ABSENT,
			FitnessInstalled: pb.Fitness_FITNESS_INSTALLED, FitnessActive: pb.Fitness_FITNESS_ACTIVE,
		}[d.Fitness],
	}
	for _, k := range d.Kinds {
		out.Kinds = append(out.Kinds, &pb.Kind{
			ApiVersion: k.APIVersion, Kind: k.Kind, JsonSchema: k.JSONSchema, SecretFields: k.SecretFields,
			Provides: providesToPB(k.Provides), Phase: map[Phase]pb.Phase{
				PhasePreparation: pb.Phase_PHASE_PREPARATION, PhaseProvisioning: pb.Phase_PHASE_PROVISIONING,
			}[k.Phase],
		})
	}
	return out
}

func descriptionFromPB(d *pb.DescribeResponse) Description {
	out := Description{
		Name: d.GetName(), Version: d.GetVersion(), FitnessReason: d.GetFitnessReason(),
		Distributions: d.GetDistributions(), Capabilities: d.GetCapabilities(),
		Fitness: map[pb.Fitness]Fitness{
			pb.Fitness_FITNESS_UNSUPPORTED: FitnessUnsupported, pb.Fitness_FITNESS_ABSENT: FitnessAbsent,
			pb.Fitness_FITNESS_INSTALLED: FitnessInstalled, pb.Fitness_FITNESS_ACTIVE: FitnessActive,
		}[d.GetFitness()],
	}
	for _, k := range d.GetKinds() {
		out.Kinds = append(out.Kinds, Kind{
			APIVersion: k.GetApiVersion(), Kind: k.GetKind(), JSONSchema: k.GetJsonSchema(), SecretFields: k.GetSecretFields(),
			Provides: providesFromPB(k.GetProvides()), Phase: map[pb.Phase]Phase{
				pb.Phase_PHASE_PREPARATION: PhasePreparation, pb.Phase_PHASE_PROVISIONING: PhaseProvisioning,
			}[k.GetPhase()],
		})
	}
	return out
}

func providesToPB(ids []string) *pb.Provides {
	if ids == nil {
		return nil
	}
	return &pb.Provides{Ids: ids}
}

func providesFromPB(p *pb.Provides) []string {
	if p == nil {
		return nil
	}
	return append([]string{}, p.GetIds()...)
}

func rebootToPB(r Reboot) pb.Reboot {
	switch r {
	case RebootAfterRun:
		return pb.Reboot_REBOOT_AFTER_RUN
	case RebootBeforeNext:
		return pb.Reboot_REBOOT_BEFORE_NEXT
	default:
		return pb.Reboot_REBOOT_NONE
	}
}

func rebootFromPB(r pb.Reboot) Reboot {
	switch r {
	case pb.Reboot_REBOOT_AFTER_RUN:
		return RebootAfterRun
	case pb.Reboot_REBOOT_BEFORE_NEXT:
		return RebootBeforeNext
	default:
		return RebootNone
	}
}

func changeToPB(c Change) *pb.Change {
	return &pb.Change{
		Id: clean(c.ID), Summary: clean(c.Summary), Diff: clean(c.Diff),
		NeedsLive: c.NeedsLive, Reboot: rebootToPB(c.Reboot), Listed: c.Listed,
	}
}

func changeFromPB(c *pb.Change) Change {
	return Change{
		ID: c.GetId(), Summary: c.GetSummary(), Diff: c.GetDiff(),
		NeedsLive: c.GetNeedsLive(), Reboot: rebootFromPB(c.GetReboot()), Listed: c.GetListed(),
	}
}

func changesFromPB(in []*pb.Change) []Change {
	var out []Change
	for _, c := range in {
		out = append(out, changeFromPB(c))
	}
	return out
}

func claimsToPB(in []Claim) []*pb.Claim {
	var out []*pb.Claim
	for _, c := range in {
		out = append(out, &pb.Claim{Id: clean(c.ID), Digest: c.Digest, Field: clean(c.Field), Assumed: c.Assumed})
	}
	return out
}

func claimsFromPB(in []*pb.Claim) []Claim {
	var out []Claim
	for _, c := range in {
		out = append(out, Claim{ID: c.GetId(), Digest: c.GetDigest(), Field: c.GetField(), Assumed: c.GetAssumed()})
	}
	return out
}

func planToPB(p Plan) *pb.PlanResponse {
	out := &pb.PlanResponse{Claims: claimsToPB(p.Claims), Files: filesToPB(p.Files), Needs: p.Needs}
	for _, c := range p.Changes {
		out.Changes = append(out.Changes, changeToPB(c))
	}
	out.Warnings = warningsToPB(p.Warnings)
	return out
}

func planFromPB(p *pb.PlanResponse) Plan {
	return Plan{
		Changes: changesFromPB(p.GetChanges()), Warnings: warningsFromPB(p.GetWarnings()), Claims: claimsFromPB(p.GetClaims()), Files: filesFromPB(p.GetFiles()),
		Needs: p.GetNeeds(),
	}
}

func warningsToPB(in []Warning) []*pb.Warning {
	var out []*pb.Warning
	for _, w := range in {
		out = append(out, &pb.Warning{Field: clean(w.Field), Message: clean(w.Message)})
	}
	return out
}

func warningsFromPB(in []*pb.Warning) []Warning {
	var out []Warning
	for _, w := range in {
		out = append(out, Warning{Field: w.GetField(), Message: w.GetMessage()})
	}
	return out
}

func eventToPB(e Event) *pb.ApplyEvent {
	switch e := e.(type) {
	case Started:
		return &pb.ApplyEvent{Event: &pb.ApplyEvent_Started{Started: &pb.Started{Change: changeToPB(e.Change)}}}
	case Changed:
		return &pb.ApplyEvent{Event: &pb.ApplyEvent_Changed{Changed: &pb.Changed{Id: clean(e.ID)}}}
	case Progress:
		return &pb.ApplyEvent{Event: &pb.ApplyEvent_Progress{Progress: &pb.Progress{
			Id: clean(e.ID), Message: clean(e.Message), Reboot: rebootToPB(e.Reboot),
		}}}
	case Warning:
		return &pb.ApplyEvent{Event: &pb.ApplyEvent_Warning{Warning: &pb.Warning{
			Field: clean(e.Field), Message: clean(e.Message),
		}}}
	case Finished:
		f := &pb.Finished{Stopped: e.Stopped}
		if e.Error != nil {
			f.Error = errorToPB(e.Error)
		}
		for _, c := range e.Deferred {
			f.Deferred = append(f.Deferred, changeToPB(c))
		}
		return &pb.ApplyEvent{Event: &pb.ApplyEvent_Finished{Finished: f}}
	default:
		return &pb.ApplyEvent{}
	}
}

func errorToPB(e *Error) *pb.ErrorDetail {
	out := &pb.ErrorDetail{
		Code: map[Code]pb.Code{
			CodeInternal: pb.Code_CODE_INTERNAL, CodeInvalidConfig: pb.Code_CODE_INVALID_CONFIG,
			CodeUnsupported: pb.Code_CODE_UNSUPPORTED, CodePrecondition: pb.Code_CODE_PRECONDITION,
			CodeRetry: pb.Code_CODE_RETRY,
		}[e.Code],
		Message: clean(e.Message), Hint: clean(e.Hint), Detail: clean(e.Detail),
	}
	if e.RetryAfter > 0 {
		out.RetryAfter = durationpb.New(e.RetryAfter)
	}
	out.Final, out.Claims, out.Warnings = e.Final, claimsToPB(e.Claims), warningsToPB(e.Warnings)
	for key, value := range e.Facts {
		if out.Facts == nil {
			out.Facts = map[string]string{}
		}
		out.Facts[clean(key)] = clean(value)
	}
	for _, v := range e.Violations {
		out.Violations = append(out.Violations,
			&pb.Violation{Field: clean(v.Field), Message: clean(v.Message), Hint: clean(v.Hint), Needs: clean(v.Needs)})
	}
	return out
}

func errorFromPB(d *pb.ErrorDetail) *Error {
	e := &Error{
		Message: d.GetMessage(), Hint: d.GetHint(), Detail: d.GetDetail(),
		Final: d.GetFinal(), Facts: d.GetFacts(), Claims: claimsFromPB(d.GetClaims()), Warnings: warningsFromPB(d.GetWarnings()),
	}
	switch d.GetCode() {
	case pb.Code_CODE_INVALID_CONFIG:
		e.Code = CodeInvalidConfig
	case pb.Code_CODE_UNSUPPORTED:
		e.Code = CodeUnsupported
	case pb.Code_CODE_PRECONDITION:
		e.Code = CodePrecondition
	case pb.Code_CODE_RETRY:
		e.Code = CodeRetry
		if d.GetRetryAfter().IsValid() {
			e.RetryAfter = max(0, d.GetRetryAfter().AsDuration())
		}
	default:
		e.Code = CodeInternal
	}
	for _, v := range d.GetViolations() {
		e.Violations = append(e.Violations,
			document.Violation{Field: v.GetField(), Message: v.GetMessage(), Hint: v.GetHint(), Needs: v.GetNeeds()})
	}
	return e
}
