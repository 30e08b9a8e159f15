package cli

import (
	"os"
	"strings"
	"testing"
)

// TestEditCommand: members and columns are as the flags say, and what is refused changes nothing.
func TestEditCommand(t *testing.T) {
	at := folderOf(t, map[string]string{"in/a.tif": "1", "in/b.tif": "2", "rows.csv": "id,score\na,3\nb,4\n",
		"more.yaml": "description: |\n  Two\n  lines\nlicenses: [MIT]\nreleased: 2026-01-02\n"})
	run := func(want int, args ...string) string {
		t.Helper()
		r := chaski(t.Context(), args...)
		if r.code != want {
			t.Fatalf("%v: exit %d: %s%s", args, r.code, r.out, r.err)
		}
		return r.err
	}
	zip := at("a.tacozip")
	run(0, "pack", "-o", zip, "--collection", at("about.json"), "--metadata", at("rows.csv"), at("in"))
	run(0, "edit", "--collection", at("more.yaml"), "--set", "dataset_version=2.10", "--set", `keywords=[x, "1"]`,
		"--set", "rank={first: 2}", "--rename", "score=points", zip)
	if got := rowsOf(t, "SELECT id, points FROM data", zip); got != `[["a.tif",3],["b.tif",4]]` {
		t.Error(got)
	}
	run(1, "edit", "--set", "keywords=x: [", zip) // not YAML
	run(0, "edit", "--set", "keywords=[x, y]", "--unset", "rank", "--metadata", at("rows.csv"), "--drop", "points", zip)
	if got := rowsOf(t, "SELECT id, score FROM data", zip); got != `[["a.tif",3],["b.tif",4]]` {
		t.Error(got)
	}
	run(0, "edit", "--set", "note=a: b # c", "--set", "ID=x", "--set", "share=0.5", "--set", `providers=[{name: B}]`,
		"--set", `said="\ud83d\ude00"`, zip)
	run(0, "verify", zip)
	run(0, "pack", "-o", at("f"), zip)
	doc, err := os.ReadFile(at("f/COLLECTION.json"))
	if err != nil {
		t.Fatal(err)
	}
	for want, there := range map[string]bool{`"dataset_version": "2.10"`: true, `"description": "Two\nlines\n"`: true,
		`"released": "2026-01-02"`: true, `"MIT"`: true, `"CC0-1.0"`: false, `"rank"`: false, `"points"`: false,
		`"score"`: true, `"note": "a: b # c"`: true, `"id": "x"`: false, `"ID": "x"`: true, `"share": 0.5`: true,
		`"said": "\ud83d\ude00"`: true, `"name": "B"`: true} {
		if strings.Contains(string(doc), want) != there {
			t.Errorf("%s: want %v in %s", want, there, doc)
		}
	}
	for want, args := range map[string][]string{
		"nothing to change": {},
		"OLD=NEW":           {"--rename", "x"},
		"KEY=VALUE":         {"--set", "x"},
		"needs --columns":   {"--classes", "0"},
		"cannot be set":     {"--set", "taco:pit_schema={}"},
	} {
		if msg := run(2, append(append([]string{"edit"}, args...), zip)...); !strings.Contains(msg, want) {
			t.Errorf("%v: %s", args, msg)
		}
	}
	for want, args := range map[string][]string{
		"not there, or required": {"--unset", "id"},
		"licenses":               {"--set", "licenses=[]"},
		"licenses has a string where a list is needed": {"--set", "licenses=MIT"},
		"keywords has a number where text is needed":   {"--set", "keywords=[1]"},
		"itself": {"--drop", "type"},
	} {
		if msg := run(1, append(append([]string{"edit"}, args...), zip)...); !strings.Contains(msg, want) {
			t.Errorf("%v: %s", args, msg)
		}
	}
}
