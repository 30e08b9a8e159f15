package xz

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// streams are of liblzma 5.4, by Python's lzma: the same text with each check, some behind the filter delta.
var streams = map[string]string{
	"CRC32": "fd377a585a0000016922de360200210110000000a8708e86e000ef002e5d00319a08485975c725b2afcb257408f3bb17" +
		"475faaff0e47d5ace0adb2043bd03e45db3bb2da852da2b6a4cea0000000000089603cef000146f001000000940adcea" +
		"3e300d8b020000000001595a",
	"CRC64 and delta": "" +
		"fd377a585a000004e6d6b44602010301012101161c477856e000ef00345d00319a1bc2aad3d0b9fe469cac0dbd91f623" +
		"9381b11c038b917d695f3b05b11b313a9b9cc6568978e06cd7e2cfcda7c2e32e9a2000000a4726901abeb100000150f0" +
		"0100000012eb533fb1c467fb020000000004595a",
	"SHA-256": "fd377a585a00000ae1fb0ca10200210110000000a8708e86e000ef002e5d00319a08485975c725b2afcb257408f3bb17" +
		"475faaff0e47d5ace0adb2043bd03e45db3bb2da852da2b6a4cea000000000008a36b8a56ca11040a71a970af91a2955" +
		"519c61f94cb9af82f72b4172310cdce8000162f001000000b44de176b6e9df1c02000000000a595a",
	"no check": "" +
		"fd377a585a000000ff12d94102010301012101161c477856e000ef00345d00319a1bc2aad3d0b9fe469cac0dbd91f623" +
		"9381b11c038b917d695f3b05b11b313a9b9cc6568978e06cd7e2cfcda7c2e32e9a200000000148f001000000e46bd6d0" +
		"a8000afc020000000000595a",
}

// TestStreams: each comes back, a part of it too, and no changed or cut one gives other samples without an error.
func TestStreams(t *testing.T) {
	want := strings.Repeat("chaski reads tiles of satellite images. ", 6)
	for name, text := range streams {
		src, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		dst := make([]byte, len(want))
		if err := Decode(dst, src); err != nil || string(dst) != want {
			t.Errorf("%s: %q, %v", name, dst, err)
		}
		if err := Decode(dst[:100], src); err != nil || string(dst[:100]) != want[:100] {
			t.Errorf("%s: the begin is %q, %v", name, dst[:100], err)
		}
		if err := Decode(make([]byte, len(want)+1), src); !errors.Is(err, fault.Corrupt) {
			t.Errorf("%s, one byte too short: %v", name, err)
		}
		for i := range src {
			changed := append([]byte(nil), src...)
			changed[i] ^= 0x10
			clear(dst)
			err := Decode(dst, changed)
			if err == nil && string(dst) != want && name != "no check" {
				t.Errorf("%s with another byte %d: %q", name, i, dst)
			}
			clear(dst)
			if err := Decode(dst, src[:i]); !errors.Is(err, fault.Corrupt) && string(dst) != want {
				t.Errorf("%s, cut to %d bytes: %v", name, i, err)
			}
		}
	}
}

// TestLimits: what a stream states sizes no memory: neither its dictionary, nor properties that LZMA2 does not allow,
// nor the size of a chunk.
func TestLimits(t *testing.T) {
	head := []byte("\xfd7zXZ\x00\x00\x00\xff\x12\xd9\x41")
	block := []byte{2, 0, filterLZMA2, 1, 40, 0, 0, 0} // a dictionary of 4 GiB
	block = binary.LittleEndian.AppendUint32(block, crc32.ChecksumIEEE(block))
	for name, chunk := range map[string][]byte{
		"properties": {0xe0, 0, 9, 0, 9, 8 + 9*4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		"size":       {0xff, 0xff, 0xff, 0, 9, 0x5d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
	} {
		var err error
		n := corpus.Allocated(func() { err = Decode(make([]byte, 100), slices.Concat(head, block, chunk)) })
		if n > 200<<10 || name == "properties" && !errors.Is(err, fault.Corrupt) {
			t.Errorf("%s: %d bytes allocated, %v", name, n, err)
		}
	}
	plain := slices.Concat(head, block, []byte{1, 0, 2, 'a', 'b', 'c', 0, 0, 0, 0})
	dst := make([]byte, 3)
	if err := Decode(dst, plain); err != nil || string(dst) != "abc" {
		t.Errorf("%q, %v", dst, err)
	}
}

// FuzzDecode: any bytes are refused with a kind, or fill dst, and the begin of dst is the same when it is asked for
// alone. Nothing behind dst is written, and memory is bounded by dst and the bytes.
func FuzzDecode(f *testing.F) {
	for _, text := range streams {
		src, err := hex.DecodeString(text)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src, uint16(240))
	}
	f.Fuzz(func(t *testing.T, src []byte, size uint16) {
		dst := make([]byte, int(size)+1)
		dst[size] = 0x5a
		var err error
		n := corpus.Allocated(func() { err = Decode(dst[:size:size], src) })
		// A chunk of LZMA2 has 12 bytes at least, and a model of 32 KiB.
		if bound := uint64(1<<20 + 16*int(size) + 4<<10*len(src)); n > bound {
			t.Fatalf("%d bytes allocated for %d of %d", n, size, len(src))
		}
		if dst[size] != 0x5a {
			t.Fatal("a write past dst")
		}
		if err != nil {
			if fault.KindOf(err) == 0 {
				t.Fatalf("error without a kind: %v", err)
			}
			return
		}
		begin := make([]byte, size/2)
		if err := Decode(begin, src); err != nil || !bytes.Equal(begin, dst[:size/2]) {
			t.Fatalf("other bytes in the first %d, %v", size/2, err)
		}
	})
}
