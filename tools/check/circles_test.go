package main

import (
	"reflect"
	"slices"
	"testing"
)

// Two circles that an arrow joins in one direction are two, and a file that only looks at a circle is in none.
func TestCircles(t *testing.T) {
	name := []string{"f"}
	files := uses{
		"a": {"b": name}, "b": {"c": name}, "c": {"a": name, "d": name},
		"d": {"e": name}, "e": {"d": name},
		"f": {"a": name, "d": name},
	}
	got := circles(files)
	slices.SortFunc(got, slices.Compare)
	if want := [][]string{{"a", "b", "c"}, {"d", "e"}, {"f"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("circles are %v, want %v", got, want)
	}
}
