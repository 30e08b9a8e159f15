package survey_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/tog"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestSurveysOfGaps: of five images, of which two have masks, a pair is an image with its mask, one of them shifted;
// samples without a mask have a weight of 0, and statistics are of the masks that there are, among the rows that a
// condition selects.
func TestSurveysOfGaps(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, shift float64, value byte) {
		geo := tiff.Geo{EPSG: 32630, Transform: [6]float64{5e5 + shift, 10, 0, 4.6e6, 0, -10}, HasTransform: true}
		writeRaster(t, filepath.Join(dir, name), tog.Options{Shape: [3]int{1, 16, 16}, DType: chunk.Uint8, Geo: geo},
			bytes.Repeat([]byte{value}, 256))
	}
	for row := range 5 {
		write(fmt.Sprintf("image/%d.tif", row), 0, byte(row))
	}
	write("mask/1.tif", 0, 6)
	write("mask/3.tif", 640, 8)
	s := loader.Spec{Source: dir, BatchSize: 1, Fields: []loader.Field{{Name: "image", Pattern: "image/{id}.tif"},
		{Name: "mask", Pattern: "mask/{id}.tif", Missing: "fill"}}}
	var b bytes.Buffer
	err := survey.Weights(t.Context(), &b, s, loader.Options{}, survey.WeightOptions{Field: "mask"}, nil, nil)
	if fault.KindOf(err) != fault.Misplaced {
		t.Errorf("weights of a shifted mask: %v", err)
	}
	s.Fields[1].Ground = spec.IgnoreGround
	b.Reset()
	if err := survey.Weights(t.Context(), &b, s, loader.Options{}, survey.WeightOptions{Field: "mask"}, nil,
		nil); err != nil {
		t.Fatal(err)
	}
	s.Fields[1].Ground = ""
	for row := range 5 {
		cell := binary.LittleEndian.Uint32(b.Bytes()[b.Len()-4*(5-row):])
		if want := map[int]uint32{1: 256, 3: 256}[row]; cell != want {
			t.Errorf("row %d has a weight of %d, want %d", row, cell, want)
		}
	}
	for selected, c := range map[string]struct {
		images, masks float64 // their means
		pairs, wrong  int64
		rows          int64
	}{`["0","1","2","3","4"]`: {2, 7, 2, 1, 5}, `["0","3","4"]`: {7. / 3, 8, 1, 1, 3}, `["1","2"]`: {1.5, 6, 1, 0, 2}} {
		s.Where = []spec.Condition{{Column: "id", Op: "in", Value: json.RawMessage(selected)}}
		report, err := survey.Stats(t.Context(), s, loader.Options{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if image, mask := report.Fields["image"].Bands[0], report.Fields["mask"].Bands[0]; *image.Mean != c.images ||
			*mask.Mean != c.masks || report.Samples != c.rows {
			t.Errorf("%s: %d samples with means of %v and %v, want %+v", selected, report.Samples, *image.Mean,
				*mask.Mean, c)
		}
		if extent, err := extentOf(t.Context(), s, loader.Options{}, nil); err != nil || extent.Rows != c.rows {
			t.Errorf("%s: %+v: %v", selected, extent, err)
		}
		pairs, err := survey.Pairs(t.Context(), s, loader.Options{}, survey.PairOptions{})
		if err != nil || pairs.Samples != c.rows || pairs.Pairs != c.pairs || pairs.Misplaced != c.wrong ||
			pairs.Unplaced != 0 || pairs.Unreadable != 0 {
			t.Errorf("%s: pairs %+v, want %+v: %v", selected, pairs, c, err)
		}
	}
}

// TestSurveysOfScenes: of several datasets of scenes those are compared that have both fields, and a field is measured
// in its own. Weights are of one dataset.
func TestSurveysOfScenes(t *testing.T) {
	first, other := t.TempDir(), t.TempDir()
	for i, dir := range []string{first, other} {
		writeRaster(t, filepath.Join(dir, "a.tif"), tog.Options{Shape: [3]int{1, 16, 16}, DType: chunk.Uint8},
			bytes.Repeat([]byte{byte(3 + 4*i)}, 256))
	}
	s := loader.Spec{Source: first, BatchSize: 1, Fields: []loader.Field{{Name: "image"},
		{Name: "label", Scenes: []string{other}, Bands: []int{0}},
		{Name: "both", Scenes: []string{"", other}, Bands: []int{0}}}}
	s.Sampler = loader.Sampler{Kind: spec.GeoWindow,
		GeoWindows: spec.GeoWindows{SizeM: 80, Resolution: 10, PerEpoch: 1}}
	report, err := survey.Stats(t.Context(), s, loader.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"image": 3, "label": 7, "both": 5} {
		if got := *report.Fields[name].Bands[0].Mean; got != want {
			t.Errorf("%s has a mean of %v, want %v", name, got, want)
		}
	}
	pairs, err := survey.Pairs(t.Context(), s, loader.Options{}, survey.PairOptions{})
	if err != nil || pairs.Samples != 2 || pairs.Pairs != 1 || pairs.Misplaced != 0 {
		t.Errorf("pairs %+v: %v", pairs, err)
	}
	if err := survey.Weights(t.Context(), io.Discard, s, loader.Options{}, survey.WeightOptions{Field: "image"}, nil,
		nil); err == nil || !strings.Contains(err.Error(), "several datasets") {
		t.Errorf("weights: %v", err)
	}
	s.Fields = s.Fields[:2]
	if _, err := survey.Pairs(t.Context(), s, loader.Options{}, survey.PairOptions{}); err == nil {
		t.Error("fields of different datasets are compared")
	}
}

// TestRefusedSurveys: what cannot be measured or counted is refused, with what is wrong.
func TestRefusedSurveys(t *testing.T) {
	dir := t.TempDir()
	wide, named := filepath.Join(dir, "wide.tif"), filepath.Join(dir, "named.tif")
	writeRaster(t, wide, tog.Options{Shape: [3]int{1, 16, 400}, DType: chunk.Uint8}, make([]byte, 6400))
	writeRaster(t, named, tog.Options{Shape: [3]int{3, 16, 16}, DType: chunk.Uint8, BandNames: []string{"a", "b", "b"}},
		make([]byte, 768))
	writeRaster(t, filepath.Join(dir, "bands.tif"), tog.Options{Shape: [3]int{3, 16, 400}, DType: chunk.Uint8},
		make([]byte, 3*6400))
	complexes := filepath.Join(dir, "complex")
	for name, dtype := range map[string]chunk.DType{"a": chunk.Uint8, "b": chunk.Complex64} {
		writeRaster(t, filepath.Join(complexes, name+".tif"), tog.Options{Shape: [3]int{1, 16, 16}, DType: dtype},
			make([]byte, 256*dtype.Size()))
	}
	table := filepath.Join(dir, "t.csv")
	testfile.Write(t, table, []byte("a,b\nnamed.tif,named.tif\n"))
	lists := func(n int) [][]spec.Float { return [][]spec.Float{{1}, {2}, {3}}[:n] }
	for name, c := range map[string]struct {
		source  string
		field   spec.Field
		limit   int
		classes []float64
		says    string // of statistics
		weights string // of weights
	}{
		"a row that fits":      {wide, spec.Field{NoData: lists(1)}, 400, nil, "", ""},
		"too wide for memory":  {wide, spec.Field{NoData: lists(1)}, 399, nil, "a row of 400 pixels", ""},
		"no such step":         {wide, spec.Field{Times: []int{1}}, 0, nil, "times has 1", "times has 1"},
		"no such band":         {wide, spec.Field{Bands: []int{1}}, 0, nil, "it has 1 bands", "no band 1"},
		"the last band":        {named, spec.Field{Bands: []int{2}}, 0, nil, "", ""},
		"no names":             {wide, spec.Field{BandNames: []string{"a"}}, 0, nil, "no band names", "no band names"},
		"no such name":         {named, spec.Field{BandNames: []string{"c"}}, 0, nil, `no band "c"`, `no band "c"`},
		"two of the name":      {named, spec.Field{BandNames: []string{"b"}}, 0, nil, "two bands", "two bands"},
		"too few lists":        {named, spec.Field{NoData: lists(2)}, 0, nil, "2 lists for more bands", "2 lists"},
		"three bands that fit": {filepath.Join(dir, "bands.tif"), spec.Field{NoData: lists(1)}, 400, nil, "", ""},
		"complex numbers": {filepath.Join(complexes, "b.tif"), spec.Field{}, 0, nil,
			"b.tif: field image statistics: samples of type complex64 cannot be measured: unsupported", ""},
		"complex numbers later": {complexes, spec.Field{DType: "float32"}, 0, nil,
			"b.tif: statistics: samples of type complex64 cannot be measured: unsupported", ""},
		"the last of a stack": {table, spec.Field{Columns: []string{"a", "b"}, Bands: []int{5}}, 0, nil, "", ""},
		"no such band in a stack": {table, spec.Field{Columns: []string{"a", "b"}, Bands: []int{6}}, 0, nil,
			"it has 6 bands, and the field picks band 6", "6"},
		"a class of no dtype": {wide, spec.Field{}, 0, []float64{256}, "", "has no 256"},
	} {
		c.field.Name = "image"
		s := loader.Spec{Source: c.source, BatchSize: 1, Fields: []loader.Field{c.field}}
		o := loader.Options{MaxChunkBytes: c.limit}
		_, measured := survey.Stats(t.Context(), s, o, nil)
		counted := survey.Weights(t.Context(), io.Discard, s, o, survey.WeightOptions{Classes: c.classes}, nil, nil)
		for i, err := range []error{measured, counted} {
			says := []string{c.says, c.weights}[i]
			if (err != nil) != (says != "") || err != nil && !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v, want %q", name, err, says)
			}
		}
	}
	s := loader.Spec{Source: filepath.Join(dir, "none"), BatchSize: 1}
	if _, err := extentOf(t.Context(), s, loader.Options{}, nil); fault.KindOf(err) != fault.NotFound {
		t.Errorf("no dataset: %v", err)
	}
	s.Source = wide
	if err := survey.Weights(t.Context(), io.Discard, s, loader.Options{}, survey.WeightOptions{},
		&survey.Share{}, nil); fault.KindOf(err) != fault.Corrupt {
		t.Errorf("a share of another dataset: %v", err)
	}
}
