package containers

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/fault"
	_ "github.com/chaski-eo/chaski/format/codec/geozl"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/build"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// rowsOfCorpus returns the rows of a type about containers that this package opens.
func rowsOfCorpus(t *testing.T, kind string) (list []corpus.Container) {
	t.Helper()
	for _, c := range corpus.Containers(t) {
		if c.Type == kind {
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		t.Fatalf("no %s", kind)
	}
	return list
}

func options(t *testing.T) resources.Options {
	t.Helper()
	return resources.Options{}.WithDefaults()
}

func opened(t *testing.T, o resources.Options, paths []string) Set {
	t.Helper()
	set, err := taco.Open(t.Context(), o.Opener, paths, taco.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	return Set{set}
}

// sampleTrees is what a test writes into a container.
type sampleTrees struct {
	samples []build.Sample
	more    map[string]json.RawMessage // members of the collection
	columns []*tables.Table            // of each level, or nil
}

// write writes a container to a path, in a form.
func (s *sampleTrees) write(t *testing.T, path string, form build.Form) string {
	t.Helper()
	set := &build.Taco{Samples: &build.Tortilla{Samples: s.samples}, Collection: build.Collection{ID: "made",
		DatasetVersion: "1", Description: "d", Licenses: []string{"CC0-1.0"},
		Providers: []map[string]any{{"name": "Ana"}}, Tasks: []string{"classification"}, More: s.more}}
	set.Columns = func(context.Context, []build.Level) ([]*tables.Table, error) { return s.columns, nil }
	if _, err := build.Create(t.Context(), set, path, build.Options{Form: form}); err != nil {
		t.Fatal(err)
	}
	return path
}

// tortilla writes a Tortilla whose samples are other Tortillas, or files if these are nil. The samples have the times
// at which they begin.
func tortilla(t *testing.T, times []string, inner [][]byte) []byte {
	t.Helper()
	type row struct {
		ID     string `parquet:"tortilla:id"`
		Format string `parquet:"tortilla:file_format"`
		Offset int64  `parquet:"tortilla:offset"`
		Length int64  `parquet:"tortilla:length"`
		Time   string `parquet:"stac:time_start"`
	}
	written := make([]byte, 200)
	var rows []row
	for i, time := range times {
		bytes, format := []byte("abc"), "BYTES"
		if inner != nil {
			bytes, format = inner[i], "TORTILLA"
		}
		rows = append(rows, row{fmt.Sprint("t", i), format, int64(len(written)), int64(len(bytes)), time})
		written = append(written, bytes...)
	}
	var footer bytes.Buffer
	w := parquet.NewGenericWriter[row](&footer)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	copy(written, "#y")
	for i, v := range []int{len(written), footer.Len(), 1} {
		binary.LittleEndian.PutUint64(written[2+8*i:], uint64(v))
	}
	return append(written, footer.Bytes()...)
}

// folder returns a sample with samples below it.
func folder(id string, below ...build.Sample) build.Sample {
	return build.Sample{ID: id, Children: &build.Tortilla{Samples: below}}
}

// bytesOf returns a sample whose bytes are its id.
func bytesOf(id string) build.Sample { return build.Sample{ID: id, Bytes: []byte(id)} }

// table opens a spec with fields as a table, which is closed at the end.
func table(t *testing.T, sp spec.Spec, o resources.Options) (*rows.Table, error) {
	t.Helper()
	sp.BatchSize = 1
	made, err := survey.OpenTable(t.Context(), &sp, &o)
	if err == nil {
		t.Cleanup(func() {
			if err := made.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return made, err
}

// streaming is the family of streaming TACOs, whose samples beside the rasters are histograms.
const streaming = "taco-stream"

// TestDescribe: descriptions have the levels, rows, placeholders and chunks that the original writers wrote, and say
// what the collection document does.
func TestDescribe(t *testing.T) {
	for _, c := range rowsOfCorpus(t, "case") {
		if len(c.Levels) == 0 {
			continue
		}
		found, err := new(kind).Describe(t.Context(), c.At()[0], options(t))
		if err != nil {
			t.Errorf("%s: %v", c.Path[0], err)
			continue
		}
		info := found.(*Info)
		set := opened(t, options(t), c.At()[:1])
		for k, level := range info.Levels {
			name := fmt.Sprintf("level%d", k)
			if want, ok := c.Levels[name]; ok && level.Rows != want {
				t.Errorf("%s: %s has %d rows, want %d", c.Path[0], name, level.Rows, want)
			}
			if want, ok := c.Padding[name]; ok && level.Padding != want {
				t.Errorf("%s: %s has %d placeholders, want %d", c.Path[0], name, level.Padding, want)
			}
			visible, err := set.Visible(t.Context(), k)
			if err != nil || level.Rows != level.Padding+level.Histograms+len(visible) {
				t.Errorf("%s: %s: %+v and %d samples, %v", c.Path[0], name, level, len(visible), err)
			}
		}
		// The last level of a streaming TACO has its chunks, which are no samples.
		if len(info.Levels) != len(c.Levels) && c.Family != streaming {
			t.Errorf("%s: %d levels, want %d", c.Path[0], len(info.Levels), len(c.Levels))
		}
		var document struct {
			ID, Title string
			Tasks     []string
			Task      any
		}
		_ = json.Unmarshal(set.Collection(), &document) // a Tortilla has none
		if task, ok := document.Task.(string); ok {
			document.Tasks = append(document.Tasks, task)
		}
		if info.ID != document.ID || info.Title != document.Title || !slices.Equal(info.Tasks, document.Tasks) ||
			!slices.Equal(info.Classes, info.Levels[0].Classes) {
			t.Errorf("%s: %+v, want %+v", c.Path[0], info, document)
		}
		// The manifest counts the four chunks of each histogram, too.
		if all := info.Chunks + 4*info.Levels[len(info.Levels)-1].Histograms; all != c.Levels["chunks"] {
			t.Errorf("%s: %d chunks, want %d", c.Path[0], all, c.Levels["chunks"])
		}
	}
	parts := filepath.Join("..", "..", "testdata", "extents", "sides")
	found, err := survey.Describe(t.Context(), parts, nil, options(t))
	if want := opened(t, options(t), []string{parts}).Parts(); err != nil || len(want) < 2 ||
		!slices.Equal(found.(*Info).Files, want) {
		t.Errorf("%v, %v, want %v", found, err, want)
	}
}

// TestEntries: the tables of entries name the bytes that the original writers put there.
func TestEntries(t *testing.T) {
	o, compared := options(t), 0
	for _, c := range rowsOfCorpus(t, "case") {
		if c.NLeaves == 0 || len(c.Leaves) != c.NLeaves || c.ByZIP != nil || c.Family == streaming {
			continue
		}
		set := opened(t, o, c.At())
		named, err := set.Tables(t.Context(), nil, o)
		if err != nil {
			t.Fatal(err)
		}
		var got, want []string
		for k := range set.Levels() {
			table, err := named(t.Context(), fmt.Sprintf("entries%d", k))
			if err != nil {
				t.Fatal(err)
			}
			column := func(name string) func(row int) int64 {
				values, err := table.Column(t.Context(), name)
				if err != nil {
					t.Fatal(err)
				}
				return values.Int
			}
			folder, offset, size := column("folder"), column("offset"), column("size")
			uris, err := table.Column(t.Context(), "uri")
			if err != nil {
				t.Fatal(err)
			}
			for row := range table.Len() {
				if folder(row) == 0 && size(row) != 0 {
					got = append(got, sumOf(t, uris.Str(row), offset(row), size(row)))
				}
			}
		}
		for _, leaf := range c.Leaves {
			if leaf[2].(float64) > 0 { // not a placeholder
				want = append(want, leaf[3].(string))
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if compared++; !slices.Equal(got, want) {
			t.Errorf("%s: %d entries with the sums %.8q, want %d with %.8q", c.Path[0], len(got), got, len(want), want)
		}
	}
	if compared < 5 {
		t.Errorf("%d containers", compared)
	}
}

// sumOf returns the SHA-256 of a range of a file; of the whole file if size is negative.
func sumOf(t *testing.T, path string, offset, size int64) string {
	t.Helper()
	data := testfile.Read(t, path)
	if size >= 0 {
		data = data[offset : offset+size]
	}
	return corpus.SHA256(data)
}

// TestSelect: conditions on place and time select the samples that the specification's join does, in the order of
// level 0.
func TestSelect(t *testing.T) {
	o, compared := options(t), 0
	for _, c := range rowsOfCorpus(t, "query") {
		condition := spec.Condition{Level: c.Level, Column: c.Column}
		switch c.Op {
		case "filter_bbox ST_Intersects", "filter_bbox ST_Within":
			condition.BBox, condition.Within = (*[4]float64)(c.BBox), strings.HasSuffix(c.Op, "Within")
		case "filter_datetime whole days", "filter_datetime instants":
			if strings.Contains(c.Range, "T") != strings.HasSuffix(c.Op, "instants") {
				continue
			}
			condition.Datetime = c.Range
		default:
			continue
		}
		set := opened(t, o, c.At())
		found, err := set.Samples(t.Context(), spec.Subset{Where: []spec.Condition{condition}}, o)
		if err != nil {
			t.Errorf("%s %s: %v", c.Path[0], c.Op, err)
			continue
		}
		column, err := found.Data.Column(t.Context(), set.IDColumn())
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for row := range found.Data.Len() {
			text += column.Str(row) + "\n"
		}
		if compared++; found.Data.Len() != c.N || corpus.SHA256([]byte(text)) != c.IDsSHA256 {
			t.Errorf("%s %s: %d samples, want %d: %.5q", c.Path[0], c.Op, found.Data.Len(), c.N, c.IDs)
		}
	}
	if compared < 30 {
		t.Errorf("%d queries", compared)
	}
}

// TestFind: a raster in a container is found by its name where the original writers put it; a name without a raster is
// an error with a kind, and so are rasters of containers that are damaged.
func TestFind(t *testing.T) {
	o, rasters := options(t), 0
	for _, c := range rowsOfCorpus(t, "case") {
		for _, leaf := range c.Leaves {
			name := c.At()[0] + "::" + leaf[0].(string)
			asset, err := new(kind).Member(t.Context(), o, name)
			if err != nil {
				if fault.KindOf(err) == 0 {
					t.Errorf("%s: an error without a kind: %v", name, err)
				}
				continue
			}
			size := asset.Length
			if size == 0 {
				size = -1
			}
			if rasters++; sumOf(t, asset.URI, asset.Offset, size) != leaf[3].(string) {
				t.Errorf("%s is found at %d+%d of %s", name, asset.Offset, asset.Length, filepath.Base(asset.URI))
			}
		}
		if _, err := new(kind).Member(t.Context(), o, c.At()[0]+"::no/such"); fault.KindOf(err) == 0 {
			t.Errorf("%s: a path that is not there: %v", c.Path[0], err)
		}
	}
	if rasters < 20 {
		t.Errorf("%d rasters", rasters)
	}
	refused := 0
	for _, c := range rowsOfCorpus(t, "bad") {
		err := describeAll(t, o, c.At()[0])
		if err != nil && (fault.KindOf(err) == 0 || c.Expect == "accept") {
			t.Errorf("%s, %s: %v", c.Path[0], c.Wrong, err)
		}
		if err != nil {
			refused++
		}
	}
	if refused < 5 {
		t.Errorf("%d damaged containers are refused", refused)
	}
}

// describeAll describes a container and lists its entries.
func describeAll(t *testing.T, o resources.Options, path string) error {
	found, err := new(kind).Describe(t.Context(), path, o)
	if err != nil {
		return err
	}
	if _, err := json.Marshal(found); err != nil {
		t.Errorf("%s: %v", path, err)
	}
	set := opened(t, o, []string{path})
	named, err := set.Tables(t.Context(), nil, o)
	for k := 0; err == nil && k < set.Levels(); k++ {
		table, lerr := named(t.Context(), fmt.Sprintf("entries%d", k))
		if err = lerr; err == nil {
			_, err = table.Column(t.Context(), "size")
		}
	}
	return err
}
