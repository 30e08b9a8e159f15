package loader_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/dryrun"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/tog"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// scene is a raster of a stack: bands of n by n pixels of a size in metres, whose upper left corner is moved by off
// metres to the east and south. value gives each sample.
type scene struct {
	bands, n  int
	size, off float64
	epsg      int
	value     func(b, y, x int) uint16
}

func (s scene) write(t *testing.T, path string) {
	t.Helper()
	o := tog.Options{Shape: [3]int{s.bands, s.n, s.n}, DType: chunk.Uint16, Tile: 16, NoData: "7"}
	if s.epsg != 0 {
		o.Geo = tiff.Geo{EPSG: s.epsg, HasTransform: true,
			Transform: [6]float64{5e5 + s.off, s.size, 0, 4e6 - s.off, 0, -s.size}}
	}
	var data, b bytes.Buffer
	for k := range s.bands * s.n * s.n {
		v := s.value(k/(s.n*s.n), k/s.n%s.n, k%s.n)
		data.Write(binary.LittleEndian.AppendUint16(nil, v))
	}
	if err := tog.Write(&b, data.Bytes(), o); err != nil {
		t.Fatal(err)
	}
	testfile.Write(t, path, b.Bytes())
}

// noise is a value for each sample of a chip, of which some are nodata.
func noise(chip, b, y, x int) uint16 {
	return uint16((chip*31 + b*17 + y*y*13 + x*x*x*7 + x*y*5) % 251)
}

// TestStackOfOneGrid: bands in files of their own give the batches of one file with all bands, whatever the sampler,
// the arithmetic and the transforms are.
func TestStackOfOneGrid(t *testing.T) {
	dir := t.TempDir()
	const n = 48
	for chip := range 5 {
		all := scene{4, n, 10, 0, 32630, func(b, y, x int) uint16 { return noise(chip, b, y, x) }}
		all.write(t, filepath.Join(dir, "all", fmt.Sprintf("%d.tif", chip)))
		for name, bands := range map[string][2]int{"a": {0, 1}, "bc": {1, 3}, "d": {3, 4}} {
			part := all
			part.bands = bands[1] - bands[0]
			part.value = func(b, y, x int) uint16 { return noise(chip, b+bands[0], y, x) }
			part.write(t, filepath.Join(dir, name, fmt.Sprintf("%d.tif", chip)))
		}
	}
	fill := spec.Float(-9)
	normal := &spec.Normalize{Scale: []float64{.5, .25, 2, 1}, Offset: []float64{1, 2, 3, 4}}
	for name, f := range map[string]loader.Field{
		"native":  {},
		"float":   {DType: "float32", Normalize: normal, Fill: &fill, Validity: "ok"},
		"picked":  {Bands: []int{3, 0, 2, 0}, DType: "float32", Normalize: normal},
		"one":     {Bands: []int{2}, Validity: "ok"},
		"layout":  {Layout: "n y x b", Pad: true, Fill: &fill, DType: "float32"},
		"nearest": {Resample: "nearest", DType: "float16", Validity: "ok"},
		"smooth":  {Resample: "antialias", DType: "float32", Validity: "ok"},
	} {
		for _, s := range []spec.Sampler{
			{}, {Kind: spec.RandomWindow, Height: 20, Width: 20, PerAsset: 3},
			{Kind: spec.GridWindow, Height: 32, Width: 32},
			{Kind: spec.ResizedWindow, Height: 16, Width: 16, PerAsset: 2},
			{Kind: spec.TileWindow, Height: 16, Width: 16},
		} {
			if testing.Short() && name != "float" {
				continue // the samplers of one field show the race detector the same workers
			}
			t.Run(name+" "+s.Kind, func(t *testing.T) {
				one, several := f, f
				one.Name, one.Pattern = "image", "all/{id}.tif"
				several.Name, several.Patterns = "image", []string{"a/{id}.tif", "bc/{id}.tif", "d/{id}.tif"}
				of := func(f loader.Field) *loader.Engine {
					return mustOpen(t, loader.Spec{Source: dir, BatchSize: 4, Shuffle: true, Seed: 3, Augment: "d4",
						Sampler: s, Fields: []loader.Field{f}}, loader.Options{Workers: 2})
				}
				sameBatches(t, of(several), of(one))
			})
		}
	}
}

// sameBatches compares all batches of two engines.
func sameBatches(t *testing.T, got, want *loader.Engine) {
	t.Helper()
	if got.Steps() != want.Steps() || want.Steps() == 0 {
		t.Fatalf("%d steps, want %d", got.Steps(), want.Steps())
	}
	for step := range want.Steps() {
		ticket := steps.StepTicket(1, step, 4, 0, 1)
		a, err := got.Start(t.Context(), ticket, false).Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b, err := want.Start(t.Context(), ticket, false).Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(a.Samples, b.Samples) || len(a.Tensors) != len(b.Tensors) {
			t.Fatalf("samples %v and %d tensors, want %v and %d", a.Samples, len(a.Tensors), b.Samples, len(b.Tensors))
		}
		for i := range a.Tensors {
			x, y := &a.Tensors[i], &b.Tensors[i]
			if x.Name != y.Name || !slices.Equal(x.Shape, y.Shape) || !bytes.Equal(x.Data, y.Data) {
				t.Fatalf("step %d: tensor %q differs", step, x.Name)
			}
		}
		a.Release()
		b.Release()
	}
}

// TestStackOfSeveralGrids: parts of 10, 20 and 60 m, and one that is moved by whole pixels, are brought to the grid of
// the first by a slow version of the nearest pixel; what a part does not cover is missing.
func TestStackOfSeveralGrids(t *testing.T) {
	dir := t.TempDir()
	parts := []scene{
		{bands: 1, n: 60, size: 10}, {bands: 2, n: 30, size: 20}, {bands: 1, n: 10, size: 60},
		{bands: 1, n: 60, size: 10, off: 70}, {bands: 1, n: 60, size: 10, off: 24},
	}
	var patterns []string
	for k := range parts {
		parts[k].epsg = 32630
		parts[k].value = func(b, y, x int) uint16 { return 8 + noise(k, b, y, x) }
		for chip := range 3 {
			parts[k].write(t, filepath.Join(dir, fmt.Sprintf("%d-%d.tif", chip, k)))
		}
		patterns = append(patterns, fmt.Sprintf("{id}-%d.tif", k))
	}
	e := mustOpen(t, loader.Spec{Source: dir, BatchSize: 2, Windows: true,
		Fields: []loader.Field{{Name: "image", Patterns: patterns, Validity: "ok", Pad: true}},
		Sampler: spec.Sampler{Kind: spec.GridWindow, Height: 32, Width: 32, GridWindows: spec.GridWindows{StrideY: 21,
			StrideX: 25, Pad: true}},
	}, loader.Options{Workers: 2})
	for step := range e.Steps() {
		b, err := e.Start(t.Context(), steps.StepTicket(0, step, 2, 0, 1), false).Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		image, ok, window := b.Tensors[0], b.Tensors[1], b.Tensors[2]
		if !slices.Equal(image.Shape, []int64{2, 6, 32, 32}) {
			t.Fatal(image.Shape)
		}
		for row := range 2 {
			if !b.Valid[row] {
				continue
			}
			at := func(i int) int { return int(binary.LittleEndian.Uint64(window.Data[32*row+8*i:])) }
			band := 0
			for _, p := range parts {
				for pb := range p.bands {
					i := (row*6 + band) * 32 * 32
					checkNearest(t, p, pb, [2]int{at(0), at(1)}, image.Data[2*i:], ok.Data[i:])
					band++
				}
			}
		}
		b.Release()
	}
}

// checkNearest compares a window of 32 by 32 pixels of 10 m, of a stack of 60 by 60, with the nearest pixels of a
// part.
func checkNearest(t *testing.T, p scene, band int, window [2]int, image, ok []byte) {
	t.Helper()
	for i := range 32 * 32 {
		py, px := window[0]+i/32, window[1]+i%32
		// In centimetres, so that the arithmetic is exact.
		gy, gx, size := 1000*py+500-int(100*p.off), 1000*px+500-int(100*p.off), int(100*p.size)
		want, valid := uint16(0), byte(0)
		if py < 60 && px < 60 && gy >= 0 && gx >= 0 && gy/size < p.n && gx/size < p.n {
			want, valid = p.value(band, gy/size, gx/size), 1
		}
		if got := binary.LittleEndian.Uint16(image[2*i:]); got != want || ok[i] != valid {
			t.Fatalf("%v m: band %d, pixel %d, %d: %d, valid %d, want %d, %d", p.size, band, py, px, got, ok[i], want,
				valid)
		}
	}
}

// TestStackGridInMetres: a grid of 20 m begins where the first raster of 10 m does, and has half of its pixels.
func TestStackGridInMetres(t *testing.T) {
	dir := t.TempDir()
	fine := scene{1, 60, 10, 0, 32630, func(_, y, x int) uint16 { return uint16(100 * (y / 2) * (x / 2 % 5)) }}
	fine.write(t, filepath.Join(dir, "0-a.tif"))
	coarse := scene{1, 30, 20, 0, 32630, func(_, y, x int) uint16 { return uint16(8 + 100*y + x) }}
	coarse.write(t, filepath.Join(dir, "0-b.tif"))
	e := mustOpen(t, loader.Spec{Source: dir, BatchSize: 1, Fields: []loader.Field{
		{Name: "image", Patterns: []string{"{id}-a.tif", "{id}-b.tif"}, Grid: 20}}}, loader.Options{})
	b, err := e.Start(t.Context(), steps.StepTicket(0, 0, 1, 0, 1), false).Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Release()
	image := b.Tensors[0]
	if !slices.Equal(image.Shape, []int64{1, 2, 30, 30}) {
		t.Fatal(image.Shape)
	}
	for y := range 30 {
		for x := range 30 {
			got := [2]uint16{binary.LittleEndian.Uint16(image.Data[2*(30*y+x):]),
				binary.LittleEndian.Uint16(image.Data[2*(900+30*y+x):])}
			if want := [2]uint16{fine.value(0, 2*y, 2*x), coarse.value(0, y, x)}; got != want {
				t.Fatalf("pixel %d, %d: %d, want %d", y, x, got, want)
			}
		}
	}
}

// TestStackRefusals: what cannot be stacked is refused with the file and the reason.
func TestStackRefusals(t *testing.T) {
	dir := t.TempDir()
	flat := func(_, _, _ int) uint16 { return 9 }
	scene{1, 32, 10, 0, 32630, flat}.write(t, filepath.Join(dir, "0-a.tif"))
	scene{1, 32, 10, 400, 32630, flat}.write(t, filepath.Join(dir, "0-far.tif"))
	scene{1, 32, 10, 0, 0, flat}.write(t, filepath.Join(dir, "0-nowhere.tif"))
	scene{1, 32, 10, 0, 4326, flat}.write(t, filepath.Join(dir, "0-degrees.tif"))
	scene{1, 32, 10, 0, 3035, flat}.write(t, filepath.Join(dir, "0-europe.tif"))
	scene{1, 32, 10, 0, 2056, flat}.write(t, filepath.Join(dir, "0-swiss.tif"))
	for _, c := range []struct {
		first, second string
		grid          spec.Grid
		kind          fault.Kind
	}{
		{"a", "far", 0, fault.Misplaced},
		{"a", "europe", 0, fault.Misplaced},  // the coordinates are those of another place there
		{"a", "swiss", 0, fault.Unsupported}, // no exact conversion
		{"nowhere", "a", 10, fault.Unsupported},
		{"degrees", "a", 10, fault.Unsupported},
		{"a", "a", 1e9, fault.Unsupported},
	} {
		patterns := []string{"{id}-" + c.first + ".tif", "{id}-" + c.second + ".tif"}
		e, err := loader.Open(t.Context(), loader.Spec{Source: dir, BatchSize: 1,
			Fields: []loader.Field{{Name: "image", Patterns: patterns, Grid: c.grid}}}, loader.Options{})
		if err == nil {
			_, err = e.Start(t.Context(), steps.StepTicket(0, 0, 1, 0, 1), false).Wait(t.Context())
			_ = e.Close()
		}
		if fault.KindOf(err) != c.kind {
			t.Errorf("%s on %s by %v: %v, want kind %v", c.second, c.first, c.grid, err, c.kind)
		}
	}
}

// TestForecastOfWindowsThatMissAPart: a part that covers one of 16 windows is read for that one alone.
func TestForecastOfWindowsThatMissAPart(t *testing.T) {
	race.SkipCovered(t)
	dir := t.TempDir()
	flat := func(_, _, _ int) uint16 { return 9 }
	scene{1, 64, 10, 0, 32630, flat}.write(t, filepath.Join(dir, "0-a.tif"))
	scene{1, 64, 10, 480, 32630, flat}.write(t, filepath.Join(dir, "0-b.tif"))
	e := mustOpen(t, loader.Spec{Source: dir, BatchSize: 4,
		Fields:  []loader.Field{{Name: "image", Patterns: []string{"{id}-a.tif", "{id}-b.tif"}}},
		Sampler: spec.Sampler{Kind: spec.GridWindow, Height: 16, Width: 16}}, loader.Options{})
	f, err := e.Forecast(t.Context(), dryrun.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if f.Total.Rows != 16 || f.Total.Chunks != 17 || f.Total.Bad != 0 {
		t.Errorf("a forecast of %+v, want 16 windows of one tile, and one of two", f.Total)
	}
}
