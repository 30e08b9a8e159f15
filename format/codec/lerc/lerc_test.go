package lerc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/chaski-eo/chaski/fault"
)

// blob writes a blob of LERC2, version 4, as Esri's specification of the format lays it out, with all samples as they
// are ("one sweep") and a mask of one run for each byte.
func blob(s Shape, samples []float32, valid []bool) []byte {
	le := binary.LittleEndian
	count, least, most := 0, math.Inf(1), math.Inf(-1)
	mask := make([]byte, (len(valid)+7)/8)
	var body []byte
	for i, ok := range valid {
		if !ok {
			continue
		}
		count++
		mask[i/8] |= 0x80 >> (i % 8)
		for b := range s.Bands {
			v := samples[i*s.Bands+b]
			least, most = min(least, float64(v)), max(most, float64(v))
			body = le.AppendUint32(body, math.Float32bits(v))
		}
	}
	var runs []byte
	if count < len(valid) {
		for _, m := range mask {
			runs = append(le.AppendUint16(runs, 1), m)
		}
		runs = le.AppendUint16(runs, 0x8000)
	}
	var rest []byte
	for _, n := range []int{s.Height, s.Width, s.Bands, count, 8, 0, int(Float32)} {
		rest = le.AppendUint32(rest, uint32(n))
	}
	for _, v := range []float64{0, least, most} {
		rest = le.AppendUint64(rest, math.Float64bits(v))
	}
	rest = append(le.AppendUint32(rest, uint32(len(runs))), runs...)
	for _, extreme := range []float64{least, most} { // of each band: here those of all
		for range s.Bands {
			rest = le.AppendUint32(rest, math.Float32bits(float32(extreme)))
		}
	}
	rest = append(append(rest, 1), body...)
	out := append([]byte("Lerc2 "), 4, 0, 0, 0, 0, 0, 0, 0)
	le.PutUint32(rest[5*4:], uint32(len(out)+len(rest)))
	a, b := uint32(0xffff), uint32(0xffff) // Fletcher's checksum, word by word
	for i := 0; i < len(rest); i += 2 {
		word := uint32(rest[i]) << 8
		if i+1 < len(rest) {
			word |= uint32(rest[i+1])
		}
		a = (a + word) % 0xffff
		b = (b + a) % 0xffff
	}
	if a == 0 {
		a = 0xffff
	}
	if b == 0 {
		b = 0xffff
	}
	le.PutUint32(out[10:], b<<16|a)
	return append(out, rest...)
}

// TestSamples: samples and masks come back, with any number of bands; other shapes, changed bytes and cut blobs are
// corrupt.
func TestSamples(t *testing.T) {
	var decoder Decoder
	for _, s := range []Shape{
		{Width: 5, Height: 3, Bands: 1, Type: Float32}, {Width: 7, Height: 2, Bands: 3, Type: Float32},
	} {
		for _, gaps := range []bool{false, true} {
			samples, valid := make([]float32, s.Width*s.Height*s.Bands), make([]bool, s.Width*s.Height)
			want := make([]byte, 0, 4*len(samples))
			for i := range samples {
				pixel := i / s.Bands
				valid[pixel] = !gaps || pixel%3 != 1
				samples[i] = float32(i*i) - 7.5
				if v := samples[i]; valid[pixel] {
					want = binary.LittleEndian.AppendUint32(want, math.Float32bits(v))
				} else {
					want = binary.LittleEndian.AppendUint32(want, 0)
				}
			}
			src, dst := blob(s, samples, valid), make([]byte, len(want))
			mask, err := decoder.Decode(dst, src, s)
			if err != nil || !bytes.Equal(dst, want) || gaps == (mask == nil) {
				t.Fatalf("%+v: %x, want %x, mask %x, %v", s, dst, want, mask, err)
			}
			for i, ok := range valid {
				if gaps && mask[i/8]&(0x80>>(i%8)) != 0 != ok {
					t.Errorf("%+v: pixel %d of the mask %x, want %t", s, i, mask, ok)
				}
			}
			if size, bands := BlobSize(src); size != len(src) || bands != s.Bands {
				t.Errorf("a blob of %d bytes and %d bands, want %d and %d", size, bands, len(src), s.Bands)
			}
			for i := range src {
				changed := bytes.Clone(src)
				changed[i] ^= 1
				if _, err := decoder.Decode(dst, changed, s); fault.KindOf(err) == 0 && i != 6 { // another version
					t.Errorf("%+v with another byte %d: %v", s, i, err)
				}
				if _, err := decoder.Decode(dst, src[:i], s); !errors.Is(err, fault.Corrupt) {
					t.Errorf("%+v, cut to %d bytes: %v", s, i, err)
				}
			}
			other := s
			other.Width, other.Height = s.Height, s.Width
			if _, err := decoder.Decode(dst, src, other); !errors.Is(err, fault.Corrupt) {
				t.Errorf("%+v as %+v: %v", s, other, err)
			}
		}
	}
}
