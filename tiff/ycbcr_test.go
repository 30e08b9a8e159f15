package tiff

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
)

// yCbCrParams returns the parameters of samples whose chroma 2 columns and 2 rows share, with libtiff's defaults.
func yCbCrParams(codec chunk.Codec) []byte {
	params := []byte{byte(codec), 2, 2}
	for _, f := range []float32{0.299, 0.587, 0.114, 0, 255, 128, 255, 128, 255} {
		params = binary.LittleEndian.AppendUint32(params, math.Float32bits(f))
	}
	return params
}

// TestYCbCrRefuses: other parameters, and fewer bytes than the rows of the image need. Rows below the image are black.
func TestYCbCrRefuses(t *testing.T) {
	const params = "ycbcr: not the parameters of this codec: corrupt"
	for name, c := range map[string]struct {
		edit   func(*chunk.Tile)
		stored int
		want   string
	}{
		"all":             {func(*chunk.Tile) {}, 24, ""},
		"short":           {func(*chunk.Tile) {}, 23, "ycbcr: 23 bytes stored, 24 needed: corrupt"},
		"below":           {func(t *chunk.Tile) { t.LeastRows = 2 }, 12, ""},
		"short of least":  {func(t *chunk.Tile) { t.LeastRows = 1 }, 11, "ycbcr: 11 bytes stored, 12 needed: corrupt"},
		"first rows":      {func(t *chunk.Tile) { t.Rows = 2 }, 12, ""},
		"short of first":  {func(t *chunk.Tile) { t.Rows = 1 }, 11, "ycbcr: 11 bytes stored, 12 needed: corrupt"},
		"long parameters": {func(t *chunk.Tile) { t.Params = append(t.Params, 0) }, 24, params},
		"no parameters":   {func(t *chunk.Tile) { t.Params = nil }, 24, params},
		"dtype":           {func(t *chunk.Tile) { t.DType = chunk.Int8 }, 24, params},
		"bands":           {func(t *chunk.Tile) { t.Bands = 4 }, 24, params},
		"shares":          {func(t *chunk.Tile) { t.Params[1], t.Params[2] = 1, 4 }, 24, params},
		"codec":           {func(t *chunk.Tile) { t.Params[0] = byte(chunk.JPEG) }, 24, params},
		"no codec":        {func(t *chunk.Tile) { t.Params[0] = 200 }, 24, params},
		"inner": {func(t *chunk.Tile) { t.Params[0] = byte(chunk.PackBits) }, 24,
			"packbits: ends early, 20 bytes missing: corrupt"},
	} {
		tile := &chunk.Tile{Bands: 3, Height: 4, Width: 4, DType: chunk.Uint8, Params: yCbCrParams(chunk.Raw), Rows: 4,
			LeastRows: 4, MaxHeight: 4}
		c.edit(tile)
		dst, src := bytes.Repeat([]byte{7}, 48), bytes.Repeat([]byte{128}, c.stored)
		if name == "inner" {
			src = []byte{3, 1, 2, 3, 4}
		}
		err := new(yCbCrDecoder).Decompress(dst, src, tile)
		got := ""
		if err != nil {
			got = err.Error()
			if fault.KindOf(err) != fault.Corrupt {
				t.Errorf("%s: %v", name, err)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		for what, rest := range map[string]byte{"below": 0, "first rows": 7} { // in the other rows
			want := append(bytes.Repeat([]byte{128}, 24), bytes.Repeat([]byte{rest}, 24)...)
			if name == what && !bytes.Equal(dst, want) {
				t.Errorf("%s: %v", name, dst)
			}
		}
	}
}

// TestYCbCrColours: RGB by the formulas of TIFF 6.0, section 21, in floats, up to rounding, whatever the coefficients
// and the codes of black and white; tables of other numbers are made anew.
func TestYCbCrColours(t *testing.T) {
	var tables rgbTables
	for _, n := range [][9]float32{
		{0.299, 0.587, 0.114, 0, 255, 128, 255, 128, 255}, {0.2126, 0.7152, 0.0722, 16, 235, 128, 240, 128, 240},
		{0.299, 0.587, 0.114, 16, 235, 120, 250, 110, 230}, {0.5, 0.25, 0.25, 0, 128, 128, 200, 128, 255},
	} {
		var params []byte
		for _, f := range n {
			params = binary.LittleEndian.AppendUint32(params, math.Float32bits(f))
		}
		tables.reset(params)
		code := func(c, black, white float32, size float64) float64 {
			return float64(c-black) * size / float64(white-black)
		}
		for y := 0; y < 256; y += 15 {
			for cb := 0; cb < 256; cb += 15 {
				for cr := 0; cr < 256; cr += 15 {
					luma := code(float32(y), n[3], n[4], 255)
					blue := code(float32(cb), n[5], n[6], 127)
					red := code(float32(cr), n[7], n[8], 127)
					r := luma + red*(2-2*float64(n[0]))
					b := luma + blue*(2-2*float64(n[2]))
					g := (luma - float64(n[2])*b - float64(n[0])*r) / float64(n[1])
					var got [3]byte
					tables.rgb(got[:], byte(y), byte(cb), byte(cr))
					for i, want := range []float64{r, g, b} {
						if math.Abs(float64(got[i])-max(0, min(255, want))) > 3 {
							t.Fatalf("%v: (%d, %d, %d): %v, want %v", n, y, cb, cr, got, []float64{r, g, b})
						}
					}
				}
			}
		}
	}
}
