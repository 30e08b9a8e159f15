package model

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/fault"
)

// TestGroup: the children of each parent are the rows that a search finds, in the order of storage.
func TestGroup(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 5))
	for range 300 {
		n := 1 + r.IntN(8)
		parents := make([]int32, r.IntN(40))
		for i := range parents {
			parents[i] = int32(r.IntN(n))
		}
		first, rows := Group(parents, n)
		if len(first) != n+1 || len(rows) != len(parents) {
			t.Fatalf("%v of %d parents: %v, %v", parents, n, first, rows)
		}
		for p := range n {
			var want []int32
			for i, parent := range parents {
				if int(parent) == p {
					want = append(want, int32(i))
				}
			}
			if got := rows[first[p]:first[p+1]]; !slices.Equal(got, want) {
				t.Fatalf("%v: parent %d has %v, want %v", parents, p, got, want)
			}
		}
	}
}

// TestFormNames: every form has a name, and no two have the same.
func TestFormNames(t *testing.T) {
	forms := map[string]Form{}
	for form := range numForms {
		if other, twice := forms[form.String()]; twice || form.String() == "" {
			t.Errorf("forms %d and %d are called %q", form, other, form)
		}
		forms[form.String()] = form
	}
}

// TestClimbs: no path that could lead out of its folder, on any system, counts as one below it.
func TestClimbs(t *testing.T) {
	for path, climbs := range map[string]bool{
		"a": false, "a/b.tif": false, "a/": false, "..a": false, "a..": false, "...": false,
		"": true, ".": true, "..": true, "/a": true, "a/../b": true, "a//b": true, "./a": true, "a/..": true,
		`a\b`: true, "c:/a": true, "a\x00b": true, "/": true, "//": true, "a//": true,
	} {
		if got := Climbs(path); got != climbs {
			t.Errorf("%q: %t, want %t", path, got, climbs)
		}
	}
}

// TestCheckDocument: a document is an object of JSON in UTF-8, and all else is corrupt.
func TestCheckDocument(t *testing.T) {
	for text, ok := range map[string]bool{
		"{}": true, " \n{\"a\": [1]}\n": true,
		"": false, "[]": false, "null": false, "{": false, "{} {}": false, "{\"a\": \"\xff\"}": false,
		"\ufeff{}": false,
	} {
		if err := CheckDocument([]byte(text), "COLLECTION.json", 7); (err == nil) != ok ||
			err != nil && fault.KindOf(err) != fault.Corrupt {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestPadding: a placeholder is its prefix and a number, and may be at the place of any sample.
func TestPadding(t *testing.T) {
	for id, padding := range map[string]bool{
		PadPrefix + "0": true, PadPrefix + "12": true, PadPrefix: false, PadPrefix + "1a": false,
		"x" + PadPrefix + "1": false,
	} {
		if IsPadding(id) != padding || SameID(id, "other") != padding || !SameID(id, id) {
			t.Errorf("%q", id)
		}
	}
}
