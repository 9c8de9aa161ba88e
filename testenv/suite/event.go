package suite

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// event is one line of go test -json: see go doc test2json.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of a build
	Test        string
	Output      string
	Elapsed     float64 // seconds
	FailedBuild string
}

// Result is how the tests of one package ended.
type Result struct {
	Package string // import path
	OK      bool
	Line    string // go test's own last line
	Seconds float64
	Passed  []string // tests, but none of which a part was skipped
	Failed  []string // tests and subtests
	Skipped map[string]int
	Tests   int    // all that ended, subtests too
	Output  string // of what failed
}

// collector makes results of events.
type collector struct {
	packages map[string]*collected
	builds   map[string]*strings.Builder
	done     func(Result)
}

type collected struct {
	result  Result
	outputs map[string]*strings.Builder // by test; of the package itself under ""
	partly  map[string]bool             // tests of which a subtest was skipped
}

// collect reads the events of one go test and hands over each package when it has ended. What is no event is returned.
func collect(events io.Reader, done func(Result)) (other string, err error) {
	c := collector{packages: map[string]*collected{}, builds: map[string]*strings.Builder{}, done: done}
	lines := bufio.NewReader(events)
	var rest strings.Builder
	for {
		line, err := lines.ReadString('\n')
		var e event
		if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &e) == nil {
			c.take(e)
		} else {
			rest.WriteString(line)
		}
		if err != nil {
			c.close()
			if err == io.EOF {
				err = nil
			}
			return rest.String(), err
		}
	}
}

func (c *collector) take(e event) {
	switch e.Action {
	case "build-output":
		if c.builds[e.ImportPath] == nil {
			c.builds[e.ImportPath] = &strings.Builder{}
		}
		c.builds[e.ImportPath].WriteString(e.Output)
		return
	case "build-fail":
		return
	}
	p := c.packages[e.Package]
	if p == nil {
		p = &collected{result: Result{Package: e.Package, Skipped: map[string]int{}}, outputs: map[string]*strings.Builder{}, partly: map[string]bool{}}
		c.packages[e.Package] = p
	}
	switch e.Action {
	case "output":
		if p.outputs[e.Test] == nil {
			p.outputs[e.Test] = &strings.Builder{}
		}
		p.outputs[e.Test].WriteString(e.Output)
	case "pass", "fail", "skip":
		if e.Test != "" {
			p.ended(e)
			return
		}
		if b := c.builds[e.FailedBuild]; b != nil {
			p.result.Output = b.String()
		}
		c.finish(p, e)
	}
}

// ended notes a test. What a test prints is kept until its package ends only if it failed.
func (p *collected) ended(e event) {
	p.result.Tests++
	output := p.outputs[e.Test]
	switch e.Action {
	case "fail":
		p.result.Failed = append(p.result.Failed, e.Test)
		return
	case "skip":
		p.result.Skipped[reason(output)]++
		top, _, _ := strings.Cut(e.Test, "/")
		p.partly[top] = true
	case "pass":
		if !strings.Contains(e.Test, "/") && !p.partly[e.Test] {
			p.result.Passed = append(p.result.Passed, e.Test)
		}
	}
	delete(p.outputs, e.Test)
}

// reason is what a test said last before it was skipped, without the place.
func reason(output *strings.Builder) string {
	if output == nil {
		return ""
	}
	text := ""
	for line := range strings.Lines(output.String()) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "---") && !strings.HasPrefix(line, "===") {
			text = line
		}
	}
	if _, after, ok := strings.Cut(text, ".go:"); ok {
		if _, words, ok := strings.Cut(after, ": "); ok {
			return words
		}
	}
	return text
}

func (c *collector) finish(p *collected, e event) {
	r := p.result
	r.OK, r.Seconds = e.Action != "fail", e.Elapsed
	for line := range strings.Lines(text(p.outputs[""])) {
		if words := strings.Fields(line); len(words) > 1 && words[1] == r.Package && slices.Contains([]string{"ok", "FAIL", "?"}, words[0]) {
			r.Line = strings.TrimRight(line, "\n")
		}
	}
	if !r.OK {
		var out strings.Builder
		out.WriteString(r.Output)
		// A failed test, one that was running when the process ended, and what the process itself printed.
		for _, test := range slices.Sorted(maps.Keys(p.outputs)) {
			if test != "" {
				out.WriteString(text(p.outputs[test]))
			}
		}
		out.WriteString(text(p.outputs[""]))
		r.Output = out.String()
	}
	delete(c.packages, r.Package)
	c.done(r)
}

// close ends the packages that have no result: go test was ended.
func (c *collector) close() {
	for _, name := range slices.Sorted(maps.Keys(c.packages)) {
		p := c.packages[name]
		p.outputs[""] = appendText(p.outputs[""], fmt.Sprintf("FAIL\t%s\tended before it had a result\n", name))
		c.finish(p, event{Action: "fail"})
	}
}

func text(b *strings.Builder) string {
	if b == nil {
		return ""
	}
	return b.String()
}

func appendText(b *strings.Builder, s string) *strings.Builder {
	if b == nil {
		b = &strings.Builder{}
	}
	b.WriteString(s)
	return b
}
