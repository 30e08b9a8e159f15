// Command check checks rules of the repository that compilers do not:
//
//	go run ./tools/check lines      the length of lines of Go and Markdown
//	go run ./tools/check functions  the length of functions
//	go run ./tools/check imports    packages import only packages of lower floors
//	go run ./tools/check circles    few files of a package use each other in a circle
//	go run ./tools/check figures    figures of pages equal the constants that they name
//	go run ./tools/check links      pages link to files and headings that are there
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
)

func main() {
	if len(os.Args) < 2 {
		fail(errors.New("usage: check lines | functions | imports | circles | figures | links | loops | writes | " +
			"api [-w]"))
	}
	var problems []string
	var err error
	switch os.Args[1] {
	case "lines":
		problems, err = checkLines(".")
	case "functions":
		problems, err = checkFunctions(".")
	case "imports":
		problems, err = checkImports()
	case "circles":
		problems, err = checkCircles()
	case "figures":
		problems, err = checkFigures("README.md", "docs/*.md")
	case "links":
		problems, err = checkLinks(".")
	case "loops":
		problems, err = checkLoops(".")
	case "writes":
		problems, err = checkWrites(".")
	case "api":
		problems, err = checkAPI("docs/api", len(os.Args) > 2 && os.Args[2] == "-w")
	default:
		err = fmt.Errorf("%s: no such check", os.Args[1])
	}
	if err != nil {
		fail(err)
	}
	for _, p := range problems {
		fmt.Println(p)
	}
	if len(problems) > 0 {
		fail(fmt.Errorf("%s: %d problems", os.Args[1], len(problems)))
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "check:", err)
	os.Exit(1)
}
