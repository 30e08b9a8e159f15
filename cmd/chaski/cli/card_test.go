package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/chaski-eo/chaski/internal/pathname"
)

// TestCard: each form has what COLLECTION.json says, and text of it that looks like markup is text.
func TestCard(t *testing.T) {
	at := folderOf(t, map[string]string{"in/a.tif": "1", "in/b.tif": "2", "more.yaml": `
title: <script>alert(1)</script> & co
description: "one | two\n\nthree # four"
keywords: [coast]
extent: {spatial: [-63, 37, -60, 40], temporal: ["2020-01-01T00:00:00Z", "2020-12-31T00:00:00Z"]}
labels:classes: [{name: water, category: 0}, {name: "land|x", category: 1, description: dry}]
publications: [{doi: 10.1/x, citation: Ana (2026)}]
split:strategy: random
`})
	zip := at("a.tacozip")
	for _, args := range [][]string{{"pack", "-o", zip, "--collection", at("about.json"), at("in")},
		{"edit", "--collection", at("more.yaml"), zip}} {
		if r := chaski(t.Context(), args...); r.code != 0 {
			t.Fatal(r.err)
		}
	}
	card := func(form string) string {
		t.Helper()
		r := chaski(t.Context(), "card", "--to", form, "--year", "2026", "--url", "https://x.example/a.tacozip", zip)
		if r.code != 0 {
			t.Fatal(r.err)
		}
		return r.out
	}
	for form, want := range map[string][]string{
		"markdown": {`# \<script\>alert(1)\</script\> \& co`, `one \| two`, `three \# four`, `| 0 | water |`,
			`| 1 | land\|x | dry |`, "| samples | 2 |", "Ana (2026) https://doi.org/10.1/x", "| split:strategy | random |"},
		"html": {"<title>&lt;script&gt;alert(1)&lt;/script&gt; &amp; co</title>", "<td>land|x</td>"},
	} {
		got := card(form)
		for _, text := range want {
			if !strings.Contains(got, text) {
				t.Errorf("%s: no %s in %s", form, text, got)
			}
		}
	}
	if strings.Contains(card("html"), "<script") || strings.Contains(card("markdown"), " <script") {
		t.Error("text of the collection is markup")
	}
	head := strings.SplitN(card("huggingface"), "---\n", 3)
	var hf struct {
		License []string `yaml:"license"`
		Tasks   []string `yaml:"task_categories"`
		Size    []string `yaml:"size_categories"`
	}
	err := yaml.Unmarshal([]byte(head[1]), &hf)
	if err != nil || hf.License[0] != "cc0-1.0" || hf.Tasks[0] != "other" || hf.Size[0] != "n<1K" ||
		!strings.HasPrefix(head[2], "\n# ") {
		t.Errorf("%v %v", hf, err)
	}
	var doc struct {
		Extent struct {
			Spatial  struct{ BBox [][]float64 }
			Temporal struct{ Interval [][]string }
		}
		PublicationYear string
		RecordSet       []struct{ Field []struct{ DataType string } }
	}
	for _, form := range []string{"stac", "datacite", "croissant"} {
		if err := json.Unmarshal([]byte(card(form)), &doc); err != nil {
			t.Errorf("%s: %v", form, err)
		}
	}
	if doc.Extent.Spatial.BBox[0][3] != 40 || doc.Extent.Temporal.Interval[0][1] != "2020-12-31T00:00:00Z" ||
		doc.PublicationYear != "2026" || doc.RecordSet[0].Field[0].DataType != "sc:Text" {
		t.Errorf("%+v", doc)
	}
	// DataCite's schema 4.5 has these members, and forbids others.
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(card("datacite")), &members); err != nil {
		t.Fatal(err)
	}
	allowed := []string{"doi", "prefix", "suffix", "event", "url", "types", "creators", "titles",
		"publisher", "publicationYear", "subjects", "contributors", "dates", "language", "alternateIdentifiers",
		"relatedIdentifiers", "sizes", "formats", "version", "rightsList", "descriptions", "geoLocations",
		"fundingReferences", "relatedItems", "schemaVersion", "container"}
	for name := range members {
		if !slices.Contains(allowed, name) {
			t.Errorf("datacite: the schema has no member %q", name)
		}
	}
	// A container without a description has no card.
	if r := chaski(t.Context(), "pack", "-o", at("a.tortilla"), zip); r.code != 0 {
		t.Fatal(r.err)
	}
	if r := chaski(t.Context(), "card", at("a.tortilla")); r.code != 1 || !strings.Contains(r.err, "has no card") {
		t.Error(r.err)
	}
	if r := chaski(t.Context(), "card", "-o", at("card.md"), zip); r.code != 0 {
		t.Error(r.err)
	}
	if b, err := os.ReadFile(at("card.md")); err != nil || !strings.HasPrefix(string(b), "# ") {
		t.Error(err)
	}
}

// TestCardLinksToTheContainer: a STAC collection and a Croissant document name the container by a path that leads there
// from the folder of the document, wherever that is; on standard output the path begins at the root.
func TestCardLinksToTheContainer(t *testing.T) {
	at := folderOf(t, map[string]string{"in/a.tif": "1", "data/x.txt": "", "real/deep/x.txt": ""})
	zip, folder := at("data/a.tacozip"), at("data/folder")
	for _, out := range []string{zip, folder} {
		if r := chaski(t.Context(), "pack", "-o", out, "--collection", at("about.json"), at("in")); r.code != 0 {
			t.Fatal(r.err)
		}
	}
	if err := os.Symlink(at("real/deep"), at("link")); err != nil {
		t.Skip(err)
	}
	t.Chdir(at("data"))
	for _, name := range []string{zip, "a.tacozip", folder, "folder", "../data/folder"} {
		for _, form := range []string{"stac", "croissant"} {
			for _, out := range []string{"c.json", at("c.json"), "../in/c.json", at("link/c.json"),
				"../link/../c.json"} {
				if r := chaski(t.Context(), "card", "--to", form, "-o", out, name); r.code != 0 {
					t.Fatal(r.err)
				}
				for _, link := range links(t, form, out) {
					leadsTo(t, pathname.Dir(out)+"/"+link, name, form)
				}
			}
		}
		r := chaski(t.Context(), "card", "--to", "stac", name)
		if r.code != 0 {
			t.Fatal(r.err)
		}
		if err := os.WriteFile("stdout.json", []byte(r.out), 0o666); err != nil {
			t.Fatal(err)
		}
		for _, link := range links(t, "stac", "stdout.json") {
			if !filepath.IsAbs(link) {
				t.Errorf("%s on standard output", link)
			}
			leadsTo(t, link, name, "stac")
		}
	}
}

// links returns the paths in a card.
func links(t *testing.T, form, file string) []string {
	t.Helper()
	var doc struct {
		Assets       map[string]struct{ Href string }
		Distribution []struct{ ContentURL string }
	}
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, &doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	if form == "stac" {
		return []string{doc.Assets["data"].Href}
	}
	return []string{doc.Distribution[0].ContentURL}
}

// leadsTo checks that a path is the container, or the table of its samples.
func leadsTo(t *testing.T, link, name, form string) {
	t.Helper()
	if st, err := os.Stat(name); err == nil && st.IsDir() && form == "croissant" {
		name += "/METADATA/level0.parquet"
	}
	got, err := os.Stat(link)
	if err != nil {
		t.Error(err)
		return
	}
	want, err := os.Stat(name)
	if err != nil || !os.SameFile(got, want) {
		t.Errorf("%s: %s is not %s (%v)", form, link, name, err)
	}
}
