package raster

import (
	"testing"

	"github.com/chaski-eo/chaski/fault"
)

// FuzzSelection parses any selection: the indices that it picks lie on the axis, and those of a slice are its numbers
// from start to stop. One that does not fit the axis is not found.
func FuzzSelection(f *testing.F) {
	for _, s := range []string{"", "0:5", "1,2,0", "-1:3", "3:1", ":", "1:", "0:9223372036854775807", "1, 2", "1,,2",
		"+1", "1:2:3"} {
		f.Add(s, uint16(7))
	}
	f.Fuzz(func(t *testing.T, text string, axis uint16) {
		s, err := ParseSelection(text)
		if err != nil {
			return
		}
		n := int(axis)
		at, err := s.Indices("y", n)
		if err != nil {
			if fault.KindOf(err) != fault.NotFound {
				t.Fatalf("%q of %d: %v", text, n, err)
			}
			return
		}
		if len(at) == 0 || s.Slice && len(at) != s.Stop-s.Start || text == "" && len(at) != n {
			t.Fatalf("%q of %d picks %d", text, n, len(at))
		}
		for k, i := range at {
			if i < 0 || i >= n || s.Slice && i != s.Start+k {
				t.Fatalf("%q of %d picks %d", text, n, i)
			}
		}
	})
}
