package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const module = "github.com/chaski-eo/chaski"

// floors are the rooms of the module, the ground floor first: folders of its root, and those below the roofs format and
// internal that have a floor of their own. A package imports packages of its own room and of lower floors. Rooms of one
// floor stand side by side and do not import each other, but for those in allowed.
var floors = [][]string{
	{"fault"},
	{"internal"},
	{"source", "shuffle", "internal/crs", "format/column", "format/dtype"},
	{"format/chunk", "format/tables"},
	{"format/codec", "format/npy"},
	{"tiff", "rumi", "format/picture", "format/vrt", "format/hdf5", "format/envi", "stats", "einops",
		"format/vector"},
	{"store"},
	{"loader"},
	{"proto"},
	{"bench", "ops", "grpc"},
	{"cmd", "examples"},
	{"tools"},
}

// allowed are arrows between folders of one floor.
var allowed = map[[2]string]bool{
	{"rumi", "tiff"}: true, // a rumi file is a TIFF: its tags and metadata are read there
}

// kinds stands for all folders of packages that register a kind of store.
const kinds = "store.Register("

// light are packages of programs that compile little, and the folders whose packages each of them does not reach.
var light = map[string][]string{
	// It reads no file itself.
	"grpc/client": {"source", "format/chunk", "format/tables", "format/codec", "tiff", "rumi", "format/picture",
		"store"},
	// A program imports the formats that it reads, or loader/formats.
	"loader": {"source/archive", "source/diskcache", "internal/durable", "format/picture", "format/codec",
		"format/tables/text", "format/tables/wkb", "rumi", "loader/ground", "loader/vectors", "store/catalog/virtual",
		"store/arrays", "store/taco", kinds},
	// It is data and checks.
	"loader/spec": {"source", "format/tables", "tiff", "rumi", "store"},
	// It reads what a source.Reader gives, and makes no plans for loading.
	"tiff": {"internal/crs", "source/openers", "source/remote", "format/chunk/blob", "format/chunk/runs",
		"format/tables"},
}

// listed is what `go list -json` prints of a package.
type listed struct {
	ImportPath, Dir                    string
	GoFiles                            []string
	Imports, TestImports, XTestImports []string
}

// checkImports returns the arrows between packages that run up.
func checkImports() (problems []string, err error) {
	packages, err := list("-json=ImportPath,Dir,GoFiles,Imports,TestImports,XTestImports", "./...")
	if err != nil {
		return nil, err
	}
	level := map[string]int{}
	for i, rooms := range floors {
		for _, r := range rooms {
			level[r] = i
		}
	}
	for _, listed := range packages {
		tests := slices.Concat(listed.TestImports, listed.XTestImports)
		if slices.Contains(tests, "pgregory.net/rapid") && !slices.Contains(tests, module+"/tools/testkit/seed") {
			problems = append(problems, listed.ImportPath+": its tests import rapid without tools/testkit/seed, "+
				"and so try other cases each time")
		}
		source, ok := room(listed.ImportPath)
		if !ok {
			continue
		}
		if _, known := level[source]; !known {
			problems = append(problems, fmt.Sprintf("%s: %s is on no floor of tools/check/imports.go",
				listed.ImportPath, source))
			continue
		}
		for _, i := range listed.Imports {
			target, ok := room(i)
			if !ok || target == source || level[target] < level[source] || allowed[[2]string{source, target}] {
				continue
			}
			problems = append(problems, fmt.Sprintf("%s imports %s, which is not on a lower floor", listed.ImportPath,
				i))
		}
	}
	stores, err := registering(packages)
	if err != nil {
		return nil, err
	}
	problems = append(problems, checkLight(packages, stores)...)
	slices.Sort(problems)
	return problems, nil
}

// checkLight returns what the light packages reach and must not.
func checkLight(packages []listed, stores []string) (problems []string) {
	imports := map[string][]string{}
	for _, p := range packages {
		imports[p.ImportPath] = p.Imports
	}
	for start, heavy := range light {
		if slices.Contains(heavy, kinds) {
			heavy = slices.Concat(heavy, stores)
		}
		reached := []string{module + "/" + start}
		for i := 0; i < len(reached); i++ {
			for _, folder := range heavy {
				if strings.HasPrefix(reached[i]+"/", module+"/"+folder+"/") {
					problems = append(problems, fmt.Sprintf("%s reaches %s", start, reached[i]))
				}
			}
			for _, next := range imports[reached[i]] {
				if !slices.Contains(reached, next) {
					reached = append(reached, next)
				}
			}
		}
	}
	return problems
}

// registering returns the folders of the packages that register a kind of store.
func registering(packages []listed) (folders []string, err error) {
	for _, p := range packages {
		for _, name := range p.GoFiles {
			folder := strings.TrimPrefix(p.ImportPath, module+"/")
			if !strings.HasPrefix(folder, "store/") {
				continue
			}
			text, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				return nil, err
			}
			if bytes.Contains(text, []byte(kinds)) {
				folders = append(folders, folder)
			}
		}
	}
	return folders, nil
}

// room returns the room of floors that a package lies in, or else the folder of the root, and reports whether the
// package is one of the module.
func room(path string) (string, bool) {
	rest, ok := strings.CutPrefix(path, module+"/")
	parts := strings.SplitN(rest, "/", 3)
	if len(parts) > 1 {
		below := parts[0] + "/" + parts[1]
		if slices.ContainsFunc(floors, func(rooms []string) bool { return slices.Contains(rooms, below) }) {
			return below, ok
		}
	}
	return parts[0], ok
}

// list runs go list.
func list(args ...string) (packages []listed, err error) {
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		packages = append(packages, p)
	}
}
