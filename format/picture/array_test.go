package picture_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/npy"
	"github.com/chaski-eo/chaski/format/picture"
	"github.com/chaski-eo/chaski/tools/testkit/corpus/whole"
)

// array returns a .npy file of a shape whose samples count up, as uint16.
func array(t *testing.T, shape ...int) []byte {
	t.Helper()
	b, err := npy.Header(chunk.Uint16, shape)
	if err != nil {
		t.Fatal(err)
	}
	n := 1
	for _, size := range shape {
		n *= size
	}
	for i := range n {
		b = binary.LittleEndian.AppendUint16(b, uint16(i))
	}
	return b
}

// TestArrays: arrays of all orders of axes have the samples that their strides say, step by step, band by band.
func TestArrays(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, dims := range []string{"y x", "b y x", "t y x", "t b y x", "b t y x", "y x b", "y x t", "y x t b", "y x b t",
		"t y x b"} {
		axes := strings.Fields(dims)
		for k := range 12 {
			size := map[string]int{"t": 1 + rnd.IntN(3), "b": 1 + rnd.IntN(4), "y": 1 + rnd.IntN(9),
				"x": 1 + rnd.IntN(9)}
			switch k {
			case 0: // several strips
				size["y"], size["x"] = 512, 260
			case 2: // a row is longer than a strip
				size["y"], size["x"] = 2, 140_000
			}
			shape, stride := make([]int, len(axes)), map[string]int{}
			next := 1
			for i, axis := range slices.Backward(axes) {
				shape[i], stride[axis] = size[axis], next
				next *= size[axis]
			}
			file := array(t, shape...)
			if k == 1 {
				file = bytes.Replace(file, []byte("<u2"), []byte(">u2"), 1)
				for samples := file[len(file)-2*next:]; len(samples) > 0; samples = samples[2:] {
					samples[0], samples[1] = samples[1], samples[0]
				}
			}
			x, err := picture.Open(t.Context(), memory(file), chunk.Axes{Dims: dims}, 0)
			if err != nil {
				t.Fatalf("%s of %v: %v", dims, shape, err)
			}
			steps, bands := 1, 1
			if stride["t"] > 0 {
				steps = size["t"]
			}
			if stride["b"] > 0 {
				bands = size["b"]
			}
			if x.Bands != steps*bands || x.Steps() != steps || x.Height != size["y"] || x.Width != size["x"] ||
				(x.Times > 0) != (stride["t"] > 0) {
				t.Fatalf("%s of %v: %d planes, %d steps, %d by %d", dims, shape, x.Bands, x.Times, x.Height, x.Width)
			}
			got, err := whole.Image(x, file, 1<<28)
			if err != nil {
				t.Fatal(err)
			}
			var want []byte
			for step := range steps {
				for band := range bands {
					for y := range size["y"] {
						for c := range size["x"] {
							i := step*stride["t"] + band*stride["b"] + y*stride["y"] + c*stride["x"]
							want = binary.LittleEndian.AppendUint16(want, uint16(i))
						}
					}
				}
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s of %v: other samples", dims, shape)
			}
			strip := min(max(256<<10/(2*x.ChunkB*size["x"]), 1), size["y"]) // rows of 256 KiB
			if x.ChunkH != strip || x.ChunkW != size["x"] {
				t.Errorf("%s of %v: chunks of %d by %d pixels, want %d rows", dims, shape, x.ChunkH, x.ChunkW, strip)
			}
			_, err = picture.Open(t.Context(), memory(file[:len(file)-1]), chunk.Axes{Dims: dims}, 0)
			if fault.KindOf(err) != fault.Corrupt || !strings.Contains(err.Error(), "do not fit into") {
				t.Errorf("%s of %v without the last byte: %v", dims, shape, err)
			}
		}
	}
}

// TestAxes: which shapes are rasters without names of their axes, and what they are.
func TestAxes(t *testing.T) {
	for _, c := range []struct {
		shape                       []int
		dims                        string
		planes, steps, high, across int
		kind                        fault.Kind
	}{
		{[]int{}, "", 0, 0, 0, 0, fault.Unsupported},
		{[]int{7}, "", 0, 0, 0, 0, fault.Unsupported},
		{[]int{5, 7}, "", 1, 1, 5, 7, 0},
		{[]int{1, 7}, "", 1, 1, 1, 7, 0},
		{[]int{2, 5, 7}, "", 2, 1, 5, 7, 0},
		{[]int{32, 40, 3}, "", 3, 1, 32, 40, 0},
		{[]int{32, 40, 4}, "", 4, 1, 32, 40, 0},
		{[]int{32, 40, 5}, "", 32, 1, 40, 5, 0},
		{[]int{31, 40, 3}, "", 31, 1, 40, 3, 0},
		{[]int{40, 31, 3}, "", 40, 1, 31, 3, 0},
		{[]int{3, 2, 5, 7}, "", 6, 3, 5, 7, 0},
		{[]int{2, 32, 32, 3}, "", 0, 0, 0, 0, fault.Unsupported},
		{[]int{2, 32, 32, 3}, "t y x b", 6, 2, 32, 32, 0},
		{[]int{1, 2, 3, 5, 7}, "", 0, 0, 0, 0, fault.Unsupported},
		{[]int{0, 7}, "", 0, 0, 0, 0, fault.Unsupported},
		{[]int{7, 0}, "", 0, 0, 0, 0, fault.Unsupported},
		{[]int{0, 5, 7}, "", 0, 0, 0, 0, fault.Unsupported},
		{[]int{5, 7}, "x y", 0, 0, 0, 0, fault.Unsupported},
		{[]int{5, 7}, "b y x", 0, 0, 0, 0, fault.Unsupported},
		{[]int{2, 5, 7}, "y b x", 0, 0, 0, 0, fault.Unsupported},
		{[]int{2, 5, 7}, "n y x", 0, 0, 0, 0, fault.Unsupported},
		{[]int{2, 5, 7, 3}, "b y x t", 0, 0, 0, 0, fault.Unsupported},
		{[]int{chunk.MaxPlanes, 1, 1}, "t y x", chunk.MaxPlanes, chunk.MaxPlanes, 1, 1, 0},
		{[]int{chunk.MaxPlanes + 1, 1, 1}, "t y x", 0, 0, 0, 0, fault.Limit},
		{[]int{chunk.MaxPlanes + 1, 1, 1}, "b y x", 0, 0, 0, 0, fault.Limit},
		{[]int{2, 5, 7, 3}, "t y x b", 6, 2, 5, 7, 0},
		{[]int{5, 7, 2, 2}, "y x b t", 4, 2, 5, 7, 0},
	} {
		x, err := picture.Open(t.Context(), memory(array(t, c.shape...)), chunk.Axes{Dims: c.dims}, 0)
		if fault.KindOf(err) != c.kind || err == nil && (x.Bands != c.planes || x.Steps() != c.steps ||
			x.Height != c.high || x.Width != c.across) {
			t.Errorf("%v as %q: %+v, %v, want %+v", c.shape, c.dims, x, err, c)
		}
		if c.kind == fault.Unsupported && strings.Contains(err.Error(), "dims is") != (c.dims != "") {
			t.Errorf("%v as %q: %v", c.shape, c.dims, err)
		}
		if c.kind == 0 && x.Picture != (c.dims == "" && len(c.shape) == 3 && c.high == 32) {
			t.Errorf("%v as %q: picture %v", c.shape, c.dims, x.Picture)
		}
	}
}

// TestArraysThatAreNotRead: each has the kind and the reason that it is refused for. A shape of which the samples would
// be more than an int has is refused before it is multiplied.
func TestArraysThatAreNotRead(t *testing.T) {
	for _, c := range []struct {
		header string
		kind   fault.Kind
		want   string
	}{
		{"{'descr': '<u2', 'fortran_order': False, 'shape': (5, 7), }", fault.Corrupt, "do not fit into 0 bytes"},
		{"{'descr': '<u2', 'fortran_order': False, 'shape': (2147483647, 2147483647), }", fault.Corrupt, "do not fit"},
		{"{'descr': '<u2', 'fortran_order': True, 'shape': (5, 7), }", fault.Unsupported, "Fortran order"},
		{"{'descr': '<U2', 'fortran_order': False, 'shape': (5, 7), }", fault.Unsupported, "samples are numbers"},
		{"{'descr': '<u2', 'fortran_order': False, 'shape': (5, 7", fault.Corrupt, "npy header"},
	} {
		b := append([]byte(npy.Magic+"\x01\x00"), byte(len(c.header)), 0)
		_, err := picture.Open(t.Context(), memory(append(b, c.header...)), chunk.Axes{}, 0)
		if fault.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.header, err, c.want)
		}
	}
}
