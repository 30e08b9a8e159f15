package survey_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/npy"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/stats"
	"github.com/chaski-eo/chaski/stats/moments"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/tog"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// writeRaster writes a raster of bytes, or of uint16.
func writeRaster(t *testing.T, path string, o tog.Options, samples []byte) {
	t.Helper()
	if o.DType == chunk.Uint16 {
		wide := make([]byte, 2*len(samples))
		for i, v := range samples {
			wide[2*i] = v
		}
		samples = wide
	}
	var b bytes.Buffer
	o.Tile = 16
	err := tog.Write(&b, samples, o)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o777)
	}
	if err == nil {
		err = os.WriteFile(path, b.Bytes(), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// inParts measures each sample by itself, and merges what was written of the parts.
func inParts(t *testing.T, s loader.Spec, o loader.Options) (*stats.Report, error) {
	extent, err := extentOf(t.Context(), s, o, nil)
	if err != nil {
		return nil, err
	}
	whole, err := survey.StatsPart(t.Context(), s, o, &survey.Share{Of: extent}, nil)
	for i := int64(0); i < extent.Rows && err == nil; i++ {
		var part *survey.Part
		part, err = survey.StatsPart(t.Context(), s, o, &survey.Share{Of: extent, First: i, Count: 1}, nil)
		var b bytes.Buffer
		if err == nil {
			err = whole.Write(&b)
		}
		if err == nil {
			whole, err = survey.ReadPart(&b)
		}
		if err == nil {
			err = whole.Merge(part)
		}
	}
	if err != nil {
		return nil, err
	}
	for _, wrong := range []survey.Share{{Of: extent, First: -1}, {Of: extent, Count: -1},
		{Of: extent, First: 1, Count: extent.Rows}, {Of: survey.Extent{Rows: extent.Rows}}} {
		if _, err := survey.StatsPart(t.Context(), s, o, &wrong, nil); err == nil {
			t.Errorf("%+v is measured", wrong)
		}
	}
	return whole.Report(s.WithDefaults().Fields), nil
}

// TestPartsThatDoNotFit: parts of other fields, or of negative numbers, are refused.
func TestPartsThatDoNotFit(t *testing.T) {
	part := func(names []string, bands int) *survey.Part {
		p, err := moments.NewField(chunk.Uint8, bands)
		if err != nil {
			t.Fatal(err)
		}
		return &survey.Part{Fields: []survey.PartField{{Name: names[0], Bands: names[1:], Stats: []*moments.Field{p}}}}
	}
	mine := part([]string{"a", "x"}, 1)
	for name, other := range map[string]*survey.Part{"none": {}, "of another name": part([]string{"b", "x"}, 1),
		"of other bands": part([]string{"a", "y"}, 1), "of more bands": part([]string{"a", "x"}, 2)} {
		if err := mine.Merge(other); fault.KindOf(err) != fault.Corrupt {
			t.Errorf("fields %s: %v", name, err)
		}
	}
	// The order in which dtypes come changes nothing.
	dtypes := []chunk.DType{chunk.Uint8, chunk.Float32, chunk.Int16, chunk.Uint16}
	var want string
	for _, order := range [][]int{{1, 2, 3}, {3, 2, 1}, {2, 3, 1}} {
		all := part([]string{"a", "x"}, 1)
		for _, k := range order {
			p, err := moments.NewField(dtypes[k], 1)
			if err != nil {
				t.Fatal(err)
			}
			field := survey.PartField{Name: "a", Bands: []string{"x"}, Stats: []*moments.Field{p}}
			if err := all.Merge(&survey.Part{Fields: []survey.PartField{field}}); err != nil {
				t.Fatal(err)
			}
		}
		var b strings.Builder
		if err := all.Write(&b); err != nil {
			t.Fatal(err)
		}
		if want = cmp.Or(want, b.String()); b.String() != want {
			t.Errorf("dtypes in order %d: %s, want %s", order, b.String(), want)
		}
	}
	if r := mine.Report([]spec.Field{{Name: "a", Bands: []int{1}}}); len(r.Fields["a"].Bands) != 0 {
		t.Errorf("a part without the band that a field picks: %+v", r)
	}
	for _, p := range []survey.Part{{Samples: -1}, {Skipped: -1}} {
		if err := p.Write(io.Discard); fault.KindOf(err) != fault.Corrupt {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

// TestStacks: bands of a stack, of files of several dtypes, are measured and counted by their columns.
func TestStacks(t *testing.T) {
	dir, counts := t.TempDir(), map[string]int{}
	table := "red,nir\n"
	rnd := rand.New(rand.NewPCG(10, 11))
	for row := range 2 {
		for column, dtype := range map[string]chunk.DType{"red": chunk.Uint8, "nir": chunk.Uint16} {
			samples := make([]byte, 20*30)
			for i := range samples {
				samples[i] = byte(1 + rnd.IntN(4))
				counts[fmt.Sprint(column, samples[i])]++
				counts[column] += int(samples[i])
			}
			o := tog.Options{Shape: [3]int{1, 20, 30}, DType: dtype}
			writeRaster(t, filepath.Join(dir, fmt.Sprint(column, row, ".tif")), o, samples)
		}
		table += fmt.Sprintf("red%d.tif,nir%d.tif\n", row, row)
	}
	source := filepath.Join(dir, "t.csv")
	testfile.Write(t, source, []byte(table))
	for _, columns := range [][]string{{"red"}, {"nir"}, {"nir", "red"}, {"red", "nir"}} {
		field := loader.Field{Name: "image", Columns: []string{"red", "nir"}}
		for _, column := range columns {
			field.Bands = append(field.Bands, slices.Index(field.Columns, column))
		}
		s := loader.Spec{Source: source, BatchSize: 1, Fields: []loader.Field{field}}
		for _, said := range []int{0, 1} { // is missing of red, and 2 of nir
			if said > 0 {
				s.Fields[0].NoData = [][]spec.Float{{1}, {2}}
				if columns[0] != "red" {
					s.Fields[0].NoData = [][]spec.Float{{2}, {1}}
				}
				s.Fields[0].NoData = s.Fields[0].NoData[:len(columns)]
			}
			report, err := survey.Stats(t.Context(), s, loader.Options{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if dtype := report.Fields["image"].DType; dtype != chunk.Uint8 {
				t.Errorf("%q: %s, want that of the first column", columns, dtype)
			}
			for k, band := range report.Fields["image"].Bands {
				missing := said * map[string]int{"red": 1, "nir": 2}[columns[k]]
				n := counts[fmt.Sprint(columns[k], missing)]
				want := float64(counts[columns[k]]-n*missing) / float64(1200-n)
				if band.Name != columns[k] || *band.Mean != want {
					t.Errorf("%q without %d: %s has mean %v, want %v", columns, missing, band.Name, *band.Mean, want)
				}
			}
		}
		s.Fields[0].NoData = nil
		var b bytes.Buffer
		err := survey.Weights(t.Context(), &b, s, loader.Options{},
			survey.WeightOptions{Classes: []float64{3}, Cell: 30}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0
		for cell := range slices.Chunk(b.Bytes()[b.Len()-8:], 4) {
			sum += int(binary.LittleEndian.Uint32(cell))
		}
		if want := counts[columns[0]+"3"]; sum != want {
			t.Errorf("%q: %d pixels of class 3, want %d", columns, sum, want)
		}
	}
}

// TestStatsOfPhysicalValues: values in physical units are scaled.
func TestStatsOfPhysicalValues(t *testing.T) {
	s := loader.Spec{Source: filepath.Join(corpus.Testdata(t), "extras", "scaled.tif"), BatchSize: 1}
	stored, err := survey.Stats(t.Context(), s, loader.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Fields = []loader.Field{{Name: "image", DType: "float32", Physical: new(true)}}
	physical, err := survey.Stats(t.Context(), s, loader.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for b, place := range [][2]float64{{0.0001, -0.1}, {2, 0}} { // see described.json
		was, is := stored.Fields["image"].Bands[b], physical.Fields["image"].Bands[b]
		want := *was.Mean*place[0] + place[1]
		if math.Abs(*is.Mean-want) > 1e-6*math.Abs(want) || is.Count != was.Count || is.NoData != was.NoData {
			t.Errorf("band %d: %+v, of %+v by %v", b, is, was, place)
		}
	}
}

// TestWeightsOfOtherGrids: a cell is so many pixels of the first raster. It counts the pixels of a second raster of
// half the resolution, or of shapes that are drawn on the first.
func TestWeightsOfOtherGrids(t *testing.T) {
	dir := t.TempDir()
	geo := func(size float64) tiff.Geo {
		return tiff.Geo{EPSG: 32630, Transform: [6]float64{5e5, size, 0, 4.6e6, 0, -size}, HasTransform: true}
	}
	rnd := rand.New(rand.NewPCG(14, 15))
	masks := make([]byte, 20*16)
	for i := range masks {
		masks[i] = byte(rnd.IntN(3))
	}
	writeRaster(t, filepath.Join(dir, "image", "1.tif"), tog.Options{Shape: [3]int{1, 40, 32}, DType: chunk.Uint8,
		Geo: geo(10)}, make([]byte, 40*32))
	writeRaster(t, filepath.Join(dir, "mask", "1.tif"), tog.Options{Shape: [3]int{1, 20, 16}, DType: chunk.Uint8,
		Geo: geo(20), NoData: "0"}, masks)
	// Of the class "b" pixels 3 to 7 of the columns and 2 to 11 of the rows, of "a" one pixel.
	square := func(kind string, left, top, right, bottom int) string {
		return fmt.Sprintf(`{"type":"Feature","properties":{"kind":%q},"geometry":{"type":"Polygon","coordinates":`+
			`[[[%[2]d,%[3]d],[%[4]d,%[3]d],[%[4]d,%[5]d],[%[2]d,%[5]d],[%[2]d,%[3]d]]]}}`,
			kind, left, top, right, bottom)
	}
	shapes := `{"type":"FeatureCollection","crs":{"type":"name","properties":{"name":"EPSG:32630"}},"features":[` +
		square("b", 500030, 4599980, 500080, 4599880) + "," + square("a", 500200, 4599700, 500210, 4599690) + "]}"
	path := filepath.Join(dir, "shapes", "1.geojson")
	folder.Write(t, path, shapes)
	folder.Write(t, filepath.Join(dir, "empty", "1.geojson"), `{"type":"FeatureCollection","features":[]}`)
	s := loader.Spec{Source: dir, BatchSize: 1, Fields: []loader.Field{{Name: "image", Pattern: "image/{id}.tif"},
		{Name: "mask", Pattern: "mask/{id}.tif"},
		{Name: "drawn", Vector: &spec.Vector{Path: path, Column: "kind"}},
		{Name: "wide", Vector: &spec.Vector{Path: path, Column: "kind", DType: "int32"}},
		{Name: "other", Vector: &spec.Vector{Pattern: "empty/{id}.geojson"}},
		{Name: "own", Vector: &spec.Vector{Pattern: "shapes/{id}.geojson", Column: "kind"}}}}
	drawn := func(y, x int) int {
		switch {
		case y >= 2 && y < 12 && x >= 3 && x < 8:
			return 2
		case y == 30 && x == 20:
			return 1
		}
		return 0
	}
	mask := func(y, x int) int { return int(masks[y*16+x]) }
	for _, c := range []struct {
		field         string
		classes       []float64
		height, width int
		value         func(y, x int) int
	}{{"mask", nil, 20, 16, mask}, {"mask", []float64{2}, 20, 16, mask}, {"drawn", nil, 40, 32, drawn},
		{"drawn", []float64{1}, 40, 32, drawn}, {"drawn", []float64{2}, 40, 32, drawn},
		{"drawn", []float64{0, 2}, 40, 32, drawn}, {"own", []float64{2}, 40, 32, drawn}, {"wide", nil, 40, 32, drawn},
		{"wide", []float64{0, 2}, 40, 32, drawn}} {
		var b bytes.Buffer
		err := survey.Weights(t.Context(), &b, s, loader.Options{MaxChunkBytes: 500}, // 7 rows of 2 bytes, of 40
			survey.WeightOptions{Field: c.field, Classes: c.classes, Cell: 5}, nil, nil)
		if err != nil {
			t.Fatal(c.field, c.classes, err)
		}
		const cell, down, across = 6, 7, 6 // whole pixels of both grids
		want := make([]uint32, down*across)
		for y := range c.height {
			for x := range c.width {
				v, ratio := c.value(y, x), 40/c.height
				if slices.Contains(c.classes, float64(v)) || c.classes == nil && v != 0 {
					want[y*ratio/cell*across+x*ratio/cell]++
				}
			}
		}
		got := b.Bytes()[b.Len()-4*len(want):]
		for i, n := range want {
			if found := binary.LittleEndian.Uint32(got[4*i:]); found != n {
				t.Errorf("%s %v: cell %d has %d pixels, want %d", c.field, c.classes, i, found, n)
			}
		}
	}
	for _, o := range []survey.WeightOptions{{}, {Field: "none"}, {Field: "mask", Cell: -1},
		{Field: "mask", Cell: spec.MaxWindow + 1}, {Field: "drawn", Classes: []float64{-1}}} {
		if _, err := extentOf(t.Context(), s, loader.Options{}, &o); err == nil {
			t.Errorf("%+v is counted", o)
		}
	}
	e, err := extentOf(t.Context(), s, loader.Options{},
		&survey.WeightOptions{Field: "mask", Cell: spec.MaxWindow})
	if err != nil || e.Rows != 1 {
		t.Errorf("%+v, %v", e, err)
	}
}

// TestStepsOfTime: of an array of steps of time the field's steps are measured, with values that it says are missing.
func TestStepsOfTime(t *testing.T) {
	const steps, bands, pixels = 3, 2, 5 * 7
	file, err := npy.Header(chunk.Uint8, []int{steps, bands, 5, 7})
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(16, 17))
	samples := make([]byte, steps*bands*pixels)
	for i := range samples {
		samples[i] = byte(rnd.IntN(4))
	}
	path := filepath.Join(t.TempDir(), "a.npy")
	testfile.Write(t, path, append(file, samples...))
	for _, said := range [][][]spec.Float{nil, {{3}}} {
		s := loader.Spec{Source: path, BatchSize: 1,
			Fields: []loader.Field{{Name: "image", Times: []int{0, 2}, NoData: said}}}
		report, err := survey.Stats(t.Context(), s, loader.Options{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for b, band := range report.Fields["image"].Bands {
			sum, n := 0, 0
			for _, step := range []int{0, 2} {
				for _, v := range samples[(step*bands+b)*pixels:][:pixels] {
					if said == nil || v != 3 {
						sum, n = sum+int(v), n+1
					}
				}
			}
			if *band.Mean != float64(sum)/float64(n) || band.Count != uint64(n) {
				t.Errorf("band %d without %v: %+v, want %d of %d", b, said, band, sum, n)
			}
		}
	}
}

// TestWeightsOfNaN: NaN is missing unless the field says what is. All complex numbers count.
func TestWeightsOfNaN(t *testing.T) {
	samples := make([]byte, 16*16*8)
	for _, i := range []int{3, 40, 41} {
		binary.LittleEndian.PutUint32(samples[4*i:], math.Float32bits(float32(math.NaN())))
	}
	for _, c := range []struct {
		dtype chunk.DType
		said  [][]spec.Float
		want  uint32
	}{{chunk.Float32, nil, 253}, {chunk.Float32, [][]spec.Float{{-1}}, 256}, {chunk.Float32, [][]spec.Float{{0}}, 3},
		{chunk.Complex64, nil, 256}} {
		path := filepath.Join(t.TempDir(), "a.tif")
		writeRaster(t, path, tog.Options{Shape: [3]int{1, 16, 16}, DType: c.dtype}, samples[:256*c.dtype.Size()])
		s := loader.Spec{Source: path, BatchSize: 1, Fields: []loader.Field{{Name: "image", NoData: c.said}}}
		var b bytes.Buffer
		err := survey.Weights(t.Context(), &b, s, loader.Options{}, survey.WeightOptions{}, nil, nil)
		if err != nil {
			t.Error(c, err)
		} else if got := binary.LittleEndian.Uint32(b.Bytes()[b.Len()-4:]); got != c.want {
			t.Errorf("%+v: %d pixels", c, got)
		}
	}
}

// TestNoRasters: a dataset without samples, or without rasters, is not found.
func TestNoRasters(t *testing.T) {
	for text, says := range map[string]string{"name\n": "no samples", "name\na\n": `no field of ["n"] has rasters`} {
		path := filepath.Join(t.TempDir(), "a.csv")
		testfile.Write(t, path, []byte(text))
		s := loader.Spec{Source: path, BatchSize: 1, Fields: []loader.Field{{Name: "n", Column: "name", Kind: "text"}}}
		_, measured := survey.Stats(t.Context(), s, loader.Options{}, nil)
		counted := survey.Weights(t.Context(), io.Discard, s, loader.Options{}, survey.WeightOptions{}, nil, nil)
		_, paired := survey.Pairs(t.Context(), s, loader.Options{}, survey.PairOptions{})
		for _, err := range []error{measured, counted, paired} {
			if fault.KindOf(err) != fault.NotFound || !strings.Contains(err.Error(), says) {
				t.Errorf("%q: %v, want %q", text, err, says)
			}
		}
	}
}

// TestClassesOfFloats: a class is a value that the dtype has: 0.1 of float64, 0.5 of float32, too. -0 is 0.
func TestClassesOfFloats(t *testing.T) {
	for _, c := range []struct {
		dtype        chunk.DType
		value, class float64
		known        bool
	}{{chunk.Float64, 0.1, 0.1, true}, {chunk.Float32, 0.1, 0.1, false}, {chunk.Float32, 0.5, 0.5, true},
		{chunk.Float32, math.Copysign(0, -1), 0, true}, {chunk.Float64, 0, math.Copysign(0, -1), true}} {
		var samples []byte
		for range 256 {
			if c.dtype == chunk.Float64 {
				samples = binary.LittleEndian.AppendUint64(samples, math.Float64bits(c.value))
			} else {
				samples = binary.LittleEndian.AppendUint32(samples, math.Float32bits(float32(c.value)))
			}
		}
		path := filepath.Join(t.TempDir(), "a.tif")
		writeRaster(t, path, tog.Options{Shape: [3]int{1, 16, 16}, DType: c.dtype}, samples)
		var b bytes.Buffer
		err := survey.Weights(t.Context(), &b, loader.Spec{Source: path, BatchSize: 1}, loader.Options{},
			survey.WeightOptions{Classes: []float64{c.class}}, nil, nil)
		if (err == nil) != c.known || !c.known && fault.KindOf(err) != 0 {
			t.Errorf("%+v: %v", c, err)
		} else if c.known && binary.LittleEndian.Uint32(b.Bytes()[b.Len()-4:]) != 256 {
			t.Errorf("%+v: %d pixels", c, b.Bytes()[b.Len()-4:])
		}
	}
}

// TestWeightsOfColours: colours count as the numbers that a table gives them.
func TestWeightsOfColours(t *testing.T) {
	rnd := rand.New(rand.NewPCG(22, 23))
	samples, counts := make([]byte, 3*256), [3]uint32{}
	for i := range 256 {
		number := 1 + rnd.IntN(2)
		samples[256*2*(number-1)+i] = 255 // red is 1, and blue is 2
		counts[number]++
	}
	dir := t.TempDir()
	for name, dtype := range map[string]chunk.DType{"a.tif": chunk.Uint8, "b.tif": chunk.Uint16} {
		writeRaster(t, filepath.Join(dir, name), tog.Options{Shape: [3]int{3, 16, 16}, DType: dtype}, samples)
	}
	s := loader.Spec{Source: dir, BatchSize: 1, Fields: []loader.Field{{Name: "image",
		LUT: &spec.LUT{Colours: [][]int{{255, 0, 0}, {0, 0, 255}}, To: []spec.Values{{1}, {300}}}}}}
	s.Fields[0].DType = "int64"
	for class, want := range map[float64]uint32{0: 256, 1: counts[1], 300: counts[2]} {
		var classes []float64
		if class > 0 {
			classes = []float64{class}
		}
		var b bytes.Buffer
		err := survey.Weights(t.Context(), &b, s, loader.Options{}, survey.WeightOptions{Classes: classes}, nil, nil)
		if err != nil {
			t.Error(class, err)
			continue
		}
		for cell := range slices.Chunk(b.Bytes()[b.Len()-8:], 4) { // of both files
			if got := binary.LittleEndian.Uint32(cell); got != want {
				t.Errorf("class %v: %d pixels, want %d", class, got, want)
			}
		}
	}
}

// TestWeightsOfMasks: masks of one class a file count as the number of the last one that has a pixel.
func TestWeightsOfMasks(t *testing.T) {
	rnd := rand.New(rand.NewPCG(24, 25))
	a, b, counts, dir := make([]byte, 256), make([]byte, 256), [3]uint32{}, t.TempDir()
	for i := range a {
		a[i], b[i] = byte(rnd.IntN(2)*255), byte(rnd.IntN(2))
		counts[max(min(a[i], 1), 2*b[i])]++
	}
	for name, samples := range map[string][]byte{"0_a.tif": a, "0_b.tif": b} {
		writeRaster(t, filepath.Join(dir, name), tog.Options{Shape: [3]int{1, 16, 16}, DType: chunk.Uint8}, samples)
	}
	s := loader.Spec{Source: dir, BatchSize: 1, Fields: []loader.Field{{Name: "image", DType: "int64",
		Patterns: []string{"{id}_a.tif", "{id}_b.tif"}, LUT: &spec.LUT{Masks: true}}}}
	for class, want := range counts {
		var out bytes.Buffer
		err := survey.Weights(t.Context(), &out, s, loader.Options{}, survey.WeightOptions{
			Classes: []float64{float64(class)}}, nil, nil)
		if err != nil {
			t.Fatal(class, err)
		}
		if got := binary.LittleEndian.Uint32(out.Bytes()[out.Len()-4:]); got != want {
			t.Errorf("class %v: %d pixels, want %d", class, got, want)
		}
	}
}
