package texts

import (
	"go/ast"
	"go/types"
	"slices"
)

// interpolated names what an expression shows that must not be shown; empty when there is nothing.
func interpolated(s *source, e ast.Expr) string {
	e = ast.Unparen(e)
	if holds(s.info.TypeOf(e), isSecret) {
		return types.ExprString(e)
	}
	switch e := e.(type) {
	case *ast.BinaryExpr:
		if left := interpolated(s, e.X); left != "" {
			return left
		}
		return interpolated(s, e.Y)
	case *ast.CallExpr:
		fn := callee(s, e)
		if fn != nil && fn.Name() == "Reveal" {
			return types.ExprString(e)
		}
		foreign := fn != nil && fn.Pkg() != nil && slices.Contains(passing(), fn.Pkg().Path())
		if !foreign && !s.info.Types[e.Fun].IsType() {
			return ""
		}
		for _, argument := range e.Args {
			if shown := interpolated(s, argument); shown != "" {
				return shown
			}
		}
	}
	return ""
}

// passing are foreign packages whose functions show what they are given.
func passing() []string {
	return []string{"fmt", "strings", "strconv", "bytes", "errors", "encoding/hex", "encoding/base64", "net/url"}
}

func isString(t types.Type) bool {
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsString != 0
}

func isSecret(t types.Type) bool {
	named, ok := t.(*types.Named)
	return ok && named.Obj().Name() == "Secret"
}

// holds says whether a value of type t is, points to, lists or contains what is asked for.
func holds(t types.Type, is func(types.Type) bool) bool {
	seen := map[types.Type]bool{}
	var look func(types.Type) bool
	look = func(t types.Type) bool {
		if t == nil || seen[t] {
			return false
		}
		seen[t] = true
		if is(t) {
			return true
		}
		switch u := t.Underlying().(type) {
		case *types.Pointer:
			return look(u.Elem())
		case *types.Slice:
			return look(u.Elem())
		case *types.Array:
			return look(u.Elem())
		case *types.Map:
			return look(u.Elem())
		case *types.Struct:
			for field := range u.Fields() {
				if look(field.Type()) {
					return true
				}
			}
		}
		return false
	}
	return look(t)
}
