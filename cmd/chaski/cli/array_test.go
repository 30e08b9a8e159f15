package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/tiledb"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// tiledbLine is a line of the manifest of arrays.
type tiledbLine struct {
	Path       string
	Encryption *struct{ Key string }
	Schema     struct{ Type string }
	Reads      []struct {
		Subarray [][2]json.Number
		Shape    []int
		Cells    *int
		Coords   map[string]any
		Attrs    map[string]map[string]any
	}
}

func tiledbLines(t *testing.T) (list []tiledbLine) {
	t.Helper()
	list = corpus.Rows[tiledbLine](t, testdata(t, "tiledb"))
	for i := range list {
		list[i].Path = testdata(t, "tiledb", list[i].Path)
	}
	return list
}

func subText(sub [][2]json.Number) string {
	var parts []string
	for _, s := range sub {
		parts = append(parts, s[0].String()+".."+s[1].String())
	}
	return strings.Join(parts, ",")
}

// TestArrayAgreesWithTheOriginalLibrary: the command prints the hashes that libtiledb computed.
func TestArrayAgreesWithTheOriginalLibrary(t *testing.T) {
	for _, l := range tiledbLines(t) {
		key := ""
		if l.Encryption != nil {
			key = l.Encryption.Key
		}
		t.Setenv(store.KeyVar, key)
		for _, want := range l.Reads {
			r := chaski(t.Context(), "array", "--format", "sha256", "--sub="+subText(want.Subarray), l.Path)
			var got struct {
				Kind   string
				Shape  []int
				Cells  *int
				Coords map[string]string
				Attrs  map[string]map[string]string
			}
			if r.code != 0 || json.Unmarshal([]byte(r.out), &got) != nil || strings.Count(r.out, "\n") != 1 {
				t.Errorf("%s: exit %d: %s%s", l.Path, r.code, r.out, r.err)
				continue
			}
			same := got.Kind == l.Schema.Type && len(got.Shape) == len(want.Shape) && len(got.Attrs) == len(want.Attrs)
			if want.Cells != nil {
				same = same && *got.Cells == *want.Cells && got.Coords["sha256"] == want.Coords["sha256"]
			}
			for name, a := range want.Attrs {
				for _, k := range []string{"sha256", "offsets_sha256", "data_sha256"} {
					if w, ok := a[k]; ok {
						same = same && got.Attrs[name][k] == w
					}
				}
			}
			if !same {
				t.Errorf("%s %s: %s", l.Path, subText(want.Subarray), r.out)
			}
		}
	}
}

// TestArrayKeyFile: the key may be in a file, with or without a newline at its end.
func TestArrayKeyFile(t *testing.T) {
	for _, l := range tiledbLines(t) {
		if l.Encryption == nil {
			continue
		}
		t.Setenv(store.KeyVar, "")
		t.Setenv(store.KeyFileVar, "")
		args := []string{"array", "--sub", subText(l.Reads[0].Subarray), l.Path}
		r := chaski(t.Context(), args...)
		if r.code != 1 || !strings.Contains(r.err, "key") || !errorLine.MatchString(r.err) {
			t.Errorf("without a key: exit %d %q", r.code, r.err)
		}
		for _, end := range []string{"", "\n", "\r\n"} {
			file := filepath.Join(t.TempDir(), "key")
			testfile.Write(t, file, []byte(l.Encryption.Key+end))
			t.Setenv(store.KeyFileVar, file)
			if r := chaski(t.Context(), args...); r.code != 0 {
				t.Errorf("with a key file: exit %d %q", r.code, r.err)
			}
		}
	}
}

// TestArrayFaults: an error in an array or a sub-array is one line.
func TestArrayFaults(t *testing.T) {
	a := testdata(t, "tiledb", "arrays", "dense_1d_gaps")
	for _, args := range [][]string{
		{"array", "--sub", "0..1,0..1", a},
		{"array", "--sub", "0..100", a},
		{"array", "--sub", "7..6", a},
		{"array", "--sub", "0..1", "--attr", "none", a},
		{"array", "--sub", "0..1", filepath.Join(a, "none")},
		{"array", "--max-result", "8", a},
		{"array", "--max-tile", "8", a},
		{"array", "--sub", "0..1", testdata(t, "raster", "manifest.jsonl")},
	} {
		if r := chaski(t.Context(), args...); r.code != 1 || r.out != "" || !errorLine.MatchString(r.err) {
			t.Errorf("%v: exit %d %q %q", args, r.code, r.out, r.err)
		}
	}
	for _, args := range [][]string{
		{"array"},
		{"array", "--sub", "0-1", a},
		{"array", "--sub", "0..x", a},
		{"array", a, a},
		{"array", "--format", "npy", a},
		{"array", "--max-tile", "0", a},
	} {
		if r := chaski(t.Context(), args...); r.code != 2 {
			t.Errorf("%v: exit %d %q", args, r.code, r.err)
		}
	}
}

// TestInfoOfExtentsOfFloat32: extents have as many digits as tell them apart in their own type, as
// bounds do.
func TestInfoOfExtentsOfFloat32(t *testing.T) {
	path := corpus.Known(t, "float32")
	r := chaski(t.Context(), "info", path)
	if r.code != 0 || !strings.Contains(r.out, "{name: x, type: float32, domain: [0.1, 7], extent: 0.1}\n") {
		t.Errorf("%+v", r)
	}
	r = chaski(t.Context(), "info", "--json", path)
	if r.code != 0 || !strings.Contains(r.out, `"domain":[0.1,7],"extent":0.1}`) {
		t.Errorf("%+v", r)
	}
}

// TestInfoAndVerifyOfArrays: an array counts as one item, also in a directory of arrays, and verify
// decodes each of its tiles.
func TestInfoAndVerifyOfArrays(t *testing.T) {
	lines := tiledbLines(t)
	for _, l := range lines {
		if l.Encryption != nil {
			t.Setenv(store.KeyVar, l.Encryption.Key)
		}
	}
	for _, l := range lines {
		r := chaski(t.Context(), "info", "--json", l.Path)
		var got tiledb.Info
		if err := json.Unmarshal([]byte(r.out), &struct {
			Dense *bool
			Attrs *[]struct{ Name string }
		}{&got.Dense, nil}); err != nil || r.code != 0 || got.Dense != (l.Schema.Type == "dense") {
			t.Errorf("%s: exit %d %s %s", l.Path, r.code, r.out, r.err)
		}
		r = chaski(t.Context(), "info", l.Path)
		if r.code != 0 || !strings.Contains(r.out, fmt.Sprint("dense: ", l.Schema.Type == "dense")) {
			t.Errorf("%s: exit %d %s %s", l.Path, r.code, r.out, r.err)
		}
	}
	var report struct{ Arrays, Files, Chunks, Faulty int64 }
	r := chaski(t.Context(), "verify", testdata(t, "tiledb", "arrays"))
	err := json.Unmarshal([]byte(r.out), &report)
	if err != nil || r.code != 0 || report.Arrays != int64(len(lines)) || report.Files != report.Arrays ||
		report.Chunks < 100 {
		t.Errorf("exit %d %s %s", r.code, r.out, r.err)
	}
	// A damaged tile is found, and the others are still checked.
	dir := filepath.Join(t.TempDir(), "arrays")
	if err := os.CopyFS(dir, os.DirFS(testdata(t, "tiledb", "arrays"))); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "dense_1d_gaps", "__*", "v.tdb"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	b := testfile.Read(t, files[0])
	b[len(b)-1] ^= 1 // of the last chunk's checksum
	testfile.Write(t, files[0], b)
	r = chaski(t.Context(), "verify", dir)
	err = json.Unmarshal([]byte(r.out), &report)
	if err != nil || r.code != 1 || report.Faulty != 1 || !strings.Contains(r.err, files[0]) {
		t.Errorf("exit %d %s %s", r.code, r.out, r.err)
	}
}

// TestTimestamps: commands open arrays at a timestamp, given in milliseconds or as a date. The
// array then equals one that holds only the fragments written by then.
func TestTimestamps(t *testing.T) {
	now := testdata(t, "tiledb", "arrays", "dense_with_sparse_fragment")
	const first, last = "__1795145296659_1795145296659_7e0f4081e64643f4918084733f454203", "1795145296665"
	then := t.TempDir()
	for _, name := range []string{"__array_schema.tdb", first} {
		if err := os.Symlink(filepath.Join(now, name), filepath.Join(then, name)); err != nil {
			t.Fatal(err)
		}
	}
	convert := func(args ...string) map[string][]byte {
		out := t.TempDir()
		r := chaski(t.Context(), append([]string{
			"convert", "--dims", "y x", "--tile", "16", "-o", out + "/",
		}, args...)...)
		if r.code != 0 {
			t.Fatalf("%+v", r)
		}
		return contents(t, out)
	}
	want, files := chaski(t.Context(), "array", then), convert(then)
	if r := chaski(t.Context(), "array", now); r.code != 0 || r.out == want.out {
		t.Fatalf("%+v, of then %+v", r, want)
	}
	for at, early := range map[string]bool{
		"1795145296659":                                true,
		"0..1795145296664":                             true,
		"2026-11-20T03:28:16.66Z":                      true,
		"1795145296000..2026-11-20T04:28:16.659+01:00": true,
		last:                     false,
		"1795145296659.." + last: false,
		"2200-01-01T00:00:00Z":   false,
	} {
		if r := chaski(t.Context(), "array", "--timestamp", at, now); r.code != 0 || (r.out == want.out) != early {
			t.Errorf("at %s: %+v", at, r)
		}
		if got := convert("--timestamp", at, now); maps.EqualFunc(got, files, bytes.Equal) != early {
			t.Errorf("converted at %s: other files", at)
		}
	}
	const from, to = "1795145296659", "1795145296665"
	if r := chaski(t.Context(), "info", now); !strings.Contains(r.out, "times: ["+from+", "+to+"]") {
		t.Errorf("info does not say when it was written: %s", r.out)
	}
	for _, at := range []string{from, to} {
		r := chaski(t.Context(), "array", "--timestamp", at, now)
		if r.code != 0 || (r.out == want.out) != (at == from) {
			t.Errorf("at %s, which info says: %+v", at, r)
		}
		told := chaski(t.Context(), "info", "--json", "--timestamp", at, now)
		alone := chaski(t.Context(), "info", "--json", then)
		if same := strings.ReplaceAll(told.out, now, then) == alone.out; told.code != 0 || same != (at == from) {
			t.Errorf("info at %s: %+v, of then %+v", at, told, alone)
		}
	}
	r := chaski(t.Context(), "info", "--timestamp", from, testdata(t, "demo", "coast.tif"))
	if r.code != 2 || !strings.Contains(r.err, "is not an array") {
		t.Errorf("info of a file at a time: %+v", r)
	}
	plans := map[string]bool{}
	for _, args := range [][]string{{"--timestamp", "1795145296659", now}, {then}, {now}} {
		r := chaski(t.Context(), append([]string{
			"plan", "--json", "--batch", "1", "--dims", "y x", "--field", "a",
		}, args...)...)
		var p struct{ Dataset string }
		if r.code != 0 || json.Unmarshal([]byte(r.out), &p) != nil {
			t.Fatalf("%+v", r)
		}
		plans[p.Dataset] = true
	}
	if len(plans) != 2 {
		t.Errorf("%d datasets of two", len(plans))
	}
	for _, wrong := range []string{"", "now", "-1", "5..4", "0", "1..2..3", "2026-11-20"} {
		if r := chaski(t.Context(), "array", "--timestamp", wrong, now); r.code != 2 {
			t.Errorf("--timestamp %q: %+v", wrong, r)
		}
	}
}

// hubOf serves a directory as the dataset o/n of the hub, with two entries a page.
func hubOf(t *testing.T, root string) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path, ok := strings.CutPrefix(r.URL.Path, "/datasets/o/n/resolve/main/"); ok {
			http.ServeFile(w, r, filepath.Join(root, filepath.FromSlash(path)))
			return
		}
		path, ok := strings.CutPrefix(r.URL.Path, "/api/datasets/o/n/tree/main/")
		list, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(path)))
		if !ok || err != nil {
			http.NotFound(w, r)
			return
		}
		from, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
		page := []map[string]any{}
		for _, e := range list[from:min(from+2, len(list))] {
			kind := map[bool]string{true: "directory", false: "file"}[e.IsDir()]
			page = append(page, map[string]any{"type": kind, "oid": "0", "size": 1, "path": path + "/" + e.Name()})
		}
		if from+2 < len(list) {
			w.Header().Set("Link", fmt.Sprintf(
				`<https://huggingface.co%s?recursive=false&expand=false&cursor=%d>; rel="next"`,
				r.URL.EscapedPath(), from+2))
		}
		if err := json.NewEncoder(w).Encode(page); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	t.Setenv("HF_ENDPOINT", s.URL)
}

// TestArraysOnTheHub: arrays in a dataset of the hub read as from a directory.
func TestArraysOnTheHub(t *testing.T) {
	root, names, _ := arrayFiles(t)
	hubOf(t, root)
	sameArrays(t, root, names, "hf://datasets/o/n/")
}

// TestArrayOfNoAttribute: an empty attribute name is an error, and does not mean "read nothing".
func TestArrayOfNoAttribute(t *testing.T) {
	root, names, _ := arrayFiles(t)
	r := chaski(t.Context(), "array", "--attr", "", filepath.Join(root, names[0]))
	if r.code != 2 || !strings.Contains(r.err, "--attr") {
		t.Errorf("%+v", r)
	}
}

// TestArraysOfOddNames: attributes whose names have characters that URLs escape are read from every
// source.
func TestArraysOfOddNames(t *testing.T) {
	root := filepath.Dir(corpus.Known(t, "odd"))
	hubOf(t, root)
	_, _, bases := remotes(t, contents(t, root))
	server := httptest.NewServer(http.FileServer(http.Dir(root)))
	defer server.Close()
	for _, base := range []string{server.URL + "/", bases[1], "hf://datasets/o/n/"} {
		sameArrays(t, root, []string{"odd"}, base)
	}
}
