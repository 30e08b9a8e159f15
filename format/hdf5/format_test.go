package hdf5

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// TestLookup3: the checksums of known texts, from the comments of Bob Jenkins' lookup3.c.
func TestLookup3(t *testing.T) {
	for text, want := range map[string]uint32{"": 0xdeadbeef, "Four score and seven years ago": 0x17770551} {
		if got := lookup3([]byte(text)); got != want {
			t.Errorf("%q: %08x, not %08x", text, got, want)
		}
	}
}

// TestAttributes compares attributes, compact and dense ones, with what the corpus was written with.
func TestAttributes(t *testing.T) {
	for _, version := range [...]string{"earliest", "v108", "latest"} {
		b := files(t)["groups_"+version+".h5"]
		file, err := Open(context.Background(), &corpus.Mem{B: b}, func(int64) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		n := file.Nodes["attributes"]
		if len(n.Attrs) != 39 {
			t.Errorf("%s: %d attributes", version, len(n.Attrs))
		}
		if v, ok := n.Attr("a29").([]int64); !ok || v[0] != 29 {
			t.Errorf("%s: a29 is %v", version, n.Attr("a29"))
		}
		if v, ok := n.Attr("names").([]string); !ok || strings.Join(v, " ") != "x yy" {
			t.Errorf("%s: names is %v", version, n.Attr("names"))
		}
		if v, ok := n.Attr("big").([]float64); !ok || v[2] != 2 {
			t.Errorf("%s: big is %v", version, n.Attr("big"))
		}
		if v, ok := n.Attr("flag").([]bool); !ok || !v[0] {
			t.Errorf("%s: flag is %v", version, n.Attr("flag"))
		}
		if n.Attr("pairs") != nil {
			t.Errorf("%s: pairs is %v", version, n.Attr("pairs"))
		}
	}
}

// TestHalf compares floats of 16 bits with the arithmetic of their definition.
func TestHalf(t *testing.T) {
	for bits, want := range map[uint64]float64{0x3c00: 1, 0xc000: -2, 0x7bff: 65504, 1: math.Ldexp(1, -24),
		0x7c00: math.Inf(1), 0xfc00: math.Inf(-1), 0x0400: math.Ldexp(1, -14)} {
		if got := floatOf(bits, 2); got != want {
			t.Errorf("%04x: %v, not %v", bits, got, want)
		}
	}
	if !math.IsNaN(floatOf(0x7e00, 2)) {
		t.Error("7e00 is no NaN")
	}
}

// TestMemory: the callback that counts memory ends the reading of a tree and of an index.
func TestMemory(t *testing.T) {
	full := errors.New("full")
	b := files(t)["layouts_latest.h5"]
	_, err := Open(context.Background(), &corpus.Mem{B: b}, func(int64) error { return full })
	if !errors.Is(err, full) {
		t.Errorf("a tree without room: %v", err)
	}
	file, err := Open(context.Background(), &corpus.Mem{B: b}, func(int64) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	d := file.Nodes["layouts/fixed_pages"].Dataset
	_, err = d.Chunks(context.Background(), &corpus.Mem{B: b}, func(int64) error { return full })
	if !errors.Is(err, full) {
		t.Errorf("an index without room: %v", err)
	}
}

// TestManyWays: a group that has itself below it many times, by other groups, ends with an error.
func TestManyWays(t *testing.T) {
	const groups, links = 20, 2
	file := []byte(Signature + "\x02\x08\x08\x00")
	u64 := func(v uint64) { file = binary.LittleEndian.AppendUint64(file, v) }
	sum := func(from int) { file = binary.LittleEndian.AppendUint32(file, lookup3(file[from:])) }
	const first, each = 48, 7 + links*(4+12) + 4 // of a header: its front, the messages, and the checksum
	u64(0)
	u64(math.MaxUint64)
	u64(first + each*groups)
	u64(first)
	sum(0)
	for i := range groups {
		from := len(file)
		if from != first+each*i {
			t.Fatalf("header %d lies at %d", i, from)
		}
		file = append(file, "OHDR\x02\x00"...)
		file = append(file, links*(4+12))
		for k := range links {
			file = append(file, msgLink, 12, 0, 0, 1, 0, 1, byte('a'+k))
			u64(uint64(first + each*min(i+1, groups-1)))
		}
		sum(from)
	}
	_, err := Open(context.Background(), &corpus.Mem{B: file}, func(int64) error { return nil })
	if fault.KindOf(err) != fault.Limit {
		t.Errorf("2^%d paths in %d bytes: %v", groups, len(file), err)
	}
}
