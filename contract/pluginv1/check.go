package pluginv1

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1/pb"
)

// breach returns an Internal error with the clause of SPEC.md that the plugin violates.
func breach(clause, format string, args ...any) *Error {
	return &Error{
		Code: CodeInternal, Clause: clause,
		Message: fmt.Sprintf("the plugin breaks the contract (%s): ", clause) + fmt.Sprintf(format, args...),
	}
}

// receivedDescription converts and checks an answer of Describe.
func receivedDescription(answer *pb.DescribeResponse) (Description, error) {
	bound(answer)
	d := descriptionFromPB(answer)
	for what, number := range map[string]int{
		"kinds": len(d.Kinds), "distributions": len(d.Distributions), "capabilities": len(d.Capabilities),
	} {
		if number > MaxNames {
			return Description{}, breach("P-31", "Describe lists %d %s, more than %d", number, what, MaxNames)
		}
	}
	if d.Name == "" || d.Version == "" {
		return Description{}, breach("P-11", "Describe names no provider or no version")
	}
	for _, k := range d.Kinds {
		switch {
		case k.APIVersion == "" || k.Kind == "":
			return Description{}, breach("P-11", "Describe lists a kind without a name or an apiVersion")
		case len(k.JSONSchema) > MaxSchemaBytes:
			return Description{}, breach("P-31", "the JSON schema of the kind %s is larger than %d bytes", k.Kind, MaxSchemaBytes)
		case len(k.SecretFields) > MaxNames:
			return Description{}, breach("P-31", "the kind %s lists %d secret fields, more than %d", k.Kind, len(k.SecretFields), MaxNames)
		case len(k.Provides) > MaxNames:
			return Description{}, breach("P-31", "the kind %s provides %d ids, more than %d", k.Kind, len(k.Provides), MaxNames)
		case slices.ContainsFunc(k.Provides, func(id string) bool { return !beginsClaim(id) }):
			return Description{}, breach("P-53", "the kind %s provides what is no beginning of the id of a claim", k.Kind)
		}
	}
	return d, nil
}

// beginsClaim reports whether a text is the id of a claim or a beginning of ids.
func beginsClaim(id string) bool { return regexp.MustCompile(`^[a-z][a-z0-9-]*:`).MatchString(id) }

// receivedPlan converts and checks an answer of Plan.
func receivedPlan(answer *pb.PlanResponse, keyed, listing bool) (Plan, error) {
	bound(answer)
	p := planFromPB(answer)
	if err := checkChanges("the plan", p.Changes); err != nil {
		return Plan{}, err
	}
	p.Warnings = fewWarnings(p.Warnings)
	if !keyed && len(p.Claims) > 0 {
		return Plan{}, breach("P-34", "Plan answered with claims although the request has no key")
	}
	switch {
	case len(p.Needs) > MaxNames:
		return Plan{}, breach("P-31", "the plan needs %d things, more than %d", len(p.Needs), MaxNames)
	case slices.ContainsFunc(p.Needs, func(id string) bool { return !beginsClaim(id) }):
		return Plan{}, breach("P-53", "the plan needs what is no id of a claim")
	}
	if err := checkFiles(p, listing); err != nil {
		return Plan{}, err
	}
	var err error
	if p.Claims, err = checkClaims(p.Claims); err != nil {
		return Plan{}, err
	}
	return p, nil
}

// checkChanges checks planned or deferred changes (P-20).
func checkChanges(what string, changes []Change) error {
	if len(changes) > MaxChanges {
		return breach("P-31", "%s has %d changes, more than %d", what, len(changes), MaxChanges)
	}
	seen := make(map[string]bool, len(changes))
	for _, c := range changes {
		if err := checkChange(what, c); err != nil {
			return err
		}
		if seen[c.ID] {
			return breach("P-20", "%s has two changes with the id %q", what, c.ID)
		}
		seen[c.ID] = true
	}
	return nil
}

func checkChange(what string, c Change) error {
	switch {
	case c.ID == "":
		return breach("P-20", "%s has a change without an id", what)
	case len(c.ID) > MaxTextBytes:
		return breach("P-31", "%s has a change whose id has %d bytes, more than %d", what, len(c.ID), MaxTextBytes)
	case c.Summary == "":
		return breach("P-20", "%s has the change %q without a summary", what, c.ID)
	}
	return nil
}

// fewWarnings keeps as many as are shown, and counts the others.
func fewWarnings(all []Warning) []Warning {
	if more := len(all) - MaxWarnings; more > 0 {
		return append(all[:MaxWarnings:MaxWarnings], moreWarnings(more))
	}
	return all
}

func moreWarnings(n int) Warning { return Warning{Message: fmt.Sprintf("and %d more warnings", n)} }

// checkClaims checks claims (P-32) and returns them with each id once.
func checkClaims(claims []Claim) ([]Claim, error) {
	if len(claims) > MaxClaims {
		return nil, breach("P-31", "the answer has %d claims, more than %d", len(claims), MaxClaims)
	}
	var out []Claim
	digests := make(map[string][]byte, len(claims))
	for _, c := range claims {
		switch known, twice := digests[c.ID]; {
		case c.ID == "":
			return nil, breach("P-32", "a claim has no id")
		case len(c.ID) > MaxTextBytes:
			return nil, breach("P-31", "the id of a claim has %d bytes, more than %d", len(c.ID), MaxTextBytes)
		case len(c.Digest) != sha256.Size:
			return nil, breach("P-32", "the digest of the claim %q has %d bytes instead of %d", c.ID, len(c.Digest), sha256.Size)
		case twice && !bytes.Equal(known, c.Digest):
			return nil, breach("P-32", "the answer claims %q twice, with different values", c.ID)
		case !twice:
			digests[c.ID] = c.Digest
			out = append(out, c)
		}
	}
	return out, nil
}

// received converts and checks an error. One that violates the contract becomes Internal and keeps the detail.
func received(d *pb.ErrorDetail) *Error {
	bound(d)
	e := errorFromPB(d)
	if e.Message == "" && len(e.Violations) == 0 {
		broken := breach("E-7", "an error of the code %s has neither a message nor violations", e.Code)
		broken.Detail = e.Detail
		return broken
	}
	for i, v := range e.Violations {
		switch {
		case e.Code != CodePrecondition:
			e.Violations[i].Needs = ""
		case v.Needs != "" && !beginsClaim(v.Needs):
			broken := breach("P-53", "a Precondition needs what is no id of a claim")
			broken.Detail = e.Detail
			return broken
		}
	}
	if more := len(e.Violations) - MaxViolations; more > 0 {
		e.Violations = append(e.Violations[:MaxViolations:MaxViolations],
			document.Violation{Message: fmt.Sprintf("and %d more violations", more)})
	}
	if more := len(e.Facts) - MaxFacts; more > 0 {
		for _, key := range slices.Sorted(maps.Keys(e.Facts))[MaxFacts:] {
			delete(e.Facts, key)
		}
		e.Facts[omittedFacts] = strconv.Itoa(more)
	}
	e.Final = e.Final && e.Code == CodePrecondition
	if e.Code != CodePrecondition && e.Code != CodeRetry {
		e.Claims, e.Warnings = nil, nil
	}
	e.Warnings = fewWarnings(e.Warnings)
	var err error
	if e.Claims, err = checkClaims(e.Claims); err != nil {
		return AsError(err)
	}
	return e
}

// omittedFacts is the key of the fact with the number of omitted facts.
const omittedFacts = "omitted"

// eventFromPB bounds and converts an event. It returns nil for an event of a later version.
func eventFromPB(e *pb.ApplyEvent) Event {
	bound(e)
	switch e := e.GetEvent().(type) {
	case *pb.ApplyEvent_Started:
		return Started{Change: changeFromPB(e.Started.GetChange())}
	case *pb.ApplyEvent_Changed:
		return Changed{ID: e.Changed.GetId()}
	case *pb.ApplyEvent_Progress:
		return Progress{ID: e.Progress.GetId(), Message: e.Progress.GetMessage(), Reboot: rebootFromPB(e.Progress.GetReboot())}
	case *pb.ApplyEvent_Warning:
		return Warning{Field: e.Warning.GetField(), Message: e.Warning.GetMessage()}
	case *pb.ApplyEvent_Finished:
		f := Finished{Stopped: e.Finished.GetStopped(), Deferred: changesFromPB(e.Finished.GetDeferred())}
		if e.Finished.GetError() != nil {
			f.Error = received(e.Finished.GetError())
			f.Error.Claims = nil // only Plan has claims
		}
		return f
	default:
		return nil
	}
}

// checkFiles checks what a plan lists (P-50).
func checkFiles(p Plan, requested bool) error {
	listed := slices.ContainsFunc(p.Changes, func(c Change) bool { return c.Listed })
	switch {
	case !requested && (len(p.Files) > 0 || listed):
		return breach("P-50", "Plan answered with files although the request does not ask for them")
	case len(p.Files) > MaxFiles:
		return breach("P-31", "the plan lists %d files, more than %d", len(p.Files), MaxFiles)
	}
	seen := map[string]bool{}
	for _, f := range p.Files {
		if f.Path != path.Clean(f.Path) || !path.IsAbs(f.Path) || seen[f.Path] {
			return breach("P-50", "the plan lists a file twice, or with a path that is not absolute and clean")
		}
		seen[f.Path] = true
	}
	return nil
}
