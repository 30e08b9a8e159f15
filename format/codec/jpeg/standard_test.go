package jpeg

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/chaski-eo/chaski/fault"
)

// TestInverse promises samples within 1 of ITU-T T.81, A.3.3, in floating point, for coefficients of 8-bit images.
func TestInverse(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for i := range 500 {
		var samples, coefficients [64]float64
		for k := range samples {
			samples[k] = float64(rnd.IntN(256) - 128)
			if i%2 == 0 { // a smooth block
				samples[k] = math.Round(100 * math.Sin(float64(i+k/8*3+k%8)/9))
			}
		}
		forward(&coefficients, &samples)
		var block [64]int32
		last := 0
		for k, place := range zigzag {
			block[place] = int32(math.Round(coefficients[place]))
			coefficients[place] = float64(block[place])
			if block[place] != 0 {
				last = k
			}
		}
		got := make([]byte, 64)
		inverse(got, 8, &block, last)
		for y := range 8 {
			for x := range 8 {
				want := math.Min(math.Max(sample(&coefficients, x, y)+128, 0), 255)
				if math.Abs(want-float64(got[8*y+x])) > 1 {
					t.Fatalf("block %d, sample (%d, %d) is %d, want %.2f", i, y, x, got[8*y+x], want)
				}
			}
		}
	}
}

// weight is C(k) of ITU-T T.81, A.3.3.
func weight(k int) float64 {
	if k == 0 {
		return math.Sqrt2 / 2
	}
	return 1
}

// forward computes the coefficients of samples.
func forward(coefficients, samples *[64]float64) {
	for v := range 8 {
		for u := range 8 {
			sum := 0.0
			for y := range 8 {
				for x := range 8 {
					sum += samples[8*y+x] * cosine(x, u) * cosine(y, v)
				}
			}
			coefficients[8*v+u] = sum * weight(u) * weight(v) / 4
		}
	}
}

// sample computes one sample of a block.
func sample(coefficients *[64]float64, x, y int) (sum float64) {
	for v := range 8 {
		for u := range 8 {
			sum += coefficients[8*v+u] * weight(u) * weight(v) * cosine(x, u) * cosine(y, v) / 4
		}
	}
	return sum
}

func cosine(at, frequency int) float64 { return math.Cos(float64((2*at+1)*frequency) * math.Pi / 16) }

// pixels returns a grey image of any size: waves, with noise in every second one.
func pixels(rnd *rand.Rand) *image.Gray {
	img := image.NewGray(image.Rect(0, 0, 1+rnd.IntN(70), 1+rnd.IntN(70)))
	noise := 1 + 60*rnd.IntN(2)
	for i := range img.Pix {
		x, y := i%img.Stride, i/img.Stride
		wave := 90 * math.Sin(float64(x)/7) * math.Cos(float64(y)/11)
		img.SetGray(x, y, color.Gray{Y: uint8(128 + wave + float64(rnd.IntN(noise)-noise/2))})
	}
	return img
}

// TestLikeStandardLibrary: grey images of any size and quality have the samples that image/jpeg decodes, within 2: each
// may be off by 1 from the exact inverse. A used decoder gives what a new one gives, and the first rows are the same
// alone.
func TestLikeStandardLibrary(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	var used Decoder
	for i := range 60 {
		img := pixels(rnd)
		var stream bytes.Buffer
		if err := jpeg.Encode(&stream, img, &jpeg.Options{Quality: 1 + rnd.IntN(100)}); err != nil {
			t.Fatal(err)
		}
		standard, err := jpeg.Decode(bytes.NewReader(stream.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		want := standard.(*image.Gray)
		w, h := img.Rect.Dx(), img.Rect.Dy()
		shape := Shape{Width: w, Height: h, Bands: 1, Rows: h, Least: h, MaxHeight: h}
		got, again := make([]byte, w*h), make([]byte, w*h)
		if err := new(Decoder).Decode(got, stream.Bytes(), nil, shape); err != nil {
			t.Fatal(err)
		}
		for k, sample := range got {
			if other := want.GrayAt(k%w, k/w).Y; max(sample, other)-min(sample, other) > 2 {
				t.Fatalf("image %d of %d × %d: sample %d is %d, want %d", i, w, h, k, sample, other)
			}
		}
		shape.Rows = rnd.IntN(h + 1)
		if err := used.Decode(again, stream.Bytes(), nil, shape); err != nil {
			t.Fatal(err)
		}
		if n := w * shape.Rows; !bytes.Equal(again[:n], got[:n]) || !bytes.Equal(again[n:], make([]byte, w*h-n)) {
			t.Fatalf("image %d: the first %d rows differ", i, shape.Rows)
		}
	}
}

// TestShortStreams: each beginning of a stream, and a stream of another size than the tile's, is refused as corrupt or
// unsupported, or gives samples.
func TestShortStreams(t *testing.T) {
	img := pixels(rand.New(rand.NewPCG(7, 8)))
	var stream bytes.Buffer
	if err := jpeg.Encode(&stream, img, nil); err != nil {
		t.Fatal(err)
	}
	w, h := img.Rect.Dx(), img.Rect.Dy()
	shape := Shape{Width: w, Height: h, Bands: 1, Rows: h, Least: h, MaxHeight: h}
	var d Decoder
	dst := make([]byte, w*(h+1))
	for n := range stream.Len() {
		err := d.Decode(dst[:w*h], stream.Bytes()[:n], nil, shape)
		if kind := fault.KindOf(err); err != nil && kind != fault.Corrupt && kind != fault.Unsupported {
			t.Fatalf("%d bytes: %v", n, err)
		} else if n < stream.Len()/2 && err == nil {
			t.Fatalf("%d of %d bytes are an image", n, stream.Len())
		}
	}
	for _, other := range []Shape{
		{Width: w + 1, Height: h, Bands: 1, Rows: h, Least: h, MaxHeight: h},
		{Width: w, Height: h + 1, Bands: 1, Rows: h + 1, Least: h + 1, MaxHeight: h + 1},
		{Width: w, Height: h, Bands: 3, Rows: h, Least: h, MaxHeight: h},
	} {
		err := d.Decode(make([]byte, other.Width*other.Height*other.Bands), stream.Bytes(), nil, other)
		if fault.KindOf(err) != fault.Corrupt {
			t.Errorf("%+v: %v", other, err)
		}
	}
}
