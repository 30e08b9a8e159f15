package zstd_test

import (
	"bytes"
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// frame builds a frame of RFC 8878 by hand, block by block.
type frame struct {
	b        []byte
	content  []byte
	checksum bool
}

// window starts a frame of unknown content size whose window has 2^exponent bytes, exponent 10 to
// 41.
func window(exponent int, checksum bool) *frame {
	f := &frame{checksum: checksum}
	f.b = append(f.b, 0x28, 0xb5, 0x2f, 0xfd, f.flag(), byte(exponent-10)<<3)
	return f
}

// sized starts a frame that claims a content size (8 bytes), in a window of 128 KiB.
func sized(size uint64, checksum bool) *frame {
	f := &frame{checksum: checksum}
	f.b = append(f.b, 0x28, 0xb5, 0x2f, 0xfd, 3<<6|f.flag(), (17-10)<<3)
	f.b = binary.LittleEndian.AppendUint64(f.b, size)
	return f
}

// single starts a frame in a single segment, whose window is its content (4 bytes of size).
func single(size uint32, checksum bool) *frame {
	f := &frame{checksum: checksum}
	f.b = append(f.b, 0x28, 0xb5, 0x2f, 0xfd, 2<<6|1<<5|f.flag())
	f.b = binary.LittleEndian.AppendUint32(f.b, size)
	return f
}

func (f *frame) flag() byte {
	if f.checksum {
		return 1 << 2
	}
	return 0
}

// block appends a block's header: typ 0 raw, 1 RLE, 2 compressed, 3 reserved.
func (f *frame) block(typ, size int, last bool) *frame {
	h := uint32(size)<<3 | uint32(typ)<<1
	if last {
		h |= 1
	}
	f.b = append(f.b, byte(h), byte(h>>8), byte(h>>16))
	return f
}

func (f *frame) raw(p []byte, last bool) *frame {
	f.block(0, len(p), last)
	f.b, f.content = append(f.b, p...), append(f.content, p...)
	return f
}

func (f *frame) rle(c byte, n int, last bool) *frame {
	f.block(1, n, last)
	f.b, f.content = append(f.b, c), append(f.content, bytes.Repeat([]byte{c}, n)...)
	return f
}

// end returns the frame's bytes, with its checksum if it has one.
func (f *frame) end() []byte {
	if f.checksum {
		f.b = binary.LittleEndian.AppendUint32(f.b, uint32(xxhash.Sum64(f.content)))
	}
	return f.b
}

// skippable returns a frame of user data (RFC 8878 section 3.1.2).
func skippable(n byte, data []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, 0x184d2a50+uint32(n))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(data)))
	return append(b, data...)
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// handmade holds bytes to decode and their content. A frame with refuse must fail for every length
// of dst.
type handmade struct {
	name   string
	src    []byte
	want   []byte
	refuse bool
}

const blockMax = 128 << 10

func handmades() []handmade {
	abc := []byte("abcdefgh")
	good := single(8, true).raw(abc, true).end()
	wrong := bytes.Clone(good)
	wrong[len(wrong)-1] ^= 1
	changed := bytes.Clone(good)
	changed[len(changed)-5] ^= 1
	bomb := window(17, false)
	for range 2000 { // 8 KB that hold 250 MiB
		bomb.block(1, blockMax, false)
		bomb.b = append(bomb.b, 7)
	}
	bomb.rle(7, 1, true)
	dictionary := append([]byte{0x28, 0xb5, 0x2f, 0xfd, 1<<5 | 1, 8, 99}, single(0, false).raw(abc, true).b[9:]...)
	reserved := bytes.Clone(good)
	reserved[4] |= 1 << 3
	zeros := make([]byte, blockMax)
	return []handmade{
		{name: "nothing"},
		{name: "raw", src: good, want: abc},
		{name: "window", src: window(10, true).raw(abc, true).end(), want: abc},
		{name: "sized", src: sized(8, false).raw(abc, true).end(), want: abc},
		{name: "rle", src: single(1000, true).rle(9, 1000, true).end(), want: bytes.Repeat([]byte{9}, 1000)},
		{name: "rle of a whole block", src: window(17, false).rle(0, blockMax, true).end(), want: zeros},
		{
			name: "blocks",
			src:  single(19, true).raw(abc, false).rle(1, 3, false).raw(nil, false).raw(abc, true).end(),
			want: []byte("abcdefgh\x01\x01\x01abcdefgh"),
		},
		{name: "empty frame", src: single(0, true).raw(nil, true).end()},
		{name: "two frames", src: join(good, good), want: join(abc, abc)},
		{name: "frames, one empty", src: join(good, single(0, false).raw(nil, true).end(), good), want: join(abc, abc)},
		{name: "skippable", src: skippable(0, abc)},
		{name: "skippable before", src: join(skippable(15, abc), good), want: abc},
		{name: "skippable between", src: join(good, skippable(3, nil), good), want: join(abc, abc)},
		{name: "skippable after", src: join(good, skippable(3, abc)), want: abc},
		{name: "window of 1 GiB", src: window(30, true).raw(abc, true).end(), want: abc},
		{name: "window of 2 GiB", src: window(31, true).raw(abc, true).end(), want: abc},
		// Both libraries mark an unknown size with the largest value.
		{name: "claims 2^64-1", src: sized(1<<64-1, false).raw(abc, true).end(), want: abc},

		{name: "magic", src: []byte("zstd"), refuse: true},
		{name: "wrong checksum", src: wrong, refuse: true},
		{name: "changed content", src: changed, refuse: true},
		{name: "wrong checksum in the second frame", src: join(good, wrong), refuse: true},
		{name: "window of 4 GiB", src: window(32, true).raw(abc, true).end(), refuse: true},
		{name: "window of 2 TiB", src: window(41, true).raw(abc, true).end(), refuse: true},
		{name: "claims 2^40", src: sized(1<<40, false).raw(abc, true).end(), refuse: true},
		{name: "claims 2^63", src: sized(1<<63, false).raw(abc, true).end(), refuse: true},
		{name: "single segment of 4 GiB", src: single(1<<32-1, false).raw(abc, true).end(), refuse: true},
		{name: "claims more", src: single(9, false).raw(abc, true).end(), refuse: true},
		{name: "claims less", src: single(7, false).raw(abc, true).end(), refuse: true},
		{name: "claims nothing", src: single(0, false).raw(abc, true).end(), refuse: true},
		{name: "bomb", src: bomb.end(), refuse: true},
		{name: "bomb that claims 8", src: append(single(8, false).b, bomb.b[6:]...), refuse: true},
		{name: "many bombs", src: bytes.Repeat(window(17, false).rle(0, blockMax, true).end(), 300), refuse: true},
		{name: "no last block", src: single(8, false).raw(abc, false).end(), refuse: true},
		{name: "reserved block", src: single(8, false).block(3, 0, true).end(), refuse: true},
		{name: "reserved bit", src: reserved, refuse: true},
		{name: "dictionary", src: dictionary, refuse: true},
		{name: "block that reaches past the end", src: single(8, false).block(0, 9, true).end(), refuse: true},
		{name: "rle of 2^21-1", src: window(10, false).block(1, 1<<21-1, true).end(), refuse: true},
		{name: "garbage behind", src: join(good, abc), refuse: true},
		{name: "skippable reaches past the end", src: join(good, skippable(1, abc)[:12]), refuse: true},
		{name: "skippable of 4 GiB", src: []byte{0x50, 0x2a, 0x4d, 0x18, 255, 255, 255, 255}, refuse: true},
	}
}
