package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
