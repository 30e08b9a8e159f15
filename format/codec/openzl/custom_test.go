package openzl

import (
	"bytes"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
)

// TestCustom: a custom codec gets the streams of its frame, its signature is checked before
// anything runs, and it cannot make streams of other widths or sizes than a frame may have.
func TestCustom(t *testing.T) {
	ran := 0
	reverse := func(c *Call) error {
		ran++
		in := c.In[0]
		if in.Type != Numeric || in.Width != 2 || len(c.In) != 1 || c.Version != 24 || string(c.Header) != "head" {
			t.Errorf("input %v of width %d, %d inputs, version %d, header %q",
				in.Type, in.Width, len(c.In), c.Version, c.Header)
		}
		dst, err := c.Make(0, in.Width, in.Count)
		if err != nil {
			return err
		}
		for i := range in.Count {
			copy(dst[2*i:], in.Data[2*(in.Count-1-i):2*(in.Count-i)])
		}
		return nil
	}
	bad := map[uint32]func(*Call) error{
		2: func(c *Call) error { _, err := c.Make(0, 3, 1); return err },
		3: func(c *Call) error { _, err := c.Make(0, 2, 1<<40); return err },
		4: func(c *Call) error { _, err := c.Make(0, 2, -1); return err },
	}
	custom := map[uint32]*CustomCodec{
		77: {Name: "reverse", In: []Type{Numeric}, Out: []Type{Numeric}, Decode: reverse},
		79: {Name: "two", In: []Type{Numeric, Numeric}, Out: []Type{Numeric}, Decode: reverse},
		80: {Name: "serial", In: []Type{Serial}, Out: []Type{Numeric}, Decode: reverse},
		81: {Name: "any", Vars: []Type{Serial, Numeric}, Out: []Type{Numeric}, Decode: func(c *Call) error {
			dst, err := c.Make(0, 1, len(c.In))
			for i := range dst {
				dst[i] = byte(c.In[i].Count)
			}
			return err
		}},
	}
	for id, f := range bad {
		custom[id] = &CustomCodec{Name: "bad", In: []Type{Numeric}, Out: []Type{Numeric}, Decode: f}
	}
	d := NewDecoder(Options{Custom: custom})
	frame := func(id int) []byte {
		return testFrame([]Type{Numeric}, []int{6},
			[]testNode{{id: idNumToSerial, header: []byte{1}, distances: []int{0}},
				{id: id, custom: true, header: []byte("head"), distances: []int{0}}}, []byte("aabbcc"))
	}
	outs, err := d.Decode(frame(77))
	if err != nil || string(outs[0].Data) != "ccbbaa" {
		t.Fatalf("reversed: %v, %v", outs, err)
	}
	dst := make([]byte, 6)
	if err := d.Decompress(dst, frame(77), 2); err != nil || string(dst) != "ccbbaa" {
		t.Errorf("reversed: %q, %v", dst, err)
	}
	many := testFrame([]Type{Numeric}, []int{3}, []testNode{{id: 81, custom: true, vars: 3, distances: []int{0}}},
		[]byte("a"), []byte("bb"), []byte("ccc"))
	if outs, err := d.Decode(many); err != nil || !bytes.Equal(outs[0].Data, []byte{3, 2, 1}) {
		t.Errorf("variable inputs: %v, %v", outs, err)
	}
	ran = 0
	for id, want := range map[int]string{
		2:   "numeric stream of width 3: corrupt",
		3:   ": limit",
		4:   "elements: corrupt", // -1
		79:  "corrupt",
		80:  "input 0 of codec serial is numeric: corrupt",
		999: "openzl custom codec (999): unsupported",
	} {
		_, err := d.Decode(frame(id))
		if err == nil || fault.KindOf(err) == 0 {
			t.Errorf("codec %d: error %v", id, err)
			continue
		}
		if id != 4 && !strings.HasSuffix(err.Error(), want) {
			t.Errorf("codec %d: error %q, want %q", id, err, want)
		}
	}
	if ran != 0 {
		t.Errorf("a codec ran %d times in graphs that do not fit it", ran)
	}
}
