package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// TestReportIsAPage: view writes a dataset's report as a page with pictures of the size that is asked for.
func TestReportIsAPage(t *testing.T) {
	race.SkipCovered(t)
	workplace(t)
	args := []string{"view", "--report", "--batch", "2", "--size", "32", "-o", "r.html", "chips/*.tif"}
	if r := chaski(t.Context(), args...); r.code != 0 || r.out != "" || r.err != "" {
		t.Fatalf("%q: exit %d: %s%s", args, r.code, r.out, r.err)
	}
	b, err := os.ReadFile("r.html")
	if err != nil {
		t.Fatal(err)
	}
	page, err := html.Parse(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	pictures := 0
	for n := range page.Descendants() {
		if n.Data == "img" {
			pictures++
			for _, a := range n.Attr {
				if a.Key == "width" && len(a.Val) > 2 { // of 130 pixels at most 32
					t.Errorf("a picture is %s pixels wide", a.Val)
				}
			}
		}
	}
	if pictures != 2 {
		t.Errorf("%d pictures, want 2", pictures)
	}
}

// TestReportToStandardOutput: "-" is standard output.
func TestReportToStandardOutput(t *testing.T) {
	r := chaski(t.Context(), "view", "--report", "-o", "-", testdata(t, "coast", "flat.tacozip"))
	if r.code != 0 || !strings.HasPrefix(r.out, "<!DOCTYPE html>") || !strings.Contains(r.out, "flat.tacozip") {
		t.Errorf("exit %d: %.100s %s", r.code, r.out, r.err)
	}
}

func TestReportUsage(t *testing.T) {
	workplace(t)
	for _, args := range [][]string{
		{"--report", "chips"},
		{"--report", "-o", "x", "chip.tif", "first.tif"},
		{"--report", "--batch", "0", "-o", "x", "chips"},
		{"--report", "--batch", "100000", "-o", "x", "chips"},
		{"--report", "--field", "=", "-o", "x", "chips"},
		{"--report", "--b", "1,2", "-o", "x", "chips"},
	} {
		r := chaski(t.Context(), append([]string{"view"}, args...)...)
		if r.code != 2 || !strings.Contains(r.err, "Try 'chaski view --help'") {
			t.Errorf("%q: exit %d: %s", args, r.code, r.err)
		}
	}
	for _, args := range [][]string{
		{"--report", "-o", "x", "none"},
		{"--report", "-o", filepath.Join("none", "x"), "chips"},
		{"--report", "--field", "image=none", "-o", "x", "train.parquet"},
	} {
		r := chaski(t.Context(), append([]string{"view"}, args...)...)
		if r.code != 1 || !errorLine.MatchString(r.err) {
			t.Errorf("%q: exit %d: %s", args, r.code, r.err)
		}
	}
	if _, err := os.Stat("x"); err == nil {
		t.Error("a refused command wrote a file")
	}
}
