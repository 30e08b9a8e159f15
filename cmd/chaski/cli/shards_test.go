package cli

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestPackShards: shards that are compressed are refused where samples are read one by one, and copied decompressed.
func TestPackShards(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	coast := testdata(t, "coast", "coast.tacozip")
	run := func(code int, want string, args ...string) {
		t.Helper()
		r := chaski(t.Context(), args...)
		if r.code != code || !strings.Contains(r.err+r.out, want) {
			t.Errorf("%q: exit %d, %s%s", args, r.code, r.out, r.err)
		}
	}
	run(0, "samples", "pack", "-o", at("zip"), "--form", "mds", "--rasters", "file", "--compression", "zstd:5", coast)
	run(1, "compressed as a whole", "ls", at("zip"))
	run(0, "samples", "pack", "-o", at("raw"), "--form", "mds", "--rasters", "file", at("zip"))
	run(0, "samples", "pack", "-o", at("tar"), "--form", "wds", "--rasters", "file", at("zip"))
	run(0, `"faulty":0`, "verify", at("raw"), at("tar"))
	want := chaski(t.Context(), "extract", coast+"::tile_01/s2/img.tif")
	for _, name := range []string{"raw::tile_01/s2.img.tif", "tar::tile_01/s2.img.tif"} {
		if r := chaski(t.Context(), "extract", at(name)); r.code != 0 || r.out != want.out || want.out == "" {
			t.Errorf("%s: %s", name, r.err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 3 {
		t.Errorf("%v is left, %v", left, err)
	}
	run(0, "48 samples", "make", "-o", at("made"), "--to", "wds",
		filepath.Join("..", "..", "..", "examples", "coast.yaml"))
	run(0, `"samples":96,"faulty":0`, "verify", at("made"))
	run(1, "exists", "pack", "-o", at("raw"), "--form", "mds", coast)
	run(2, "--collection", "pack", "-o", at("x"), "--form", "wds", "--collection", at("about.json"), coast)
	run(2, "--rasters", "pack", "-o", at("x"), "--rasters", "file", coast)
	run(2, "--form mds", "pack", "-o", at("x"), "--form", "wds", "--compression", "zstd", coast)
	run(2, "zstd:22", "pack", "-o", at("x"), "--form", "mds", "--compression", "zstd:23", coast)
	run(2, "4GiB", "pack", "-o", at("x"), "--form", "mds", "--shard-size", "4GiB", coast)
	run(2, "array or file", "pack", "-o", at("x"), "--form", "mds", "--rasters", "png", coast)
}

// TestOriginalsReadShards: mosaicml-streaming and webdataset read the pixels, strings and numbers of a container from
// the shards of it. CHASKI_ORACLE_PYTHON_SHARDS is a Python with both.
func TestOriginalsReadShards(t *testing.T) {
	python := os.Getenv("CHASKI_ORACLE_PYTHON_SHARDS")
	if python == "" {
		t.Skip("CHASKI_ORACLE_PYTHON_SHARDS names no Python with mosaicml-streaming and webdataset")
	}
	coast := testdata(t, "coast", "coast.tacozip")
	rows := tableOf(t, coast)
	for name, flags := range map[string][]string{"mds": nil, "mds zstd": {"--compression", "zstd:12"},
		"mds small": {"--shard-size", "20000"}, "wds": nil, "wds small": {"--shard-size", "20000"}} {
		form, _, _ := strings.Cut(name, " ")
		out := filepath.Join(t.TempDir(), "out")
		args := append([]string{"pack", "-o", out, "--form", form, coast}, flags...)
		if r := chaski(t.Context(), args...); r.code != 0 {
			t.Fatal(r.err)
		}
		var errs bytes.Buffer
		cmd := exec.CommandContext(t.Context(), python, "testdata/shards.py", form, out)
		cmd.Stderr = &errs
		got, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v: %s", name, err, errs.String())
		}
		lines := bytes.Split(bytes.TrimSpace(got), []byte("\n"))
		if len(lines) != len(rows) {
			t.Fatalf("%s: %d samples, want %d", name, len(lines), len(rows))
		}
		for i, want := range rows {
			var have map[string]any
			if err := json.Unmarshal(lines[i], &have); err != nil {
				t.Fatal(err)
			}
			want = maps.Clone(want)
			want["s2.img"] = hashOf(t, coast+"::"+want["id"].(string)+"/s2/img.tif")
			want["ref.label"] = hashOf(t, coast+"::"+want["id"].(string)+"/ref/label.tif")
			if !reflect.DeepEqual(have, want) {
				t.Errorf("%s, sample %d:\n%v\nwant\n%v", name, i, have, want)
			}
		}
	}
}

// tableOf returns the rows of a container by 'chaski sql', without the columns about the container.
func tableOf(t *testing.T, path string) (rows []map[string]any) {
	t.Helper()
	r := chaski(t.Context(), "sql", "--format", "json", "SELECT * FROM data", path)
	var table struct {
		Columns []string `json:"columns"`
		Rows    [][]any  `json:"rows"`
	}
	if err := json.Unmarshal([]byte(r.out), &table); err != nil {
		t.Fatal(err, r.err)
	}
	for _, values := range table.Rows {
		row := map[string]any{}
		for i, name := range table.Columns {
			if name != "type" && !strings.HasPrefix(name, "internal:") {
				row[name] = values[i]
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// hashOf returns the shape, dtype and hash of a raster's pixels by 'chaski cat'.
func hashOf(t *testing.T, path string) map[string]any {
	t.Helper()
	r := chaski(t.Context(), "cat", "--format", "sha256", path)
	var out map[string]any
	if err := json.Unmarshal([]byte(r.out), &out); err != nil {
		t.Fatal(err, r.err)
	}
	return out
}
