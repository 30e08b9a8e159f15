package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTable promises that the table replaces the one before it, in order of the packages, and nothing else.
func TestTable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "fuzzing.md")
	if err := os.WriteFile(file, []byte("before\n"+begin+"old\n"+end+"after\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 21, 23, 0, 0, 0, time.UTC)
	const path = "github.com/chaski-eo/chaski/"
	counts := path + "tiff\tFuzzTIFF\t999\n" + path + "source\tFuzzRoots\t1234567\n"
	for range 2 {
		if err := run(file, "10m", now, strings.NewReader(counts)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := "before\n" + begin + "\n2026-11-21, 10m for each target:\n\n" +
		"| package | target | inputs |\n|---|---|---:|\n" +
		"| `source` | `FuzzRoots` | 1,234,567 |\n| `tiff` | `FuzzTIFF` | 999 |\n\n" + end + "after\n"
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if err := run(file, "10m", now, strings.NewReader("no tabs\n")); err == nil {
		t.Error("a line without counts is taken")
	}
}
