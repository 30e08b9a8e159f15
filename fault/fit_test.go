package fault

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFit(t *testing.T) {
	for _, s := range []string{"", "a.tif: not found", strings.Repeat("x", MaxText), strings.Repeat("é", MaxText/2)} {
		if got := Fit(s); got != s {
			t.Errorf("%d bytes that fit became %q", len(s), got)
		}
	}
	if got := Fit("a\xffb"); got != "a\uFFFDb" {
		t.Errorf("%q", got)
	}
	for _, middle := range []string{"x", "é", "€", "𝄞", "a\xff"} {
		for n := range 4 { // so that a cut comes to stand at every byte of a letter
			s := "a.tif: " + strings.Repeat("y", n) + strings.Repeat(middle, 3*MaxText) + ": not found"
			got := Fit(s)
			if len(got) > MaxText || len(got) < MaxText-16 || !utf8.ValidString(got) {
				t.Errorf("%q: %d bytes, UTF-8 %t", middle, len(got), utf8.ValidString(got))
			}
			if !strings.HasPrefix(got, "a.tif: ") || !strings.HasSuffix(got, ": not found") ||
				strings.Count(got, omitted) != 1 {
				t.Errorf("%q: %.20q … %.20q", middle, got, got[max(len(got)-20, 0):])
			}
		}
	}
}

// TestLongNames: names of megabytes do not make errors of megabytes. Their ends stay, and their secrets do not.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("x", 3<<20)
	for _, e := range []*Error{
		{Kind: Corrupt, File: "a.tif", Part: "bands", Msg: long},
		{Kind: Corrupt, File: "a.tif", Part: "column " + long, Msg: "two"},
		New(Corrupt, "bands", "%q", long),
	} {
		got := WithFile(e, "a.tif").Error()
		if len(got) > MaxText || !strings.HasPrefix(got, "a.tif: ") || !strings.HasSuffix(got, ": corrupt") {
			t.Errorf("%d bytes: %.30q", len(got), got)
		}
	}
	const secret = "hunter2canary"
	for _, c := range []struct{ name, want string }{
		{"B04", "B04"},
		{strings.Repeat("x", 64), strings.Repeat("x", 64)},
		{strings.Repeat("x", 65), strings.Repeat("x", 64) + "…"},
		{strings.Repeat("x", 63) + "é", strings.Repeat("x", 63) + "…"},
		{"http://user:" + strings.Repeat(secret, 9) + "@host/a.tif", "http://…@host/a.tif"},
		{"http://host/a.tif?" + strings.Repeat(secret, 9), "http://host/a.tif?…"},
	} {
		if got := Short(c.name); got != c.want {
			t.Errorf("%.80q became %q, want %q", c.name, got, c.want)
		}
	}
}

// TestNear: of more names than an error lists, those that differ in a few letters from the missing one come first.
func TestNear(t *testing.T) {
	var names []string
	for i := range 400 {
		names = append(names, fmt.Sprintf("col_%03d", i))
	}
	for _, c := range []struct {
		missing, first string
		names          []string
	}{
		{"Col_399", "col_399, col_099, ", names[1:]}, {"col_1", "col_001, ", names},
		{"col_3999", "col_399, ", names[390:400:400]},
		{"klass", "col_000, col_001, ", names}, {strings.Repeat("x", 1<<20), "col_000, col_001, ", names},
		{"", "col_000, col_001, ", names},
	} {
		if len(c.names) < maxListed { // all are listed, in their order
			c.first = Names(c.names)
		}
		if got := Near(c.missing, c.names, Itself); !strings.HasPrefix(got, c.first) {
			t.Errorf("%.20q: %q", c.missing, got)
		}
	}
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"ab", "ab", 0}, {"ab", "b", 1}, {"ab", "ba", 2}, {"flaw", "lawn", 2}, {"", "ab", 2},
		{"a", "abcd", 3},
	} {
		if got := edits(c.a, c.b); got != c.want || edits(c.b, c.a) != got {
			t.Errorf("%q, %q: %d", c.a, c.b, got)
		}
	}
}
