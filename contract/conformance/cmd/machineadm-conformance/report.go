package main

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/conformance"
)

// reporter collects results and writes them.
type reporter struct {
	plugin  string
	out     io.Writer
	results []conformance.Result
	each    func(conformance.Result) // may be nil
}

func (r *reporter) add(result conformance.Result) {
	r.results = append(r.results, result)
	if r.each != nil {
		r.each(result)
	}
}

func (r *reporter) count(s conformance.Status) int {
	n := 0
	for _, result := range r.results {
		if result.Status == s {
			n++
		}
	}
	return n
}

// line writes a result. summary lists those that are not applicable, because a line for each would hide the others.
func (r *reporter) line(result conformance.Result) {
	if result.Status == conformance.NotApplicable {
		return
	}
	fmt.Fprintf(r.out, "%-4s  %s/%s  %.1f s\n", result.Status, result.Case, result.Check, result.Seconds)
	if result.Status == conformance.Fail {
		fmt.Fprintf(r.out, "      %s\n", strings.ReplaceAll(printable(result.Explain()), "\n", "\n      "))
	}
}

// summary lists what was not applicable, by check, then by reason, each with its cases, and the totals. It names a check
// that applies to no case at all, which reads like a pass otherwise.
func (r *reporter) summary() error {
	for _, check := range conformance.Checks() {
		r.notApplicable(check.Name)
	}
	cases, checks, starts := map[string]bool{}, map[string]bool{}, 0
	for _, result := range r.results {
		cases[result.Case], checks[result.Check] = true, true
		starts += result.Starts
	}
	_, err := fmt.Fprintf(r.out, "%d cases by %d checks: %d passed, %d failed, %d not applicable; %d starts of the plugin\n",
		len(cases), len(checks),
		r.count(conformance.Pass), r.count(conformance.Fail), r.count(conformance.NotApplicable), starts)
	return err
}

func (r *reporter) notApplicable(check string) {
	cases := map[string][]string{}
	var reasons []string
	applied, not := 0, 0
	for _, result := range r.results {
		switch {
		case result.Check != check:
		case result.Status != conformance.NotApplicable:
			applied++
		default:
			not++
			if cases[result.Reason] == nil {
				reasons = append(reasons, result.Reason)
			}
			cases[result.Reason] = append(cases[result.Reason], result.Case)
		}
	}
	switch {
	case not == 0:
		return
	case applied == 0:
		fmt.Fprintf(r.out, "n/a   %s applies to no case\n", check)
	default:
		fmt.Fprintf(r.out, "n/a   %s applies to %d of %d cases\n", check, applied, applied+not)
	}
	for _, reason := range reasons {
		fmt.Fprintf(r.out, "      %s: %s\n", strings.Join(cases[reason], ", "), printable(reason))
	}
}

func (r *reporter) json() error {
	encoder := json.NewEncoder(r.out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(struct {
		Plugin        string               `json:"plugin"`
		Passed        int                  `json:"passed"`
		Failed        int                  `json:"failed"`
		NotApplicable int                  `json:"notApplicable"`
		Results       []conformance.Result `json:"results"`
	}{
		r.plugin, r.count(conformance.Pass), r.count(conformance.Fail), r.count(conformance.NotApplicable),
		r.results,
	})
}

// The elements of JUnit's XML that every reader supports.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		Time    string        `xml:"time,attr"`
		Failure *junitMessage `xml:"failure"`
		Skipped *junitMessage `xml:"skipped"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// junit writes one suite for each case.
func (r *reporter) junit() error {
	var all junitSuites
	var seconds []float64
	for _, result := range r.results {
		at := slices.IndexFunc(all.Suites, func(s junitSuite) bool { return s.Name == result.Case })
		if at < 0 {
			at = len(all.Suites)
			all.Suites = append(all.Suites, junitSuite{Name: result.Case})
			seconds = append(seconds, 0)
		}
		suite := &all.Suites[at]
		c := junitCase{Name: result.Check, Class: result.Case, Time: fmt.Sprintf("%.3f", result.Seconds)}
		first, _, _ := strings.Cut(result.Reason, "\n")
		message := &junitMessage{Message: printable(first), Text: printable(result.Reason)}
		switch result.Status {
		case conformance.Fail:
			message.Text = printable(result.Explain())
			c.Failure = message
			suite.Failures++
		case conformance.NotApplicable:
			c.Skipped = message
			suite.Skipped++
		}
		suite.Tests++
		suite.Cases = append(suite.Cases, c)
		seconds[at] += result.Seconds
		suite.Time = fmt.Sprintf("%.3f", seconds[at])
	}
	if _, err := io.WriteString(r.out, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(r.out)
	encoder.Indent("", "  ")
	if err := encoder.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(r.out, "\n")
	return err
}

// printable replaces the control characters in a plugin's text, which control a terminal or are invalid in XML.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' && c != '\n' || c >= 0x7f && c < 0xa0 || c >= 0x202a && c <= 0x202e || c >= 0x2066 && c <= 0x2069 {
			return '\uFFFD'
		}
		return c
	}, strings.ToValidUTF8(text, "\uFFFD"))
}
