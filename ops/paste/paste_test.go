package paste

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/tog"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

func options(h, w, wh, ww, sy, sx int, pad bool) Options {
	return Options{
		Bands: 2, Height: h, Width: w, Blend: Linear, MaxBytes: 1 << 24,
		Grid: shuffle.Grid{H: wh, W: ww, StrideY: sy, StrideX: sx, AlignY: 1, AlignX: 1, Pad: pad},
	}
}

// imageOf returns the image (bands, rows, columns) of the strips of Image.
func imageOf(o Options, read func(j int64, dst []float32) error) ([]byte, error) {
	bands, size := o.Bands, 4
	if o.Argmax {
		bands, size = 1, 1
	}
	image := make([]byte, bands*o.Height*o.Width*size)
	return image, Image(o, read, func(y, rows int, strip []byte) error {
		n := rows * o.Width * size
		for k := range bands {
			copy(image[(k*o.Height+y)*o.Width*size:], strip[k*n:][:n])
		}
		return nil
	})
}

func at(b []byte, i int) float64 {
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
}

// TestAnImageComesBack: windows cut out of an image give the image again, with any blend.
func TestAnImageComesBack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, o := range []Options{
		options(30, 41, 8, 8, 8, 8, false), options(30, 41, 8, 10, 3, 7, false),
		options(30, 41, 8, 10, 5, 10, true), options(5, 6, 8, 10, 5, 10, true),
		options(8, 8, 8, 8, 1, 1, false),
		options(1600, 9, 8, 9, 7, 9, false), options(1025, 5, 600, 5, 300, 5, true), // over strips of 512 rows
	} {
		for _, blend := range []Blend{Linear, Mean} {
			o.Blend = blend
			image := make([]float32, 2*o.Height*o.Width)
			for i := range image {
				image[i] = r.Float32()
			}
			got, err := imageOf(o, func(j int64, dst []float32) error {
				b := o.Grid.At(j, o.Height, o.Width)
				for i := range dst {
					k, y, x := i/b.W/b.H, i/b.W%b.H+b.Y, i%b.W+b.X
					dst[i] = -99 // past the edge
					if y < o.Height && x < o.Width {
						dst[i] = image[(k*o.Height+y)*o.Width+x]
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range image {
				if math.Abs(at(got, i)-float64(want)) > 1e-6 {
					t.Fatalf("%+v: sample %d is %v, was %v", o, i, at(got, i), want)
				}
			}
		}
	}
}

// TestBlends: every pixel is the weighted mean of all windows that cover it, computed in float64.
func TestBlends(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, blend := range []Blend{Linear, Mean} {
		o := options(23, 31, 10, 8, 4, 3, false)
		o.Blend = blend
		windows := make([][]float32, o.Grid.Count(o.Height, o.Width))
		for j := range windows {
			windows[j] = make([]float32, 2*10*8)
			for i := range windows[j] {
				windows[j][i] = r.Float32()
			}
		}
		read := func(j int64, dst []float32) error { copy(dst, windows[j]); return nil }
		got, err := imageOf(o, read)
		if err != nil {
			t.Fatal(err)
		}
		o.Argmax = true
		classes, err := imageOf(o, read)
		if err != nil {
			t.Fatal(err)
		}
		for y := range o.Height {
			for x := range o.Width {
				var mean [2]float64
				for k := range 2 {
					sum, weights := 0.0, 0.0
					for j := range windows {
						b := o.Grid.At(int64(j), o.Height, o.Width)
						dy, dx := y-b.Y, x-b.X
						if dy < 0 || dx < 0 || dy >= 10 || dx >= 8 {
							continue
						}
						w := 1.0
						if blend == Linear {
							w = float64(min(dy+1, 10-dy) * min(dx+1, 8-dx))
						}
						sum, weights = sum+w*float64(windows[j][(k*10+dy)*8+dx]), weights+w
					}
					mean[k] = sum / weights
					if v := at(got, (k*o.Height+y)*o.Width+x); math.Abs(v-mean[k]) > 1e-5 {
						t.Fatalf("%s (%d, %d, %d): %v, want %v", blend, k, y, x, v, mean[k])
					}
				}
				if want := mean[1] > mean[0]; (classes[y*o.Width+x] == 1) != want && math.Abs(mean[1]-mean[0]) > 1e-5 {
					t.Fatalf("%s (%d, %d): class %d of %v", blend, y, x, classes[y*o.Width+x], mean)
				}
			}
		}
	}
}

// TestWriteTOG: the file that was written has the pixels of the image.
func TestWriteTOG(t *testing.T) {
	o := options(20, 30, 10, 10, 5, 5, false)
	image, err := imageOf(o, func(j int64, dst []float32) error {
		for i := range dst {
			dst[i] = float32(i / 100)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	err = tog.Write(&b, image, o.togOptions(tiff.Geo{
		EPSG: 32618, HasTransform: true,
		Transform: [6]float64{5e5, 10, 0, 4e6, 0, -10},
	}, 1))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "out.tif")
	testfile.Write(t, path, b.Bytes())
	a, err := raster.Read(context.Background(), []string{path}, raster.ReadOptions{})
	if err != nil || !bytes.Equal(a.Data, image) {
		t.Errorf("the file has another image, %v", err)
	}
}

func TestRefusals(t *testing.T) {
	none := func(int64, []float32) error { return nil }
	for name, o := range map[string]Options{
		"gaps":        options(20, 20, 5, 5, 6, 5, false),
		"small image": options(4, 20, 5, 5, 5, 5, false),
		"no blend": {
			Bands: 1, Height: 9, Width: 9, MaxBytes: 1 << 20, Grid: options(9, 9, 3, 3, 3, 3, false).Grid,
		},
		"many classes": {
			Bands: 300, Height: 9, Width: 9, Argmax: true, Blend: Mean,
			MaxBytes: 1 << 20, Grid: options(9, 9, 3, 3, 3, 3, false).Grid,
		},
		"large image":   options(2000, 2000, 5, 5, 5, 5, false),
		"image of none": options(0, 20, 5, 5, 5, 5, true),
		"names without classes": func() Options {
			o := options(20, 20, 5, 5, 5, 5, false)
			o.Classes.Names = []string{"a"}
			return o
		}(),
		"a colour by name": func() Options {
			o := options(20, 20, 5, 5, 5, 5, false)
			o.Argmax, o.Classes.Palette = true, []string{"#102030", "red"}
			return o
		}(),
	} {
		if _, err := imageOf(o, none); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func npyFile(head string, data []byte) []byte {
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(head)), byte(len(head)>>8))
	return append(append(b, head...), data...)
}

func TestWindows(t *testing.T) {
	data := make([]byte, 0, 4*24)
	for i := range 24 {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(i)))
	}
	header := "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1, 3, 4), }   \n"
	w, err := NewWindows(bytes.NewReader(npyFile(header, data)))
	if err != nil || w.N != 2 || w.Bands != 1 || w.H != 3 || w.W != 4 {
		t.Fatalf("%+v, %v", w, err)
	}
	dst := make([]float32, 12)
	for j := range int64(2) {
		if err := w.Read(j, dst); err != nil || dst[0] != float32(12*j) || dst[11] != float32(12*j+11) {
			t.Fatalf("window %d: %v, %v", j, dst, err)
		}
	}
	if err := w.Read(2, dst); fault.KindOf(err) != fault.Corrupt {
		t.Errorf("a window past the end: %v", err)
	}
}

// FuzzWindows reads any NumPy file: it is refused with a kind, or its windows are the bytes after its header, and a
// file that ends before them is refused in the window where it ends.
func FuzzWindows(f *testing.F) {
	f.Add(npyFile("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1, 3, 4), }   \n", make([]byte, 96)))
	f.Add(npyFile("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1, 3, 4), }   \n", make([]byte, 95)))
	f.Add(npyFile("{'descr': '<f4', 'fortran_order': False, 'shape': (2147483647, 2147483647, 9, 0), }\n", nil))
	f.Add(npyFile("{'descr': '<f8', 'fortran_order': True, 'shape': (2,), }\n", nil))
	f.Add([]byte("\x93NUMPY\x02\x00\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := NewWindows(bytes.NewReader(b))
		if err != nil {
			if fault.KindOf(err) == 0 {
				t.Fatalf("%v has no kind", err)
			}
			return
		}
		// The data begin after the magic, the length of the header in 2 or 4 bytes, and the header.
		head := 10 + int(binary.LittleEndian.Uint16(b[8:]))
		if b[6] > 1 {
			head = 12 + int(binary.LittleEndian.Uint32(b[8:]))
		}
		data := b[head:]
		if w.Bands > 1<<10 || w.H > 1<<10 || w.W > 1<<10 || w.Bands*w.H*w.W > 1<<16 {
			return // whoever calls has checked the sizes
		}
		dst := make([]float32, w.Bands*w.H*w.W)
		for j := range min(w.N, 64) {
			err := w.Read(int64(j), dst)
			if whole := len(data) >= 4*len(dst); whole != (err == nil) {
				t.Fatalf("window %d of %d values with %d bytes left: %v", j, len(dst), len(data), err)
			}
			if err != nil {
				if fault.KindOf(err) != fault.Corrupt {
					t.Fatal(err)
				}
				return
			}
			for i, v := range dst {
				if math.Float32bits(v) != binary.LittleEndian.Uint32(data[4*i:]) {
					t.Fatalf("window %d: value %d is %v", j, i, v)
				}
			}
			data = data[4*len(dst):]
		}
	})
}
