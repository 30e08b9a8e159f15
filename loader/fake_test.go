package loader

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"go.uber.org/goleak"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counts returns the bytes that are taken, and how many of these are idle.
func (m *batchPool) counts() (taken, idle int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.buffers, m.idle.Bytes()
}

// fakeTable is a dataset in memory with raw chunks of known samples, so that a slow, obvious reader
// can compute every batch.
type fakeTable struct {
	rows    int64
	kinds   []catalog.Kind
	assets  map[[2]int64]*fakeAsset // by field and row
	broken  map[int64]error         // rows whose first raster cannot be read
	second  map[int64]error         // rows whose second raster cannot be read
	objects map[string][]byte
	columns map[string]fakeColumn // beside the fields
	print   string                // of the fingerprint
}

// fakeAsset holds uint16 samples over (b, y, x).
type fakeAsset struct {
	b, h, w int
	pix     []uint16
	mask    []byte // one a pixel, 0 or 1; nil for none
	index   *chunk.Index
}

func (a *fakeAsset) at(b, y, x int) uint16 { return a.pix[(b*a.h+y)*a.w+x] }

// valid reports whether a sample is neither nodata nor masked.
func (a *fakeAsset) valid(b, y, x int) bool {
	if a.mask != nil { // which counts alone
		return a.mask[y*a.w+x] == 1
	}
	return a.index.NoData == nil || a.at(b, y, x) != fakeNoData
}

// addMask gives the asset a random mask with whole rows, a block and a chunk that are masked. Its
// chunks of th by tw pixels, the last one sparse, are appended to the asset's object.
func (a *fakeAsset) addMask(r *rand.Rand, object []byte, th, tw int, bits bool) []byte {
	m := &chunk.Index{
		Bands: 1, Height: a.h, Width: a.w, ChunkB: 1, ChunkH: th, ChunkW: tw, CutEdge: true,
		DType: chunk.Uint8, Predictor: chunk.NoPredictor, Bits: bits,
	}
	m.Ranges = make([]chunk.Range, m.Across()*m.Down())
	a.mask = make([]byte, a.h*a.w)
	last := m.Box(len(m.Ranges) - 1)
	for i := range a.mask {
		y, x := i/a.w, i%a.w
		if r.UintN(8) > 0 && y/2 != 1 && (y < 5 || y > 8 || x < 5 || x > 9) && (y < last.Y0 || x < last.X0) {
			a.mask[i] = 1
		}
	}
	for i := range m.Ranges[:len(m.Ranges)-1] {
		box, start := m.Box(i), len(object)
		for y := box.Y0; y < box.Y1; y++ {
			row := make([]byte, tw)
			if bits {
				row = make([]byte, (tw+7)/8)
			}
			for x := box.X0; x < box.X1; x++ {
				v := a.mask[y*a.w+x]
				if c := x - box.X0; bits {
					row[c/8] |= v << (7 - c%8)
				} else {
					row[c] = v * byte(1+r.UintN(255))
				}
			}
			object = append(object, row...)
		}
		m.Ranges[i] = chunk.Range{Off: int64(start), Len: int64(len(object) - start)}
	}
	a.index.Mask = m
	return object
}

const fakeNoData = 7

// newFakeAsset makes an asset of random samples, about 1 in 16 of them nodata, and stores it as raw
// chunks in the order and form that the flags ask for.
func newFakeAsset(r *rand.Rand, b, h, w, tile int, nodata, pixels bool) (*fakeAsset, []byte) {
	a := &fakeAsset{b: b, h: h, w: w, pix: make([]uint16, b*h*w)}
	for i := range a.pix {
		a.pix[i] = uint16(r.UintN(5000)) + 8
		if r.UintN(16) == 0 {
			a.pix[i] = fakeNoData
		}
	}
	x := &chunk.Index{
		Bands: b, Height: h, Width: w, ChunkB: 1, ChunkH: tile,
		ChunkW: tile, DType: chunk.Uint16, Predictor: chunk.NoPredictor,
	}
	if pixels {
		x.ChunkB, x.Inner = b, chunk.YXB
	}
	if nodata {
		v := float64(fakeNoData)
		x.NoData = &v
	}
	a.index = x
	return a, a.store()
}

// store returns the asset's samples as chunks, and puts their places into its index.
func (a *fakeAsset) store() []byte {
	x := a.index
	var object []byte
	x.Ranges = make([]chunk.Range, x.Across()*x.Down()*x.Groups())
	for i := range x.Ranges {
		object = append(object, "gap"...)
		start := len(object)
		box := x.Box(i)
		put := func(b, y, c int) {
			v := uint16(0)
			if y < a.h && c < a.w {
				v = a.at(b, y, c)
			}
			object = binary.LittleEndian.AppendUint16(object, v)
		}
		for y := box.Y0; y < box.Y0+x.ChunkH; y++ {
			for c := box.X0; c < box.X0+x.ChunkW; c++ {
				for k := box.B0; k < box.B1; k++ {
					put(k, y, c)
				}
			}
		}
		x.Ranges[i] = chunk.Range{Off: int64(start), Len: int64(len(object) - start)}
	}
	return object
}

func (t *fakeTable) add(field int, row int64, a *fakeAsset, object []byte) {
	if t.assets == nil {
		t.assets, t.objects = map[[2]int64]*fakeAsset{}, map[string][]byte{}
	}
	t.assets[[2]int64{int64(field), row}] = a
	t.objects[fmt.Sprintf("%d/%d", field, row)] = object
}

// table returns the dataset as an engine reads it. The id of a row is its number.
func (t *fakeTable) table() *rows.Table { return rows.New(fakeStore{t}) }

// fakeStore is a fakeTable as a store.
type fakeStore struct{ t *fakeTable }

func (s fakeStore) Len() int64                  { return s.t.rows }
func (s fakeStore) Fields() int                 { return len(s.t.kinds) }
func (s fakeStore) Kind(field int) catalog.Kind { return s.t.kinds[field] }
func (s fakeStore) Fingerprint() string         { return "fake" + s.t.print }
func (s fakeStore) Close() error                { return nil }

func (s fakeStore) ID(_ context.Context, row int64) (string, error) { return fmt.Sprint(row), nil }

func (s fakeStore) Column(ctx context.Context, name string) (*rows.Column, error) {
	return s.t.column(ctx, name)
}

func (s fakeStore) Asset(_ context.Context, field int, row int64) (catalog.Asset, error) {
	return s.t.asset(field, row)
}

func (s fakeStore) Value(_ context.Context, field int, row int64) (catalog.Value, error) {
	return s.t.value(field, row), nil
}

func (t *fakeTable) asset(f int, row int64) (catalog.Asset, error) {
	if err := t.broken[row]; err != nil && f == 0 {
		return catalog.Asset{}, err
	}
	if err := t.second[row]; err != nil && f == 1 {
		return catalog.Asset{}, err
	}
	return catalog.Asset{URI: fmt.Sprintf("%d/%d", f, row), Index: t.assets[[2]int64{int64(f), row}].index}, nil
}

func (t *fakeTable) value(f int, row int64) catalog.Value {
	switch t.kinds[f] {
	case catalog.Int:
		return catalog.Value{Int: row * 10}
	case catalog.Float:
		return catalog.Value{Float: float64(row) / 4}
	}
	return catalog.Value{Text: fmt.Appendf(nil, "chip %d", row)}
}

// Open implements source.Opener over the objects.
func (t *fakeTable) Open(_ context.Context, uri string) (source.Reader, error) {
	return object(t.objects[uri]), nil
}

type object []byte

func (o object) Size() int64 { return int64(len(o)) }

func (o object) Close() error { return nil }

func (o object) ReadAt(_ context.Context, p []byte, off int64) error {
	if off < 0 || off > int64(len(o)) || copy(p, o[off:]) < len(p) {
		return fault.At(fault.Corrupt, "byte range", off, "past the end")
	}
	return nil
}

// openFake compiles a spec on a table.
func openFake(t testing.TB, spec Spec, tab *fakeTable, workers int) *Engine {
	t.Helper()
	spec.Source = "memory"
	spec = spec.WithDefaults()
	if err := spec.Validate(); err != nil {
		t.Fatal(err)
	}
	e, err := newEngine(context.Background(), spec, Options{Workers: workers, Opener: tab}.WithDefaults(), tab.table())
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

// newEngine returns an engine for an open table. The engine owns the table only if newEngine returns no error.
func newEngine(ctx context.Context, spec Spec, o Options, t *rows.Table) (*Engine, error) {
	e, err := openEngine(ctx, spec, o, func(context.Context, Source, []Field) (*rows.Table, error) { return t, nil })
	if err != nil {
		return nil, err
	}
	return e, nil
}
