package main

import (
	"fmt"
	"go/constant"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/tools/go/packages"
)

// A figure of a page that a constant knows has a comment that names it: "5 s<!--= grpc/server.handshakeTimeout -->".
var figurePattern = regexp.MustCompile(`([0-9][0-9,]*)(?: (KiB|MiB|GiB|ms|s|min|h))?<!--= ([\w/]+)\.(\w+) -->`)

// figureUnits are the values of units: bytes, and nanoseconds of a time.Duration.
var figureUnits = map[string]int64{"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "ms": int64(time.Millisecond),
	"s": int64(time.Second), "min": int64(time.Minute), "h": int64(time.Hour)}

// figure is a figure of a page.
type figure struct {
	place, text  string
	value        int64
	path, symbol string // of the constant
}

// checkFigures compares the figures of pages with the constants that they name.
func checkFigures(pages ...string) (problems []string, err error) {
	figures, problems, err := figuresOf(pages)
	if err != nil {
		return nil, err
	}
	paths := map[string]bool{}
	for _, f := range figures {
		paths[module+"/"+f.path] = true
	}
	if len(paths) == 0 {
		return append(problems, "no page has a figure with a constant"), nil
	}
	list, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax}, slices.Sorted(maps.Keys(paths))...)
	if err != nil {
		return nil, err
	}
	scopes := map[string]*types.Scope{}
	for _, p := range list {
		for _, e := range p.Errors {
			return nil, e
		}
		scopes[p.PkgPath] = p.Types.Scope()
	}
	for _, figure := range figures {
		c, ok := scopes[module+"/"+figure.path].Lookup(figure.symbol).(*types.Const)
		if !ok {
			problems = append(problems, fmt.Sprintf("%s: %s has no constant %s", figure.place, figure.path,
				figure.symbol))
			continue
		}
		if v, exact := constant.Int64Val(constant.ToInt(c.Val())); !exact || v != figure.value {
			problems = append(problems,
				fmt.Sprintf("%s: %q is not %s.%s, which is %s", figure.place, figure.text, figure.path, figure.symbol,
					c.Val()))
		}
	}
	return problems, nil
}

// figuresOf returns the figures with a constant, and the comments behind anything else.
func figuresOf(pages []string) (list []figure, problems []string, err error) {
	for _, pattern := range pages {
		names, err := filepath.Glob(pattern)
		if err != nil {
			return nil, nil, err
		}
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				return nil, nil, err
			}
			for i, line := range strings.Split(string(data), "\n") {
				place := fmt.Sprintf("%s:%d", name, i+1)
				found := figurePattern.FindAllStringSubmatch(line, -1)
				if len(found) != strings.Count(line, "<!--=") {
					problems = append(problems, place+": a constant without a figure before it")
				}
				for _, m := range found {
					var n int64
					if _, err := fmt.Sscan(strings.ReplaceAll(m[1], ",", ""), &n); err != nil {
						return nil, nil, fmt.Errorf("%s: %w", place, err)
					}
					text, _, _ := strings.Cut(m[0], "<")
					list = append(list, figure{place, text, n * figureUnits[m[2]], m[3], m[4]})
				}
			}
		}
	}
	return list, problems, nil
}
