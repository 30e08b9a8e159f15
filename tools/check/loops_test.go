package main

import (
	"go/parser"
	"go/token"
	"testing"
)

func TestLoopsWithoutRoundsAreFound(t *testing.T) {
	for body, want := range map[string]int{
		`for b, err := range l.All() { if err != nil || b.N != 1 { t.Fatal(b) } }`:                          1,
		`n := 0; for b, err := range l.All() { if b.N != 1 { t.Fatal(b, err) }; n++ }`:                      1,
		`n := 0; for b, err := range l.All() { if b.N != 1 { t.Fatal(b, err) }; n++ }; if n < 1 { return }`: 0,
		`x := map[int]int{}; for b, err := range l.All() { if f(b) { x[b]++ } }; check(x)`:                  0,
		`for _, err := range l.All() { if err != nil { t.Fatal(err) } }`:                                    0,
		`for _, b := range batches { if b.N != 1 { t.Fatal(b) } }`:                                          0,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x_test.go", "package x\nfunc TestX(t *T) { "+body+" }", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := emptyLoops(file); len(got) != want {
			t.Errorf("%s: %d loops, want %d", body, len(got), want)
		}
	}
}
