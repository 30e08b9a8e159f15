package cli

import (
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
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
		r := chaski(t.Context(), "card", "--to", form, "--url", "https://x.example/a.tacozip", zip)
		if r.code != 0 {
			t.Fatal(r.err)
		}
		return r.out
	}
	markdown := card("markdown")
	for _, text := range []string{`# \<script\>alert(1)\</script\> \& co`, `one \| two`, `three \# four`,
		`| 0 |  | water |`, `| 1 | dry | land\|x |`, "| samples | 2 |", "| Ana (2026) | 10.1/x |",
		"| address | https://x.example/a.tacozip |", "| split:strategy | random |"} {
		if !strings.Contains(markdown, text) {
			t.Errorf("no %s in %s", text, markdown)
		}
	}
	if strings.Contains(markdown, " <script") {
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
