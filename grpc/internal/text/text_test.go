package text

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFit(t *testing.T) {
	for _, s := range []string{"", "a.tif: not found", strings.Repeat("x", Max), strings.Repeat("é", Max/2)} {
		if got := Fit(s); got != s {
			t.Errorf("%d bytes that fit became %q", len(s), got)
		}
	}
	if got := Fit("a\xffb"); got != "a\uFFFDb" {
		t.Errorf("%q", got)
	}
	for _, middle := range []string{"x", "é", "€", "𝄞", "a\xff"} {
		for n := range 4 { // so that a cut comes to stand at every byte of a letter
			s := "a.tif: " + strings.Repeat("y", n) + strings.Repeat(middle, 3*Max) + ": not found"
			got := Fit(s)
			if len(got) > Max || len(got) < Max-16 || !utf8.ValidString(got) {
				t.Errorf("%q: %d bytes, UTF-8 %t", middle, len(got), utf8.ValidString(got))
			}
			if !strings.HasPrefix(got, "a.tif: ") || !strings.HasSuffix(got, ": not found") ||
				strings.Count(got, omitted) != 1 {
				t.Errorf("%q: %.20q … %.20q", middle, got, got[max(len(got)-20, 0):])
			}
		}
	}
}
