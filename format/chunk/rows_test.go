package chunk

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/chaski-eo/chaski/fault"
)

// early is a codec that stores bytes as they are, stops as soon as it may, and writes garbage
// behind them.
type early struct{ asked *[]int }

func (e early) Decompress(dst, src []byte, t *Tile) error {
	*e.asked = append(*e.asked, t.Need)
	for i := copy(dst[:t.Need], src); i < len(dst); i++ {
		dst[i] = 0xee
	}
	return nil
}

// layouts returns one chunk of 4 rows in every form that chunks have.
func layouts() []*Index {
	var all []*Index
	for _, form := range []struct {
		bands int
		inner Inner
	}{{1, BYX}, {1, YXB}, {3, YXB}, {3, BYX}} {
		for _, d := range []DType{Uint8, Uint16, Float32, Float64, Complex64} {
			for p := NoPredictor; p <= FloatingPoint; p++ {
				for _, bigEndian := range []bool{false, true} {
					if p == FloatingPoint && d == Uint8 {
						continue
					}
					x := &Index{
						Bands: form.bands, Height: 4, Width: 5, ChunkB: form.bands,
						ChunkH: 4, ChunkW: 5, DType: d, Predictor: p,
						BigEndian: bigEndian, Inner: form.inner, Ranges: make([]Range, 1),
					}
					x.Ranges[0].Len = int64(x.DecodedBytes(0))
					all = append(all, x)
				}
			}
		}
	}
	return all
}

// TestFirstPixelsAreThoseOfDecode: DecodeFirst yields the pixels that Decode yields, for every band,
// whatever the codec writes behind them. A codec that can stop is asked for these only, except where the
// last band lies at the end, or the predictor needs the whole row.
func TestFirstPixelsAreThoseOfDecode(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	var asked []int
	for _, x := range layouts() {
		n := x.DecodedBytes(0)
		src, want := make([]byte, n), make([]byte, n)
		for i := range src {
			src[i] = byte(rnd.Uint32())
		}
		if err := NewDecoder(nil).Decode(want, src, x, 0); err != nil {
			t.Fatal(err)
		}
		for codec, open := range map[Codec]func() Decompressor{
			Raw:  nil,
			Zstd: func() Decompressor { return early{&asked} },
		} {
			y := *x
			y.Codec = codec
			d := NewDecoder(Codecs{codec: open})
			b, h, w := x.DecodedShape(0)
			for pixels := range h*w + 1 {
				what := fmt.Sprintf("%v %v of %d bands, predictor %d, order %d, big-endian %v, %d pixels",
					codec, x.DType, x.Bands, x.Predictor, x.Inner, x.BigEndian, pixels)
				dst, asks := bytes.Repeat([]byte{0xaa}, n), len(asked)
				if err := d.DecodeFirst(dst, src, &y, 0, pixels); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				size, planes := x.DType.Size(), b
				if x.Inner == YXB {
					size, planes = size*b, 1
				}
				for k := range planes {
					if at := k * h * w * size; !bytes.Equal(dst[at:][:pixels*size], want[at:][:pixels*size]) {
						t.Errorf("%s: other pixels in plane %d", what, k)
					}
				}
				need := pixels * size
				if x.Predictor == FloatingPoint {
					need = (pixels + w - 1) / w * w * size
				}
				if planes > 1 {
					need = n
				}
				if codec != Raw && (len(asked) != asks+1 || asked[asks] != need) {
					t.Errorf("%s: asked for %v bytes, want %d", what, asked[asks:], need)
				}
			}
		}
	}
}

// TestRowsAlone: rows of an uncompressed chunk, by themselves, are those of the whole chunk; others are not read so.
func TestRowsAlone(t *testing.T) {
	rnd, d := rand.New(rand.NewPCG(9, 10)), NewDecoder(nil)
	for _, x := range layouts() {
		n := x.DecodedBytes(0)
		x.Ranges[0].Off = 100
		file, want := make([]byte, 100+n), make([]byte, n)
		for i := range file {
			file[i] = byte(rnd.Uint32())
		}
		if err := d.Decode(want, file[100:], x, 0); err != nil {
			t.Fatal(err)
		}
		row, whole := n/x.Height, x.Bands == 1 || x.Inner == YXB
		for top := range x.Height {
			for bottom := top + 1; bottom <= x.Height; bottom++ {
				span, alone := x.Rows(0, top, bottom)
				if alone != whole || !alone && span != x.Place(0) || alone && span.Len != int64((bottom-top)*row) {
					t.Fatalf("%+v rows %d to %d: %+v, alone %v", x, top, bottom, span, alone)
				}
				if !alone {
					continue
				}
				dst := bytes.Repeat([]byte{0xaa}, n)
				d.DecodeRows(dst, file[span.Off:][:span.Len], x, 0, top, bottom)
				others := bytes.Repeat([]byte{0xaa}, n)
				copy(others[top*row:bottom*row], want[top*row:])
				if !bytes.Equal(dst, others) {
					t.Errorf("%+v rows %d to %d: other samples", x, top, bottom)
				}
			}
		}
		for name, change := range map[string]func(x *Index){
			"compressed":    func(x *Index) { x.Codec = Deflate },
			"of bits":       func(x *Index) { x.Packed = 7 },
			"of low bits":   func(x *Index) { x.LowBits = true },
			"mirrored bits": func(x *Index) { x.Reversed = true },
			"cut":           func(x *Index) { x.Ranges = []Range{{Off: 100, Len: int64(n - 1)}} },
			"sparse":        func(x *Index) { x.Ranges = make([]Range, 1) },
		} {
			y := *x
			change(&y)
			if span, alone := y.Rows(0, 1, y.Height); alone || span != y.Place(0) {
				t.Errorf("%s: %+v, alone %v", name, span, alone)
			}
		}
	}
}

func TestFirstPixelsOfASparseChunk(t *testing.T) {
	v := 77.0
	x := &Index{
		Bands: 1, Height: 4, Width: 5, ChunkB: 1, ChunkH: 4, ChunkW: 5,
		DType: Uint8, Predictor: Horizontal, NoData: &v, Ranges: make([]Range, 1),
	}
	dst := make([]byte, 20)
	err := NewDecoder(nil).DecodeFirst(dst, nil, x, 0, 13)
	if err != nil || !bytes.Equal(dst[:13], bytes.Repeat([]byte{77}, 13)) {
		t.Errorf("%v %v", dst, err)
	}
}

func TestDecodeFirstRefuses(t *testing.T) {
	x := tog(1, 1, 1, 16)
	dst := make([]byte, x.DecodedBytes(0))
	x.Codec, x.Predictor = Raw, NoPredictor
	err := NewDecoder(nil).DecodeFirst(dst, dst[:len(dst)/x.ChunkH-1], x, 0, x.ChunkW)
	if fault.KindOf(err) != fault.Corrupt || err.Error()[:8] != "chunk 0:" {
		t.Errorf("a raw chunk that is cut: %v", err)
	}
	for name, f := range map[string]func(d *Decoder) error{
		"pixels of another chunk": func(d *Decoder) error { return d.DecodeFirst(dst, dst, x, 0, 16*16+1) },
		"negative pixels":         func(d *Decoder) error { return d.DecodeFirst(dst, dst, x, 0, -1) },
		"a short dst":             func(d *Decoder) error { return d.DecodeFirst(dst[:32], dst, x, 0, 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			_ = f(NewDecoder(nil))
		}()
	}
}

func TestDecodeFirstNoAlloc(t *testing.T) {
	var asked []int
	for _, p := range []Predictor{NoPredictor, Horizontal, FloatingPoint} {
		x := tog(1, 1, 1, 64)
		x.Predictor = p
		src, dst := make([]byte, x.DecodedBytes(0)), make([]byte, x.DecodedBytes(0))
		d := NewDecoder(Codecs{Zstd: func() Decompressor { return early{&asked} }})
		decode := func() { asked = asked[:0]; _ = d.DecodeFirst(dst, src, x, 0, 16*64+7) }
		if n := testing.AllocsPerRun(20, decode); n != 0 {
			t.Errorf("predictor %d: %v allocations", p, n)
		}
	}
}
