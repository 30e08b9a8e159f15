package crs

import (
	"strconv"
	"testing"
)

// TestUnknownDatums: names that nobody knows stay unknown, are remembered, and do not add up.
func TestUnknownDatums(t *testing.T) {
	for i := range 1000 {
		name := "no such datum " + strconv.Itoa(i)
		for range 2 {
			if c, ok := ByDatum(name); ok {
				t.Errorf("%s is %v", name, c)
			}
		}
		if c, ok := byName.Get(words(name)); !ok || c != nil {
			t.Errorf("%s is searched for again", name)
		}
	}
	if n := byName.Used(); n > byName.Bound() {
		t.Errorf("%d bytes of names are kept", n)
	}
	if _, ok := ByDatum("WGS 84"); !ok {
		t.Error("WGS 84 is unknown")
	}
}
