// Package chosen is compiled into a tested package that has mutants in it. It says which one runs, and notes which
// functions with mutants are reached.
package chosen

import (
	"os"
	"strconv"
	"sync"
)

// ID is the number of the mutant that runs; there is none without the variable MUTANT.
var ID, _ = strconv.Atoi(os.Getenv("MUTANT"))

var (
	record = open(os.Getenv("MUTANTS_REACHED")) // gets the numbers of functions, a line each
	once   [1 << 14]sync.Once                   // more than a package has functions
)

// open opens a file at once: later a test may run without the right to.
func open(name string) *os.File {
	if name == "" {
		return nil
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	return file
}

// Reach notes that a function is called.
func Reach(function int) {
	if record == nil {
		return
	}
	once[function].Do(func() {
		if _, err := record.WriteString(strconv.Itoa(function) + "\n"); err != nil {
			panic(err)
		}
	})
}

// Value returns the value of a variable of the package, or what it is in the mutant id. It counts as a function.
func Value[T any](function, id int, original, mutant T) T {
	Reach(function)
	if ID == id {
		return mutant
	}
	return original
}
