// Mutants changes one operator, constant or statement of a package at a time, and runs tests, which should then fail.
//
//	go run ./tools/mutants [-n N] [-seed S] [-tests PACKAGES] [-p N] PACKAGE...
//
// It changes nothing in the tree: an overlay of the compiler puts all mutants into one test binary, where a variable
// of the environment chooses one, and each is tried on the tests that reach its function. A mutant is killed if a test
// fails, or if the tests run over four times as long as without it; one that does not compile does not count. Numbers
// that are returned beside an error stay as they are. It prints each survivor as FILE:LINE and the change, and the
// share that was killed. A line of tools/mutants/equivalent.txt, FILE: TEXT OF THE LINE => CHANGE, with a reason above
// it, names a mutant that does the same as the original.
package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"
)

func main() {
	count := flag.Int("n", 40, "number of mutants of each package, picked at random; 0 for all")
	seed := flag.Uint64("seed", 1, "seed of the choice")
	tests := flag.String("tests", "", "packages whose tests run, separated by commas (default: those of the package)")
	beside := flag.Int("p", 1, "number of mutants that are tried side by side")
	flag.Parse()
	if err := run(os.Stdout, flag.Args(), *tests, *count, *seed, *beside); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, packages []string, tests string, count int, seed uint64, beside int) error {
	same, err := equivalent("tools/mutants/equivalent.txt")
	if err != nil {
		return err
	}
	for _, dir := range packages {
		p, err := load(dir)
		if err != nil {
			return err
		}
		mutants := p.mutants()
		random := rand.New(rand.NewPCG(seed, 0))
		random.Shuffle(len(mutants), func(i, j int) { mutants[i], mutants[j] = mutants[j], mutants[i] })
		if count > 0 {
			mutants = mutants[:min(count, len(mutants))]
		}
		tested := []string{"./" + filepath.Clean(dir)}
		if tests != "" {
			tested = strings.Split(tests, ",")
		}
		if err := try(out, p, mutants, tested, same, beside); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	return nil
}

// try runs the tests on each mutant, and prints what survives.
func try(out io.Writer, p *pkg, mutants []*mutant, tests []string, same map[string]bool, beside int) error {
	equal := 0
	for i, m := range mutants {
		if same[m.key] {
			equal++
		} else {
			m.id = i + 1
		}
	}
	built, err := p.build(tests)
	if err != nil {
		return err
	}
	defer built.remove()
	survives := make([]bool, len(mutants))
	var group errgroup.Group
	group.SetLimit(beside)
	for i, m := range mutants {
		if m.id > 0 {
			group.Go(func() (err error) {
				survives[i], err = built.passes(m)
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	tried, survived := 0, 0
	for i, m := range mutants {
		if m.id > 0 {
			tried++
		}
		if survives[i] {
			survived++
			fmt.Fprintf(out, "%s:%d: %s => %s\n\t%s\n", m.file, m.line, m.was, m.is, m.key)
		}
	}
	fmt.Fprintf(out, "%s: %d of %d mutants killed, %d equivalent\n", p.dir, tried-survived, tried, equal)
	return nil
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
