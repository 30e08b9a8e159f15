package epsg

import (
	"strconv"
	"testing"
)

// TestUnknownDatums: names that nobody knows stay unknown, are remembered, and do not add up.
func TestUnknownDatums(t *testing.T) {
	for i := range 1000 {
		name := "no such datum " + strconv.Itoa(i)
		for range 2 {
			if code := ByDatum(name); code != 0 {
				t.Errorf("%s is EPSG:%d", name, code)
			}
		}
		if code, ok := byName.Get(words(name)); !ok || code != 0 {
			t.Errorf("%s is searched for again", name)
		}
	}
	if n := byName.Used(); n > byName.Bound() {
		t.Errorf("%d bytes of names are kept", n)
	}
	if ByDatum("WGS 84") == 0 {
		t.Error("WGS 84 is unknown")
	}
}
