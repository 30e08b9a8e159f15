package build_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/build"
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tiff"
)

// curated is collection with the curators that a TACO 0.2 needs.
func curated() build.Collection {
	c := collection()
	c.Curators = []map[string]any{{"name": "Łukasz"}}
	return c
}

// tog returns a random TOG.
func tog(t *testing.T, rng *rand.Rand) []byte {
	t.Helper()
	shape := [3]int{1 + rng.IntN(3), 1 + rng.IntN(40), 1 + rng.IntN(40)}
	pixels := make([]byte, 2*shape[0]*shape[1]*shape[2])
	for i := range pixels {
		pixels[i] = byte(rng.IntN(7))
	}
	var b bytes.Buffer
	o := tiff.TOGOptions{Shape: shape, DType: chunk.Uint16, Tile: 16, Level: 1}
	if err := tiff.WriteTOG(&b, pixels, o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// randomTaco writes a random dataset without padding as a TACO 0.2; the files of a streaming one are TOGs.
func randomTaco(t *testing.T, path string, form build.Form, seed int) *maker {
	t.Helper()
	m := &maker{dir: filepath.Dir(path), leaves: map[string]string{}}
	rng := rand.New(rand.NewPCG(uint64(seed), 1))
	set := rapid.Custom(func(r *rapid.T) *build.Taco {
		m.r, m.rows, m.names = r, nil, nil
		clear(m.leaves)
		return m.taco()
	}).Example(seed)
	if form == build.StreamingTaco {
		m.rasters(t, rng, "", set.Samples)
	}
	set.Collection = curated()
	if _, err := build.Create(t.Context(), set, path, build.Options{Form: form}); err != nil {
		t.Fatal(err)
	}
	return m
}

// rasters replaces all files by TOGs.
func (m *maker) rasters(t *testing.T, rng *rand.Rand, above string, to *build.Tortilla) {
	for i := range to.Samples {
		s := &to.Samples[i]
		if s.Children != nil {
			m.rasters(t, rng, above+s.ID+"/", s.Children)
			continue
		}
		s.File, s.Bytes = "", tog(t, rng)
		m.leaves[above+s.ID] = string(s.Bytes)
	}
}

// tileRows returns the SHA-256 of the tiles of each leaf by their names in a streaming TACO, as the directories of the
// files say: BigTIFF, tags 324 and 325.
func (m *maker) tileRows(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for path, b := range m.leaves {
		root, id := path, path
		if i := strings.LastIndex(path, "/"); i >= 0 {
			root, id = path[:i], path[i+1:]
		}
		le := binary.LittleEndian
		dir := b[le.Uint64([]byte(b)[8:]):]
		var lists [2][]uint64
		for i := range le.Uint64([]byte(dir)) {
			e := []byte(dir[8+20*i:])
			tag, kind, n := le.Uint16(e), le.Uint16(e[2:]), le.Uint64(e[4:])
			size := map[uint16]uint64{3: 2, 4: 4, 16: 8}[kind]
			if tag != 324 && tag != 325 {
				continue
			}
			data := e[12:]
			if n*size > 8 {
				data = []byte(b[le.Uint64(data):])
			}
			for k := range n {
				v := append(bytes.Clone(data[k*size:][:size]), make([]byte, 8)...)
				lists[tag-324] = append(lists[tag-324], le.Uint64(v))
			}
		}
		for k, off := range lists[0] {
			tile := b[off : off+lists[1][k]]
			out[fmt.Sprintf("%s|%s::%d", root, id, k)] = fmt.Sprintf("%x", sha256.Sum256([]byte(tile)))
		}
	}
	return out
}

// chainRow is what all rows of the chain of a streaming TACO have.
type chainRow struct {
	ID     string `parquet:"tortilla:id,optional"`
	Root   string `parquet:"tortilla:root,optional"`
	Offset int64  `parquet:"tortilla:offset,optional"`
	Length int64  `parquet:"tortilla:length,optional"`
}

// TestStreamingTacos: a TACO 0.2 has the files and values that were put into it, and its chain, followed by the text of
// the specification, ends in a table with the tiles that the files' own directories name.
func TestStreamingTacos(t *testing.T) {
	for i := range 24 {
		path := filepath.Join(t.TempDir(), "a.taco")
		form := []build.Form{build.Auto, build.PlainTaco}[i%2]
		m := randomTaco(t, path, max(form, build.StreamingTaco), i)
		if got := withoutZIP(filesOf(t, path)); !reflect.DeepEqual(got, m.leaves) {
			t.Fatalf("%d: files %q, want %q", i, got, m.leaves)
		}
		d, err := taco.Open(t.Context(), &source.Files{}, []string{path}, taco.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := d.Verify(t.Context())
		if err != nil || len(r.Notes) > 0 {
			t.Errorf("%d: %v, %+v", i, err, r)
		}
		if got := strings.Contains(d.Form().String(), "streaming"); got != (form == build.Auto) {
			t.Errorf("%d: it is a %s", i, d.Form())
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if form == build.Auto {
			m.checkChain(t, path)
		}
	}
}

// checkChain follows the chain of a streaming TACO.
func (m *maker) checkChain(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	off, size := le.Uint64(b[2:]), le.Uint64(b[10:])
	if string(b[:2]) != "WX" || le.Uint64(b[18:]) != 1 || !json.Valid(b[le.Uint64(b[26:]):][:le.Uint64(b[34:])]) {
		t.Fatalf("a header of %q", b[:200])
	}
	for level := 0; ; level++ {
		footer := b[off : off+size]
		f, err := parquet.OpenFile(bytes.NewReader(footer), int64(size))
		if err != nil {
			t.Fatal(err)
		}
		pointer, ok := f.Lookup("pointer")
		rows, err := parquet.Read[chainRow](bytes.NewReader(footer), int64(size))
		if err != nil || !ok {
			t.Fatal(err, ok)
		}
		if pointer != "NULL" {
			if _, err := fmt.Sscanf(pointer, "OFFSETLENGTH(%d, %d)", &off, &size); err != nil {
				t.Fatalf("table %d has the pointer %q", level, pointer)
			}
			if level == 0 && rows[0].Root != rows[0].ID {
				t.Errorf("the root of %q is %q", rows[0].ID, rows[0].Root)
			}
			continue
		}
		got := map[string]string{}
		for _, r := range rows {
			tile := b[r.Offset : r.Offset+r.Length]
			got[r.Root+"|"+r.ID] = fmt.Sprintf("%x", sha256.Sum256(tile))
		}
		if want := m.tileRows(t); !reflect.DeepEqual(got, want) || len(got) != len(rows) {
			t.Errorf("%d rows of tiles %v, want %v", len(rows), got, want)
		}
		return
	}
}

// TestWhatAStreamingTacoRefuses: files that are not TOGs, a folder that readers would take for histograms, a
// description without curators, and parts.
func TestWhatAStreamingTacoRefuses(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	file := func(id string, b []byte) *build.Tortilla {
		return &build.Tortilla{Samples: []build.Sample{{ID: id, Bytes: b}}}
	}
	striped, err := os.ReadFile("../../../testdata/tiffs/count-0-strips.tif")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		set  *build.Tortilla
		more func(c *build.Collection, o *build.Options)
		want string
	}{
		{file("a", []byte("text")), nil, `sample "a" file: is not a TOG`},
		{file("a", nil), nil, `exactly one`},
		{&build.Tortilla{Samples: []build.Sample{{ID: "histogram", Children: file("a", tog(t, rng))}}}, nil,
			"histograms of a streaming TACO"},
		{file("a", tog(t, rng)), func(c *build.Collection, _ *build.Options) { c.Curators = nil },
			"curators is missing"},
		{file("a", tog(t, rng)), func(_ *build.Collection, o *build.Options) { o.PartBytes = 1 }, "not in parts"},
		{file("a", striped), nil, "but not a TOG"},
	} {
		set := &build.Taco{Samples: c.set, Collection: curated()}
		o := build.Options{}
		if c.more != nil {
			c.more(&set.Collection, &o)
		}
		dir := t.TempDir()
		_, err := build.Create(t.Context(), set, filepath.Join(dir, "a.taco"), o)
		if err == nil || !strings.Contains(err.Error(), c.want) || fault.KindOf(err) != fault.Unsupported {
			t.Errorf("%v, want %q", err, c.want)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: leaves %v", c.want, left)
		}
	}
}

// TestColumnsOfGenerations: a container of generation 2 gets the columns and members of TACO 0.2, and is the same again
// after the way back.
func TestColumnsOfGenerations(t *testing.T) {
	dir := t.TempDir()
	times := tables.NewInts(tables.Type{Kind: tables.Timestamp}, []int64{1_500_000_000_000_000, -1_000_000}, nil)
	point := func(x, y string) []byte {
		b := []byte{1, 1, 0, 0, 0}
		for _, v := range []string{x, y} {
			bits := map[string]uint64{"-63.5": 0xc04fc00000000000, "10": 0x4024000000000000}[v]
			b = binary.LittleEndian.AppendUint64(b, bits)
		}
		return b
	}
	points := append(point("-63.5", "10"), point("10", "10")...)
	set := &build.Taco{Collection: curated(), Samples: &build.Tortilla{
		Samples: []build.Sample{{ID: "a", Bytes: []byte("1")}, {ID: "b", Bytes: []byte("2")}}},
		Columns: columns(tables.FromVectors([]string{"split", "stac:time_start", "stac:centroid", "x"},
			[]*tables.Vector{tables.NewStrings([]string{"train", "test"}, nil), times,
				tables.NewBytes(tables.Type{Kind: tables.Binary}, points, []uint32{0, 21, 42}, nil),
				tables.NewStrings([]string{"u", "v"}, nil)}))}
	set.Collection.Tasks = []string{"semantic-segmentation"}
	old, back := filepath.Join(dir, "a.taco"), filepath.Join(dir, "a.tacozip")
	if _, err := build.Create(t.Context(), set, old, build.Options{Form: build.PlainTaco}); err != nil {
		t.Fatal(err)
	}
	d, err := taco.Open(t.Context(), &source.Files{}, []string{old}, taco.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	checkColumns(t, d, map[string]string{"tortilla:data_split": `["train","test"]`,
		"stac:time_start": "[1500000000,-1]", "stac:centroid": `["POINT (-63.5 10)","POINT (10 10)"]`,
		"x": `["u","v"]`})
	var doc struct {
		Version string `json:"taco_version"`
		Task    string
		Extent  struct {
			Spatial  []float64
			Temporal []int64
		}
	}
	if err := json.Unmarshal(d.Collection(), &doc); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(doc); got != "{0.2.0 Semantic Segmentation {[-63.5 10 10 10] [-1000 1500000000000]}}" {
		t.Error(got)
	}
	c, err := build.CollectionOf(d)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := build.Export(t.Context(), d, nil, *c, back, build.Options{}); err != nil {
		t.Fatal(err)
	}
	b, err := taco.Open(t.Context(), &source.Files{}, []string{back}, taco.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	checkColumns(t, b, map[string]string{"split": `["train","test"]`, "x": `["u","v"]`,
		"stac:time_start": `["2017-07-14T02:40:00","1969-12-31T23:59:59"]`})
	again, err := build.CollectionOf(b)
	if err != nil {
		t.Fatal(err)
	}
	again.Extent, again.TacoVersion = nil, ""
	if want := set.Collection; !reflect.DeepEqual(again.Tasks, want.Tasks) || again.ID != want.ID ||
		!reflect.DeepEqual(again.Providers, want.Providers) || !reflect.DeepEqual(again.Curators, want.Curators) ||
		again.Description != want.Description || !bytes.Equal(again.More["my:note"], []byte(`{"a":[1,2]}`)) {
		var short bytes.Buffer
		if err := json.Compact(&short, again.More["my:note"]); err != nil || short.String() != `{"a":[1,2]}` {
			t.Errorf("%+v, want %+v", again, want)
		}
	}
}

// checkColumns compares columns of level 0, as JSON.
func checkColumns(t *testing.T, d *taco.Dataset, want map[string]string) {
	t.Helper()
	top, err := d.Level(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range want {
		v, err := top.Column(t.Context(), name)
		if err != nil {
			t.Error(err)
			continue
		}
		got := []byte{'['}
		for i := range v.Len() {
			if i > 0 {
				got = append(got, ',')
			}
			got = v.AppendJSON(got, i)
		}
		if string(got)+"]" != values {
			t.Errorf("%s is %s], want %s", name, got, values)
		}
	}
}

// TestTheOriginalReaderReadsTacos: pyarrow finds in random streaming TACOs, by the text of the specification, the
// files and tiles that were put into them, and the reader of generation 1 in tacoreader finds the rows and bytes of
// those, and of plain ones. CHASKI_ORACLE_PYTHON_TACO is a Python with both, CHASKI_ORACLE_SEED another seed.
func TestTheOriginalReaderReadsTacos(t *testing.T) {
	python, seed := original(t)
	count := 140
	if testing.Short() {
		count = 50
	}
	var paths, streams []string
	var made, streamed []*maker
	for i := range count {
		path := filepath.Join(t.TempDir(), fmt.Sprint(i, ".taco"))
		form := []build.Form{build.StreamingTaco, build.PlainTaco}[i%2]
		m := randomTaco(t, path, form, seed*count+i)
		made, paths = append(made, m), append(paths, path)
		if form == build.StreamingTaco {
			streamed, streams = append(streamed, m), append(streams, path)
		}
	}
	for i, line := range readByOriginal(t, python, "testdata/read_taco.py", streams) {
		var found struct {
			Leaves, Tiles map[string]string
			Tables        [][][2]string
		}
		if err := json.Unmarshal(line, &found); err != nil {
			t.Fatal(err)
		}
		if want := streamed[i].hashes(); !reflect.DeepEqual(found.Leaves, want) {
			t.Errorf("%d: leaves %v, want %v", i, found.Leaves, want)
		}
		if want := streamed[i].tileRows(t); !reflect.DeepEqual(found.Tiles, want) {
			t.Errorf("%d: tiles %v, want %v", i, found.Tiles, want)
		}
	}
	for i, line := range readByOriginal(t, python, "testdata/read_tortilla.py", paths) {
		made[i].compareOld(t, line)
	}
}
