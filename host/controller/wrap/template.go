package wrap

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"
)

const (
	maxTemplate = 512 << 10
	maxOutput   = 1 << 20
	// maxActions bounds the memory of the parsed template.
	maxActions = 10_000
	// maxWork is how many bytes the functions of a template may read, in all. So their time is bounded, and so is the growth of a
	// text that a template encodes again and again.
	maxWork = 4 << 20
)

// TemplateError reports an error of a user's template. It quotes neither the template nor the stream.
type TemplateError struct {
	// Line is the line of the template, 0 for the whole.
	Line int
	// Output says that it is a line of the output.
	Output  bool
	Message string
}

// Error implements error.
func (e *TemplateError) Error() string {
	of := "the template"
	if e.Output {
		of = "the output of the template"
	}
	if e.Line == 0 {
		return of + " " + e.Message
	}
	return fmt.Sprintf("line %d of %s %s", e.Line, of, e.Message)
}

// functions lists the functions of a template. The builtin ones of Go's templates are refused.
func functions() []string {
	return []string{"machine_config", "base64", "gzipBase64", "json", "xml", "dataURL"}
}

// execute returns the output of a template, and whether the stream is part of it, as it is or encoded.
//
// A template has neither data nor loops: its actions are functions, texts, variables, if and with. So every template ends,
// after as many steps as it has actions.
func (w *Wrapper) execute(text, stream []byte) (out []byte, whole bool, err error) {
	if len(text) > maxTemplate {
		return nil, false, &TemplateError{Message: fmt.Sprintf("is larger than %d bytes", maxTemplate)}
	}
	if bytes.Count(text, []byte("{{")) > maxActions {
		return nil, false, &TemplateError{Message: fmt.Sprintf("has more than %d actions", maxActions)}
	}
	const name = "template"
	trees := map[string]*parse.Tree{}
	tree := parse.New(name)
	tree.Mode = parse.SkipFuncCheck // checkNode lists the functions, and has its own message
	if _, err := tree.Parse(string(text), "", "", trees); err != nil {
		return nil, false, templateError(err, "has a syntax error")
	}
	if len(trees) > 1 {
		return nil, false, &TemplateError{Message: "defines a template of its own, which is not supported"}
	}
	if bad := checkNode(tree.Root); bad != nil {
		line := 1 + strings.Count(string(text[:min(int(bad.position), len(text))]), "\n")
		return nil, false, &TemplateError{Line: line, Message: bad.message}
	}
	run := execution{stream: string(stream), pack: w.packed, derived: map[string]struct{}{}}
	t, err := template.New(name).Option("missingkey=error").Funcs(run.functions()).AddParseTree(name, tree)
	if err != nil {
		return nil, false, templateError(err, "cannot be used")
	}
	if err := t.Execute(&run, nil); err != nil {
		return nil, false, templateError(err, "cannot be executed: machine_config has no argument, and every other function has one, a text")
	}
	if len(run.derived) > 0 && !run.whole {
		return nil, false, &TemplateError{Message: "calls machine_config and does not write what it returns"}
	}
	return run.out, run.whole, nil
}

// templateError keeps the line of an error of the library, and the message if it is ours.
func templateError(err error, message string) error {
	e := &TemplateError{Message: message}
	if found := regexp.MustCompile(`^template: template:(\d+)`).FindStringSubmatch(err.Error()); found != nil {
		e.Line, _ = strconv.Atoi(found[1]) // digits
	}
	var limit limitError
	if errors.As(err, &limit) { // without the line, which would tell the size of the stream in front of it
		e.Line, e.Message = 0, string(limit)
	}
	return e
}

// limitError is the message of a limit that a template exceeds.
type limitError string

func (e limitError) Error() string { return string(e) }

// execution is one execution of a template. It is the writer of the output.
type execution struct {
	stream string
	pack   func([]byte) []byte
	out    []byte
	// derived has what machine_config returned, and what functions made of that and nothing else.
	derived map[string]struct{}
	whole   bool // the output has one of them
	work    int
}

// Write implements io.Writer.
func (x *execution) Write(text []byte) (int, error) {
	if len(x.out)+len(text) > maxOutput {
		return 0, limitError(fmt.Sprintf("has an output of more than %d bytes", maxOutput))
	}
	x.out = append(x.out, text...)
	if _, ok := x.derived[string(text)]; ok { // the value of an action is written at once
		x.whole = true
	}
	return len(text), nil
}

func (x *execution) functions() template.FuncMap {
	bounded := func(f func(string) string) func(string) (string, error) {
		return func(text string) (string, error) {
			if x.work += len(text); x.work > maxWork {
				return "", limitError(fmt.Sprintf("encodes more than %d bytes", maxWork))
			}
			out := f(text)
			if _, ok := x.derived[text]; ok {
				x.derived[out] = struct{}{}
			}
			return out, nil
		}
	}
	return template.FuncMap{
		"machine_config": func() string {
			x.derived[x.stream] = struct{}{}
			return x.stream
		},
		"base64":     bounded(func(text string) string { return encoded([]byte(text)) }),
		"gzipBase64": bounded(func(text string) string { return encoded(x.pack([]byte(text))) }),
		"json":       bounded(quoted),
		"xml":        bounded(escaped),
		"dataURL":    bounded(func(text string) string { return dataURL([]byte(text)) }),
	}
}

// refused is a node that a template may not have.
type refused struct {
	position parse.Pos
	message  string
}

const noData = "uses data, but a template has functions and variables only"

// checkNode returns the first node that is not supported.
func checkNode(node parse.Node) *refused {
	switch n := node.(type) {
	case *parse.TextNode, *parse.StringNode, *parse.BoolNode, *parse.NumberNode:
		return nil
	case *parse.VariableNode:
		if n.Ident[0] == "$" || len(n.Ident) > 1 {
			return &refused{n.Position(), noData}
		}
		return nil
	case *parse.IdentifierNode:
		if !slices.Contains(functions(), n.Ident) {
			return &refused{n.Position(), "calls a function that is not supported; there are " + strings.Join(functions(), ", ")}
		}
		return nil
	case *parse.FieldNode, *parse.ChainNode, *parse.DotNode:
		return &refused{n.Position(), noData}
	case *parse.RangeNode, *parse.BreakNode, *parse.ContinueNode:
		return &refused{n.Position(), "has a loop, which is not supported"}
	case *parse.TemplateNode:
		return &refused{n.Position(), "uses another template, which is not supported"}
	case *parse.IfNode:
		return first(n.Pipe, n.List, n.ElseList)
	case *parse.WithNode:
		return first(n.Pipe, n.List, n.ElseList)
	}
	return checkInner(node)
}

// checkInner checks the nodes of which a node consists.
func checkInner(node parse.Node) *refused {
	switch n := node.(type) {
	case *parse.ListNode:
		if n == nil { // without else
			return nil
		}
		return first(n.Nodes...)
	case *parse.ActionNode:
		return checkNode(n.Pipe)
	case *parse.PipeNode:
		for _, command := range n.Cmds {
			if bad := first(command.Args...); bad != nil {
				return bad
			}
		}
		return nil
	}
	return &refused{node.Position(), "has an action that is not supported"}
}

func first(nodes ...parse.Node) *refused {
	for _, node := range nodes {
		if bad := checkNode(node); bad != nil {
			return bad
		}
	}
	return nil
}
