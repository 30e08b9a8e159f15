// Command check checks rules of the repository that compilers do not:
//
//	go run ./tools/check all        all that follow
//	go run ./tools/check lines      the length of lines of Go and Markdown
//	go run ./tools/check functions  the length of functions
//	go run ./tools/check imports    packages import only packages of lower floors
//	go run ./tools/check circles    few files of a package use each other in a circle
//	go run ./tools/check figures    figures of pages equal the constants that they name
//	go run ./tools/check links      pages link to files and headings that are there
//	go run ./tools/check folders    the page of the architecture names each folder of packages
//	go run ./tools/check loops      loops of tests over iterators fail if there is nothing to loop over
//	go run ./tools/check writes     files get their names by internal/durable, which syncs them
//	go run ./tools/check api        docs/api lists the exported names of the public packages
//	go run ./tools/check api -w     writes those lists
//
// It runs in the repository's root, prints one line for each problem, and exits with 1 if there is one.
package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
)

// checks are all checks, in the order in which "all" runs them.
var checks = []struct {
	name string
	run  func() ([]string, error)
}{
	{"lines", func() ([]string, error) { return checkLines(".") }},
	{"functions", func() ([]string, error) { return checkFunctions(".") }},
	{"imports", checkImports},
	{"circles", checkCircles},
	{"figures", func() ([]string, error) { return checkFigures("README.md", "docs/*.md") }},
	{"links", func() ([]string, error) { return checkLinks(".") }},
	{"folders", func() ([]string, error) { return checkFolders(".") }},
	{"loops", func() ([]string, error) { return checkLoops(".") }},
	{"writes", func() ([]string, error) { return checkWrites(".") }},
	{"api", func() ([]string, error) { return checkAPI("docs/api", slices.Contains(os.Args, "-w")) }},
}

func main() {
	found := 0
	for _, check := range checks {
		if len(os.Args) < 2 || os.Args[1] != "all" && os.Args[1] != check.name {
			continue
		}
		problems, err := check.run()
		if err != nil {
			fail(err)
		}
		for _, p := range problems {
			fmt.Println(p)
		}
		if len(problems) > 0 {
			fail(fmt.Errorf("%s: %d problems", check.name, len(problems)))
		}
		found++
	}
	if found == 0 {
		fail(errors.New("usage: check all | lines | functions | imports | circles | figures | links | folders | " +
			"loops | writes | api [-w]"))
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "check:", err)
	os.Exit(1)
}
