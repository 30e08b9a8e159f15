package survey_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/npy"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/tog"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// meansOf measures files, and returns the means of the bands of the only field.
func meansOf(t *testing.T, source string, field spec.Field) []float64 {
	t.Helper()
	field.Name = "image"
	s := loader.Spec{Source: source, Fields: []loader.Field{field}}
	report, err := survey.Stats(t.Context(), s, loader.Options{Workers: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var means []float64
	for _, band := range report.Fields["image"].Bands {
		means = append(means, *band.Mean)
	}
	return means
}

// TestNoDataOfFiles: a value is nodata in the file that says it, as stored, and in the bands that it is said of.
func TestNoDataOfFiles(t *testing.T) {
	dir := t.TempDir()
	half := func(first, second byte) []byte {
		return slices.Concat(bytes.Repeat([]byte{first}, 128), bytes.Repeat([]byte{second}, 128))
	}
	path := filepath.Join(dir, "scaled", "a.tif")
	const scale = `<GDALMetadata><Item name="SCALE" sample="0" role="scale">0.5</Item></GDALMetadata>`
	writeRaster(t, path, tog.Options{Shape: [3]int{1, 16, 16}, DType: chunk.Uint8, NoData: "10", GDALMetadata: scale},
		append(half(10, 20)[:192], half(30, 30)[:64]...))
	if got := meansOf(t, path, spec.Field{DType: "float32", Physical: new(true)}); !slices.Equal(got, []float64{12.5}) {
		t.Errorf("the mean of 10 and 15, which 10 is nodata of before it is scaled: %v", got)
	}
	wide := filepath.Join(dir, "wide", "a.tif")
	writeRaster(t, wide, tog.Options{Shape: [3]int{1, 16, 16}, DType: chunk.Uint16}, half(2, 4))
	if got := meansOf(t, wide, spec.Field{}); !slices.Equal(got, []float64{3}) {
		t.Errorf("the mean of 2 and 4 is %v", got)
	}
	// The first file has 0 as nodata, and the second one says so of its first band, and 7 of its alpha.
	pair := filepath.Join(dir, "pair")
	writeRaster(t, filepath.Join(pair, "a.tif"), tog.Options{Shape: [3]int{2, 16, 16}, DType: chunk.Uint8, NoData: "0"},
		append(half(0, 4), half(0, 5)...))
	writeRaster(t, filepath.Join(pair, "b.tif"), tog.Options{Shape: [3]int{2, 16, 16}, DType: chunk.Uint8,
		ExtraSamples: []uint16{2}}, append(half(0, 8), half(0, 7)...))
	said := `<PAMDataset><PAMRasterBand band="1"><NoDataValue>0</NoDataValue></PAMRasterBand>` +
		`<PAMRasterBand band="2"><NoDataValue>7</NoDataValue></PAMRasterBand></PAMDataset>`
	testfile.Write(t, filepath.Join(pair, "b.tif.aux.xml"), []byte(said))
	for name, want := range map[string][]float64{"a.tif": {4, 5}, "b.tif": {8, 0}, "": {6, 2.5}} {
		if got := meansOf(t, filepath.Join(pair, name), spec.Field{Bands: []int{0, 1}}); !slices.Equal(got, want) {
			t.Errorf("%q: means are %v, want %v", name, got, want)
		}
	}
}

// TestNamelessArrays: an array is measured, although its bands have no names.
func TestNamelessArrays(t *testing.T) {
	source := filepath.Join(t.TempDir(), "a.zarr")
	folder.Write(t, filepath.Join(source, ".zarray"), `{"zarr_format":2,"shape":[1,1,2,2],"chunks":[1,1,2,2],`+
		`"dtype":"|u1","compressor":null,"fill_value":0,"order":"C","filters":null}`)
	folder.Write(t, filepath.Join(source, ".zattrs"), `{"_ARRAY_DIMENSIONS":["n","b","y","x"]}`)
	folder.Write(t, filepath.Join(source, "0.0.0.0"), "\x01\x02\x03\x06")
	if got := meansOf(t, source, spec.Field{}); !slices.Equal(got, []float64{3}) {
		t.Errorf("the mean of 1, 2, 3 and 6 is %v", got)
	}
}

// TestStepsOfFiles: a file has the steps that it has; of one without time that is step 0.
func TestStepsOfFiles(t *testing.T) {
	dir := t.TempDir()
	for name, values := range map[string][]byte{"a.npy": {40, 50}, "b.npy": {30}} {
		shape := []int{2, 1, 3, 5}
		if len(values) == 1 {
			shape = shape[1:]
		}
		file, err := npy.Header(chunk.Uint8, shape)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range values {
			file = append(file, bytes.Repeat([]byte{v}, 15)...)
		}
		testfile.Write(t, filepath.Join(dir, name), file)
	}
	for want, times := range map[float64][]int{(40 + 50 + 30) / 3.: nil, (40 + 30) / 2.: {0}, 50: {1}} {
		if got := meansOf(t, dir, spec.Field{Times: times}); !slices.Equal(got, []float64{want}) {
			t.Errorf("steps %d have a mean of %v, want %v", times, got, want)
		}
	}
	source := filepath.Join(corpus.Testdata(t), "taco3", "scenes.zip")
	for _, times := range [][]int{nil, {1, 0}} { // files seq/t0.tif to t2.tif, of which samples lack some
		sum, n := 0., 0
		for i := range 4 {
			for _, k := range [][]int{{0, 1, 2}, times}[min(1, len(times))] {
				name := fmt.Sprintf("%s::sitio %d/seq/t%d.tif", source, i, k)
				a, err := raster.Read(t.Context(), []string{name}, raster.ReadOptions{})
				if fault.KindOf(err) == fault.NotFound {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				for v := range slices.Chunk(a.Data[:len(a.Data)/2], 2) { // of the first band
					sum, n = sum+float64(binary.LittleEndian.Uint16(v)), n+1
				}
			}
		}
		want := sum / float64(n)
		got := meansOf(t, source, spec.Field{Column: "seq/t", Times: times})[0]
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("steps %d have a mean of %v, want %v", times, got, want)
		}
	}
	s := loader.Spec{Source: source,
		Fields: []loader.Field{{Name: "a", Column: "seq/t"}, {Name: "b", Column: "image.tif"}}}
	_, paired := survey.Pairs(t.Context(), s, loader.Options{}, survey.PairOptions{})
	counted := survey.Weights(t.Context(), io.Discard, s, loader.Options{}, survey.WeightOptions{Field: "b"}, nil, nil)
	for what, err := range map[string]error{"pairs": paired, "weights": counted} {
		if says := what + " take one raster of a sample"; fault.KindOf(err) != fault.Unsupported ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%s of files that are steps: %v", what, err)
		}
	}
}

// TestBadSamples: a part names the first bad samples, and counts all of them.
func TestBadSamples(t *testing.T) {
	dir := t.TempDir()
	folder.Write(t, filepath.Join(dir, "a.tif"), string(folder.TIFF(16, 16, 0)))
	for i := range 9 {
		testfile.Write(t, filepath.Join(dir, fmt.Sprint("b", i, ".tif")), []byte("II*\x00broken"))
	}
	writeRaster(t, filepath.Join(dir, "c.tif"), tog.Options{Shape: [3]int{1, 16, 16}, DType: chunk.Complex64},
		make([]byte, 256*8)) // which nothing can measure
	s := loader.Spec{Source: dir, BadSamples: spec.BadFill}
	p, err := survey.StatsPart(t.Context(), s, loader.Options{Workers: 1}, nil, nil)
	if err != nil || p.Samples != 1 || p.Skipped != 10 || len(p.Bad) != 8 || p.Bad[1] == nil || p.Bad[8] == nil {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestRefusedSpecs: a wrong spec is refused by every survey, with what is wrong.
func TestRefusedSpecs(t *testing.T) {
	dir := t.TempDir()
	path, table := filepath.Join(dir, "a.tif"), filepath.Join(dir, "t.csv")
	testfile.Write(t, path, folder.TIFF(16, 16, 0))
	testfile.Write(t, table, []byte("image,mask\na.tif,a.tif\n"))
	pairs := filepath.Join(dir, "pairs.parquet")
	fields := []catalog.Source{{Field: "image", Column: "image"}, {Field: "mask", Column: "mask"}}
	folder.Index(t, pairs, build.Options{Base: dir, Fields: fields}, table)
	for says, s := range map[string]loader.Spec{
		"spec: a mixture has several": {Mixture: spec.Mixture{Sources: []spec.Source{{Source: path}}}},
		"bad_samples is \"none\"":     {Source: path, BadSamples: "none"},
		`no column "none"`: {Source: table, Subset: spec.Subset{Where: []spec.Condition{{Column: "none", Op: "==",
			Value: json.RawMessage("1")}}},
			Fields: []loader.Field{{Name: "image", Column: "image"}, {Name: "mask", Column: "mask"}}},
		"spec: fill is 0": {Source: pairs, AllFields: true,
			Fields: []loader.Field{{Name: "image", DType: "uint8", Fill: new(spec.Float)}}},
	} {
		_, measured := survey.Stats(t.Context(), s, loader.Options{}, nil)
		_, paired := survey.Pairs(t.Context(), s, loader.Options{}, survey.PairOptions{})
		_, extent := extentOf(t.Context(), s, loader.Options{}, nil)
		for i, err := range []error{measured, paired, extent} {
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("survey %d: %v, want %q", i, err, says)
			}
		}
	}
	_, err := survey.Stats(t.Context(), loader.Spec{Source: path}, loader.Options{Workers: -1}, nil)
	if err == nil || !strings.Contains(err.Error(), "Workers is -1") {
		t.Error(err)
	}
	// Without fields all rasters of a catalog are compared.
	r, err := survey.Pairs(t.Context(), loader.Spec{Source: pairs}, loader.Options{}, survey.PairOptions{})
	if err != nil || r.Pairs != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestManyFaults: 1,000 faults are listed.
func TestManyFaults(t *testing.T) {
	dir := t.TempDir()
	folder.Write(t, filepath.Join(dir, "a.tif"), string(folder.TIFF(16, 16, 0)))
	testfile.Write(t, filepath.Join(dir, "b.tif"), []byte("II*\x00broken"))
	source := filepath.Join(dir, "t.csv")
	const rows = 1002
	testfile.Write(t, source, []byte("image,mask\na.tif,a.tif\n"+strings.Repeat("a.tif,b.tif\n", rows-1)))
	s := loader.Spec{Source: source,
		Fields: []loader.Field{{Name: "image", Column: "image"}, {Name: "mask", Column: "mask"}}}
	r, err := survey.Pairs(t.Context(), s, loader.Options{}, survey.PairOptions{})
	if err != nil || r.Pairs != rows || r.Unreadable != rows-1 || len(r.Faults) != 1000 || r.Faults[999].Row != 1000 {
		t.Errorf("%+v, %v", r, err)
	}
}

// validIn returns how many pixels of n the tensor of the only sample has that are valid in one of its bands.
func validIn(t *testing.T, s loader.Spec, n int) (count int) {
	t.Helper()
	e, err := loader.Open(t.Context(), s, loader.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	b, err := e.Start(t.Context(), steps.StepTicket(0, 0, 1, 0, 1), false).Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Release()
	seen := map[int]bool{}
	for i, valid := range b.Tensors[1].Data {
		if valid != 0 {
			seen[i%n] = true
		}
	}
	return len(seen)
}

// TestWeightsOfStacks: without classes a pixel of a stack counts where the tensor is valid, in one band at least.
func TestWeightsOfStacks(t *testing.T) {
	dir := t.TempDir()
	rnd := rand.New(rand.NewPCG(32, 33))
	for name, size := range map[string]int{"a": 32, "b": 16} {
		samples := make([]byte, size*size)
		for i := range samples {
			samples[i] = byte(rnd.IntN(2))
		}
		metres := 320 / float64(size)
		geo := tiff.Geo{EPSG: 32630, Transform: [6]float64{5e5, metres, 0, 4.6e6, 0, -metres}, HasTransform: true}
		o := tog.Options{Shape: [3]int{1, size, size}, DType: chunk.Uint8, Geo: geo, NoData: "0"}
		writeRaster(t, filepath.Join(dir, name+".tif"), o, samples)
	}
	source := filepath.Join(dir, "t.csv")
	testfile.Write(t, source, []byte("a,b\na.tif,b.tif\n"))
	counts := map[int]bool{}
	fields := []spec.Field{{DType: "uint8"}, {DType: "float32"}, {DType: "native"},
		{DType: "float32", Resample: "nearest"}, {DType: "uint8", Resample: "bilinear"},
		{DType: "float32", Resample: "antialias"},
		{DType: "float32", LUT: &spec.LUT{To: []spec.Values{{5}, {7}}}, Fill: new(spec.Float)}}
	for n, columns := range map[int][]string{32: {"a", "b"}, 16: {"b", "a"}} { // the first one has the grid
		for i := range 2 * len(fields) {
			f := fields[i/2]
			f.Name, f.Columns, f.Bands, f.Validity = "image", columns, [][]int{nil, {1}}[i%2], "seen"
			s := loader.Spec{Source: source, BatchSize: 1, Fields: []loader.Field{f}}
			want := validIn(t, s, n*n)
			counts[want] = true
			var file bytes.Buffer
			err := survey.Weights(t.Context(), &file, s, loader.Options{}, survey.WeightOptions{}, nil, nil)
			if err != nil {
				t.Fatal(f, err)
			}
			if got := binary.LittleEndian.Uint32(file.Bytes()[file.Len()-4:]); int(got) != want {
				t.Errorf("%+v: %d pixels count, want %d", f, got, want)
			}
		}
	}
	if len(counts) < 5 {
		t.Errorf("only %v pixels are valid, however they are resampled", counts)
	}
}

// TestRefusedRows: of a second sample that is unlike the first one, or broken, the error says which file and why.
func TestRefusedRows(t *testing.T) {
	geo := func(metres, shift float64) tiff.Geo {
		transform := [6]float64{5e5 + shift, metres, 0, 4.6e6, 0, -metres}
		return tiff.Geo{EPSG: 32630, Transform: transform, HasTransform: true}
	}
	lut := &spec.LUT{Colours: [][]int{{0, 0, 0}}, To: []spec.Values{{1}}}
	own := spec.Field{Name: "other", Vector: &spec.Vector{Pattern: "other/{id}.geojson"}}
	mask := spec.Field{Name: "other", Pattern: "other/{id}.tif"}
	shapes := `{"type":"FeatureCollection","crs":{"type":"name","properties":{"name":"EPSG:32630"}},"features":[]}`
	for name, c := range map[string]struct {
		field  spec.Field
		broken string      // the content of the second file
		second tog.Options // or how it is written
		says   string
	}{
		"broken": {mask, "II*\x00broken", tog.Options{}, "other/2.tif: ifd 0: offset"},
		"flat": {mask, "", tog.Options{Shape: [3]int{3, 8, 16}, DType: chunk.Uint8},
			"other/2.tif: asset: 8 by 16 pixels do not share a grid with the first field's: unsupported"},
		"broken shapes": {own, "{", tog.Options{}, "other/2.geojson: field other JSON"},
		"no shapes": {spec.Field{Name: "other", Vector: &spec.Vector{Path: "none.geojson"}}, "II", tog.Options{},
			"none.geojson: field other file: not found"},
		"no colours": {spec.Field{Name: "other", Pattern: "other/{id}.tif", LUT: lut}, "",
			tog.Options{Shape: [3]int{3, 16, 16}, DType: chunk.Complex64, Geo: geo(20, 0)},
			"other/2.tif: asset: its dtype is complex64"},
		"colours of no numbers": {spec.Field{Name: "other", Pattern: "other/{id}.tif", LUT: lut, DType: "int64"}, "",
			tog.Options{Shape: [3]int{3, 16, 16}, DType: chunk.Complex64, Geo: geo(20, 0)}, "other/2.tif"},
		"elsewhere": {spec.Field{Name: "other", Patterns: []string{"image/{id}.tif", "other/{id}.tif"}}, "",
			tog.Options{Shape: [3]int{3, 16, 16}, DType: chunk.Uint8, Geo: geo(20, 1e6)},
			"they have no pixel in common: misplaced"},
	} {
		dir := t.TempDir()
		for id := range 2 {
			path := filepath.Join(dir, "image", fmt.Sprint(id+1, ".tif"))
			writeRaster(t, path, tog.Options{Shape: [3]int{1, 32, 32}, DType: chunk.Uint8, Geo: geo(10, 0)},
				make([]byte, 1024))
			folder.Write(t, filepath.Join(dir, "other", fmt.Sprint(id+1, ".geojson")), shapes)
		}
		writeRaster(t, filepath.Join(dir, "other", "1.tif"),
			tog.Options{Shape: [3]int{3, 16, 16}, DType: chunk.Uint8, Geo: geo(20, 0)}, make([]byte, 768))
		if c.broken != "" {
			second := "2.tif"
			if c.field.Vector != nil {
				second = "2.geojson"
			}
			testfile.Write(t, filepath.Join(dir, "other", second), []byte(c.broken))
		}
		if shape := c.second.Shape; c.broken == "" {
			writeRaster(t, filepath.Join(dir, "other", "2.tif"), c.second,
				make([]byte, shape[0]*shape[1]*shape[2]*c.second.DType.Size()))
		}
		s := loader.Spec{Source: dir, Fields: []loader.Field{{Name: "image", Pattern: "image/{id}.tif"}, c.field}}
		count := survey.WeightOptions{Field: "other"}
		err := survey.Weights(t.Context(), io.Discard, s, loader.Options{}, count, nil, nil)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}
