package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// maxCircle bounds the files of a package that use each other in a circle: none of them can be read without the others.
// A file has 160 lines on average, so eight are some 1,300, which one can read at a sitting.
const maxCircle = 8

// uses says which files of a package use which, and by which names.
type uses map[string]map[string][]string

// checkCircles returns the packages in which more than maxCircle files use each other in a circle, by types and not by
// text.
func checkCircles() (problems []string, err error) {
	list, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax}, "./...")
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		for _, e := range p.Errors {
			return nil, e
		}
		files := fileUses(p)
		for _, c := range circles(files) {
			if len(c) <= maxCircle {
				continue
			}
			problems = append(problems, fmt.Sprintf("%s: %d files use each other in a circle, at most %d: %s",
				p.PkgPath, len(c), maxCircle, strings.Join(c, " ")))
			for _, source := range c {
				for _, target := range c {
					if names := files[source][target]; names != nil {
						problems = append(problems, fmt.Sprintf("    %s uses %s of %s", source,
							strings.Join(names, ", "), target))
					}
				}
			}
		}
	}
	return problems, nil
}

// fileUses returns for each file of a package the files whose declarations and methods it uses.
func fileUses(p *packages.Package) uses {
	base := func(at token.Pos) string { return filepath.Base(p.Fset.Position(at).Filename) }
	out := uses{}
	for _, file := range p.Syntax {
		source := base(file.Pos())
		out[source] = map[string][]string{}
		ast.Inspect(file, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			object := p.TypesInfo.Uses[id]
			if object == nil || object.Pkg() != p.Types {
				return true
			}
			method := false
			if fn, ok := object.(*types.Func); ok {
				method = fn.Signature().Recv() != nil
			}
			target := base(object.Pos())
			known := slices.Contains(out[source][target], object.Name())
			if (method || object.Parent() == p.Types.Scope()) && target != source && !known {
				out[source][target] = append(out[source][target], object.Name())
			}
			return true
		})
	}
	return out
}

// circles returns the sets of files that use each other, directly or through others, by Tarjan's algorithm.
func circles(files uses) (out [][]string) {
	number, low := map[string]int{}, map[string]int{} // number is the order of first visits, from 1
	open := []string{}                                // files that were visited and are in no circle yet
	var visit func(f string)
	visit = func(f string) {
		number[f] = len(number) + 1
		low[f] = number[f]
		open = append(open, f)
		for target := range files[f] {
			if number[target] == 0 {
				visit(target)
				low[f] = min(low[f], low[target])
			} else if slices.Contains(open, target) {
				low[f] = min(low[f], number[target])
			}
		}
		if low[f] == number[f] {
			i := slices.Index(open, f)
			circle := slices.Clone(open[i:])
			slices.Sort(circle)
			out, open = append(out, circle), open[:i]
		}
	}
	for f := range files {
		if number[f] == 0 {
			visit(f)
		}
	}
	return out
}
