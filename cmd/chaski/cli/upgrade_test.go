package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUpgrade: containers of generation 1 by the original writers, and streaming ones, become TACO 2 with the bytes of
// their samples, and the same TACO 0.2 again.
func TestUpgrade(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(at("about.json"), []byte(about), 0o666); err != nil {
		t.Fatal(err)
	}
	for i, from := range [][]string{{"tortilla", "mixed.tortilla"}, {"tortilla", "one.tortilla"},
		{"taco-v1", "bytes.taco"}, {"taco-v1", "stream_n1.taco"}, {"taco-v1", "stream_n2_top.taco"}} {
		path := testdata(t, append([]string{"containers"}, from...)...)
		up, old := at([]string{"a.tacozip", "folder"}[i%2]), at("a.taco")
		args := []string{"pack", "-o", up, path}
		if from[0] == "tortilla" {
			args = append(args, "--collection", at("about.json"))
		}
		if r := chaski(t.Context(), args...); r.code != 0 {
			t.Fatalf("%q: %s", args, r.err)
		}
		if r := chaski(t.Context(), "verify", up); r.code != 0 {
			t.Errorf("%s: %s", path, r.err)
		}
		args = []string{"pack", "--form", "taco-plain", "-o", old, "--collection", at("about.json"), up}
		if r := chaski(t.Context(), args...); r.code != 0 {
			t.Fatalf("%q: %s", args, r.err)
		}
		for _, made := range []string{up, old} {
			if got, want := leavesOf(t, made), leavesOf(t, path); got != want {
				t.Errorf("%s: leaves %s, want %s", made, got, want)
			}
		}
		if err := os.RemoveAll(up); err != nil {
			t.Fatal(err)
		}
	}
	none := at("none.json")
	args := []string{"pack", "-o", at("b.tacozip"), "--collection", none, at("a.taco")}
	if r := chaski(t.Context(), args...); r.code != 1 || !strings.HasPrefix(r.err, "chaski: "+none+": file: ") {
		t.Errorf("a description that is missing: exit %d: %s", r.code, r.err)
	}
}

// TestUpgradedExtent: a streaming TACO has the times of its samples beside computed points, and an upgrade keeps an
// extent that covers them.
func TestUpgradedExtent(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(at("about.json"), []byte(about), 0o666); err != nil {
		t.Fatal(err)
	}
	coast := testdata(t, "coast", "coast.tacozip")
	run := func(args ...string) {
		t.Helper()
		if r := chaski(t.Context(), args...); r.code != 0 {
			t.Fatalf("%q: %s", args, r.err)
		}
	}
	extent := func(path string) (out struct {
		Spatial  []float64
		Temporal []string
	}) {
		b, err := os.ReadFile(filepath.Join(path, "COLLECTION.json"))
		if err == nil {
			err = json.Unmarshal(b, &struct{ Extent any }{&out})
		}
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	run("pack", "-o", at("a.taco"), "--collection", at("about.json"), coast)
	run("pack", "-o", at("a"), at("a.taco"))
	a := extent(at("a"))
	if want := "2020-01-05T10:00:00Z/2020-12-05T10:00:00Z"; strings.Join(a.Temporal, "/") != want {
		t.Errorf("times %q, want %s", a.Temporal, want)
	}
	wide := `{"extent": {"spatial": [-64, 39, -60, 41], "temporal": ["2019-01-01T00:00:00Z", "2022-01-01T00:00:00Z"]}}`
	if err := os.WriteFile(at("wide.json"), []byte(wide), 0o666); err != nil {
		t.Fatal(err)
	}
	run("pack", "-o", at("b"), "--collection", at("wide.json"), at("a.taco"))
	if b := extent(at("b")); fmt.Sprint(b) != "{[-64 39 -60 41] [2019-01-01T00:00:00Z 2022-01-01T00:00:00Z]}" {
		t.Errorf("extent %v", b)
	}
}

// TestUpgradedColumns: COLLECTION and columns of a TACO 0.2 of the original writer's layout get the form of TACO 2.
func TestUpgradedColumns(t *testing.T) {
	up := filepath.Join(t.TempDir(), "a")
	path := testdata(t, "containers", "taco-v1", "stream_n1.taco")
	if r := chaski(t.Context(), "pack", "-o", up, path); r.code != 0 {
		t.Fatal(r.err)
	}
	r := chaski(t.Context(), "sql", "SELECT id, split FROM data", up)
	want := chaski(t.Context(), "sql", `SELECT "tortilla:id", "tortilla:data_split" FROM data`, path)
	_, got, _ := strings.Cut(r.out, "\n")
	_, had, _ := strings.Cut(want.out, "\n")
	if r.code != 0 || got != had || got == "" {
		t.Errorf("splits %q, want %q: %s", got, had, r.err)
	}
	b, err := os.ReadFile(filepath.Join(up, "COLLECTION.json"))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		ID      string
		Version string `json:"taco_version"`
		Tasks   []string
		Task    string
		Extent  struct {
			Spatial  []float64
			Temporal []string
		}
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.ID != "streamn1" || doc.Version != "2.0.0" || strings.Join(doc.Tasks, ",") != "super-resolution" ||
		doc.Task != "" || strings.Join(doc.Extent.Temporal, "/") != "2015-01-01T00:00:00Z/2015-01-01T00:00:00.001Z" {
		t.Errorf("%+v", doc)
	}
}
