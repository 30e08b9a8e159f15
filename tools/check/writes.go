package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"path/filepath"
	"slices"
)

// makers are the functions of package os that give a file its name or its first content. Only internal/durable may
// call them, because it syncs files before their names are reported.
var makers = []string{"Create", "CreateTemp", "Rename", "WriteFile"}

// ownWriters are the folders and files that may call makers, and why.
var ownWriters = map[string]string{
	"internal/durable":                   "it is the one writer, also of scratch files",
	"ops/convert/target.go":              "it exchanges folders that it has synced",
	"store/tiledb/create.go":             "files in a durable.Folder, which syncs them",
	"store/tiledb/writer.go":             "files in a durable.Folder, which syncs them",
	"source/diskcache/file.go":           "ranges with checksums: one that is lost is read again",
	"cmd/chaski/internal/serve/serve.go": "figures of a run, which only its benchmark reads",
	"bench":                              "working files, which the next run makes again",
	"examples":                           "working files, which the next run makes again",
	"tools":                              "sources in the working tree, which git keeps",
}

// checkWrites returns the calls below root by which a file could get a name before its content is on the disk.
func checkWrites(root string) (problems []string, err error) {
	err = walkGo(root, false, func(set *token.FileSet, file *ast.File) {
		if mayWrite(set.Position(file.Pos()).Filename) {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "os" && slices.Contains(makers, s.Sel.Name) {
				problems = append(problems, fmt.Sprintf("%s: os.%s: use internal/durable, or say in "+
					"tools/check/writes.go why not", set.Position(s.Pos()), s.Sel.Name))
			}
			return true
		})
	})
	return problems, err
}

// mayWrite reports whether ownWriters has the file or a folder that it is in.
func mayWrite(path string) bool {
	for path = filepath.ToSlash(path); path != "." && path != "/"; path = filepath.ToSlash(filepath.Dir(path)) {
		if ownWriters[path] != "" {
			return true
		}
	}
	return false
}
