package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// TestMalformedFlagValues checks that the error about a flag's value names the flag, the value and the rule.
func TestMalformedFlagValues(t *testing.T) {
	for _, c := range []struct {
		want string
		args []string
	}{
		{`--memory is "12x": it must be a whole number`, []string{"serve", "--memory", "12x"}},
		{`--memory is "99999999999999999999": it must be a whole number of at most 64 bits`,
			[]string{"serve", "--memory", "99999999999999999999"}},
		{`--seed is "-1": it must be a whole number from 0`, []string{"plan", "--seed", "-1", "x.tif"}},
		{`--fleet is 9223372036854775807: it must be at most 1000000`, []string{"plan", "--rate", "9", "--fleet",
			"9223372036854775807", "x.tif"}},
		{`--servers is 1000001: it must be at most 1000000`, []string{"plan", "--rate", "9", "--fleet", "1",
			"--servers", "1000001", "x.tif"}},
		{`--bands is "0,b": it must have numbers or names, not both`, []string{"plan", "--bands", "0,b", "x.tif"}},
		{`--seconds is "a": it must be a number`, []string{"bench", "decode", "--seconds", "a", "x.tif"}},
		{`--seconds is "1e999": it must be a number, and at most 1.8e308`,
			[]string{"bench", "decode", "--seconds", "1e999", "x.tif"}},
		{"--max-chunk is 0: it must be at least 1", []string{"plan", "--max-chunk", "0", "x.tif"}},
		{`--max-chunk is "x": it must be a whole number`, []string{"plan", "--max-chunk", "x", "x.tif"}},
		{`--idle-timeout is "5": it must be a duration, such as 30s or 5m`, []string{"serve", "--idle-timeout", "5"}},
		{`--timestamp is "x": it must be milliseconds since 1970, or a time with a time zone such as ` +
			`2026-11-20T12:00:00Z`, []string{"info", "--timestamp", "x", "x.tif"}},
		{`--timestamp is "3..2": it ends before it begins`, []string{"info", "--timestamp", "3..2", "x.tif"}},
		{`--json is "maybe": it must be true or false`, []string{"info", "--json=maybe", "x.tif"}},
		{`--where is "": it is empty; leave the flag out instead`, []string{"ls", "--where", "", "x.tacozip"}},
		{`unknown command "inof" for "chaski": did you mean info?`, []string{"inof", "x.tif"}},
		{`unknown command "inof" for "chaski": did you mean info?`, []string{"inof", "--json", "x.tif"}},
		{`unknown command "loda" for "chaski bench": did you mean load?`, []string{"bench", "loda"}},
		{`unknown command "hlep" for "chaski": did you mean help?`, []string{"hlep"}},
		{`unknown command "xyz" for "chaski"`, []string{"xyz"}},
		{"unknown flag: --jsn: did you mean --json?", []string{"info", "--jsn", "x.tif"}},
		{"unknown flag: --batch-size: did you mean --batch?", []string{"plan", "--batch-size", "8", "x.tif"}},
		{"--batch is 0: it must be at least 1", []string{"plan", "--batch", "0", "x"}},
		{`--sampler is "x": it must be chip, random_window, grid, resized_window, weighted_window, tile_window, ` +
			`row_window or geo_window`, []string{"plan", "--sampler", "x", "x"}},
		{"--sampler grid needs --window", []string{"plan", "--sampler", "grid", "x"}},
		{"--sampler geo_window needs --geo-window", []string{"plan", "--sampler", "geo_window", "x"}},
		{"--per-asset is 0: it must be at least 1", []string{"plan", "--window", "8", "--per-asset", "0", "x"}},
		{`--augment is "x": it must be flip_x, flip_y, flips, rotations or d4`,
			[]string{"plan", "--augment", "x", "x"}},
		{`--bad-samples is "x": it must be error, skip, replace or fill`,
			[]string{"plan", "--bad-samples", "x", "x"}},
		{`--bad-samples is "fill": it must be error or skip`, []string{"stats", "--bad-samples", "fill", "x"}},
		{`--dtype is "x": it must be native, float32, float16, bfloat16, uint8, int64 or auto`,
			[]string{"bench", "load", "--dtype", "x", "x"}},
		{"--seconds is 0: it must be above 0 and at most 3600", []string{"bench", "load", "--seconds", "0", "x"}},
		{"--limit is -2: it must be at least 0", []string{"ls", "--limit", "-2", "x.tacozip"}},
		{`--columns-mode is "x": it must be intersection, fill_missing or strict`,
			[]string{"ls", "--columns-mode", "x", "x.tacozip"}},
		{`--y is "5-9": it must be start:stop`, []string{"cat", "--y", "5-9", "x.tif"}},
		{`--x is "5,9": it must be start:stop`, []string{"cat", "--x", "5,9", "x.tif"}},
		{`--n is "a": it must be start:stop, or a list of indices such as 0,2`,
			[]string{"cat", "--n", "a", "x.tif"}},
		{"--level is 99: it must be from 1 to 22", []string{"convert", "--level", "99", "-o", "y.tif", "x.tif"}},
		{"--tile is 0: it must be from 1 to 65535", []string{"convert", "--tile", "0", "-o", "y.tif", "x.tif"}},
		{"--streams is -1: it must be at least 0", []string{"token", "--streams", "-1", "ana"}},
		{`--field is "a=b.tif": a catalog of pairs needs NAME=PATTERN with a name such as {id} in the pattern`,
			[]string{"index", "--field", "a=b.tif", "x"}},
		{"--skip-bad needs --format parquet", []string{"index", "--skip-bad", "x.tif"}},
		{"-o x.csv: a catalog is a Parquet file, whose name ends in .parquet",
			[]string{"index", "-o", "x.csv", "."}},
		{"-o x.png: a catalog is a Parquet file, whose name ends in .parquet", []string{"index", "-o", "x.png", "x"}},
		{"-o x.zarr: a catalog is a Parquet file, whose name ends in .parquet",
			[]string{"index", "-o", "x.zarr", "x"}},
		{"x.tif has an ending of another format than what is written: .txt",
			[]string{"index", "--format", "hex", "-o", "x.tif", "x"}},
		{"x.rumi has an ending of another format than what is written: .parquet, .pq, .geoparquet",
			[]string{"index", "--format", "parquet", "-o", "x.rumi", "x"}},
		{"x.tif has an ending of another format than what is written: .json, .jsonl, .ndjson",
			[]string{"verify", "-o", "x.tif", "x"}},
		{"x.h5 has an ending of another format than what is written: .json, .jsonl, .ndjson",
			[]string{"stats", "-o", "x.h5", "x"}},
		{"x.tif has an ending of another format than what is written",
			[]string{"stats", "--sampling", "-o", "x.tif", "x"}},
		{". is a directory: a catalog of it needs -o NAME.parquet or --format parquet",
			[]string{"index", "."}},
		{`serve takes no argument "chips": --root DIR names what to serve`, []string{"serve", "chips"}},
	} {
		if r := chaski(t.Context(), c.args...); r.code != 2 || !strings.HasPrefix(r.err, "chaski: "+c.want+"\n") {
			t.Errorf("%q: exit code %d, %q; want %q", c.args, r.code, r.err, c.want)
		}
	}
}

// TestEmptyFlagValues checks that an empty value, as of an unset variable of a shell, is the default.
func TestEmptyFlagValues(t *testing.T) {
	dir := filepath.Join(corpus.Testdata(t), "coast", "coast_dir", "DATA", "tile_00", "s2")
	for _, args := range [][]string{{"plan", "--sampler=", "--augment=", "--bad-samples=", dir},
		{"stats", "--bad-samples=", dir}} {
		plain, empty := chaski(t.Context(), args[0], dir), chaski(t.Context(), args...)
		if empty.code != 0 || empty.out != plain.out || plain.out == "" {
			t.Errorf("%q: exit code %d, %q, %q; want %q", args, empty.code, empty.out, empty.err, plain.out)
		}
	}
}
