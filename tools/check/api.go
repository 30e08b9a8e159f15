package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// checkAPI compares the exported declarations of the public packages with dir, a file NAME.go.txt
// for each room of the module, so that a review sees what a change does to the API. With write it
// writes them.
func checkAPI(dir string, write bool) (problems []string, err error) {
	packages, err := list("-json=ImportPath,Imports", "./...")
	if err != nil {
		return nil, err
	}
	want := map[string]string{}
	for _, p := range packages {
		top, ok := room(p.ImportPath)
		path := strings.TrimPrefix(p.ImportPath, module+"/")
		private := slices.ContainsFunc(strings.Split(path, "/"), func(s string) bool { return s == "internal" })
		if !ok || private || slices.Contains([]string{"cmd", "ops", "tools", "examples", "proto"}, top) {
			continue
		}
		text, err := exported(path)
		if err != nil {
			return nil, err
		}
		if text != "" {
			want[strings.TrimPrefix(top, "format/")+".go.txt"] += "package " + path + "\n\n" + text + "\n"
		}
	}
	old, err := filepath.Glob(filepath.Join(dir, "*.go.txt"))
	if err != nil {
		return nil, err
	}
	for _, f := range old {
		if _, ok := want[filepath.Base(f)]; !ok {
			problems = append(problems, f+" is of no package: run make api")
			if write {
				if err := os.Remove(f); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		f := filepath.Join(dir, name)
		have, err := os.ReadFile(f)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if string(have) == want[name] {
			continue
		}
		problems = append(problems, f+" is not what the packages export: run make api, and look at the difference")
		if write {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return nil, err
			}
			if err := os.WriteFile(f, []byte(want[name]), 0o644); err != nil {
				return nil, err
			}
		}
	}
	if write {
		return nil, nil
	}
	return problems, nil
}

// exported returns the exported declarations of the package in a folder, without comments and bodies, sorted. It lists
// them for Linux on amd64 without cgo, so that the listing is the same on every machine.
func exported(dir string) (string, error) {
	ctx := build.Default
	ctx.GOOS, ctx.GOARCH, ctx.CgoEnabled = "linux", "amd64", false
	p, err := ctx.ImportDir(dir, 0)
	if err != nil {
		return "", err
	}
	var lines []string
	set := token.NewFileSet()
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(set, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return "", err
		}
		if !ast.FileExports(file) {
			continue
		}
		for _, d := range file.Decls {
			texts, err := declared(set, d)
			if err != nil {
				return "", err
			}
			lines = append(lines, texts...)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, ""), nil
}

// declared returns the lines of a declaration: one text for each constant, variable, type or function.
func declared(set *token.FileSet, d ast.Decl) (texts []string, err error) {
	add := func(d ast.Decl) error {
		var w bytes.Buffer
		if err := format.Node(&w, set, d); err != nil {
			return err
		}
		texts = append(texts, w.String()+"\n")
		return nil
	}
	switch d := d.(type) {
	case *ast.FuncDecl:
		d.Doc, d.Body = nil, nil
		return texts, add(d)
	case *ast.GenDecl:
		if d.Tok == token.IMPORT {
			return nil, nil
		}
		for i, spec := range d.Specs {
			if d.Tok == token.CONST || d.Tok == token.VAR {
				valueSpec := spec.(*ast.ValueSpec)
				for _, name := range valueSpec.Names {
					if name.IsExported() {
						texts = append(texts, value(d, i, valueSpec, name.Name))
					}
				}
				continue
			}
			if err := add(&ast.GenDecl{Tok: d.Tok, TokPos: d.Specs[i].Pos(), Specs: []ast.Spec{spec}}); err != nil {
				return nil, err
			}
		}
		return texts, nil
	}
	return nil, fmt.Errorf("a declaration of type %T", d)
}

// value returns the line of a constant or variable. Values are left out: a constant of a list depends on its place, and
// that a value changes is no change of the API's shape.
func value(d *ast.GenDecl, at int, v *ast.ValueSpec, name string) string {
	typ := v.Type
	// of a list with iota, the type stands in the first line
	for i := at; typ == nil && len(v.Values) == 0 && i > 0; i-- {
		v = d.Specs[i-1].(*ast.ValueSpec)
		typ = v.Type
	}
	if typ == nil {
		return d.Tok.String() + " " + name + "\n"
	}
	var w bytes.Buffer
	_ = format.Node(&w, token.NewFileSet(), typ) // of a bytes.Buffer, and of a type that was parsed
	return d.Tok.String() + " " + name + " " + w.String() + "\n"
}
