package run

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// needing is a Precondition that lacks something for each field, by the id that it needs.
func needing(ids ...string) error {
	e := &pluginv1.Error{Code: pluginv1.CodePrecondition, Message: "the machine is not ready for the document"}
	for _, id := range ids {
		e.Violations = append(e.Violations, document.Violation{Field: "spec.provider", Message: "lacks <" + id + ">", Hint: "do something", Needs: id})
	}
	if len(ids) == 1 {
		e.Message = e.Violations[0].Message
	}
	return e
}

// TestWhatResolvesAPrecondition: a Precondition stays pending only behind a document that can provide what is missing, and what none can
// provide ends the first planning, all of it at once.
func TestWhatResolvesAPrecondition(t *testing.T) {
	t.Parallel()
	claims := func(ids ...string) pluginv1.Plan {
		plan := oneChange()
		for _, id := range ids {
			plan.Claims = append(plan.Claims, pluginv1.NewClaim([]byte("key"), id, "", []byte("1")))
		}
		return plan
	}
	listed := claims("sysctl:k")
	listed.Changes[0].Listed = true
	converged := pluginv1.Plan{Claims: listed.Claims}
	assumed := claims("sysctl:k")
	assumed.Claims[0].Assumed = true
	for name, tt := range map[string]struct {
		provides []string // of the kind of the first document
		first    pluginv1.Plan
		failed   error // of the first document, in place of a plan
		refused  error // of the second
		silent   bool  // the kind of the second does not say what it needs
		errors   string
	}{
		"a claim provides it":               {[]string{"sysctl:"}, claims("sysctl:k"), nil, needing("sysctl:k"), false, ""},
		"another claim does not":            {[]string{"sysctl:"}, claims("sysctl:l"), nil, needing("sysctl:k"), false, "Precondition: lacks <sysctl:k>"},
		"an assumed claim does not":         {[]string{"sysctl:"}, assumed, nil, needing("sysctl:k"), false, "Precondition: lacks <sysctl:k>"},
		"a converged document does not":     {[]string{"sysctl:"}, converged, nil, needing("sysctl:k"), false, "Precondition: lacks <sysctl:k>"},
		"listed files do not":               {[]string{"sysctl:"}, listed, nil, needing("sysctl:k"), false, "Precondition: lacks <sysctl:k>"},
		"any claim of a group":              {[]string{"sysctl:"}, claims("module:m"), nil, needing("module:"), false, ""},
		"a longer id does not":              {[]string{"sysctl:"}, claims("sysctl:kk"), nil, needing("sysctl:k"), false, "Precondition: lacks <sysctl:k>"},
		"nothing named":                     {[]string{"sysctl:"}, claims("sysctl:k"), nil, needing(""), false, "Precondition: lacks <>"},
		"no field":                          {[]string{"sysctl:"}, claims("sysctl:k"), nil, precondition("kubelet is missing"), false, "Precondition: kubelet is missing"},
		"files are in the plan":             {[]string{"file:"}, claims("file:/a"), nil, needing(""), false, "Precondition: lacks <>"},
		"files of a document without plan":  {[]string{"file:"}, pluginv1.Plan{}, &pluginv1.Error{Code: pluginv1.CodeRetry, Message: "later"}, needing(""), false, ""},
		"none of a document without plan":   {[]string{"sysctl:"}, pluginv1.Plan{}, &pluginv1.Error{Code: pluginv1.CodeRetry, Message: "later"}, needing(""), false, "Precondition: lacks <>"},
		"the kind of one without plan":      {[]string{"sysctl:"}, pluginv1.Plan{}, &pluginv1.Error{Code: pluginv1.CodeRetry, Message: "later"}, needing("sysctl:k"), false, ""},
		"only what nothing provides":        {[]string{"sysctl:"}, claims("sysctl:k"), nil, needing("sysctl:k", "", "sysctl:l"), false, "Precondition: lacks <>\nPrecondition: lacks <sysctl:l>"},
		"both documents at once":            {[]string{"sysctl:"}, pluginv1.Plan{}, precondition("containerd is missing"), needing("sysctl:k", ""), false, "Precondition: containerd is missing\nPrecondition: lacks <>"},
		"a wrong document hides nothing":    {[]string{"sysctl:"}, pluginv1.Plan{}, invalid("spec.provider"), needing(""), false, "InvalidConfig: is wrong\nPrecondition: lacks <>"},
		"a kind that says nothing gives it": {nil, oneChange(), nil, needing(""), false, ""},
		"anything helps one that says none": {[]string{"sysctl:"}, claims("sysctl:k"), nil, needing(""), true, ""},
		"a kind that provides nothing":      {[]string{}, oneChange(), nil, needing("sysctl:k"), false, "Precondition: lacks <sysctl:k>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for provider, provides := range map[string][]string{"x": tt.provides, "y": {}} {
				p := w.add(provider)
				p.able, p.kinds[0].Provides = []string{pluginv1.CapabilityFiles}, provides
				p.answer = func(r pluginv1.Request) (pluginv1.Plan, error) {
					if docName(r) == "b" {
						return pluginv1.Plan{}, tt.refused
					}
					return tt.first, tt.failed
				}
			}
			if tt.silent {
				w.plugins["y"].kinds[0].Provides = nil
			}
			got := w.execute(Options{Mode: ModePlan, Text: things(named, "{provider: y}")})
			assert.Equal(t, tt.errors, errorsOf(got))
			assert.NotContains(t, w.lines(), "apply")
			if tt.errors == "" {
				assert.Equal(t, report.ExitDiffers, got.ExitCode)
			}
		})
	}
}

// TestALaterDocumentProvides: a document ahead of one that provides what it needs is an error that names both.
func TestALaterDocumentProvides(t *testing.T) {
	t.Parallel()
	file := pluginv1.Plan{
		Changes: []pluginv1.Change{{ID: "file:/f", Summary: "write", Listed: true}}, Files: []pluginv1.PlannedFile{{Path: "/f"}},
	}
	claim := oneChange()
	claim.Claims = []pluginv1.Claim{pluginv1.NewClaim([]byte("key"), "unit:r.service#running", "", []byte("true"))}
	const behind = "; Thing/c at node.yaml:12:1 provides it, and comes later"
	for name, tt := range map[string]struct {
		refused error
		later   pluginv1.Plan
		failed  error
		errors  string
	}{
		"a claim":               {needing("unit:r.service#running"), claim, nil, "Precondition: lacks <unit:r.service#running>" + behind},
		"one of two":            {needing("", "unit:r.service#running"), claim, nil, "Precondition: lacks <>\nPrecondition: lacks <unit:r.service#running>" + behind},
		"a kind without a plan": {needing("unit:r.service#running"), pluginv1.Plan{}, precondition("r is missing"), "Precondition: lacks <unit:r.service#running>" + behind + "\nPrecondition: r is missing"},
		"a file":                {precondition("/f is missing"), file, nil, "Precondition: /f is missing" + behind},
		"nothing":               {needing("unit:s.service#running"), claim, nil, "Precondition: lacks <unit:s.service#running>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			p := w.add("x")
			p.able, p.kinds[0].Provides = []string{pluginv1.CapabilityFiles}, []string{"unit:r"}
			p.answer = func(r pluginv1.Request) (pluginv1.Plan, error) {
				switch docName(r) {
				case "a":
					return pluginv1.Plan{}, nil
				case "b":
					if len(r.Files) > 0 {
						return pluginv1.Plan{}, nil
					}
					return pluginv1.Plan{}, tt.refused
				}
				return tt.later, tt.failed
			}
			got := w.execute(Options{Mode: ModeApply, Text: things(named, named, named)})
			assert.Equal(t, report.ExitPrecondition, got.ExitCode)
			assert.Equal(t, tt.errors, errorsOf(got))
			assert.NotContains(t, w.lines(), "apply")
		})
	}
}

// TestOrder: where no machine shows what is there, a document ahead of the only one that provides what it needs is a warning that names both.
func TestOrder(t *testing.T) {
	t.Parallel()
	const need, warns = "unit:r.service#running", "Thing/c at node.yaml:12:1, which comes later, provides what this document needs (unit:r.service#running): unless the machine has it already, put Thing/c before"
	for name, tt := range map[string]struct {
		mode     Mode
		root     string
		provider string // the documents that provide it, by name
		refused  error  // of these, in place of a plan
		warns    bool
	}{
		"validation":               {ModeValidate, "", "c", nil, true},
		"validation without plans": {ModeValidate, "", "c", precondition("r is missing"), true},
		"image":                    {ModePlan, "/image", "c", nil, true},
		"running machine":          {ModePlan, "", "c", nil, false},
		"before":                   {ModeValidate, "", "ac", nil, false},
		"nobody":                   {ModeValidate, "", "", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.add("x").kinds[0].Provides = []string{"unit:r"}
			w.add("y").kinds[0].Provides = []string{}
			for _, p := range w.plugins {
				p.answer = func(r pluginv1.Request) (pluginv1.Plan, error) {
					plan := oneChange()
					switch name := docName(r); {
					case name == "b":
						plan.Needs = []string{need}
					case strings.Contains(tt.provider, name):
						plan.Claims = []pluginv1.Claim{pluginv1.NewClaim([]byte("key"), need, "", []byte("true"))}
						return plan, tt.refused
					}
					return plan, nil
				}
			}
			specs := []string{"{provider: y}", "{provider: y}", "{provider: y}"}
			for _, at := range tt.provider {
				specs[at-'a'] = named
			}
			got := w.execute(Options{Mode: tt.mode, Root: tt.root, Text: things(specs...)})
			assert.Equal(t, tt.warns, strings.Contains(strings.Join(got.Documents[1].Warnings, ""), warns), got.Documents[1].Warnings)
		})
	}
}
