package survey_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// TestDescribedAsByGDAL: descriptions of files say what GDAL says of them, which testdata/described.py wrote.
func TestDescribedAsByGDAL(t *testing.T) {
	b, err := os.ReadFile("testdata/described.json")
	var files map[string]map[string]map[string]any
	if err == nil {
		err = json.Unmarshal(b, &files)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		info, err := survey.Describe(t.Context(), filepath.Join(corpus.Testdata(t), name), nil, loader.Options{})
		if err == nil {
			b, err = json.Marshal(info)
		}
		var got map[string]any
		if err == nil {
			err = json.Unmarshal(b, &got)
		}
		if err != nil {
			t.Error(name, err)
			continue
		}
		if counted := want["pixels"]; counted != nil {
			checkPixels(t, name, counted)
			delete(want, "pixels")
		}
		for part, members := range want {
			described, _ := got[part].(map[string]any)
			for member, value := range members {
				if !says(described[member], value) {
					t.Errorf("%s: %s: %s is %v, want %v", name, part, member, described[member], value)
				}
			}
		}
	}
}

// checkPixels compares statistics and weights of a file, in few steps and in many, with what GDAL counts.
func checkPixels(t *testing.T, name string, want map[string]any) {
	s := loader.Spec{Source: filepath.Join(corpus.Testdata(t), name), BatchSize: 1}
	// Of 280 bytes of a row, or 404 of both bands, a part is read at a time.
	few := map[string]int{"alpha/rgba.tif": 140, "overviews/masked.tif": 202}[name]
	for _, limit := range slices.Compact([]int{0, 1 << 13, few}[:2+min(1, few)]) {
		report, err := survey.Stats(t.Context(), s, loader.Options{MaxChunkBytes: limit}, nil)
		if err != nil {
			t.Error(name, limit, err)
			continue
		}
		bands, cells := want["bands"].([]any), want["cells"].([]any)
		if got := report.Fields["image"].Bands; len(got) != len(bands) {
			t.Errorf("%s: %d bands, want %d", name, len(got), len(bands))
			continue
		}
		for b, band := range report.Fields["image"].Bands {
			of := bands[b].(map[string]any)
			if float64(band.Count) != of["count"] || float64(band.NoData) != of["nodata"] ||
				math.Abs(*band.Mean-of["mean"].(float64)) > 1e-9*math.Abs(*band.Mean) ||
				number(*band.Min) != of["min"] || number(*band.Max) != of["max"] {
				t.Errorf("%s at most %d bytes: band %d: %+v, want %v", name, limit, b, band, of)
			}
		}
		var file bytes.Buffer
		err = survey.Weights(t.Context(), &file, s, loader.Options{MaxChunkBytes: limit},
			survey.WeightOptions{Cell: 16}, nil, nil)
		if err != nil {
			t.Error(name, err)
			continue
		}
		b := file.Bytes()
		for i, n := range cells {
			if got := binary.LittleEndian.Uint32(b[len(b)-4*len(cells)+4*i:]); float64(got) != n {
				t.Errorf("%s at most %d bytes: cell %d has %d pixels, want %v", name, limit, i, got, n)
			}
		}
	}
}

func number(n json.Number) float64 {
	v, err := n.Float64()
	if err != nil {
		return math.NaN()
	}
	return v
}

// says reports whether a value has what another one has, whose objects may lack members.
func says(got, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		for name, value := range want {
			ok = ok && says(object[name], value)
		}
		return ok
	case []any:
		list, ok := got.([]any)
		return ok && slices.EqualFunc(list, want, says)
	}
	return got == want
}
