package npy_test

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/npy"
	"github.com/chaski-eo/chaski/ops/paste"
)

// TestHeaderIsNumPys: the header has the bytes that numpy.lib.format.write_array of NumPy 2.1.3
// writes.
func TestHeaderIsNumPys(t *testing.T) {
	for _, c := range []struct {
		d     chunk.DType
		shape []int
		want  string
	}{
		{chunk.Uint16, []int{3, 4}, "{'descr': '<u2', 'fortran_order': False, 'shape': (3, 4), }"},
		{chunk.Int8, []int{5}, "{'descr': '|i1', 'fortran_order': False, 'shape': (5,), }"},
		{chunk.Float64, nil, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }"},
		{chunk.Complex64, []int{2, 3, 4, 5}, "{'descr': '<c8', 'fortran_order': False, 'shape': (2, 3, 4, 5), }"},
	} {
		got, err := npy.Header(c.d, c.shape)
		want := "\x93NUMPY\x01\x00\x76\x00" + c.want + strings.Repeat(" ", 117-len(c.want)) + "\n"
		if err != nil || string(got) != want {
			t.Errorf("%s %v: %q %v, want %q", c.d, c.shape, got, err, want)
		}
	}
}

func TestHeaderRefusesWhatNumPyLacks(t *testing.T) {
	for _, d := range []chunk.DType{chunk.BFloat16, chunk.ComplexInt16, chunk.ComplexInt32, chunk.ComplexFloat16} {
		if _, err := npy.Header(d, []int{1}); fault.KindOf(err) != fault.Unsupported {
			t.Errorf("%s: %v", d, err)
		}
	}
	if _, err := npy.Header(chunk.Uint8, make([]int, 1<<15)); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("long shape: %v", err)
	}
	for n := range 100 {
		if b, err := npy.Header(chunk.Uint8, make([]int, n)); err != nil || len(b)%64 != 0 || b[len(b)-1] != '\n' {
			t.Fatal(n, len(b), err)
		}
	}
}

// TestOtherWriters: headers that numpy.lib.format reads, although NumPy writes none of them, and those that it refuses.
func TestOtherWriters(t *testing.T) {
	for text, want := range map[string][]int{
		"{'descr':'<u2','fortran_order':False,'shape':(3,4)}\n":                         {3, 4},
		"{'descr':'<u2','fortran_order':False,'shape':(3,4,),}":                         {3, 4},
		`{"descr": "<u2", "fortran_order": False, "shape": (3, 4)}`:                     {3, 4},
		"{'shape': (3, 4), 'fortran_order': False, 'descr': '<u2', }   \n":              {3, 4},
		"{ 'descr' : '<u2' ,\n 'fortran_order' : False ,\n 'shape' : ( 3L , 4L ) , }\n": {3, 4},
		"{'descr': '<u2', 'fortran_order': False, 'shape': ()}":                         {},
		"{'descr': '<u2', 'fortran_order': False, 'shape': (5,)}":                       {5},
		"{'descr': '<u2', 'fortran_order': False}":                                      nil,
		"{'descr': '<u2', 'fortran_order': False, 'fortran_order': False}":              nil,
		"{'descr': '<u2', 'fortran_order': False, 'shape': (3 4)}":                      nil,
		"{'descr': '<u2', 'fortran_order': False, 'shape': (3, 4)} x":                   nil,
		"{'descr': '<u2', 'fortran_order': False, 'shape': (3, 4)":                      nil,
	} {
		file := slices.Concat([]byte("\x93NUMPY\x01\x00"), []byte{byte(len(text)), 0}, []byte(text))
		a, err := npy.Parse(func(off int64, n int) ([]byte, error) { return file[off:][:n], nil })
		if want == nil {
			if fault.KindOf(err) != fault.Corrupt {
				t.Errorf("%q: %+v, %v", text, a, err)
			}
		} else if err != nil || !slices.Equal(a.Shape, want) || a.Descr != "<u2" || a.Fortran || a.Size != len(file) {
			t.Errorf("%q: %+v, %v", text, a, err)
		}
	}
}

// FuzzHeader writes the header of any shape of four axes: the reader of predictions reads the
// same shape, and the data begin at a multiple of 64.
func FuzzHeader(f *testing.F) {
	f.Add(uint32(0), uint32(1), uint32(math.MaxInt32), uint32(10))
	f.Fuzz(func(t *testing.T, n, b, y, x uint32) {
		shape := []int{int(n >> 1), int(b >> 1), int(y >> 1), int(x >> 1)}
		head, err := npy.Header(chunk.Float32, shape)
		if err != nil || len(head)%64 != 0 {
			t.Fatalf("%v: %d bytes, %v", shape, len(head), err)
		}
		w, err := paste.NewWindows(bytes.NewReader(head))
		if err != nil || !slices.Equal([]int{w.N, w.Bands, w.H, w.W}, shape) {
			t.Fatalf("%v is read as %+v, %v", shape, w, err)
		}
	})
}
