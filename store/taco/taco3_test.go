package taco_test

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	_ "github.com/chaski-eo/chaski/rumi"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// taco3Expected is what taco-eo's reader says of a container: see testdata/taco3/make.py.
type taco3Expected struct {
	Columns []string
	IDs     []string
	Cloud   []*float64
	Files   map[string]any
}

// TestTACO3 promises that containers of the original writer have the samples, columns and files that its reader shows,
// in each form, and that they verify.
func TestTACO3(t *testing.T) {
	dir := filepath.Join(corpus.Testdata(t), "taco3")
	b := testfile.Read(t, filepath.Join(dir, "expected.json"))
	var all map[string]taco3Expected
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	for name, want := range all {
		t.Run(name, func(t *testing.T) {
			d := mustOpen(t, filepath.Join(dir, name))
			wide, err := d.SQL(t.Context(), `SELECT * FROM dataset`)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range wide.Columns() {
				got = append(got, c.Name)
			}
			if !slices.Equal(got, want.Columns) {
				t.Errorf("columns: got %q, want %q", got, want.Columns)
			}
			ids, err := wide.Column(t.Context(), "id")
			if err != nil {
				t.Fatal(err)
			}
			cloud, err := wide.Column(t.Context(), "ml:cloud")
			if err != nil {
				t.Fatal(err)
			}
			for i, id := range want.IDs {
				if ids.Str(i) != id || cloud.Null(i) != (want.Cloud[i] == nil) ||
					!cloud.Null(i) && cloud.Float(i) != *want.Cloud[i] {
					t.Errorf("sample %d: got %q, cloud %s, want %q", i, ids.Str(i), cloud.AppendJSON(nil, i), id)
				}
			}
			var files []string
			for e, err := range d.Leaves(t.Context(), false) {
				if err != nil {
					t.Fatal(err)
				}
				files = append(files, e.Path)
				if again, err := d.Resolve(t.Context(), e.Path); err != nil || again.VSI() != e.VSI() {
					t.Errorf("%s resolves to %s, %v; listed is %s", e.Path, again.VSI(), err, e.VSI())
				}
			}
			wanted := slices.Sorted(func(yield func(string) bool) {
				for f := range want.Files {
					if !yield(f) {
						return
					}
				}
			})
			if slices.Sort(files); !slices.Equal(files, wanted) {
				t.Errorf("files: got %q, want %q", files, wanted)
			}
			if r, err := d.Verify(t.Context()); err != nil || r.Files != int64(len(wanted)) {
				t.Errorf("verified %+v, %v; there are %d files", r, err, len(wanted))
			}
		})
	}
}

// TestSeveralTACO3 promises that ZIPs of one collection are one dataset whose samples are counted on.
func TestSeveralTACO3(t *testing.T) {
	dir := filepath.Join(corpus.Testdata(t), "taco3", "parts")
	d := mustOpen(t, filepath.Join(dir, "p0.zip"), filepath.Join(dir, "p1.zip"))
	wide, err := d.SQL(t.Context(), `SELECT "taco:sample_index" AS i, id FROM dataset ORDER BY i DESC LIMIT 1`)
	if err != nil {
		t.Fatal(err)
	}
	index, _ := wide.At(t.Context(), 0)
	id, _ := wide.At(t.Context(), 1)
	if index.Int(0) != 3 || id.Str(0) != "sitio 3" {
		t.Errorf("the last sample: got %d %q, want 3 \"sitio 3\"", index.Int(0), id.Str(0))
	}
	_, err = open(t, []string{filepath.Join(dir, "p0.zip"), filepath.Join(dir, "..", "flat.zip")}, taco.Options{})
	if fault.KindOf(err) != fault.Unsupported {
		t.Errorf("with a container of other levels: got %v, want unsupported", err)
	}
}

// TestNewerVersions promises that a container of a version that is not read is unsupported, and that the error names
// the version and those that are read.
func TestNewerVersions(t *testing.T) {
	dir := filepath.Join(corpus.Testdata(t), "taco3", "scenes")
	doc := testfile.Read(t, filepath.Join(dir, "COLLECTION.json"))
	for name, c := range map[string]struct{ from, to, table string }{
		"TACO 3.1": {`"taco:version": "3.0.0"`, `"taco:version": "3.1.0"`, "METADATA/sample.parquet"},
		"TACO 4":   {`"taco:version": "3.0.0"`, `"taco:version": "4.0.0"`, "METADATA/other.parquet"},
		"TACO 5":   {`"taco:version": "3.0.0"`, `"taco_version": "5.0.0"`, "METADATA/level0.parquet"},
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir()
			if err := errors.Join(os.Mkdir(filepath.Join(path, "METADATA"), 0o700),
				os.WriteFile(filepath.Join(path, c.table), nil, 0o600),
				os.WriteFile(filepath.Join(path, "COLLECTION.json"),
					[]byte(strings.Replace(string(doc), c.from, c.to, 1)), 0o600)); err != nil {
				t.Fatal(err)
			}
			_, err := open(t, []string{path}, taco.Options{})
			version := strings.Split(c.to, `"`)[3]
			if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), version) ||
				!strings.Contains(err.Error(), "3.0.0 ") {
				t.Errorf("got %v, want unsupported with %s and what is read", err, version)
			}
		})
	}
}

// taco3Case is a row of the corpus of TACO 3.
type taco3Case struct {
	Type, Base, Expect string
	Path               any
	Levels             map[string]int
	SHA256             string `json:"leaves_sha256"`
	NLeaves            int    `json:"n_leaves"`
}

// TestTACO3Corpus promises the bytes of every leaf and the rows of every level of the corpus, and that its broken files
// do not verify.
func TestTACO3Corpus(t *testing.T) {
	race.SkipCovered(t)
	dir := filepath.Join(corpus.Dir(t), "taco3")
	bad := unpacked(t, filepath.Join(dir, "bad.tar.gz"))
	files := &openers.Files{}
	defer files.Close()
	for _, c := range corpus.Rows[taco3Case](t, dir) {
		switch c.Type {
		case "case":
			t.Run(c.Path.(string), func(t *testing.T) {
				d := mustOpen(t, filepath.Join(dir, c.Path.(string)))
				for name, n := range c.Levels {
					if _, rows, err := d.LevelRows(t.Context(), name); err != nil || len(rows) != n {
						t.Errorf("level %s: got %d rows, %v, want %d", name, len(rows), err, n)
					}
				}
				var lines []string
				for e, err := range d.Leaves(t.Context(), false) {
					if err != nil {
						t.Fatal(err)
					}
					lines = append(lines, line(t, files, e))
				}
				slices.Sort(lines)
				if got := corpus.SHA256([]byte(strings.Join(lines, ""))); got != c.SHA256 || len(lines) != c.NLeaves {
					t.Errorf("%d leaves with hash %s, want %d with %s", len(lines), got, c.NLeaves, c.SHA256)
				}
				if _, err := d.Verify(t.Context()); err != nil {
					t.Errorf("it does not verify: %v", err)
				}
			})
		case "bad":
			t.Run(c.Path.(string), func(t *testing.T) {
				d, err := open(t, []string{filepath.Join(bad, c.Path.(string))}, taco.Options{})
				if err == nil {
					_, err = d.Verify(t.Context())
				}
				switch {
				case c.Expect == "accept" && err != nil, (c.Expect == "error" || c.Expect == "refuse") && err == nil:
					t.Errorf("got %v, want %s", err, c.Expect)
				case err != nil && fault.KindOf(err) == 0:
					t.Errorf("without a kind: %v", err)
				}
			})
		}
	}
}

// unpacked returns a directory with the files of an archive.
func unpacked(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil || !filepath.IsLocal(h.Name) {
			t.Fatal(fmt.Sprintf("%s: ", name), err)
		}
		path := filepath.Join(dir, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o700)
		} else {
			var b []byte
			if b, err = io.ReadAll(r); err == nil {
				err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, b, 0o600))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
