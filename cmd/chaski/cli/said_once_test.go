package cli

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
)

// saysKind matches the ways in which an error says what kind it is.
var saysKind = map[fault.Kind]*regexp.Regexp{
	fault.Corrupt:     regexp.MustCompile(`(?i)\b(is |are )?corrupt(ed)?\b`),
	fault.Unsupported: regexp.MustCompile(`(?i)\b(unsupported|not supported)\b`),
	fault.Limit:       regexp.MustCompile(`(?i)\blimit\b`),
	fault.NotFound:    regexp.MustCompile(`(?i)\b(not found|no such|does not exist|do not exist|not exist)\b`),
	fault.Misplaced:   regexp.MustCompile(`(?i)\bmisplaced\b`),
}

// quotedText matches what an error quotes from its input.
var quotedText = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// TestErrorsSayTheirKindOnce: over the damaged files of the corpus and wrong inputs of the command, no line says twice
// of what kind its error is, and every line says something beside it.
func TestErrorsSayTheirKindOnce(t *testing.T) {
	var inputs [][]string
	for _, dir := range []string{"raster/bad", "containers/bad", "tiffs", "tiledb"} {
		root := testdata(t, dir)
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || path == root || e.IsDir() && dir != "containers/bad" {
				return err
			}
			if strings.HasPrefix(filepath.Base(path), "README") || strings.HasSuffix(path, ".py") {
				return nil
			}
			for _, command := range []string{"info", "verify", "ls", "hash", "stats"} {
				inputs = append(inputs, []string{command, path})
			}
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(inputs) < 300 {
		t.Fatalf("%d inputs", len(inputs))
	}
	dir := t.TempDir()
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	good := testdata(t, "raster", "tog", "tog-int8.tif")
	for _, name := range []string{"missing.tif", "missing/", "missing.tacozip", "missing.zarr", "missing.parquet",
		"missing.json", "missing.csv", "missing*.tif", "a\x00b", "s3:/x", "http:///x", "/vsizip/x", "x::y",
		"x.tif?sig=A", "ftp://host/a.tif",
		web.URL + "/a.tif", web.URL + "/a.tacozip", web.URL + "/a.zarr",
		dir, good, good + "/x", good + "::x", testdata(t, "README.md")} {
		for _, command := range []string{"info", "verify", "ls", "hash", "stats", "plan", "index", "query",
			"bands", "histogram", "cat", "extract", "pack", "convert"} {
			args := []string{command, name}
			switch command {
			case "pack", "convert", "index":
				args = []string{command, "-o", filepath.Join(dir, "out-"+command), name}
			case "query":
				args = []string{command, "SELECT * FROM x", name}
			}
			inputs = append(inputs, args)
		}
	}
	lines := 0
	for _, args := range inputs {
		r := chaski(t.Context(), args...)
		for line := range strings.SplitSeq(r.err+r.out, "\n") {
			if line == "" || r.code == 0 && !strings.Contains(line, ": ") {
				continue
			}
			lines++
			plain := quotedText.ReplaceAllString(line, "")
			for _, arg := range args[1:] {
				plain = strings.ReplaceAll(plain, arg, "X")
			}
			for kind, said := range saysKind {
				if all := said.FindAllString(plain, -1); len(all) > 1 {
					t.Errorf("chaski %s\n%s\nsays %v %q", strings.Join(args, " "), line, kind, all)
				}
				if plain == "chaski: X: "+kind.Error() || plain == "chaski: "+kind.Error() {
					t.Errorf("chaski %s\n%s\nsays nothing but its kind", strings.Join(args, " "), line)
				}
			}
		}
	}
	if lines < 200 {
		t.Errorf("only %d lines", lines)
	}
}
