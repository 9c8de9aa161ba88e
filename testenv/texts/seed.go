package texts

import (
	"go/ast"
	"go/types"
	"regexp"
	"slices"
	"strings"
)

// seed finds the places where errors are made.
func (c *collector) seed(s *source) {
	for _, object := range s.info.Defs {
		switch object := object.(type) {
		case *types.Var:
			if object.IsField() && isString(object.Type()) {
				c.follow(object, use{role: roleOf(object.Name())})
			}
		case *types.Func:
			if signature := object.Signature(); object.Name() == "Error" && signature.Recv() != nil && signature.Results().Len() == 1 {
				c.follow(signature.Results().At(0), use{role: Message})
			}
		}
	}
	for _, file := range s.files {
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				c.seedCall(s, call)
			}
			return true
		})
	}
}

// roleOf is what the name of a field promises; zero when it promises nothing.
func roleOf(field string) Role {
	switch strings.ToLower(field) {
	case "message", "problem", "fitnessreason", "pending":
		return Message
	case "hint", "remedy":
		return Hint
	}
	return 0
}

// seedCall knows the foreign functions that make an error of a text, or show it.
func (c *collector) seedCall(s *source, call *ast.CallExpr) {
	fn := callee(s, call)
	if fn == nil || fn.Pkg() == nil && fn.Name() == "Error" {
		return
	}
	at := func(i int) flow { return flow{in: s, expr: call.Args[i], site: call, result: -1} }
	switch name := fn.FullName(); {
	case name == "errors.New":
		c.take(at(0), use{role: Message})
	case name == "fmt.Errorf":
		c.takeFormat(at(0), call.Args, use{role: Message})
	case name == "google.golang.org/grpc/status.Error", name == "google.golang.org/grpc/status.New":
		c.take(at(1), use{role: Message})
	case strings.HasPrefix(name, "fmt.Fprint") && isStderr(call.Args[0]):
		for i := range call.Args[1:] {
			if name == "fmt.Fprintf" && i == 0 {
				c.takeFormat(at(1), call.Args[1:], use{role: Log})
				break
			}
			c.take(at(i+1), use{role: Log})
		}
	case isLog(fn):
		c.seedLog(s, call)
	}
}

// seedLog: the message, and the value of a remedy.
func (c *collector) seedLog(s *source, call *ast.CallExpr) {
	for i, argument := range call.Args {
		f := flow{in: s, expr: argument, site: call, result: -1}
		before := ""
		if i > 0 {
			before = types.ExprString(call.Args[i-1])
		}
		switch {
		case slices.Contains([]string{`"remedy"`, `"hint"`}, before):
			c.take(f, use{role: Hint})
		case i == 0:
			c.take(f, use{role: Log})
		case interpolated(s, argument) != "":
			c.take(f, use{role: Log})
		}
	}
}

// isLog recognizes slog and what has its form.
func isLog(fn *types.Func) bool {
	p := fn.Signature().Params()
	return regexp.MustCompile(`^(Debug|Info|Warn|Error)$`).MatchString(fn.Name()) && fn.Signature().Variadic() && p.Len() == 2 &&
		isString(p.At(0).Type())
}

// isStderr goes by the name: a stream is given to functions, not looked up.
func isStderr(e ast.Expr) bool {
	text := strings.ToLower(types.ExprString(e))
	return text == "err" || text == "errout" || text == "stderr" || strings.HasSuffix(text, ".err") || strings.HasSuffix(text, ".stderr")
}
