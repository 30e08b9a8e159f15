package rowkey

import (
	"errors"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
)

// Names find rows by themselves first, then by their stems; the counts and the error say what found none.
func TestMatch(t *testing.T) {
	x := New("name", "files", func(s string) string { return strings.TrimSuffix(s, ".tif") })
	for i, key := range []string{"a", "a.tif", "", "b", ""} {
		if err := x.Add(int64(i), key); err != nil {
			t.Fatal(err)
		}
	}
	m := x.Match()
	for name, want := range map[string]int64{"a": 0, "a.tif": 1, "b.tif": 3} {
		if got := m.Row(name); got != want {
			t.Errorf("%q has row %d, not %d", name, got, want)
		}
	}
	if err := m.Err(); err != nil {
		t.Error(err)
	}
	m.Row("c.tif")
	if err := m.Err(); !errors.Is(err, fault.NotFound) || !strings.Contains(err.Error(),
		`column name: has neither "c.tif" nor "c"`) {
		t.Error(err)
	}
	m.Row("")
	if err := m.Err(); err == nil || !strings.Contains(err.Error(), `nor "c", and none for 1 more files`) {
		t.Error(err)
	}
	bare := x.Match()
	bare.Row("c")
	if err := bare.Err(); err == nil || !strings.Contains(err.Error(), `column name: has no "c"`) {
		t.Error(err)
	}
	if unmatched, unused := m.Counts(5); unmatched != 2 || unused != 2 {
		t.Errorf("%d names and %d rows have no match, not 2 and 2", unmatched, unused)
	}
}

func TestTwins(t *testing.T) {
	x := New("name", "files", strings.ToLower)
	if err := x.Add(3, "a"); err != nil {
		t.Fatal(err)
	}
	if err := x.Add(7, "a"); !errors.Is(err, fault.Corrupt) || !strings.Contains(err.Error(),
		`rows 3 and 7 both have "a"`) {
		t.Error(err)
	}
}
