package tiff

import (
	"bytes"
	"compress/zlib"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// slowLZW is the encoder of TIFF 6.0 section 13, as in its pseudocode: strings in a map.
func slowLZW(data []byte) []byte {
	var out []byte
	var acc, have uint
	table := map[string]uint{}
	width := uint(9)
	put := func(code uint) {
		acc, have = acc<<width|code, have+width
		for ; have >= 8; have -= 8 {
			out = append(out, byte(acc>>(have-8)))
		}
	}
	next := uint(258)
	code := func(s string) uint {
		if len(s) == 1 {
			return uint(s[0])
		}
		return table[s]
	}
	put(256)
	omega := ""
	for _, k := range data {
		if _, known := table[omega+string([]byte{k})]; known || omega == "" {
			omega += string([]byte{k})
			continue
		}
		put(code(omega))
		table[omega+string([]byte{k})] = next
		next++
		switch next { // after entry 511, while 511 still fits 9 bits: one early
		case 512, 1024, 2048:
			width++
		case 4095: // after entry 4094
			put(256)
			table, next, width = map[string]uint{}, 258, 9
		}
		omega = string([]byte{k})
	}
	if omega != "" {
		put(code(omega))
	}
	next++
	switch next {
	case 512, 1024, 2048:
		width++
	}
	put(257)
	if have > 0 {
		out = append(out, byte(acc<<(8-have)))
	}
	return out
}

// payloads are data of many kinds: constant (every code is the entry just made), periodic, random,
// and long enough to fill the table several times.
func payloads() map[string][]byte {
	rnd := rand.New(rand.NewPCG(9, 10))
	random, steps := make([]byte, 30000), make([]byte, 60000)
	for i := range random {
		random[i] = byte(rnd.Uint32())
	}
	for i := range steps {
		steps[i] = byte(i / 7 * rnd.IntN(3))
	}
	return map[string][]byte{
		"one": {7}, "two": {7, 7}, "constant": make([]byte, 20000), "period": bytes.Repeat([]byte("abcab"), 5000),
		"random": random, "steps": steps,
	}
}

func TestLZWAgainstSlowEncoder(t *testing.T) {
	d := chunk.Registered()[chunk.LZW]()
	for name, want := range payloads() {
		src := slowLZW(want)
		dst := make([]byte, len(want))
		if err := all(d, dst, src); err != nil || !bytes.Equal(dst, want) {
			t.Errorf("%s: %v", name, err)
		}
		for n := range min(len(src), 300) {
			if err := all(d, dst, src[:n]); err == nil && n < len(src)-3 {
				t.Errorf("%s: cut to %d of %d bytes: no error", name, n, len(src))
			}
		}
		if err := all(d, make([]byte, len(want)+1), src); !errors.Is(err, fault.Corrupt) {
			t.Errorf("%s: one byte too few: %v", name, err)
		}
	}
}

func TestLZWOfOldOrderIsUnsupported(t *testing.T) {
	if err := all(new(lzwDecoder), make([]byte, 4), []byte{0, 1, 2, 3}); !errors.Is(err, fault.Unsupported) {
		t.Error(err)
	}
}

func TestPackBits(t *testing.T) {
	// The example of Apple's Technical Note TN1023.
	src := []byte{0xfe, 0xaa, 0x02, 0x80, 0x00, 0x2a, 0xfd, 0xaa, 0x03, 0x80, 0x00, 0x2a, 0x22, 0xf7, 0xaa}
	want := []byte{
		0xaa, 0xaa, 0xaa, 0x80, 0, 0x2a, 0xaa, 0xaa, 0xaa, 0xaa, 0x80, 0, 0x2a, 0x22,
		0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa,
	}
	dst := make([]byte, len(want))
	if err := all(packBitsDecoder{}, dst, src); err != nil || !bytes.Equal(dst, want) {
		t.Errorf("%x %v", dst, err)
	}
	withNothing := append([]byte{0x80}, src...)
	if err := all(packBitsDecoder{}, dst, withNothing); err != nil || !bytes.Equal(dst, want) {
		t.Errorf("%x %v", dst, err)
	}
	for n := range src {
		if err := all(packBitsDecoder{}, dst, src[:n]); !errors.Is(err, fault.Corrupt) {
			t.Errorf("cut to %d: %v", n, err)
		}
	}
}

func TestDeflate(t *testing.T) {
	d := chunk.Registered()[chunk.Deflate]()
	for name, want := range payloads() {
		var b bytes.Buffer
		w := zlib.NewWriter(&b)
		w.Write(want)
		w.Close()
		src, dst := b.Bytes(), make([]byte, len(want))
		if err := all(d, dst, src); err != nil || !bytes.Equal(dst, want) {
			t.Errorf("%s: %v", name, err)
		}
		if err := all(d, dst, src[:len(src)-1]); !errors.Is(err, fault.Corrupt) {
			t.Errorf("%s: checksum cut: %v", name, err)
		}
		src[len(src)-1] ^= 1
		if err := all(d, dst, src); !errors.Is(err, fault.Corrupt) {
			t.Errorf("%s: wrong checksum: %v", name, err)
		}
		if err := all(d, make([]byte, len(want)+1), src); !errors.Is(err, fault.Corrupt) {
			t.Errorf("%s: one byte too few: %v", name, err)
		}
	}
}

// TestLZMADamage: a stream with a changed byte, or one that is cut, is corrupt, unsupported, or has the same content,
// as every byte up to the end of the block's check is covered by a check.
func TestLZMADamage(t *testing.T) {
	race.SkipCovered(t)
	for _, name := range []string{"lzma-crc32.tif", "lzma-crc64.tif", "lzma-sha256.tif", "lzma-delta.tif"} {
		src, x := firstChunk(t, name)
		want, got := make([]byte, x.DecodedBytes(0)), make([]byte, x.DecodedBytes(0))
		d := chunk.Registered()[chunk.LZMA]()
		if err := all(d, want, src); err != nil {
			t.Fatal(err)
		}
		refused := 0
		for i := range src {
			bad := bytes.Clone(src)
			bad[i] ^= 1 << (i % 8)
			err := all(d, got, bad)
			if err == nil && !bytes.Equal(got, want) {
				t.Fatalf("%s: byte %d is changed: other content", name, i)
			}
			if err != nil {
				refused++
			}
			if err := all(d, got, src[:i]); err == nil && !bytes.Equal(got, want) {
				t.Fatalf("%s: cut to %d bytes: other content", name, i)
			}
		}
		if refused < len(src)-60 { // the index and the footer are not read
			t.Errorf("%s: %d of %d changes are refused", name, refused, len(src))
		}
	}
}

// TestDecompressNoAlloc: decoders of bytes do not allocate in the steady state, because their worker reuses
// them. LZMA is left out: its library allocates.
func TestDecompressNoAlloc(t *testing.T) {
	want := payloads()["steps"]
	dst, stored := make([]byte, len(want)), encoded(t, want)
	for codec, open := range chunk.Registered() {
		d := open()
		if codec.Samples() || codec == chunk.LZMA {
			continue
		}
		src := stored[codec]
		if src == nil {
			t.Fatalf("encoded has no data in %v", codec)
		}
		tile := &chunk.Tile{Need: len(dst), Number: 1}
		if n := testing.AllocsPerRun(10, func() {
			if err := d.Decompress(dst, src, tile); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%v: %v allocations", codec, n)
		}
	}
}

func BenchmarkLZW(b *testing.B) {
	want := payloads()["steps"]
	src, dst, d := slowLZW(want), make([]byte, len(want)), new(lzwDecoder)
	b.SetBytes(int64(len(dst)))
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		_ = all(d, dst, src)
	}
}
