package survey_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/stats"
	"github.com/chaski-eo/chaski/tiff/tog"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// drawnFile is a raster of random samples from 0 to 4, and perhaps NaN.
type drawnFile struct {
	bands, height, width int
	dtype                chunk.DType
	names                []string
	nodata               string
	mask                 []byte // 0 where it is missing; nil: no mask
	samples              []float64
	damage               string // "head": it cannot be opened, "pixels": its last tile cannot be decoded
}

func (f *drawnFile) write(t *testing.T, path string) {
	var raw []byte
	for _, v := range f.samples {
		switch f.dtype {
		case chunk.Uint8:
			raw = append(raw, byte(v))
		case chunk.Int16:
			raw = binary.LittleEndian.AppendUint16(raw, uint16(int16(v)))
		default:
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(v)))
		}
	}
	var b bytes.Buffer
	err := tog.Write(&b, raw, tog.Options{Shape: [3]int{f.bands, f.height, f.width}, DType: f.dtype, Tile: 16, Level: 1,
		NoData: f.nodata, BandNames: f.names, Mask: f.mask})
	if err != nil {
		t.Fatal(err)
	}
	switch data := b.Bytes(); f.damage {
	case "head":
		testfile.Write(t, path, []byte("II*\x00broken"))
	case "pixels":
		magic := []byte("\x28\xb5\x2f\xfd") // of a frame of zstd: a tile
		from := 0
		if f.height > 16 || f.width > 16 { // the first of several tiles can be read
			from = bytes.Index(data, magic) + len(magic)
		}
		testfile.Write(t, path, append(data[:from:from], bytes.ReplaceAll(data[from:], magic, make([]byte, 4))...))
	default:
		testfile.Write(t, path, data)
	}
}

// missing reports whether a pixel of a band is nodata; said, if not nil, are the values that are missing instead of the
// file's.
func (f *drawnFile) missing(band, pixel int, said []spec.Float) bool {
	v := f.samples[band*f.height*f.width+pixel]
	if f.mask != nil && f.mask[pixel] == 0 {
		return true
	}
	if said != nil {
		return slices.Contains(said, spec.Float(v))
	}
	return f.mask == nil && f.nodata != "" && fmt.Sprint(v) == f.nodata
}

// drawFiles draws one to four files that mostly agree in bands and their names.
func drawFiles(rnd *rand.Rand) (files []drawnFile) {
	chance := func(percent int) bool { return rnd.IntN(100) < percent }
	bands := 1 + rnd.IntN(3)
	for range 1 + rnd.IntN(4) {
		f := drawnFile{bands: bands, height: 1 + rnd.IntN(40), width: 1 + rnd.IntN(40), dtype: chunk.Uint8}
		if chance(8) {
			f.bands = 1 + rnd.IntN(3)
		}
		if chance(40) {
			f.dtype = []chunk.DType{chunk.Int16, chunk.Float32}[rnd.IntN(2)]
		}
		if f.names = []string{"a", "b", "c"}[:f.bands]; chance(25) {
			f.names = slices.Clone(f.names)
			rnd.Shuffle(f.bands, func(i, j int) { f.names[i], f.names[j] = f.names[j], f.names[i] })
		}
		if chance(10) {
			f.names = nil
		}
		switch rnd.IntN(4) {
		case 0:
			f.nodata = fmt.Sprint(rnd.IntN(5))
		case 1:
			f.mask = make([]byte, f.height*f.width)
			for i := range f.mask {
				f.mask[i] = byte(rnd.IntN(2))
			}
		}
		for range f.bands * f.height * f.width {
			v := float64(rnd.IntN(5))
			if f.dtype == chunk.Float32 && chance(5) {
				v = math.NaN()
			}
			f.samples = append(f.samples, v)
		}
		if chance(10) {
			f.damage = []string{"head", "pixels"}[rnd.IntN(2)]
		}
		files = append(files, f)
	}
	return files
}

// picks returns the bands that a field picks in a file, or false if the file, beside the first one that can be opened,
// is not one of the field's: by the words of Field.Bands, BandNames and ByPosition.
func picks(field *spec.Field, f, first *drawnFile) (bands []int, ok bool) {
	switch {
	case f.damage == "head":
		return nil, false
	case field.BandNames != nil:
		for _, name := range field.BandNames {
			bands = append(bands, slices.Index(f.names, name))
		}
		return bands, !slices.Contains(bands, -1)
	case field.Bands != nil:
		return field.Bands, slices.Max(field.Bands) < f.bands
	}
	for b := range f.bands {
		bands = append(bands, b)
		if !field.ByPosition && b < min(len(f.names), len(first.names)) && f.names[b] != first.names[b] {
			return nil, false
		}
	}
	return bands, f.bands == first.bands
}

// TestRandomSurveys: statistics and weights of random files by random fields are what a slow pass over the pixels
// finds, in one pass and in parts, in few steps and in many. They are refused where a file has not what the field
// picks, or left out if the spec says so.
func TestRandomSurveys(t *testing.T) {
	rnd := rand.New(rand.NewPCG(20, 21))
	refused := 0
	cases := 80
	if testing.Short() {
		cases = 20
	}
	for n := range cases {
		files, dir := drawFiles(rnd), t.TempDir()
		for i := range files {
			files[i].write(t, filepath.Join(dir, fmt.Sprint(i, ".tif")))
		}
		field := spec.Field{Name: "image"}
		lists := 1
		switch rnd.IntN(4) {
		case 0:
			field.ByPosition = rnd.IntN(2) == 0
		case 1:
			field.Bands = rnd.Perm(3)[:1+rnd.IntN(2)]
			lists = len(field.Bands)
		case 2:
			for _, k := range rnd.Perm(3)[:1+rnd.IntN(2)] {
				field.BandNames = append(field.BandNames, string(rune('a'+k)))
			}
			lists = len(field.BandNames)
		}
		if rnd.IntN(3) == 0 {
			for range lists {
				field.NoData = append(field.NoData, []spec.Float{spec.Float(rnd.IntN(5)), spec.Float(rnd.IntN(5))})
			}
		}
		s := loader.Spec{Source: dir, BatchSize: 1, Fields: []loader.Field{field}}
		s.BadSamples = []string{"error", "skip", "replace", "fill"}[rnd.IntN(4)]
		o := loader.Options{MaxChunkBytes: []int{0, 1 << 11}[rnd.IntN(2)], Workers: 1 + rnd.IntN(3)}
		count := survey.WeightOptions{Classes: [][]float64{nil, nil, {3}, {1, 4}, {2, 2}, {0, 9}}[rnd.IntN(6)],
			Cell: []int{0, 1, 7, 16, 100}[rnd.IntN(5)]}
		if drawn := (&drawnSurvey{t, s, o, files, count, fmt.Sprint("case ", n)}); !drawn.check() {
			refused++
		}
	}
	if refused < cases/8 || refused > cases*3/4 {
		t.Errorf("%d of %d are refused", refused, cases)
	}
}

// drawnSurvey is one case of TestRandomSurveys.
type drawnSurvey struct {
	t       *testing.T
	spec    loader.Spec
	options loader.Options
	files   []drawnFile
	count   survey.WeightOptions
	name    string
}

// said returns the values that the field says are missing of the k-th band that it picks, or nil.
func (d *drawnSurvey) said(k int) []spec.Float {
	lists := d.spec.Fields[0].NoData
	if lists == nil {
		return nil
	}
	return lists[min(k, len(lists)-1)]
}

// expect returns which files count, the bands that the field picks in each of them, and the first that can be opened.
// fails is true if the survey is refused: where what the field picks is not in the first file, and where a file is bad
// and the spec allows none.
func (d *drawnSurvey) expect(field spec.Field) (good []int, picked [][]int, first int, fails bool) {
	bad := d.spec.BadSamples != "error"
	picked = make([][]int, len(d.files))
	if first = slices.IndexFunc(d.files, func(f drawnFile) bool { return f.damage != "head" }); first < 0 {
		return nil, nil, first, true
	}
	for i := range d.files {
		var ok bool
		picked[i], ok = picks(&field, &d.files[i], &d.files[first])
		fails = fails || !ok && (i == first || !bad) || d.files[i].damage != "" && !bad
		if ok && d.files[i].damage == "" {
			good = append(good, i)
		}
	}
	return good, picked, first, fails
}

// firstBad returns the first file that does not count.
func (d *drawnSurvey) firstBad(good []int) int {
	for i := range d.files {
		if !slices.Contains(good, i) {
			return i
		}
	}
	return -1
}

// check compares the statistics and weights, and reports whether there are statistics.
func (d *drawnSurvey) check() bool {
	field := d.spec.Fields[0]
	good, picked, first, fails := d.expect(field)
	var log, b bytes.Buffer
	d.options.Logger = slog.New(slog.NewTextHandler(&log, nil))
	report, err := survey.Stats(d.t.Context(), d.spec, d.options, nil)
	if bad := d.firstBad(good); (err != nil) != fails || fails && bad > 0 &&
		!strings.HasPrefix(fmt.Sprint(err), fmt.Sprintf("sample %d: ", bad)) {
		d.t.Errorf("%s: %+v: %v, refused is %v, by sample %d", d.name, field, err, fails, bad)
	} else if !fails {
		d.options.Workers = 1
		logged := bytes.Count(log.Bytes(), []byte("msg=skipped"))
		if merged, err := inParts(d.t, d.spec, d.options); err != nil || !reflect.DeepEqual(merged, report) {
			d.t.Errorf("%s in parts: %+v, want %+v: %v", d.name, merged, report, err)
		}
		skipped := len(d.files) - len(good)
		if report.Samples != int64(len(good)) || report.Skipped != int64(skipped) || logged != skipped {
			d.t.Errorf("%s: %d samples, %d skipped, %d logged; want %d of %d", d.name, report.Samples, report.Skipped,
				logged, len(good), len(d.files))
		}
		for k := range picked[first] {
			d.checkBand(k, good, picked, report.Fields["image"].Bands[k])
		}
	}
	refused := fails
	field.ByPosition = true // pixels count whatever their bands are called
	good, picked, _, fails = d.expect(field)
	err = survey.Weights(d.t.Context(), &b, d.spec, d.options, d.count, nil, nil)
	merged, mergedErr := d.mergedWeights()
	if !bytes.Equal(merged, b.Bytes()) || fault.KindOf(mergedErr) != fault.KindOf(err) {
		d.t.Errorf("%s: weights in parts: %v, want %v", d.name, mergedErr, err)
	}
	if !fails {
		d.checkCells(good, picked, b.Bytes(), err)
		if n := bytes.Count(log.Bytes(), []byte(`msg="no weights"`)); n != len(d.files)-len(good) {
			d.t.Errorf("%s: %d files without weights are logged, of %d without", d.name, n, len(d.files)-len(good))
		}
	} else if err == nil {
		d.t.Errorf("%s: %+v: weights are not refused", d.name, field)
	}
	return !refused
}

// mergedWeights counts each sample by itself, and merges what was counted.
func (d *drawnSurvey) mergedWeights() ([]byte, error) {
	o := d.options
	o.Logger = slog.New(slog.DiscardHandler)
	extent, err := extentOf(d.t.Context(), d.spec, o, &d.count)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = survey.MergeWeights(&out, func(yield func(survey.WeightsPart, error) bool) {
		for i := range extent.Rows {
			var b bytes.Buffer
			share := &survey.Share{Of: extent, First: i, Count: 1}
			err := survey.Weights(d.t.Context(), &b, d.spec, o, d.count, share, nil)
			file := io.NewSectionReader(bytes.NewReader(b.Bytes()), 0, int64(b.Len()))
			if !yield(survey.WeightsPart{Rows: 1, File: file}, err) {
				return
			}
		}
	})
	return out.Bytes(), err
}

// checkBand compares the statistics of the k-th band that the field picks.
func (d *drawnSurvey) checkBand(k int, good []int, picked [][]int, got stats.Band) {
	var sum, squares, low, high float64
	var count, missing, nan uint64
	low, high = math.Inf(1), math.Inf(-1)
	for _, i := range good {
		f := &d.files[i]
		band := picked[i][k]
		for pixel, v := range f.samples[band*f.height*f.width:][:f.height*f.width] {
			switch {
			case f.missing(band, pixel, d.said(k)):
				missing++
			case math.IsNaN(v):
				nan++
			default:
				sum, squares, count, low, high = sum+v, squares+v*v, count+1, min(low, v), max(high, v)
			}
		}
	}
	same := func(n *json.Number, want float64) bool { return n == nil && count == 0 || number(*n) == want }
	mean := sum / float64(count)
	if got.Count != count || got.NoData != missing || got.NaN != nan || !same(got.Min, low) || !same(got.Max, high) ||
		count > 0 && (math.Abs(*got.Mean-mean) > 1e-12 ||
			math.Abs(*got.Std**got.Std-(squares/float64(count)-mean*mean)) > 1e-12) {
		d.t.Errorf("%s: %+v: band %d: %+v, want %d with the sum %v, %v to %v, %d missing, %d NaN", d.name,
			d.spec.Fields[0], k, got, count, sum, low, high, missing, nan)
	}
}

// checkCells compares the weights. NaN counts as Field.NoData says.
func (d *drawnSurvey) checkCells(good []int, picked [][]int, got []byte, err error) {
	cell := cmp.Or(d.count.Cell, 64)
	var sizes, cells []byte
	seen := map[float64]bool{}
	for i := range d.files {
		f := &d.files[i]
		if !slices.Contains(good, i) {
			sizes = append(sizes, make([]byte, 8)...)
			continue
		}
		sizes = binary.LittleEndian.AppendUint32(sizes, uint32(f.height))
		sizes = binary.LittleEndian.AppendUint32(sizes, uint32(f.width))
		across := (f.width + cell - 1) / cell
		counts := make([]uint32, across*((f.height+cell-1)/cell))
		for pixel := range f.height * f.width {
			counted := false
			for k, band := range picked[i] {
				v := f.samples[band*f.height*f.width+pixel]
				there := !f.missing(band, pixel, d.said(k)) && (!math.IsNaN(v) || d.said(k) != nil || f.mask != nil)
				if d.count.Classes == nil {
					counted = counted || there
				} else if k == 0 && there && slices.Contains(d.count.Classes, v) {
					counted, seen[v] = true, true
				}
			}
			if counted {
				counts[pixel/f.width/cell*across+pixel%f.width/cell]++
			}
		}
		for _, n := range counts {
			cells = binary.LittleEndian.AppendUint32(cells, n)
		}
	}
	if slices.ContainsFunc(d.count.Classes, func(class float64) bool { return !seen[class] }) {
		if err == nil {
			d.t.Errorf("%s: of classes %v there are %v", d.name, d.count.Classes, seen)
		}
		return
	}
	if err != nil {
		d.t.Errorf("%s: %+v: weights: %v", d.name, d.spec.Fields[0], err)
		return
	}
	if w, err := rows.ParseWeights(got); err != nil || w.CellHeight != cell || w.CellWidth != cell {
		d.t.Errorf("%s: cells of %d: %+v, %v", d.name, cell, w, err)
	}
	head := 12 + binary.LittleEndian.Uint32(got[8:])
	if want := append(sizes, cells...); !bytes.Equal(got[head:], want) {
		d.t.Errorf("%s: %+v: classes %v: %v, want %v", d.name, d.spec.Fields[0], d.count.Classes, got[head:], want)
	}
}
