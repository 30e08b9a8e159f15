package codecs

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/format/codec/openzl/internal/memory"
)

// inverse is what an encoder of one formula makes of data: the streams and the header of its node.
type inverse struct {
	codec  string
	in     []*Stream
	header []byte
	out    *Stream // the type of the output
	want   []byte
}

// put writes the lowest bytes of a number as element i.
func put(b []byte, i, width int, value uint64) {
	var full [8]byte
	binary.LittleEndian.PutUint64(full[:], value)
	copy(b[i*width:][:width], full[:])
}

// get reads element i.
func get(b []byte, i, width int) uint64 {
	var full [8]byte
	copy(full[:], b[i*width:][:width])
	return binary.LittleEndian.Uint64(full[:])
}

// inverses encodes random numbers in each of the ways, with plain loops.
func inverses(r *rand.Rand) (list []inverse) {
	width, n := 1<<r.IntN(4), 1+r.IntN(60)
	data := make([]byte, width*n)
	for i := range data {
		data[i] = byte(r.Uint32()) >> r.IntN(8)
	}
	add := func(codec string, header []byte, out Type, want []byte, in ...*Stream) {
		list = append(list, inverse{codec, in, header, &Stream{Type: out}, want})
	}

	differences := make([]byte, width*(n-1))
	for i := 1; i < n; i++ {
		put(differences, i-1, width, get(data, i, width)-get(data, i-1, width))
	}
	add("delta_int", data[:width], Numeric, data, stream(Numeric, width, differences))

	planes := make([]byte, width*n) // byte k of all elements, for each k
	split := make([]*Stream, width)
	for k := range width {
		for i := range n {
			planes[k*n+i] = data[i*width+k]
		}
		split[k] = stream(Serial, 1, planes[k*n:][:n])
	}
	add("transpose", nil, Struct, data, &Stream{Type: Struct, Width: n, Count: width, Data: planes})
	add("transpose_split", nil, Struct, data, split...)

	cut := r.IntN(n + 1)
	add("splitn_num", nil, Numeric, data, stream(Numeric, width, data[:width*cut]),
		stream(Numeric, width, data[width*cut:]))

	divisor := 2 + r.Uint64N(254)
	quotients, products := make([]byte, width*n), make([]byte, width*n)
	highest := ^uint64(0) >> (64 - 8*width)
	for i := range n {
		quotient := get(data, i, width) % (highest/divisor + 1)
		put(quotients, i, width, quotient)
		put(products, i, width, quotient*divisor)
	}
	add("divide_by", binary.AppendUvarint(nil, divisor), Numeric, products, stream(Numeric, width, quotients))

	alphabet, indices := []byte{}, make([]byte, n)
	for i := range n {
		element, at := data[width*i:][:width], 0
		for at < len(alphabet) && !bytes.Equal(alphabet[at:][:width], element) {
			at += width
		}
		if at == len(alphabet) {
			alphabet = append(alphabet, element...)
		}
		indices[i] = byte(at / width)
	}
	for codec, typ := range map[string]Type{"tokenize_numeric": Numeric, "tokenize_fixed": Struct} {
		add(codec, nil, typ, data, stream(typ, width, alphabet), stream(Numeric, 1, indices))
	}

	small, low := make([]byte, n), r.Uint64()&highest>>1
	raised := make([]byte, width*n)
	for i := range n {
		small[i] = data[i*width] & 0x7f
		put(raised, i, width, low+uint64(small[i]))
	}
	first := make([]byte, width)
	put(first, 0, width, low)
	add("range_pack", append([]byte{byte(width)}, first...), Numeric, raised, stream(Numeric, 1, small))

	codes, exceptions, sentinel := make([]byte, n), []byte{}, byte(r.IntN(256))
	widened := make([]byte, width*n)
	for i := range n {
		if codes[i] = data[i*width]; codes[i] == sentinel || r.IntN(4) == 0 {
			codes[i] = sentinel
			exceptions = append(exceptions, data[i*width:][:width]...)
			copy(widened[i*width:], data[i*width:][:width])
		} else {
			widened[i*width] = codes[i]
		}
	}
	add("sentinel", binary.AppendUvarint(nil, uint64(sentinel)), Numeric, widened, stream(Numeric, 1, codes),
		stream(Numeric, width, exceptions))
	return list
}

// TestInverse: codecs of one formula regenerate what a plain encoder was given, of every width. One byte more or less
// of an input never gives the same without an error.
func TestInverse(t *testing.T) {
	ids := map[string]*Codec{}
	for i := range Standard {
		ids[Standard[i].Name] = &Standard[i]
	}
	r := rand.New(rand.NewPCG(9, 3))
	w := &Workspace{Memory: memory.New()}
	seen := map[string]int{}
	for range 300 {
		for _, c := range inverses(r) {
			w.Memory.SetLimit(1 << 20)
			name := fmt.Sprintf("%s of %x with header %x", c.codec, c.want, c.header)
			if err := w.Run(ids[c.codec], 24, c.header, c.in, []*Stream{c.out}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if !bytes.Equal(c.out.Data, c.want) {
				t.Fatalf("%s gives %x", name, c.out.Data)
			}
			c.out.Drop(&w.Memory)
			seen[c.codec]++
			last := c.in[len(c.in)-1]
			if last.Count == 0 {
				continue
			}
			short := *last
			short.Count--
			short.Data = short.Data[:short.Width*short.Count]
			out := &Stream{Type: c.out.Type}
			err := w.Run(ids[c.codec], 24, c.header, append(slices.Clone(c.in[:len(c.in)-1]), &short), []*Stream{out})
			if err == nil && bytes.Equal(out.Data, c.want) {
				t.Fatalf("%s: the same without the last element of its last stream", name)
			}
			out.Drop(&w.Memory)
		}
	}
	if len(seen) != 9 {
		t.Errorf("codecs tried: %v", seen)
	}
}
