package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTable promises that the rows of the targets that ran replace theirs, in order of the packages, and nothing else.
func TestTable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "fuzzing.md")
	if err := os.WriteFile(file, []byte("before\n"+begin+"old\n"+end+"after\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	first := time.Date(2026, 11, 21, 23, 0, 0, 0, time.UTC)
	const path = "github.com/chaski-eo/chaski/"
	counts := path + "tiff\tFuzzTIFF\t45s\t998\n" + path + "source\tFuzzRoots\t10m\t1234567\n"
	if err := run(file, first, strings.NewReader(counts)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		again := path + "tiff\tFuzzTIFF\t10m\t999\n"
		if err := run(file, first.AddDate(0, 0, 1), strings.NewReader(again)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := "before\n" + begin + "\n| package | target | on | for | inputs |\n|---|---|---|---:|---:|\n" +
		"| `source` | `FuzzRoots` | 2026-11-21 | 10m | 1,234,567 |\n" +
		"| `tiff` | `FuzzTIFF` | 2026-11-22 | 10m | 999 |\n\n" + end + "after\n"
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if err := run(file, first, strings.NewReader("no tabs\n")); err == nil {
		t.Error("a line without counts is taken")
	}
}
