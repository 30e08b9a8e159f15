package loader

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// maskedFile is a row of a manifest in testdata/masks, testdata/alpha or testdata/beside, which describe what its
// hashes cover.
type maskedFile struct {
	corpus.File
	ValidSHA256  string `json:"valid_sha256"`
	FilledSHA256 string `json:"filled_sha256"`
	WindowSHA256 string `json:"window_sha256"`
	Window       [4]int
	Valid        []int
}

func maskedFiles(t *testing.T) (files []maskedFile) {
	t.Helper()
	for _, folder := range []string{"masks", "alpha", "beside", "vrt"} {
		dir := filepath.Join(corpus.Testdata(t), folder)
		for _, f := range corpus.Rows[maskedFile](t, dir) {
			f.Dir = dir
			files = append(files, f)
		}
	}
	return files
}

// sources returns the file as a dataset: alone, and in a catalog.
func (f *maskedFile) sources(t *testing.T) []string {
	t.Helper()
	path := filepath.Join(f.Dir, f.Path)
	out, err := os.Create(filepath.Join(t.TempDir(), "catalog.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = build.Write(context.Background(), out, []string{path}, build.Options{Absolute: true})
	if err = errors.Join(err, out.Close()); err != nil {
		t.Fatal(err)
	}
	return []string{path, out.Name()}
}

func openSpec(t *testing.T, sp Spec) *Engine {
	t.Helper()
	e, err := Open(context.Background(), sp, Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// TestMasksOfFiles: batches of files with masks equal numpy's arithmetic on the arrays that GDAL
// reads: as they are, in their native form with the arithmetic done by the receiver, and with the
// validity beside them.
func TestMasksOfFiles(t *testing.T) {
	race.SkipCovered(t)
	fill := spec.Float(-7)
	for _, f := range maskedFiles(t) {
		for _, source := range f.sources(t) {
			one := func(field Field, native bool) (*batch.Batch, string) {
				e := openSpec(t, Spec{Source: source, Fields: []Field{field}, BatchSize: 1})
				b := wait(t, e.Start(context.Background(), steps.StepTicket(0, 0, 1, 0, 1), native))
				return b, filepath.Base(source) + " of " + f.Path
			}
			b, name := one(Field{Name: "image", DType: "float32", Fill: &fill, Validity: "ok"}, false)
			if corpus.SHA256(b.Tensor("image").Data) != f.FilledSHA256 {
				t.Errorf("%s: other samples", name)
			}
			if corpus.SHA256(b.Tensor("ok").Data) != f.ValidSHA256 {
				t.Errorf("%s: another validity", name)
			}
			b, _ = one(Field{Name: "image", DType: "float32", Fill: &fill}, true)
			w := b.Tensors[0]
			if w.Convert != nil {
				// Receivers find nodata themselves, and some virtual rasters have no mask.
				masked := f.Kind != "vrt" || len(w.Convert.Mask) > 0
				if corpus.SHA256(w.Data) != f.SHA256 || masked && corpus.SHA256(w.Convert.Mask) != f.ValidSHA256 {
					t.Errorf("%s: the native form has other samples, or another mask", name)
				}
			} else if w.DType != chunk.Float32 || f.DType != "float32" || corpus.SHA256(w.Data) != f.FilledSHA256 {
				t.Errorf("%s: %s without a conversion", name, w.DType)
			}
			b, _ = one(Field{Name: "image"}, false)
			if corpus.SHA256(b.Tensors[0].Data) != f.SHA256 {
				t.Errorf("%s: a field that does not fill has other samples than are stored", name)
			}
			// The sampler draws another window, so the manifest's is set here.
			a, err := raster.Read(context.Background(), []string{filepath.Join(f.Dir, f.Path)}, raster.ReadOptions{
				Validity: true, Threads: 2, B: raster.Selection{Slice: true, Stop: f.Shape[0]},
				Y: raster.Selection{Slice: true, Start: f.Window[0], Stop: f.Window[0] + f.Window[2]},
				X: raster.Selection{Slice: true, Start: f.Window[1], Stop: f.Window[1] + f.Window[3]},
			})
			if err != nil {
				t.Fatal(err)
			}
			if corpus.SHA256(filled(a)) != f.WindowSHA256 {
				t.Errorf("%s: other samples in the window", name)
			}
		}
	}
}

// filled returns the samples as float32 with -7 where they are not valid.
func filled(a *raster.Array) []byte {
	var out []byte
	size := a.DType.Size()
	for i, ok := range a.Valid {
		v := float32(-7)
		switch s := a.Data[i*size:]; {
		case ok == 0:
		case a.DType == chunk.Uint8:
			v = float32(s[0])
		case a.DType == chunk.Uint16:
			v = float32(binary.LittleEndian.Uint16(s))
		case a.DType == chunk.Float32:
			v = math.Float32frombits(binary.LittleEndian.Uint32(s))
		}
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out
}

func TestStatsOfFilesWithMasks(t *testing.T) {
	race.SkipCovered(t)
	for _, f := range maskedFiles(t) {
		for _, source := range f.sources(t) {
			r, err := survey.Stats(context.Background(), Spec{
				Source: source, Fields: []Field{{Name: "image"}},
			}, Options{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for b, band := range r.Fields["image"].Bands {
				pixels := f.Shape[1] * f.Shape[2]
				// Statistics leave a NaN out that is in the mask.
				if int(band.Count+band.NaN) != f.Valid[b] || int(band.Count+band.NaN+band.NoData) != pixels {
					t.Errorf("%s band %d: %d samples and %d without data, want %d of %d",
						f.Path, b, band.Count, band.NoData, f.Valid[b], pixels)
				}
			}
		}
	}
}

// TestMasksOfWindows: windows past the image, bands in another order and more than once, and an
// axis of pixels and bands are looked up element by element.
func TestMasksOfWindows(t *testing.T) {
	tab := chips(30, 10)
	fill := spec.Float(-5)
	bands := []int{2, 0, 2}
	e := openFake(t, Spec{
		Fields: []Field{
			{Name: "image", Bands: bands, DType: "float32", Layout: "n x y b", Pad: true, Fill: &fill, Validity: "ok"},
		},
		BatchSize: 10, Sampler: Sampler{Kind: spec.RandomWindow, Height: 26, Width: 10},
	}, tab, 3)
	for epoch := range uint64(8) {
		b := wait(t, e.Start(context.Background(), steps.StepTicket(epoch, 0, 10, 0, 1), false))
		img, val := b.Tensor("image"), b.Tensor("ok")
		for k, row := range b.Samples {
			a := tab.assets[[2]int64{0, row}]
			box := shuffle.Window(shuffle.Crop{
				Epoch: epoch, Position: b.Positions[k],
				Height: a.h, Width: a.w, H: 26, W: 10, AlignY: 1, AlignX: 1,
			})
			y0, x0 := box.Y, box.X
			for i := range 10 * 26 * 3 {
				x, y, c := i/26/3, i/3%26, i%3
				want, valid := float32(fill), byte(0)
				if y0+y < a.h && x0+x < a.w && a.valid(bands[c], y0+y, x0+x) {
					want, valid = float32(a.at(bands[c], y0+y, x0+x)), 1
				}
				if at := k*26*10*3 + i; float32At(img.Data, at) != want || val.Data[at] != valid {
					t.Fatalf("row %d (%d, %d, %d): %v valid %d, want %v valid %d",
						k, c, y, x, float32At(img.Data, at), val.Data[at], want, valid)
				}
			}
		}
		b.Release()
	}
}

// spoilt returns a dataset of two samples with masks. A chunk of the second mask is cut off.
func spoilt() (tab *fakeTable, off int64) {
	r := rand.New(rand.NewPCG(3, 3))
	tab = &fakeTable{rows: 2, kinds: []catalog.Kind{catalog.Raster}}
	for row := range tab.rows {
		a, o := newFakeAsset(r, 2, 20, 24, 10, false, false)
		o = a.addMask(r, o, 5, 24, true)
		tab.add(0, row, a, o)
		if row == 1 {
			a.index.Mask.Ranges[2].Len--
			off = a.index.Mask.Ranges[2].Off
		}
	}
	return tab, off
}

// TestBadMasks: a fault in a mask is a fault of its sample, and names its place.
func TestBadMasks(t *testing.T) {
	tab, off := spoilt()
	want := fmt.Sprintf("0/1: mask chunk 2 at %d: ", off)
	fields := []Field{{Name: "image", DType: "float32", Validity: "ok"}}
	e := openFake(t, Spec{Fields: fields, BatchSize: 2}, tab, 2)
	_, err := e.Start(context.Background(), steps.StepTicket(0, 0, 2, 0, 1), false).Wait(context.Background())
	if !errors.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	e = openFake(t, Spec{Fields: fields, BatchSize: 2, BadSamples: spec.BadSkip}, tab, 2)
	b := wait(t, e.Start(context.Background(), steps.StepTicket(0, 0, 2, 0, 1), false))
	if !b.Valid[0] || b.Valid[1] || len(b.Bad) != 1 || !strings.Contains(b.Bad[0].Err.Error(), want) {
		t.Errorf("valid %v, bad %v", b.Valid, b.Bad)
	}
	n := len(b.Tensor("ok").Data) / 2
	if !bytes.Equal(b.Tensor("ok").Data[n:], make([]byte, n)) ||
		!bytes.Equal(b.Tensor("image").Data[4*n:], make([]byte, 4*n)) {
		t.Error("the bad sample's row is not empty")
	}
	b.Release()
	sp := Spec{Source: "memory", Fields: []Field{{Name: "image"}}, BatchSize: 1}.WithDefaults()
	o := Options{Opener: tab}.WithDefaults()
	_, err = survey.MeasureTable(context.Background(), sp, o, tab.table(), nil, nil)
	if !errors.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), want) {
		t.Errorf("statistics: %v, want %q", err, want)
	}
	sp.BadSamples = spec.BadSkip
	part, err := survey.MeasureTable(context.Background(), sp, o, tab.table(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := part.Report(sp.Fields)
	if r.Skipped != 1 || r.Fields["image"].Bands[0].Count+r.Fields["image"].Bands[0].NoData != 20*24 {
		t.Errorf("statistics: %+v, %v", r, err)
	}
}

// TestMaskChunksAreBounded: the bound on a chunk applies to masks too: they decode to one byte a
// pixel, however small they are in the file.
func TestMaskChunksAreBounded(t *testing.T) {
	tab := &fakeTable{rows: 1, kinds: []catalog.Kind{catalog.Raster}}
	r := rand.New(rand.NewPCG(6, 6))
	a, o := newFakeAsset(r, 1, 64, 64, 8, false, false)
	o = a.addMask(r, o, 64, 32, true)
	tab.add(0, 0, a, o)
	rd := pixels.NewReader(Options{Opener: tab, MaxChunkBytes: 64*32 - 1}.WithDefaults())
	asset := catalog.Asset{URI: "0/0", Index: a.index}
	box := chunk.Box{B1: 1, Y1: 64, X1: 64}
	if err := rd.Read(context.Background(), asset, box, nil, pixels.Nowhere{}, nil); err != nil {
		t.Fatal(err)
	}
	err := rd.Read(context.Background(), asset, box, nil, pixels.Nowhere{}, pixels.Nowhere{})
	if !errors.Is(err, fault.Limit) || !strings.Contains(err.Error(), "mask") {
		t.Errorf("%v", err)
	}
	if cap(rd.Samples) > 64*32 {
		t.Errorf("%d bytes were taken", cap(rd.Samples))
	}
}

// TestMasksAllocateNothingPerChunk: reading masks allocates nothing for each chunk.
func TestMasksAllocateNothingPerChunk(t *testing.T) {
	race.SkipCovered(t)
	allocs := func(th int) float64 {
		r := rand.New(rand.NewPCG(1, 1))
		tab := &fakeTable{rows: 2, kinds: []catalog.Kind{catalog.Raster}}
		for row := range tab.rows {
			a, o := newFakeAsset(r, 2, 128, 128, 64, false, false)
			tab.add(0, row, a, a.addMask(r, o, th, 8, true))
		}
		e := openFake(t, Spec{Fields: []Field{{Name: "image", DType: "float32", Validity: "ok"}}, BatchSize: 2}, tab, 1)
		return testing.AllocsPerRun(20, func() {
			wait(t, e.Start(context.Background(), steps.StepTicket(0, 0, 2, 0, 1), false)).Release()
		})
	}
	if few, many := allocs(128), allocs(2); many > few+8 {
		t.Errorf("%.0f allocations with 32 mask chunks a batch, %.0f with 2048", few, many)
	}
}
