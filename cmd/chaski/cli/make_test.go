package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// TestMakeStatsElsewhere: --stats replaces neither the container that was just made nor the recipe.
func TestMakeStatsElsewhere(t *testing.T) {
	recipe, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "coast.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, content := range map[string]string{"chips.yaml": string(recipe), "old.tacozip": "old"} {
		if err := os.WriteFile(at(name), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, names := range [][2]string{{"old.tacozip", "old.tacozip"}, {"new.tacozip", "new.tacozip"},
		{"new.tacozip", "./new.tacozip"}, {"new.tacozip", "chips.yaml"}} {
		r := chaski(t.Context(), "make", "-o", at(names[0]), "--stats", dir+"/"+names[1], at("chips.yaml"))
		if r.code != 2 {
			t.Errorf("%q: exit %d: %s", names, r.code, r.err)
		}
	}
	if b, err := os.ReadFile(at("old.tacozip")); err != nil || string(b) != "old" {
		t.Errorf("the old container is %q, %v", b, err)
	}
	if _, err := os.Stat(at("new.tacozip")); err == nil {
		t.Error("a container was made")
	}
}

// TestMakeStatsNowhere: --stats in a directory that is not there is an error before the chips are made.
func TestMakeStatsNowhere(t *testing.T) {
	dir := t.TempDir()
	recipe := filepath.Join("..", "..", "..", "examples", "coast.yaml")
	out, stats := filepath.Join(dir, "new.tacozip"), filepath.Join(dir, "missing", "stats.json")
	r := chaski(t.Context(), "make", "-o", out, "--stats", stats, recipe)
	if r.code != 1 || !strings.Contains(r.err, stats) {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v (%v)", left, err)
	}
}

// TestMakeReport: --report says what is left out, has the split, a map and chips, and the statistics that 'chaski view'
// measures of the container.
func TestMakeReport(t *testing.T) {
	race.SkipCovered(t)
	recipe, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "coast.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(recipe), "../testdata", testdata(t), 1)
	text = strings.Replace(text, "{kind: grid, size: 16, stride: 8}", "{kind: random, size: 16, per_file: 30}", 1)
	text = strings.Replace(text, "columns: [split, ", "columns: [", 1)
	text += "split: {by: hash, shares: {first: 1, other: 1}}\nquality: {labels: {field: mask, classes: [1]}}\n"
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(at("chips.yaml"), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	r := chaski(t.Context(), "make", "-o", at("out.tacozip"), "--report", at("made.html"), at("chips.yaml"))
	if r.code != 0 || !strings.Contains(r.err, " too few pixels of the classes") {
		t.Fatal(r.err)
	}
	r = chaski(t.Context(), "view", "--report", "-o", at("viewed.html"), "--field", "image=image", "--field",
		"mask=mask", at("out.tacozip"))
	if r.code != 0 {
		t.Fatal(r.err)
	}
	bands := regexp.MustCompile(`(?s)<table class="bands">.*?</table>`)
	var tables [2][]string
	for i, name := range []string{"made.html", "viewed.html"} {
		b, err := os.ReadFile(at(name))
		if err != nil {
			t.Fatal(err)
		}
		tables[i] = bands.FindAllString(string(b), -1)
		if !strings.Contains(string(b), "data:image/png") {
			t.Errorf("%s has no picture", name)
		}
		for _, want := range []string{" too few pixels of the classes", `data-field="split"`, "<b>first</b>", "<svg"} {
			if i == 0 && !strings.Contains(string(b), want) {
				t.Errorf("the page has no %s", want)
			}
		}
	}
	if len(tables[0]) == 0 || !slices.Equal(tables[0], tables[1]) {
		t.Errorf("statistics %s, want %s", tables[0], tables[1])
	}
	for _, name := range []string{"out.tacozip", "chips.yaml"} {
		r := chaski(t.Context(), "make", "-o", at("out.tacozip"), "--report", at(name), at("chips.yaml"))
		if r.code != 2 {
			t.Errorf("%s: exit %d: %s", name, r.code, r.err)
		}
	}
}
