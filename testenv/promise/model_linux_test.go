package promise_test

import (
	"maps"
	"path"
	"slices"

	"github.com/machineadm/machineadm/contract/report"
)

// state is a machine as the model describes it. The model follows contract/SPEC.md and shares no code with the host.
type state struct {
	live         bool
	phase        string            // --phase
	distribution []string          // its ID, then those that it is like
	defaults     string            // provider of Noop in defaults.yaml
	choices      map[string]string // by document: choices.json of the image
	tree         map[string]string
	asked        map[string]string // by document: the reboot that it asked for in this boot
}

// expected is what a run has to do.
type expected struct {
	exit      int
	docs      []*doc // with the documents of references
	refused   bool   // by the first planning
	planned   map[string][]string
	pending   []string
	outcomes  []report.Outcome
	providers map[string]string
	made      map[string][]string
}

// turn is what the first planning finds out about a document.
type turn struct {
	settled report.Outcome
	failed  int // exit code
	pending bool
	changes []string
	claims  map[string]string
}

func (s *state) matches(d *doc) bool {
	switch d.when {
	case windowsOnly:
		return false
	case debianOnly:
		return slices.Contains(s.distribution, "debian")
	case fedoraOnly:
		return slices.Contains(s.distribution, "fedora")
	}
	return true
}

func (s *state) picks(d *doc) bool {
	return s.phase == "all" || s.phase == "provisioning" == (d.kind == late)
}

func (s *state) has(name string) bool { _, there := s.tree["/"+name]; return there }

// resolve adds to each reference its documents, if its file is there.
func (s *state) resolve(docs []*doc) []*doc {
	var out []*doc
	for _, d := range docs {
		if out = append(out, d); d.kind == remote && s.matches(d) && s.has(d.file) {
			out = append(out, s.resolve(d.holds)...)
		}
	}
	return out
}

// answer is what the plugin says instead of a plan.
func (s *state) answer(d *doc) string {
	if d.kind == remote && !s.has(d.file) {
		return "precondition"
	}
	if d.Until != "" && s.has(d.Until) {
		return ""
	}
	return d.Plan
}

func (s *state) missing(d *doc) []string {
	var out []string
	for _, name := range d.Touch {
		if content, there := s.tree["/"+name]; !there || content != d.Content {
			out = append(out, "file:"+name)
		}
	}
	return out
}

// left says whether every change of a document is left for first boot.
func (s *state) left(d *doc) bool { return !s.live && d.Live }

func (s *state) provider(d *doc) string {
	switch {
	case d.Provider != "":
		return d.Provider
	case s.choices[d.label()] != "":
		return s.choices[d.label()]
	case s.defaults != "":
		return s.defaults
	case slices.Contains(s.distribution, "debian"): // also by ID_LIKE
		return other
	}
	return generic
}

// prepare is the first planning of a stream. A validation looks at an empty root and at no machine.
func (s *state) prepare(docs []*doc, validate bool) ([]turn, int) {
	all, somewhere := make([]turn, len(docs)), false
	exits := []int{}
	for i, d := range docs {
		p := &all[i]
		if d.broken != "" {
			exits = append(exits, report.ExitUsage)
			continue
		}
		if !validate && !s.matches(d) {
			p.settled = report.NotApplicable
			continue
		}
		if validate && d.when == windowsOnly { // its plugin, of another operating system, is not asked
			p.settled, somewhere = report.NotApplicable, true
			continue
		}
		if !validate && d.kind == remote && s.has(d.file) {
			p.settled = report.Unchanged
			continue
		}
		somewhere = true
		if !validate && d.kind != remote && !s.picks(d) {
			p.settled = report.Deferred
			continue
		}
		if d.ClaimEarly || s.answer(d) == "" {
			p.claims = d.Claims
		}
		switch s.answer(d) {
		case "invalid":
			p.failed = report.ExitUsage
		case "internal":
			p.failed = report.ExitFailed
		case "unsupported":
			if p.pending = validate && d.Field == ""; !p.pending {
				p.failed = report.ExitPrecondition
			}
		case "precondition":
			if p.pending = validate || !d.Final && s.resolved(docs[:i], all, d); !p.pending {
				p.failed = report.ExitPrecondition
			}
		case "retry":
			p.pending = true
		default:
			p.changes = s.missing(d)
		}
		exits = append(exits, p.failed)
	}
	if len(conflicts(all)) > 0 {
		exits = append(exits, report.ExitUsage)
	}
	for _, exit := range []int{report.ExitUsage, report.ExitFailed, report.ExitPrecondition} {
		if slices.Contains(exits, exit) {
			return all, exit
		}
	}
	if !somewhere {
		return all, report.ExitPrecondition
	}
	return all, report.ExitOK
}

// resolved says whether an earlier document can provide what a document lacks.
func (s *state) resolved(earlier []*doc, all []turn, d *doc) bool {
	for i, e := range earlier {
		p := all[i]
		unplanned := p.pending || p.failed != 0
		if !unplanned && (len(p.changes) == 0 || s.left(e)) {
			continue
		}
		_, claims := p.claims["thing:x"]
		if e.kind != exact || d.kind != exact || d.Needs != "" && unplanned || claims && (d.Needs == "thing:x" || d.Needs == "thing:") {
			return true
		}
	}
	return false
}

// conflicts are the turns that claim a value which another one contradicts.
func conflicts(all []turn) map[int]bool {
	owners, out := map[string]int{}, map[int]bool{}
	for i, p := range all {
		for id, value := range p.claims {
			if first, known := owners[id]; !known {
				owners[id] = i
			} else if all[first].claims[id] != value {
				out[first], out[i] = true, true
			}
		}
	}
	return out
}

func (s *state) validate(docs []*doc) int {
	empty := &state{}
	_, exit := empty.prepare(docs, true)
	return exit
}

func (s *state) plan(docs []*doc) expected {
	docs = s.resolve(docs)
	all, exit := s.prepare(docs, false)
	out := expected{exit: exit, refused: exit != report.ExitOK, planned: map[string][]string{}}
	for i, d := range docs {
		p := all[i]
		if p.pending {
			out.pending = append(out.pending, d.label())
		}
		if len(p.changes) > 0 {
			out.planned[d.label()] = p.changes
		}
		if !out.refused && (p.pending || len(p.changes) > 0 && !s.left(d) || len(s.asked) > 0) {
			out.exit = report.ExitDiffers
		}
	}
	return out
}

// apply applies a stream to the model's machine.
func (s *state) apply(docs []*doc) expected {
	docs = s.resolve(docs)
	all, exit := s.prepare(docs, false)
	out := expected{exit: exit, refused: exit != report.ExitOK, providers: map[string]string{}, made: map[string][]string{}}
	if out.refused {
		return out
	}
	changed := false
	for i := 0; i < len(docs); i++ { // a document that is resolved inserts others
		d, outcome := docs[i], all[i].settled
		switch {
		case outcome == "" && all[i].failed != 0:
			outcome = report.Failed // what was resolved before
		case outcome == "" && out.exit != report.ExitOK:
			outcome = report.Skipped
		case outcome == "" && d.kind == remote:
			outcome, out.exit = report.Failed, report.ExitPrecondition
			if s.has(d.file) {
				outcome = report.Unchanged
				docs, all, out.exit = s.insert(docs, all, i)
			}
		case outcome == "":
			outcome, out.exit = s.take(d, all, i, &changed, &out)
			if out.exit == report.ExitOK && i < lastOpen(all) && s.asked[d.label()] == beforeNext {
				outcome, out.exit = report.RebootRequired, report.ExitReboot
			}
		}
		out.outcomes = append(out.outcomes, outcome)
	}
	out.docs = docs
	if out.exit == report.ExitOK && len(s.asked) > 0 {
		out.exit = report.ExitReboot
	}
	if s.live && out.exit == report.ExitOK && s.phase == "all" {
		s.write(sentinel, "success\n")
	}
	return out
}

func lastOpen(all []turn) int {
	last := -1
	for i := range all {
		if all[i].settled == "" {
			last = i
		}
	}
	return last
}

// insert puts the documents of a reference behind it, at its turn. An error there ends the run, which has changed the machine.
func (s *state) insert(docs []*doc, all []turn, at int) ([]*doc, []turn, int) {
	more := s.resolve(docs[at].holds)
	turns, _ := s.prepare(more, false)
	all[at].settled = report.Unchanged
	docs, all = slices.Insert(slices.Clone(docs), at+1, more...), slices.Insert(slices.Clone(all), at+1, turns...)
	for i := range conflicts(turns) { // two of them, also where another document agrees with one
		all[at+1+i].failed = report.ExitFailed
	}
	for i := range conflicts(all) {
		if i > at && i <= at+len(more) {
			all[i].failed = report.ExitFailed
		}
	}
	exit := report.ExitOK
	for i := at + 1; i <= at+len(more); i++ {
		switch all[i].failed {
		case report.ExitUsage, report.ExitFailed: // also beside a document that lacks a precondition
			all[i].failed, exit = report.ExitFailed, report.ExitFailed
		case report.ExitPrecondition:
			if exit == report.ExitOK {
				exit = report.ExitPrecondition
			}
		}
	}
	return docs, all, exit
}

// take is a document's turn.
func (s *state) take(d *doc, all []turn, i int, changed *bool, out *expected) (report.Outcome, int) {
	if all[i].pending {
		switch s.answer(d) {
		case "precondition":
			return report.Failed, report.ExitPrecondition
		case "retry":
			return report.Failed, report.ExitDeadline
		}
		all[i] = turn{changes: s.missing(d), claims: d.Claims}
		if len(conflicts(all)) > 0 {
			return report.Failed, report.ExitFailed
		}
	}
	out.providers[d.label()] = s.provider(d)
	todo := s.missing(d)
	called := *changed || len(all[i].changes) > 0 && !s.left(d)
	if called && !s.live {
		s.choose(out.providers)
	}
	if s.live && called && !*changed {
		delete(s.tree, "/"+sentinel)
	}
	switch {
	case len(todo) == 0:
		return report.Unchanged, report.ExitOK
	case s.left(d):
		return report.Deferred, report.ExitOK
	}
	*changed = true
	if s.live && d.Reboot != "" {
		s.asked[d.label()] = d.Reboot
	}
	switch d.Apply {
	case "fail":
		return report.Failed, report.ExitPrecondition
	case "retry":
		return report.Failed, report.ExitDeadline
	}
	for _, id := range todo {
		s.write(id[len("file:"):], d.Content)
	}
	out.made[d.label()] = todo
	return report.Changed, report.ExitOK
}

// choose keeps the providers of documents in the image.
func (s *state) choose(providers map[string]string) {
	maps.Copy(s.choices, providers)
	s.write(choices, show(s.choices))
}

func (s *state) write(name, content string) {
	s.tree["/"+name] = content
	for dir := path.Dir("/" + name); dir != "/"; dir = path.Dir(dir) {
		s.tree[dir] = directory
	}
}

func (s *state) clone() *state {
	out := *s
	out.tree, out.choices, out.asked = maps.Clone(s.tree), maps.Clone(s.choices), maps.Clone(s.asked)
	return &out
}
