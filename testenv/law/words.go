package law

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"sort"
	"strings"
)

// Term is a wording that the tree does not use.
type Term struct {
	// Words is a regular expression over lower-case words, one space between them. It matches whole words.
	Words string
	// Instead is what to write.
	Instead string
	// Except lists the legitimate uses.
	Except []Exception
}

// Exception is a legitimate use of a term: in the files below Path, or within Phrase (as Term.Words), or both.
type Exception struct{ Path, Phrase, Reason string }

// Terms are the wordings that the tree does not use: metaphors, things described as persons, and names with a standard term.
func Terms() []Term {
	return []Term{
		{Words: `mend(s|ed|ing)?`, Instead: "fix, correct"},
		{Words: `strays?`, Instead: "candidate, temporary file, leftover"},
		{Words: `verdicts?`, Instead: "outcome, result"},
		{Words: `same breath`, Instead: "at once"},
		{Words: `sweeps?|swept|sweeping`, Instead: "clean up, remove"},
		{Words: `still ?born`, Instead: "failed to start"},
		{Words: `accus(e|es|ed|ing|ation|ations)`, Instead: "finding"},
		{Words: `surroundings`, Instead: "dependencies, environment"},
		{Words: `as good as`, Instead: "the exact relation"},
		{Words: `by the way|once and for all|be so good`, Instead: "nothing"},
		{Words: `somebody|whoever|whom`, Instead: "the subject: the host, the plugin, the operator, another user"},
		{
			Words:   `(what )?nobody (asks|needs|knows|hears|reads|wants|has|can|else|sees|waits|will|watches|takes|writes)`,
			Instead: "no plugin, no process, unused",
		},
		{Words: `lies|lying`, Instead: "is in, is below; is wrong"},
		{Words: `goes on|gone on|went on|(to|would|can|must|may) go on`, Instead: "continue, resume"},
		{Words: `words of (other|a|the|its) (programs?|plugins?|daemons?)|(raw|own|program's|programs'|plugin's|daemon's) words`, Instead: "output of, message of"},
		{Words: `told|tells|telling`, Instead: "report, return, show, distinguish"},
		{Words: `judge[sd]?|judging|judge?ments?`, Instead: "check, classify, decide"},
		{Words: `wish(es|ed)?`, Instead: "desired state"},
		{Words: `shall`, Instead: "present tense; MUST in SPEC", Except: []Exception{{Path: "testenv/spec/", Reason: "the words of RFC 2119 are its subject"}}},
		{Words: `hears?|heard|hearing`, Instead: "receive"},
		{Words: `obeys?|obeyed|believes?|believed|thinks?`, Instead: "follow, use, accept, assume"},
		{Words: `knows|knew`, Instead: "has, supports, contains, recognizes"},
		{Words: `sights?`, Instead: "current state, observation"},
		{Words: `ghosts?|corpses?`, Instead: "orphan, killed process"},
		{Words: `patien(t|ce)`, Instead: "timeout, wait"},
		{Words: `honest(ly)?`, Instead: "correct, valid"},
		{Words: `(put|puts|putting|take|takes|taken|taking) back`, Instead: "restore, roll back"},
		{Words: `as it shall be|so already|already so`, Instead: "matches, is up to date"},
		{Words: `(cannot|can) be had`, Instead: "is (not) available"},
		{Words: `furnish(es|ed|ing)?|clear the table`, Instead: "clean up, prepare"},
		{Words: `makes? no sense`, Instead: "what is wrong"},
		{Words: `at fault|for fine|culprits?|guilty|blames?|blamed|forgives?`, Instead: "invalid, the cause"},
		{Words: `spoil(s|ed|t)?`, Instead: "break, corrupt"},
		{Words: `trials?`, Instead: "runner, run"},
		{Words: `for ever`, Instead: "forever"},
		{Words: `wings|workshop`, Instead: "layer, host and plugins, sdk"},
	}
}

// Vocabulary is a compiled list of terms.
type Vocabulary struct {
	terms            []Term
	patterns         []*regexp.Regexp
	anyTerm          *regexp.Regexp
	capitals, single *regexp.Regexp
}

// NewVocabulary compiles terms.
func NewVocabulary(terms []Term) *Vocabulary {
	v := &Vocabulary{
		terms:    terms,
		capitals: regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])`),
		single:   regexp.MustCompile(`[a-z0-9']+`),
	}
	var words []string
	for _, t := range terms {
		v.patterns = append(v.patterns, whole(t.Words))
		words = append(words, t.Words)
	}
	v.anyTerm = whole(strings.Join(words, "|"))
	return v
}

// whole matches a pattern of whole words in a text of words with a space behind each.
func whole(words string) *regexp.Regexp { return regexp.MustCompile(`\b(` + words + `) `) }

// Check returns the uses of the terms in a file, with line and replacement. Words are divided at capitals and at whatever
// is not a letter, a digit or an apostrophe, so that phrases are found across lines and within names.
func (v *Vocabulary) Check(f File) []string {
	if !isWorded(f) {
		return nil
	}
	var b strings.Builder
	var starts, lines []int
	number := 0
	for line := range strings.Lines(string(f.Data)) {
		number++
		divided := strings.ToLower(v.capitals.ReplaceAllString(line, "$1$3 $2$4"))
		for _, word := range v.single.FindAllString(divided, -1) {
			starts, lines = append(starts, b.Len()), append(lines, number)
			b.WriteString(word + " ")
		}
	}
	text := b.String()
	if !v.anyTerm.MatchString(text) {
		return nil
	}
	found := map[int]string{}
	for i, term := range v.terms {
		for _, at := range v.patterns[i].FindAllStringSubmatchIndex(text, -1) {
			if from, to := at[2], at[3]; !term.excepts(f.Path, text, from, to) {
				line := lines[sort.SearchInts(starts, from+1)-1]
				found[from] = fmt.Sprintf("%s:%d: %q: write %s", f.Path, line, text[from:to], term.Instead)
			}
		}
	}
	var breaches []string
	for _, from := range slices.Sorted(maps.Keys(found)) {
		breaches = append(breaches, found[from])
	}
	return breaches
}

func (t Term) excepts(file, text string, from, to int) bool {
	return slices.ContainsFunc(t.Except, func(e Exception) bool {
		if !strings.HasPrefix(file, e.Path) {
			return false
		}
		return e.Phrase == "" || slices.ContainsFunc(whole(e.Phrase).FindAllStringSubmatchIndex(text, -1), func(at []int) bool {
			return at[2] <= from && to <= at[3]
		})
	})
}

// isWorded reports whether the terms apply to a file: not if it is generated, test data other than a golden file, a copy,
// or the list itself.
func isWorded(f File) bool {
	switch {
	case strings.HasPrefix(f.Path, "testenv/law/words"), strings.HasPrefix(f.Path, "docs/reference/"), f.Path == "LICENSE":
		return false
	case strings.HasPrefix(f.Path, "testenv/legacy/v1alpha1/"): // a copy of an earlier release
		return false
	case strings.Contains(f.Path, "/testdata/") && path.Ext(f.Path) != ".golden", strings.HasSuffix(f.Path, ".pb.go"):
		return false
	case path.Base(f.Path) == "Makefile", strings.HasPrefix(f.Path, ".ci/"):
		return true
	}
	return slices.Contains([]string{".go", ".md", ".proto", ".sh", ".tmpl", ".golden", ".py", ".yml"}, path.Ext(f.Path))
}
