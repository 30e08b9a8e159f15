package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
)

// checkLoops returns the loops of Go tests below root that pass if there is nothing to loop over: they go over an
// iterator of values and errors, such as the batches of a loader, and the test looks at nothing that they change.
// tools/vacuous.py does the same for Python.
func checkLoops(root string) (problems []string, err error) {
	err = walkGo(root, true, func(set *token.FileSet, file *ast.File) {
		for _, loop := range emptyLoops(file) {
			problems = append(problems, fmt.Sprintf("%s: nothing fails if this loop has no round: count them",
				set.Position(loop.Pos())))
		}
	})
	return problems, err
}

// emptyLoops returns the loops of a file's tests over iterators of values and errors that check values, but whose
// rounds nobody counts.
func emptyLoops(file *ast.File) (loops []*ast.RangeStmt) {
	for _, d := range file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || !strings.HasPrefix(fn.Name.Name, "Test") {
			continue
		}
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			loop, ok := n.(*ast.RangeStmt)
			if !ok {
				return true
			}
			value, _ := loop.Value.(*ast.Ident)
			_, call := loop.X.(*ast.CallExpr)
			errs := call && value != nil && value.Name == "err"
			if errs && checksValues(loop) && !counted(fn, loop) {
				loops = append(loops, loop)
			}
			return true
		})
	}
	return loops
}

// checksValues reports whether the loop compares anything but errors with nil.
func checksValues(loop *ast.RangeStmt) (checks bool) {
	ast.Inspect(loop.Body, func(n ast.Node) bool {
		if cond, ok := n.(*ast.IfStmt); ok {
			compared, _ := cond.Cond.(*ast.BinaryExpr)
			if compared == nil || !isName(compared.X, "err") || !isName(compared.Y, "nil") {
				checks = true
			}
		}
		return !checks
	})
	return checks
}

func isName(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

// counted reports whether the function uses, after the loop, a variable that the loop assigns to or calls a method of.
func counted(fn *ast.FuncDecl, loop *ast.RangeStmt) (used bool) {
	changed := map[string]bool{}
	ast.Inspect(loop.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IncDecStmt:
			changed[root(n.X)] = true
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, e := range n.Lhs {
					changed[root(e)] = true
				}
			}
		case *ast.CallExpr:
			if method, ok := n.Fun.(*ast.SelectorExpr); ok {
				changed[root(method.X)] = true
			}
		}
		return true
	})
	delete(changed, "t")
	ast.Inspect(fn, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && id.Pos() > loop.End() && changed[id.Name] {
			used = true
		}
		return !used
	})
	return used
}

// root returns the variable of an operand, such as x of x.f[i]; "" for other operands.
func root(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.IndexExpr:
		return root(x.X)
	case *ast.SelectorExpr:
		return root(x.X)
	case *ast.StarExpr:
		return root(x.X)
	}
	return ""
}
