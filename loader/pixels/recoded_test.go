package pixels

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/format/chunk"
	_ "github.com/chaski-eo/chaski/format/codec/geozl"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/pages"
	"github.com/chaski-eo/chaski/loader/resources"
)

// TestRecodedIsExact: chunks of all dtypes, shapes and orders have the same bits after they were encoded and decoded.
func TestRecodedIsExact(t *testing.T) {
	decoder := chunk.NewDecoder(nil)
	encoder := chunk.NewRecoder()
	var scratch []byte
	d := chunk.Uint8
	encoded := 0
	check := func(t *rapid.T) {
		x := &chunk.Index{DType: d, Predictor: chunk.NoPredictor, BigEndian: rapid.Bool().Draw(t, "big-endian"),
			Bands: rapid.IntRange(1, 4).Draw(t, "bands"), Height: rapid.IntRange(1, 40).Draw(t, "height"),
			Width: rapid.IntRange(1, 40).Draw(t, "width"),
			Inner: rapid.SampledFrom([]chunk.Inner{chunk.BYX, chunk.YXB}).Draw(t, "inner")}
		x.ChunkB, x.ChunkH, x.ChunkW = x.Bands, x.Height, x.Width
		n := x.DecodedBytes(0)
		stored := rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "samples")
		if rapid.Bool().Draw(t, "smooth") {
			for i := range stored {
				stored[i] = byte(i / d.Size() * (1 + i%d.Size()))
			}
		}
		x.Ranges = []chunk.Range{{Len: int64(n)}}
		want := make([]byte, n, n+chunk.Spare)
		if err := decoder.Decode(want, stored, x, 0); err != nil {
			t.Fatal(err)
		}
		job := recoding{x: x, stored: n, content: stored}
		frame := job.encode(decoder, encoder, nil, &scratch)
		job = recoding{x: x, stored: n, content: want, decoded: true}
		if other := job.encode(decoder, encoder, nil, &scratch); !bytes.Equal(other, frame) {
			t.Fatalf("%v: samples and stored bytes have different frames", d)
		}
		if frame == nil {
			return // of a few bytes
		}
		encoded++
		got, frames := make([]byte, n, n+chunk.Spare), frameIndex(x)
		if err := decoder.Decode(got, frame, &frames, 0); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%v: other samples: %v", d, err)
		}
	}
	for ; d.Valid(); d++ {
		encoded = 0
		if rapid.Check(t, check); encoded == 0 {
			t.Errorf("%v: no chunk was encoded", d)
		}
	}
}

// TestRecodedKeys: everything on which the samples of a chunk depend makes another key.
func TestRecodedKeys(t *testing.T) {
	base := chunk.Index{DType: chunk.Uint16, Codec: chunk.Zstd, Predictor: chunk.NoPredictor, Bands: 2, Height: 8,
		Width: 8, ChunkB: 2, ChunkH: 8, ChunkW: 8, Ranges: []chunk.Range{{Off: 8, Len: 100}}}
	keys := map[recodedKey]string{keyOf(1, &base, 0): "base", keyOf(2, &base, 0): "object"}
	for name, change := range map[string]func(*chunk.Index){
		"dtype":     func(x *chunk.Index) { x.DType = chunk.Int16 },
		"codec":     func(x *chunk.Index) { x.Codec = chunk.Deflate },
		"predictor": func(x *chunk.Index) { x.Predictor = chunk.Horizontal },
		"inner":     func(x *chunk.Index) { x.Inner = chunk.YXB },
		"order":     func(x *chunk.Index) { x.BigEndian = true },
		"reversed":  func(x *chunk.Index) { x.Reversed = true },
		"low bits":  func(x *chunk.Index) { x.LowBits = true },
		"bits":      func(x *chunk.Index) { x.Bits = true },
		"packed":    func(x *chunk.Index) { x.Packed = 12 },
		"params":    func(x *chunk.Index) { x.Params = []byte{0} },
		"offset":    func(x *chunk.Index) { x.Ranges = []chunk.Range{{Off: 9, Len: 100}} },
		"length":    func(x *chunk.Index) { x.Ranges = []chunk.Range{{Off: 8, Len: 101}} },
		"width":     func(x *chunk.Index) { x.ChunkW, x.Width = 7, 7 },
	} {
		x := base
		change(&x)
		key := keyOf(1, &x, 0)
		if other, ok := keys[key]; ok {
			t.Errorf("%s has the key of %s", name, other)
		}
		keys[key] = name
	}
}

// TestRecodedMemory: the cache stays within its bound, charges what it takes, and gives all back that no reader uses.
func TestRecodedMemory(t *testing.T) {
	const most, frame = 20 << 20, 300 << 10
	b := budget.New(1 << 30)
	r := NewRecoded(most, &resources.Options{Workers: 1, Budget: b, Decoders: resources.NewDecoders(1)})
	r.available = func() int64 { return math.MaxInt64 }
	for i := range uint64(200) {
		r.keep(recodedKey{Lo: i}, bytes.Repeat([]byte{byte(i)}, frame))
	}
	counts := r.Counts()
	if counts.Bytes > most || counts.Bytes < most*3/4 || b.Used() != counts.Bytes || counts.Chunks*frame > most {
		t.Errorf("%+v, and %d bytes of the budget", counts, b.Used())
	}
	held := r.find(recodedKey{Lo: 3})
	if !slices.Equal(held.frame, bytes.Repeat([]byte{3}, frame)) {
		t.Fatal("another frame")
	}
	for r.Reclaim(0) && r.Counts().Chunks > 14 {
	}
	if !slices.Equal(held.frame, bytes.Repeat([]byte{3}, frame)) {
		t.Error("a frame that is read was overwritten")
	}
	r.release(held, true)
	r.Close()
	if b.Used() != 0 {
		t.Errorf("%d bytes stay charged", b.Used())
	}
}

// TestRecodedWithoutMemory: what the system does not give is not charged, and nothing is kept for a while.
func TestRecodedWithoutMemory(t *testing.T) {
	defer func() { newPages = pages.New }()
	newPages = func(int) (*pages.Memory, error) { return nil, errors.New("no memory") }
	b := budget.New(1 << 30)
	r := NewRecoded(20<<20, &resources.Options{Workers: 1, Budget: b, Decoders: resources.NewDecoders(1)})
	defer r.Close()
	r.available = func() int64 { return math.MaxInt64 }
	r.keep(recodedKey{Lo: 1}, []byte{1})
	if counts := r.Counts(); counts != (RecodedCounts{}) || b.Used() != 0 {
		t.Errorf("%+v, and %d bytes of the budget", counts, b.Used())
	}
	if r.misses(recodedKey{Lo: 2}) {
		t.Error("further chunks are offered")
	}
}
