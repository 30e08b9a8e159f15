package main

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestLinks promises that links to files and headings that are not there are found, and no others.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.md": "# One `two`, three!\n[x](b.md#there) [x](b.md#gone) [x](c.md) [x](#one-two-three) [x](https://host/gone)\n" +
			"`[x](gone.md)`\n```\n[x](gone.md)\n# Not a heading\n```\n[x](#not-a-heading) [x](sub/)\n",
		"b.md":     "## There\n## There\n[docs/a.md](a.md) [x](#there-1) [x](#there-2)\n",
		"sub/d.md": "[x](../a.md) [x](a.md)\n",
	} {
		path := filepath.Join(dir, name)
		testfile.Write(t, path, []byte(text))
	}
	t.Chdir(dir)
	got, err := checkLinks(".")
	slices.Sort(got)
	want := []string{
		"a.md:2: b.md#gone: the page has no such heading",
		"a.md:2: c.md is no file",
		"a.md:8: #not-a-heading: the page has no such heading",
		"b.md:3: #there-2: the page has no such heading",
		"b.md:3: a.md: the name of a link says what is there, not docs/a.md",
		"sub/d.md:1: a.md is no file",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}
