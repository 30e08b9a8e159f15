package flags

import (
	"testing"
	"time"
)

// FuzzTimestamp parses any value of --timestamp: it is refused, or a range in order that ends after 1970, whose String
// is read as the same range. A time of RFC 3339 is the instant that package time says.
func FuzzTimestamp(f *testing.F) {
	for _, s := range []string{"", "0", "1", "..", "1..2", "2..1", "2026-11-20T12:00:00Z",
		"0..2026-11-20T12:00:00.123456789+05:30", "1969-12-31T23:59:59Z", "18446744073709551615", "+1", " 1", "1..2..3",
		"9999-12-31T23:59:59.999Z", "1970-01-01T00:00:00Z..1970-01-01T00:00:00.001Z", "1e3", "0x10"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var a, b Timestamp
		if a.Set(text) != nil {
			if a.Value != nil {
				t.Fatalf("%q is refused, and sets %v", text, a.Value)
			}
			return
		}
		if a.Value[0] > a.Value[1] || a.Value[1] == 0 {
			t.Fatalf("%q is %v", text, a.Value)
		}
		if err := b.Set(a.String()); err != nil || *b.Value != *a.Value {
			t.Fatalf("%q is %v, written as %q: %v, %v", text, a.Value, a.String(), b.Value, err)
		}
		if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
			if ms := at.Unix()*1000 + int64(at.Nanosecond()/1e6); a.Value[0] != 0 || a.Value[1] != uint64(ms) {
				t.Fatalf("%q is %v, want until %d", text, a.Value, ms)
			}
		}
	})
}
