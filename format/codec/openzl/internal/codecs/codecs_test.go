package codecs

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/memory"
)

// stream returns a stream of elements of a width.
func stream(t Type, width int, data []byte) *Stream {
	return &Stream{Type: t, Width: width, Count: len(data) / width, Data: data}
}

// TestTable: codecs have names of their own and versions in order, and decode what they regenerate.
func TestTable(t *testing.T) {
	names := map[string]int{}
	for id := range Standard {
		codec := &Standard[id]
		if codec.Name == "" {
			continue
		}
		if first, twice := names[codec.Name]; twice {
			t.Errorf("%d and %d are both %s", first, id, codec.Name)
		}
		names[codec.Name] = id
		if codec.Max != 0 && codec.Max < codec.Min || codec.Decode != nil && len(codec.Out) == 0 {
			t.Errorf("%s: %+v", codec.Name, codec)
		}
	}
}

// TestAgainstLoops: codecs of one formula give what a loop over the formula gives.
func TestAgainstLoops(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 1))
	le := binary.LittleEndian
	w := &Workspace{Memory: memory.New()}
	for range 200 {
		w.Memory.SetLimit(1 << 20)
		numbers := make([]byte, 4*(1+r.IntN(50)))
		for i := range numbers {
			numbers[i] = byte(r.Uint32())
		}
		unfolded := make([]byte, len(numbers)) // 0, 1, 2, 3 are 0, -1, 1, -2
		for i := 0; i < len(numbers); i += 4 {
			v := le.Uint32(numbers[i:])
			n := int32(v >> 1)
			if v&1 != 0 {
				n = -n - 1
			}
			le.PutUint32(unfolded[i:], uint32(n))
		}
		out := &Stream{Type: Numeric}
		err := w.Run(&Standard[3], 20, nil, []*Stream{stream(Numeric, 4, numbers)}, []*Stream{out})
		if err != nil || out.Count != len(numbers)/4 || !bytes.Equal(out.Data, unfolded) {
			t.Fatalf("zigzag of %x: %x, want %x, %v", numbers, out.Data, unfolded, err)
		}
		out.Drop(&w.Memory)

		element, times := numbers[:4], 1+r.IntN(1000)
		header := binary.AppendUvarint(nil, uint64(times))
		out = &Stream{Type: Struct}
		err = w.Run(&Standard[45], 20, header, []*Stream{stream(Struct, 4, element)}, []*Stream{out})
		if err != nil || !bytes.Equal(out.Data, bytes.Repeat(element, times)) {
			t.Fatalf("%d times %x: %x, %v", times, element, out.Data, err)
		}
		out.Drop(&w.Memory)
	}
}

// TestHostile: whatever streams and headers a codec gets, it returns, and its errors have a kind.
func TestHostile(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 2))
	w := &Workspace{Memory: memory.New()}
	some := func(most int) []byte {
		b := make([]byte, r.IntN(most))
		for i := range b {
			b[i] = byte(r.Uint32()) >> r.IntN(8)
		}
		return b
	}
	for id := range Standard {
		codec := &Standard[id]
		if codec.Decode == nil {
			continue
		}
		for range 300 {
			w.Memory.SetLimit(1 << 20)
			types := append([]Type(nil), codec.In...)
			for range r.IntN(3) {
				if len(codec.Vars) > 0 {
					types = append(types, codec.Vars[r.IntN(len(codec.Vars))])
				}
			}
			var in, out []*Stream
			for _, typ := range types {
				width := map[Type]int{Serial: 1, Struct: 1 + r.IntN(9), Numeric: 1 << r.IntN(4), String: 1}[typ]
				data := some(64)
				one := stream(typ, width, data[:len(data)/width*width])
				if typ == String {
					one.Width, one.Count, one.Lens = 0, 1, []uint32{uint32(len(one.Data))}
				}
				in = append(in, one)
			}
			for _, typ := range codec.Out {
				out = append(out, &Stream{Type: typ})
			}
			version := max(int(codec.Min), 20)
			if codec.Max != 0 {
				version = int(codec.Max)
			}
			if err := w.Run(codec, version, some(24), in, out); err != nil && fault.KindOf(err) == 0 {
				t.Fatalf("%s: %v has no kind", codec.Name, err)
			}
			for _, one := range out {
				one.Drop(&w.Memory)
			}
		}
	}
}
