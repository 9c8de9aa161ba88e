package texts

import (
	"go/ast"
	"go/token"
	"go/types"
)

// flow is an expression whose value comes into a variable.
type flow struct {
	in   *source
	expr ast.Expr
	// site is the statement, the call or the literal in which it stands: a message and a hint of one site belong together.
	site ast.Node
	// part: it is added to what the variable holds.
	part bool
	// result is which result of a call with several it is; -1: the value itself.
	result int
}

// to is another expression at the same site.
func (f flow) to(e ast.Expr) flow { return flow{in: f.in, expr: e, site: f.site, result: -1} }

// graph knows for every variable (local, parameter, result, field) what flows into it.
type graph map[*types.Var][]flow

func (g graph) add(to *types.Var, f flow) {
	if to != nil && f.expr != nil {
		to = to.Origin()
		g[to] = append(g[to], f)
	}
}

// build reads every statement of a package.
func (g graph) build(s *source) {
	for _, file := range s.files {
		for _, decl := range file.Decls {
			g.walk(s, decl, nil)
		}
	}
}

// walk goes through a node inside a function with this signature.
func (g graph) walk(s *source, node ast.Node, around *types.Signature) {
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Body != nil {
				fn, _ := s.info.Defs[n.Name].(*types.Func)
				g.walk(s, n.Body, fn.Signature())
			}
			return false
		case *ast.FuncLit:
			signature, _ := s.info.TypeOf(n).(*types.Signature)
			g.walk(s, n.Body, signature)
			return false
		case *ast.AssignStmt:
			g.assign(s, n, n.Lhs, n.Rhs, n.Tok == token.ADD_ASSIGN)
		case *ast.ValueSpec:
			names := make([]ast.Expr, len(n.Names))
			for i, name := range n.Names {
				names[i] = name
			}
			g.assign(s, n, names, n.Values, false)
		case *ast.RangeStmt:
			if n.Value != nil {
				g.assign(s, n, []ast.Expr{n.Value}, []ast.Expr{n.X}, false)
			}
		case *ast.ReturnStmt:
			g.returns(s, n, around)
		case *ast.CompositeLit:
			g.literal(s, n)
		case *ast.CallExpr:
			g.call(s, n)
		}
		return true
	})
}

func (g graph) assign(s *source, site ast.Node, to, from []ast.Expr, part bool) {
	for i, target := range to {
		switch {
		case len(from) == len(to):
			g.add(variable(s, target), flow{in: s, expr: from[i], site: site, part: part, result: -1})
		case len(from) == 1:
			g.add(variable(s, target), flow{in: s, expr: from[0], site: site, part: part, result: i})
		}
	}
}

func (g graph) returns(s *source, n *ast.ReturnStmt, around *types.Signature) {
	if around == nil {
		return
	}
	for i := range around.Results().Len() {
		to := around.Results().At(i)
		switch {
		case len(n.Results) == around.Results().Len():
			g.add(to, flow{in: s, expr: n.Results[i], site: n, result: -1})
		case len(n.Results) == 1:
			g.add(to, flow{in: s, expr: n.Results[0], site: n, result: i})
		}
	}
}

// literal: the fields of a struct. The elements of a map or a list are looked at where the whole flows.
func (g graph) literal(s *source, n *ast.CompositeLit) {
	structure, ok := under[*types.Struct](s.info.TypeOf(n))
	if !ok {
		return
	}
	for i, element := range n.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.Ident); ok {
				field, _ := s.info.Uses[key].(*types.Var)
				g.add(field, flow{in: s, expr: pair.Value, site: n, result: -1})
			}
		} else if i < structure.NumFields() {
			g.add(structure.Field(i), flow{in: s, expr: element, site: n, result: -1})
		}
	}
}

// call: the arguments flow into the parameters, which are the same objects as inside the function.
func (g graph) call(s *source, n *ast.CallExpr) {
	signature, ok := under[*types.Signature](s.info.TypeOf(n.Fun))
	if !ok {
		return
	}
	parameters := signature.Params()
	for i, argument := range n.Args {
		if i >= parameters.Len() || signature.Variadic() && i >= parameters.Len()-1 {
			return // one of many is no text of its own: see whole
		}
		g.add(parameters.At(i), flow{in: s, expr: argument, site: n, result: -1})
	}
}

// variable is what an expression names, nil when it is more than a name or a field.
func variable(s *source, e ast.Expr) *types.Var {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		if v, ok := s.info.Defs[e].(*types.Var); ok {
			return v
		}
		v, _ := s.info.Uses[e].(*types.Var)
		return v
	case *ast.SelectorExpr:
		v, _ := s.info.Uses[e.Sel].(*types.Var)
		return v
	}
	return nil
}

// callee is the function that a call names, nil for a value and for a conversion.
func callee(s *source, call *ast.CallExpr) *types.Func {
	switch fun := ast.Unparen(call.Fun).(type) {
	case *ast.Ident:
		fn, _ := s.info.Uses[fun].(*types.Func)
		return fn
	case *ast.SelectorExpr:
		fn, _ := s.info.Uses[fun.Sel].(*types.Func)
		return fn
	}
	return nil
}

// under is the underlying type, through one pointer.
func under[T types.Type](t types.Type) (T, bool) {
	var none T
	if t == nil {
		return none, false
	}
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	out, ok := t.Underlying().(T)
	return out, ok
}
