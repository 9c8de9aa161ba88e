package texts

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"iter"
	"regexp"
	"slices"
	"strings"
)

// hole stands in a text for a value.
const hole = "…"

// collector follows what flows into the places where errors are made.
type collector struct {
	graph graph
	seen  map[visit]bool
	queue []visit
	found []occurrence
}

// use is what a value is used for.
type use struct {
	role   Role
	format bool // its verbs are yet to be filled
}

// visit is a variable and its use.
type visit struct {
	to *types.Var
	use
}

// occurrence is a text at its place.
type occurrence struct {
	Text
	in   string
	site ast.Node
}

// drain follows until nothing new is found.
func (c *collector) drain() {
	for len(c.queue) > 0 {
		next := c.queue[0]
		c.queue = c.queue[1:]
		for _, f := range c.graph[next.to] {
			u := next.use
			if f.part {
				u.role = Part
			}
			c.take(f, u)
		}
	}
}

// follow says that a variable is used in this role. Only what holds strings can hold a text.
func (c *collector) follow(v *types.Var, u use) {
	if v == nil || u.role == 0 || !holds(v.Type(), isString) {
		return
	}
	next := visit{v.Origin(), u}
	if !c.seen[next] {
		c.seen[next] = true
		c.queue = append(c.queue, next)
	}
}

// take reads an expression that is used so.
func (c *collector) take(f flow, u use) {
	e := ast.Unparen(f.expr)
	if secret := interpolated(f.in, e); secret != "" {
		c.found = append(c.found, occurrence{Text{Role: u.role, Text: types.ExprString(e), Secret: secret}, f.in.path, f.site})
		return
	}
	if value := f.in.info.Types[e].Value; value != nil {
		if value.Kind() == constant.String {
			c.record(f, u, constant.StringVal(value))
		}
		return
	}
	switch e := e.(type) {
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			c.record(f, u, c.pattern(f, e))
		}
	case *ast.Ident, *ast.SelectorExpr:
		c.follow(variable(f.in, e), u)
	case *ast.IndexExpr:
		c.take(f.to(e.X), u)
	case *ast.CompositeLit:
		for _, element := range e.Elts {
			if pair, ok := element.(*ast.KeyValueExpr); ok {
				element = pair.Value
			}
			c.take(f.to(element), u)
		}
	case *ast.CallExpr:
		c.takeCall(f, e, u)
	}
}

// takeCall reads the result of a call: a format, a conversion, or whatever a function of ours returns.
func (c *collector) takeCall(f flow, call *ast.CallExpr, u use) {
	if f.in.info.Types[call.Fun].IsType() {
		c.take(f.to(call.Args[0]), u)
		return
	}
	fn := callee(f.in, call)
	switch {
	case fn != nil && fn.FullName() == "fmt.Sprintf":
		c.takeFormat(f, call.Args, u)
		return
	case fn != nil && fn.Pkg() != nil && slices.Contains(passing(), fn.Pkg().Path()):
		c.takeAll(f, call.Args, use{role: Part})
		return
	case isAppend(f.in, call):
		c.takeAll(f, call.Args, u)
		return
	}
	signature, ok := under[*types.Signature](f.in.info.TypeOf(call.Fun))
	if !ok || signature.Results().Len() == 0 {
		return
	}
	c.follow(signature.Results().At(max(f.result, 0)), u)
	if signature.Variadic() && ours(f.in, call, c.graph) { // one of these is chosen
		c.takeAll(f, call.Args[min(len(call.Args), signature.Params().Len()-1):], u)
	}
}

// takeFormat reads a format that is filled here.
func (c *collector) takeFormat(f flow, args []ast.Expr, u use) {
	text := c.format(f, args)
	if f.in.info.Types[args[0]].Value == nil {
		c.take(f.to(args[0]), use{role: u.role, format: true})
		return
	}
	c.record(f, u, text)
}

func (c *collector) takeAll(f flow, all []ast.Expr, u use) {
	for _, e := range all {
		c.take(f.to(e), u)
	}
}

func isAppend(s *source, call *ast.CallExpr) bool {
	name, ok := ast.Unparen(call.Fun).(*ast.Ident)
	if !ok {
		return false
	}
	builtin, ok := s.info.Uses[name].(*types.Builtin)
	return ok && builtin.Name() == "append"
}

// ours says whether what a call returns is known from its source.
func ours(s *source, call *ast.CallExpr, g graph) bool {
	signature, _ := under[*types.Signature](s.info.TypeOf(call.Fun))
	return signature.Results().Len() > 0 && len(g[signature.Results().At(0).Origin()]) > 0
}

// pattern writes an expression as a text with … for what is not constant, which is followed as a part.
func (c *collector) pattern(f flow, e ast.Expr) string {
	e = ast.Unparen(e)
	if value := f.in.info.Types[e].Value; value != nil && value.Kind() == constant.String {
		return constant.StringVal(value)
	}
	switch e := e.(type) {
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return c.pattern(f, e.X) + c.pattern(f, e.Y)
		}
	case *ast.CallExpr:
		if fn := callee(f.in, e); fn != nil && fn.FullName() == "fmt.Sprintf" {
			return c.format(f, e.Args)
		}
	}
	c.take(flow{in: f.in, expr: e, site: e, result: -1}, use{role: Part})
	return hole
}

// format is a format and its operands. One that is not constant is followed: it is filled where it is used.
func (c *collector) format(f flow, args []ast.Expr) string {
	for _, operand := range args[1:] {
		c.take(flow{in: f.in, expr: operand, site: operand, result: -1}, use{role: Part})
	}
	if value := f.in.info.Types[args[0]].Value; value != nil {
		return filled(constant.StringVal(value))
	}
	c.take(flow{in: f.in, expr: args[0], site: args[0], result: -1}, use{role: Part, format: true})
	return hole
}

// filled is a format whose verbs are filled.
func filled(format string) string {
	verb := regexp.MustCompile(`%[-+# 0]*(\[\d+\])?[\d*]*(\.[\d*]*)?(\[\d+\])?[a-zA-Z%]`)
	return verb.ReplaceAllStringFunc(format, func(v string) string {
		switch v[len(v)-1] {
		case '%':
			return "%"
		case 'q':
			return `"` + hole + `"`
		}
		return hole
	})
}

// record keeps a text. Of parts only what has several words is one: a single one can be the name of anything.
func (c *collector) record(f flow, u use, text string) {
	role := u.role
	if u.format {
		text = filled(text)
	}
	if role == Log {
		text = strings.TrimSpace(text)
	}
	words := regexp.MustCompile(`[a-z]{2}[^ ]* [^ ]|[^ ] [^ ]*[a-z]{2}`)
	if strings.Trim(text, hole+" :;,") == "" || role == Part && !words.MatchString(text) {
		return
	}
	c.found = append(c.found, occurrence{Text{Role: role, Text: text}, f.in.path, f.site})
}

// paired gives every message the hint of its site, and says in which package it is.
func (c *collector) paired() iter.Seq2[string, Text] {
	hints, told := map[ast.Node][]string{}, map[ast.Node]bool{}
	for _, o := range c.found {
		if o.Role == Hint {
			hints[o.site] = append(hints[o.site], o.Text.Text)
		}
		told[o.site] = told[o.site] || o.Role == Message
	}
	return func(yield func(string, Text) bool) {
		for _, o := range c.found {
			more := true
			switch {
			case o.Role == Message && len(hints[o.site]) > 0:
				for _, o.Hint = range hints[o.site] {
					more = more && yield(o.in, o.Text)
				}
			case o.Role != Hint || !told[o.site] || o.Secret != "":
				more = yield(o.in, o.Text)
			}
			if !more {
				return
			}
		}
	}
}
