package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
)

// functionLines is how long a function may be: what two screens of 40 lines hold.
const functionLines = 80

// checkFunctions returns the functions below root that are too long, except in tests, whose tables of cases are
// read line by line, and in generated files.
func checkFunctions(root string) (problems []string, err error) {
	err = walkGo(root, false, func(set *token.FileSet, file *ast.File) {
		for _, d := range file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || ast.IsGenerated(file) {
				continue
			}
			pos := set.Position(fn.Pos())
			if n := set.Position(fn.End()).Line - pos.Line + 1; n > functionLines {
				problems = append(problems, fmt.Sprintf("%s:%d: %s has %d lines, over %d",
					pos.Filename, pos.Line, fn.Name.Name, n, functionLines))
			}
		}
	})
	return problems, err
}

// walkGo calls visit for the Go files below root, either of tests or others.
func walkGo(root string, tests bool, visit func(set *token.FileSet, file *ast.File)) error {
	set := token.NewFileSet()
	return walkSources(root, func(path string) error {
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") != tests {
			return nil
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err == nil {
			visit(set, file)
		}
		return err
	})
}

// walkSources calls visit for the files below root. It leaves out folders whose name begins with a dot, and folders of
// test data.
func walkSources(root string, visit func(path string) error) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() {
			return visit(path)
		}
		name := d.Name()
		if path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules") {
			return fs.SkipDir
		}
		return nil
	})
}
