package promise_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
)

const (
	noop, late     = "Noop", "Late" // kinds of the preparation and of the provisioning phase
	exact          = "Exact"        // of the preparation phase, whose documents provide things
	remote         = "RemoteConfig" // of the provider file
	generic, other = "test", "other"
	beforeNext     = "BeforeNext"
	windowsOnly    = "{os: [windows]}"
	debianOnly     = "{distributions: [debian]}"
	fedoraOnly     = "{distributions: [fedora]}"
)

// doc is a document for the scripted plugin; testenv/noop says what its spec means.
type doc struct {
	kind, name, when, broken, timeout string
	// Of a reference: its documents, its URI, and the file in the machine.
	holds     []*doc
	uri, file string

	Provider   string            `json:"provider,omitempty"`
	Plan       string            `json:"plan,omitempty"`
	Until      string            `json:"planUntil,omitempty"`
	Field      string            `json:"field,omitempty"`
	Needs      string            `json:"needs,omitempty"`
	Final      bool              `json:"final,omitempty"`
	Claims     map[string]string `json:"claims,omitempty"`
	ClaimEarly bool              `json:"claimEarly,omitempty"`
	Touch      []string          `json:"touch,omitempty"`
	Content    string            `json:"content,omitempty"`
	Live       bool              `json:"live,omitempty"`
	Reboot     string            `json:"reboot,omitempty"`
	Apply      string            `json:"apply,omitempty"`
}

func (d *doc) label() string { return d.kind + "/" + d.name }

// text is the document in the stream. What breaks it is a fault of its envelope.
func (d *doc) text(t *testing.T) string {
	t.Helper()
	spec, err := json.Marshal(d)
	require.NoError(t, err)
	apiVersion, kind, metadata := "example.com/v1", d.kind, "name: "+d.name
	if kind == remote {
		apiVersion, spec = "machineadm.cluster.x-k8s.io/v1alpha1", fmt.Appendf(nil, "{provider: file, uri: %s}", d.uri)
	}
	if d.when != "" {
		metadata += ", when: " + d.when
	}
	if d.timeout != "" {
		metadata += ", timeout: " + d.timeout
	}
	switch d.broken {
	case "syntax":
		kind = "["
	case "anchor":
		kind = "&a " + kind
	case "unknown":
		metadata += ", nam: x"
	case "name":
		metadata = "name: ../" + d.name
	case "when":
		metadata = "name: " + d.name + ", when: {os: [linx]}"
	case "provider":
		spec = []byte("{provider: ../test}")
	}
	return fmt.Sprintf("---\napiVersion: %s\nkind: %s\nmetadata: {%s}\nspec: %s\n", apiVersion, kind, metadata, spec)
}

// scripted is a stream of scripted documents on a machine, and the model of both.
type scripted struct {
	*machine
	docs  []*doc
	text  string
	model *state
}

// newScripted is a random stream on a random machine.
func newScripted(t *testing.T, r *rand.Rand, m *machine) *scripted {
	t.Helper()
	s := &scripted{machine: m, model: &state{live: m.isLive, choices: map[string]string{}, asked: map[string]string{}}}
	m.phase = pick(r, "all", "all", "all", "preparation", "provisioning")
	s.model.phase = m.phase
	s.model.distribution = strings.Fields(pick(r, "debian", "debian", "ubuntu debian", "fedora"))
	m.write(t, "etc/os-release", "ID="+s.model.distribution[0]+"\nID_LIKE="+strings.Join(s.model.distribution[1:], " ")+"\n")
	for _, name := range []string{"srv/a", "srv/b", "srv/c"} {
		if chance(r, 4) {
			m.write(t, name, pick(r, name, "foreign"))
		}
	}
	if chance(r, 10) {
		s.model.defaults = pick(r, generic, other)
		m.write(t, "etc/machineadm/defaults.yaml", "Noop: "+s.model.defaults+"\n")
	}
	if chance(r, 10) {
		s.model.choices["Noop/n0"] = pick(r, generic, other)
		m.write(t, choices, `{"Noop/n0": "`+s.model.choices["Noop/n0"]+`"}`)
	}
	if m.isLive && chance(r, 3) {
		m.write(t, sentinel, "success\n")
	}
	claiming := chance(r, 2)
	twoKinds, exactly, open := chance(r, 4), chance(r, 3), chance(r, 4) // in few streams: each needs one plugin more, and time goes into their start
	for i := range 1 + r.IntN(5) {
		d := newDoc(r, i, claiming)
		if twoKinds && chance(r, 2) {
			d.kind = late
		} else if exactly && !chance(r, 4) {
			d.kind = exact
			if d.Plan == "precondition" {
				d.Needs = pick(r, "", "", "thing:x", "thing:x", "thing:y", "thing:")
			}
		} else if open && chance(r, 2) {
			d.Provider = ""
		}
		s.docs = append(s.docs, d)
	}
	for i := range 2 {
		if chance(r, 5) {
			s.putAside(t, r, fmt.Sprint(i))
		}
	}
	s.model.tree = m.tree(t)
	s.limit()
	s.text = s.complete(t, s.docs)
	return s
}

func newDoc(r *rand.Rand, i int, claiming bool) *doc {
	d := &doc{kind: noop, name: fmt.Sprintf("n%d", i), Provider: generic, Claims: map[string]string{}}
	if chance(r, 10) {
		d.when = pick(r, "{os: [linux]}", windowsOnly, debianOnly, fedoraOnly)
	}
	if chance(r, 50) {
		d.broken = pick(r, "syntax", "anchor", "unknown", "name", "when", "provider")
	}
	d.Touch = []string{pick(r, "srv/a", "srv/b", "srv/c", "srv/d")}
	d.Content = d.Touch[0]
	if claiming && chance(r, 8) {
		d.Content = "foreign"
	}
	switch r.IntN(8) {
	case 0:
		d.Touch = nil
	case 1:
		d.Touch = append(d.Touch, fmt.Sprintf("etc/own-%d", i))
	}
	if claiming { // without claims a file has one content for all documents: else the plugin would not converge
		for _, name := range d.Touch {
			d.Claims["file:/"+name] = d.Content
		}
		if chance(r, 3) {
			d.Claims["thing:x"] = pick(r, "1", "1", "1", "1", "2")
		}
	}
	d.Live = chance(r, 8)
	if chance(r, 5) {
		d.Reboot = pick(r, "AfterRun", beforeNext)
	}
	d.misbehave(r)
	return d
}

// misbehave may have the plugin answer something else than a plan, or fail.
func (d *doc) misbehave(r *rand.Rand) {
	switch r.IntN(24) {
	case 0:
		d.Plan, d.Field = pick(r, "invalid", "unsupported", "internal"), pick(r, "", "spec.touch")
	case 1, 2, 3, 4, 5:
		d.Plan, d.Final, d.ClaimEarly = "precondition", chance(r, 8), chance(r, 3)
	case 6, 7:
		d.Plan, d.ClaimEarly = "retry", chance(r, 3)
	}
	if (d.Plan == "precondition" || d.Plan == "retry") && !chance(r, 5) {
		d.Until = pick(r, "srv/a", "srv/b", "srv/c", "srv/d")
	}
	switch r.IntN(30) {
	case 0:
		d.Apply = "fail"
	case 1:
		d.Apply = "retry"
	}
}

// limit gives the documents that retry a time limit. A retry that the model expects to be in vain ends before its first
// pause, which is a second; any other ends soon, in case the model is wrong.
func (s *scripted) limit() {
	first := s.model.clone().apply(s.docs)
	for _, d := range everyDoc(s.docs) {
		if d.Plan == "retry" || d.Apply == "retry" {
			d.timeout = "8s"
		}
	}
	if first.exit == report.ExitDeadline {
		first.docs[slices.Index(first.outcomes, report.Failed)].timeout = "1s"
	}
}

// hold goes through the commands beside the model, and returns the exit codes.
func (s *scripted) hold(t *testing.T, r *rand.Rand) string {
	t.Helper()
	validated := s.host(t, s.text, "validate")
	assert.Equal(t, s.model.validate(s.docs), validated.exit, validated.output)
	exits := []int{validated.exit, s.plan(t)}
	code := s.apply(t)
	exits = append(exits, code)
	if code == report.ExitOK || code == report.ExitReboot || chance(r, 3) { // a refused stream is refused again: a third of them suffices
		exits = append(exits, s.plan(t))
	}
	if chance(r, 4) {
		exits = append(exits, s.apply(t))
	}
	for range s.docs {
		if code != report.ExitReboot || t.Failed() {
			break
		}
		s.reboot(t)
		s.model.asked = map[string]string{}
		code = s.apply(t)
		exits = append(exits, code)
	}
	return show(exits)
}

func (s *scripted) plan(t *testing.T) int {
	t.Helper()
	want, got := s.model.plan(s.docs), s.host(t, s.text, "plan")
	assert.Equal(t, want.exit, got.exit, got.output)
	if !want.refused {
		assert.Equal(t, want.planned, got.planned, got.output)
		assert.Equal(t, want.pending, got.pending, got.output)
	}
	assert.Equal(t, s.model.tree, s.tree(t), "a plan changes nothing\n"+got.output)
	return got.exit
}

func (s *scripted) apply(t *testing.T) int {
	t.Helper()
	want, got := s.model.apply(s.docs), s.host(t, s.text, "apply")
	assert.Equal(t, want.exit, got.exit, got.output)
	assert.Equal(t, s.model.tree, s.tree(t), got.output)
	r := s.report(t)
	assert.Equal(t, got.exit, r.ExitCode)
	if want.refused {
		return got.exit
	}
	var outcomes []report.Outcome
	made := map[string][]string{}
	for _, d := range r.Documents {
		document := d.Kind + "/" + d.Name
		outcomes = append(outcomes, d.Outcome)
		if provider, served := want.providers[document]; served {
			assert.Equal(t, provider, d.Provider, document)
		}
		for _, c := range d.Changes {
			if c.Outcome == report.Changed {
				made[document] = append(made[document], c.ID)
			}
		}
	}
	assert.Equal(t, want.outcomes, outcomes, got.output)
	assert.Equal(t, want.made, made, got.output)
	return got.exit
}

func chance(r *rand.Rand, oneIn int) bool { return r.IntN(oneIn) == 0 }

func pick(r *rand.Rand, from ...string) string { return from[r.IntN(len(from))] }

func show(value any) string { return fmt.Sprint(value) }
