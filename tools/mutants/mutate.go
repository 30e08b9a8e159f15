package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
)

// source is a file of a package.
type source struct {
	path    string
	text    []byte
	name    int // the end of its package clause
	hosts   []*host
	mutants []*mutant
}

// host is what has a copy for each of its mutants: an outermost function, or the value of a variable of the package.
type host struct {
	number     int    // in the package
	begin, end int    // bytes of the body within its braces, or of the value
	closure    string // "func(a int) error" of a function that does the same; "" for a value
	arguments  string // with which the function calls its copy, "a"
	void       bool   // the function returns nothing
	valueType  string // "[T]" for a variable that is declared as T
}

// mutant is a change of a file.
type mutant struct {
	file       string
	line       int
	begin, end int    // bytes of the file that are replaced
	was, is    string // the text there, as it is printed
	key        string // how equivalent.txt names the mutant
	host       *host
	id         int // in the test binary, from 1
}

// code is what a copy has in place of the bytes of the mutant. A condition still uses its variables.
func (m *mutant) code() string {
	if m.is == "false" {
		return "false && (" + m.was + ")"
	}
	return m.is
}

// parse returns a file with all its mutants. Its hosts count from first.
func parse(path, name string, first int) (*source, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	offset := func(p token.Pos) int { return files.Position(p).Offset }
	between := func(begin, end token.Pos) string { return string(text[offset(begin):offset(end)]) }
	s := &source{path: path, text: text, name: offset(file.Name.End())}
	lines := bytes.Split(text, []byte("\n"))
	failures := map[ast.Node]bool{}
	// inspect adds the mutants below a node to a host. A function within the value of a variable is a host of its own.
	var inspect func(root ast.Node, in *host)
	hosted := func(h *host) *host {
		h.number = first + len(s.hosts)
		s.hosts = append(s.hosts, h)
		return h
	}
	function := func(receiver *ast.FieldList, signature *ast.FuncType, body *ast.BlockStmt) {
		h := hosted(&host{begin: offset(body.Lbrace) + 1, end: offset(body.Rbrace), void: signature.Results == nil})
		h.closure, h.arguments = closure(receiver, signature, between)
		inspect(body, h)
	}
	inspect = func(root ast.Node, in *host) {
		add := func(begin, end token.Pos, is string) {
			m := &mutant{file: name, line: files.Position(begin).Line, begin: offset(begin), end: offset(end), host: in}
			m.was, m.is = between(begin, end), is
			m.key = strings.TrimSpace(fmt.Sprintf("%s: %s => %s", name, bytes.TrimSpace(lines[m.line-1]), is))
			s.mutants = append(s.mutants, m)
		}
		ast.Inspect(root, func(n ast.Node) bool {
			if result, ok := n.(*ast.ReturnStmt); ok && failures[n] {
				ast.Inspect(result.Results[len(result.Results)-1], func(n ast.Node) bool { return mutate(n, add) })
				return false
			}
			findFailures(n, failures)
			if literal, ok := n.(*ast.FuncLit); ok && in.closure == "" {
				function(nil, literal.Type, literal.Body)
				return false
			}
			return mutate(n, add)
		})
	}
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			if d.Body != nil {
				findFailures(d, failures)
				function(d.Recv, d.Type, d.Body)
			}
		case *ast.GenDecl: // constants of types and tables are seen by all tests, or by none
			for _, spec := range d.Specs {
				variable, ok := spec.(*ast.ValueSpec)
				if !ok || d.Tok != token.VAR || len(variable.Values) != len(variable.Names) { // a call
					continue
				}
				for _, value := range variable.Values {
					h := hosted(&host{begin: offset(value.Pos()), end: offset(value.End())})
					if variable.Type != nil {
						h.valueType = "[" + between(variable.Type.Pos(), variable.Type.End()) + "]"
					}
					inspect(value, h)
				}
			}
		}
	}
	return s, nil
}

// closure returns the head of a function without a name that has the parameters of another one, and its receiver if it
// has one, and what to call it with. In the body of a function, := sets its parameters again: in a block it would not.
func closure(
	receiver *ast.FieldList, signature *ast.FuncType, between func(a, b token.Pos) string,
) (head, arguments string) {
	fields := slices.Clone(signature.Params.List)
	if receiver != nil {
		fields = slices.Concat(receiver.List, fields)
	}
	var parameters, names []string
	for _, field := range fields {
		_, variadic := field.Type.(*ast.Ellipsis)
		for _, name := range field.Names {
			if name.Name == "_" {
				continue
			}
			parameters = append(parameters, name.Name+" "+between(field.Type.Pos(), field.Type.End()))
			argument := name.Name
			if variadic {
				argument += "..."
			}
			names = append(names, argument)
		}
	}
	head = "func(" + strings.Join(parameters, ", ") + ")"
	if signature.Results != nil {
		head += " " + between(signature.Results.Pos(), signature.Results.End())
	}
	return head, strings.Join(names, ", ")
}

// with returns the text of the file with all mutants that have a number, and the mutants to which lines belong.
func (s *source) with(imported string) (text []byte, owners map[int]*mutant) {
	type insertion struct {
		at    int
		text  string
		owner *mutant
	}
	var all []insertion
	insert := func(at int, owner *mutant, text string) { all = append(all, insertion{at, text, owner}) }
	for _, h := range s.hosts {
		var mutants []*mutant
		for _, m := range s.mutants {
			if m.host == h && m.id > 0 {
				mutants = append(mutants, m)
			}
		}
		if len(mutants) == 0 {
			continue
		}
		if h.closure == "" {
			for _, m := range mutants {
				insert(h.begin, nil, fmt.Sprintf("chosen.Value%s(%d, %d, ", h.valueType, h.number, m.id))
			}
			for _, m := range slices.Backward(mutants) {
				insert(h.end, m, ",\n"+s.copyOf(m)+")")
			}
			continue
		}
		insert(h.begin, nil, fmt.Sprintf("\nchosen.Reach(%d)\nswitch chosen.ID {\n", h.number))
		for _, m := range mutants {
			call := fmt.Sprintf("%s {%s}(%s)\n", h.closure, s.copyOf(m), h.arguments)
			if h.void {
				call += "return\n"
			} else {
				call = "return " + call
			}
			insert(h.begin, m, fmt.Sprintf("case %d:\n%s", m.id, call))
		}
		insert(h.begin, nil, "}\n")
	}
	if len(all) == 0 {
		return s.text, nil
	}
	all = slices.Insert(all, 0, insertion{s.name, "; import \"" + imported + "\"", nil})
	slices.SortStableFunc(all, func(a, b insertion) int { return a.at - b.at })
	owners = map[int]*mutant{}
	done := 0
	for _, in := range all {
		text = append(text, s.text[done:in.at]...)
		done = in.at
		line := 1 + bytes.Count(text, []byte("\n"))
		text = append(text, in.text...)
		if in.owner != nil {
			for n := range 1 + strings.Count(in.text, "\n") {
				owners[line+n] = in.owner
			}
		}
	}
	return append(text, s.text[done:]...), owners
}

// copyOf returns the text of the host of a mutant with the mutant in it.
func (s *source) copyOf(m *mutant) string {
	return string(s.text[m.host.begin:m.begin]) + m.code() + string(s.text[m.end:m.host.end])
}

// findFailures adds the statements of a function that return numbers, texts and the like beside an error: nobody looks
// at them, whatever they are.
func findFailures(n ast.Node, failures map[ast.Node]bool) {
	var signature *ast.FuncType
	var body *ast.BlockStmt
	switch n := n.(type) {
	case *ast.FuncDecl:
		signature, body = n.Type, n.Body
	case *ast.FuncLit:
		signature, body = n.Type, n.Body
	}
	if body == nil || signature.Results == nil {
		return
	}
	results := signature.Results.List
	if last, ok := results[len(results)-1].Type.(*ast.Ident); !ok || last.Name != "error" {
		return
	}
	ast.Inspect(body, func(n ast.Node) bool {
		if result, ok := n.(*ast.ReturnStmt); ok && len(result.Results) > 1 {
			last, ok := result.Results[len(result.Results)-1].(*ast.Ident)
			failures[n] = !slices.ContainsFunc(result.Results[:len(result.Results)-1], isNoLiteral) &&
				!(ok && last.Name == "nil")
		}
		_, other := n.(*ast.FuncLit)
		return !other
	})
}

// isNoLiteral reports whether an expression is something else than 0, nil, false, "" or T{}.
func isNoLiteral(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return false
	case *ast.Ident:
		return e.Name != "nil" && e.Name != "false"
	case *ast.CompositeLit:
		return len(e.Elts) > 0
	}
	return true
}

// operators has the operator that takes the place of another one.
var operators = map[token.Token]string{
	token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">", token.EQL: "!=", token.NEQ: "==",
	token.LAND: "||", token.LOR: "&&", token.ADD: "-", token.SUB: "+", token.MUL: "/", token.QUO: "*",
	token.REM: "*", token.SHL: ">>", token.SHR: "<<", token.AND: "|", token.OR: "&",
}

// mutate calls add for the changes of a node. It reports whether the nodes below it have changes of their own.
func mutate(n ast.Node, add func(begin, end token.Pos, is string)) bool {
	switch n := n.(type) {
	case *ast.GenDecl: // constants of types and tables are seen by all tests, or by none
		return n.Tok == token.VAR
	case *ast.BinaryExpr:
		if is, known := operators[n.Op]; known && !isText(n.X) && !isText(n.Y) {
			add(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), is)
		}
	case *ast.BasicLit:
		if v, err := strconv.ParseInt(n.Value, 0, 32); err == nil && n.Kind == token.INT {
			add(n.Pos(), n.End(), strconv.FormatInt(v+1, 10))
		}
	case *ast.IncDecStmt:
		add(n.TokPos, n.TokPos+2, map[token.Token]string{token.INC: "--", token.DEC: "++"}[n.Tok])
	case *ast.IfStmt:
		add(n.Cond.Pos(), n.Cond.End(), "false")
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE && n.Tok != token.ASSIGN {
			add(n.Pos(), n.End(), "") // x += y is left out
		}
	case *ast.ExprStmt:
		if _, call := n.X.(*ast.CallExpr); call {
			add(n.Pos(), n.End(), "")
		}
	case *ast.CallExpr: // min for max, and the other way round
		if f, ok := n.Fun.(*ast.Ident); ok && (f.Name == "min" || f.Name == "max") {
			add(f.Pos(), f.End(), map[string]string{"min": "max", "max": "min"}[f.Name])
		}
	}
	return true
}

// isText reports whether an operand is a string, whose + has no opposite.
func isText(e ast.Expr) bool {
	literal, ok := e.(*ast.BasicLit)
	return ok && literal.Kind == token.STRING
}
