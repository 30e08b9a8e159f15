// Mutants changes one operator, constant or statement of a package at a time, and runs tests, which should then fail.
//
//	go run ./tools/mutants [-n N] [-seed S] [-tests PACKAGES] PACKAGE...
//
// It changes nothing in the tree: each mutant is an overlay of the compiler. A mutant is killed if a test fails, or if
// the tests of a package run over four times as long as without it; one that does not compile does not count. Numbers
// that are returned beside an error stay as they are. It prints
// each survivor as FILE:LINE and the change, and the share that was killed. A line of tools/mutants/equivalent.txt,
// FILE: TEXT OF THE LINE => CHANGE, with a reason above it, names a mutant that does the same as the original.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	count := flag.Int("n", 40, "number of mutants of each package, picked at random; 0 for all")
	seed := flag.Uint64("seed", 1, "seed of the choice")
	tests := flag.String("tests", "", "packages whose tests run, separated by commas (default: those of the package)")
	flag.Parse()
	if err := run(os.Stdout, flag.Args(), *tests, *count, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// mutant is a change of a file.
type mutant struct {
	file       string
	line       int
	begin, end int    // bytes of the file that are replaced
	was, is    string // the text there
	source     []byte
}

// key is how equivalent.txt names the mutant.
func (m *mutant) key() string {
	lines := bytes.Split(m.source, []byte("\n"))
	return strings.TrimSpace(fmt.Sprintf("%s: %s => %s", m.file, bytes.TrimSpace(lines[m.line-1]), m.is))
}

func run(out *os.File, packages []string, tests string, count int, seed uint64) error {
	same, err := equivalent("tools/mutants/equivalent.txt")
	if err != nil {
		return err
	}
	for _, dir := range packages {
		mutants, err := mutantsOf(dir)
		if err != nil {
			return err
		}
		random := rand.New(rand.NewPCG(seed, 0))
		random.Shuffle(len(mutants), func(i, j int) { mutants[i], mutants[j] = mutants[j], mutants[i] })
		if count > 0 {
			mutants = mutants[:min(count, len(mutants))]
		}
		tested := []string{"./" + filepath.Clean(dir)}
		if tests != "" {
			tested = strings.Split(tests, ",")
		}
		if err := try(out, dir, mutants, tested, same); err != nil {
			return err
		}
	}
	return nil
}

// try runs the tests for each mutant, and prints what survives.
func try(out *os.File, dir string, mutants []mutant, tests []string, same map[string]bool) error {
	const patience = 4 // times the tests of the original
	const longest = 10 * time.Minute
	if text, err := test(tests, "", longest); err != nil {
		return fmt.Errorf("the tests fail without a mutant: %w\n%s", err, text)
	}
	began := time.Now() // compiled by now
	_, _ = test(tests, "", longest)
	limit := patience * time.Since(began)
	var killed, survived, equal int
	for i := range mutants {
		m := &mutants[i]
		if same[m.key()] {
			equal++
			continue
		}
		ok, compiles, err := m.survives(tests, limit)
		switch {
		case err != nil:
			return err
		case !compiles:
		case ok:
			survived++
			fmt.Fprintf(out, "%s:%d: %s => %s\n\t%s\n", m.file, m.line, m.was, m.is, m.key())
		default:
			killed++
		}
	}
	fmt.Fprintf(out, "%s: %d of %d mutants killed, %d equivalent\n", dir, killed, killed+survived, equal)
	return nil
}

// test runs the tests of packages with an overlay, which may be empty, and returns what they print. Tests of a package
// end themselves after limit: the tests would outlive a go command that is stopped, and loop beside later ones.
func test(packages []string, overlay string, limit time.Duration) (string, error) {
	const compiling = 5 * time.Minute
	ctx, cancel := context.WithTimeout(context.Background(), limit+compiling)
	defer cancel()
	args := []string{"test", "-vet=off", "-failfast", "-count=1", "-timeout", limit.String()}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	command := exec.CommandContext(ctx, "go", append(args, packages...)...)
	// Otherwise failures are files in the tree, and rapid looks 30 s for the smallest one.
	command.Env = append(os.Environ(), "RAPID_NOFAILFILE=1", "RAPID_SHRINKTIME=1ms")
	command.WaitDelay = time.Second
	text, err := command.CombinedOutput()
	return string(text), err
}

// survives reports whether the tests pass with the mutant, and whether it compiles.
func (m *mutant) survives(tests []string, limit time.Duration) (ok, compiles bool, err error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return false, false, err
	}
	defer os.RemoveAll(dir)
	changed := filepath.Join(dir, "changed.go")
	text := append(append(bytes.Clone(m.source[:m.begin]), m.is...), m.source[m.end:]...)
	if err := os.WriteFile(changed, text, 0o600); err != nil {
		return false, false, err
	}
	path, err := filepath.Abs(m.file)
	if err != nil {
		return false, false, err
	}
	document, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		return false, false, err
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, document, 0o600); err != nil {
		return false, false, err
	}
	printed, err := test(tests, overlay, limit)
	return err == nil, !strings.Contains(printed, "[build failed]"), nil
}

// equivalent reads the list of equivalent mutants.
func equivalent(path string) (map[string]bool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	keys := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			keys[line] = true
		}
	}
	return keys, nil
}

// mutantsOf returns all mutants of the files of a package that are compiled here.
func mutantsOf(dir string) (all []mutant, err error) {
	list, err := exec.Command("go", "list", "-f", `{{join .GoFiles "\n"}}`, "./"+filepath.Clean(dir)).Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", dir, err)
	}
	for name := range strings.FieldsSeq(string(list)) {
		path := filepath.Join(dir, name)
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, source, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		add := func(begin, end token.Pos, is string) {
			first, behind := files.Position(begin), files.Position(end)
			was := string(source[first.Offset:behind.Offset])
			all = append(all, mutant{path, first.Line, first.Offset, behind.Offset, was, is, source})
		}
		failures := map[ast.Node]bool{}
		ast.Inspect(file, func(n ast.Node) bool {
			if result, ok := n.(*ast.ReturnStmt); ok && failures[n] {
				ast.Inspect(result.Results[len(result.Results)-1], func(n ast.Node) bool { return mutate(n, add) })
				return false
			}
			findFailures(n, failures)
			return mutate(n, add)
		})
	}
	return all, nil
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
