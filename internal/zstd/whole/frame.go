// Package whole decodes a zstd frame (RFC 8878) whose content goes into memory of the caller as a whole: one frame that
// needs no dictionary, as the tiles of rasters are. A frame that it refuses may still be valid: the caller must try
// another decoder.
package whole

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

const (
	// blockMax is the most that a block holds, before and after compression (RFC 8878, 3.1.1.2.3).
	blockMax = 128 << 10
	// windowMin is the smallest window of a frame (RFC 8878, 3.1.1.1.2).
	windowMin = 1 << 10
	// windowMax is the largest window that libzstd accepts: 3.75 GiB.
	windowMax = 1<<31 + 7<<28
	// slack is how many bytes past their input and output the loops read and write.
	slack = 32
)

// Fast says whether a Decoder is faster here than klauspost/compress.
func Fast() bool { return hasLoop }

// Decoder decodes frames, one after the other. It keeps its tables between calls. It is for one goroutine.
type Decoder struct {
	tables tables
	huff   huffman
	lits   []byte // decoded literals of a block, and slack behind them
	run    run    // the sequences of a block
	frame  frameState
}

// frameState is what holds for all blocks of a frame.
type frameState struct {
	src, buf  []byte
	at        int // what of src was read
	out       int // what of buf was written
	size      int // of the content
	need      int // how much of it the caller needs
	window    uint64
	blockMax  int
	checksum  bool
	huffKnown bool // a block had a table of Huffman codes
	hasTable  [3]bool
	rep       [3]uint64
}

// Decode fills dst[:n] from src, which must be one frame with n bytes of content, and says whether it did. It may write
// to all of dst, and is faster if that is 32 bytes longer. It allocates at most the memory of the literals of a block,
// once. After false dst has arbitrary content.
func (d *Decoder) Decode(dst []byte, n int, src []byte) bool { return d.DecodePrefix(dst, n, n, src) }

// DecodePrefix is Decode for a caller that needs only the first bytes of the content: it stops after the block in which
// these end, and finds no fault behind it.
func (d *Decoder) DecodePrefix(dst []byte, n, need int, src []byte) bool {
	f := &d.frame
	*f = frameState{src: src, buf: dst, size: n, need: need, rep: [3]uint64{1, 4, 8}}
	ok := f.header() && d.blocks() && (need < n || f.end())
	f.src, f.buf = nil, nil
	d.run = run{} // it refers to the caller's memory
	return ok
}

// header reads the header of the frame (RFC 8878, 3.1.1.1).
func (f *frameState) header() bool {
	if len(f.src) < 6 || binary.LittleEndian.Uint32(f.src) != 0xfd2fb528 {
		return false
	}
	descriptor := f.src[4]
	const reserved, dictionary = 1 << 3, 3
	if descriptor&(reserved|dictionary) != 0 {
		return false
	}
	single := descriptor >> 5 & 1
	f.checksum = descriptor>>2&1 != 0
	f.at = 5
	if single == 0 {
		window := f.src[5]
		f.at = 6
		f.window = 1 << (10 + window>>3)
		f.window += f.window >> 3 * uint64(window&7)
	}
	size := [4]int{int(single), 2, 4, 8}[descriptor>>6]
	if len(f.src) < f.at+size {
		return false
	}
	var content uint64
	for i, value := range f.src[f.at : f.at+size] {
		content |= uint64(value) << (8 * i)
	}
	if size == 2 {
		content += 256
	}
	f.at += size
	if single == 1 {
		f.window = max(content, windowMin)
	}
	f.blockMax = int(min(f.window, blockMax))
	return f.window <= windowMax && (size == 0 || content == uint64(f.size))
}

// end checks the checksum after the blocks of the frame.
func (f *frameState) end() bool {
	if f.out != f.size {
		return false
	}
	if f.checksum {
		if len(f.src)-f.at < 4 {
			return false
		}
		if binary.LittleEndian.Uint32(f.src[f.at:]) != uint32(xxhash.Sum64(f.buf[:f.size])) {
			return false
		}
		f.at += 4
	}
	return f.at == len(f.src)
}

// blocks decodes the blocks of a frame (RFC 8878, 3.1.1.2).
func (d *Decoder) blocks() bool {
	frame := &d.frame
	for {
		if len(frame.src)-frame.at < 3 {
			return false
		}
		head := frame.src[frame.at : frame.at+3]
		frame.at += 3
		size := int(head[0])>>3 | int(head[1])<<5 | int(head[2])<<13
		if size > frame.blockMax {
			return false
		}
		ok := false
		switch head[0] >> 1 & 3 {
		case 0:
			ok = frame.raw(size)
		case 1:
			ok = frame.repeat(size)
		case 2:
			ok = size >= 2 && size <= len(frame.src)-frame.at && d.compressed(frame.at+size)
		}
		if !ok {
			return false
		}
		if head[0]&1 != 0 {
			return frame.out >= frame.need
		}
		if frame.need < frame.size && frame.out >= frame.need {
			return true
		}
	}
}

// raw copies a block that is not compressed.
func (f *frameState) raw(size int) bool {
	if size > len(f.src)-f.at || size > f.size-f.out {
		return false
	}
	f.out += copy(f.buf[f.out:f.size], f.src[f.at:f.at+size])
	f.at += size
	return true
}

// repeat writes a block of one byte, size times.
func (f *frameState) repeat(size int) bool {
	if f.at == len(f.src) || size > f.size-f.out {
		return false
	}
	fill(f.buf[f.out:f.out+size], f.src[f.at])
	f.out += size
	f.at++
	return true
}

func fill(b []byte, v byte) {
	for i := range b {
		b[i] = v
	}
}

// compressed decodes a block that ends at end.
func (d *Decoder) compressed(end int) bool {
	f := &d.frame
	start := f.out
	lits, ok := f.literals(end)
	if !ok {
		return false
	}
	count, ok := f.sequenceCount(end)
	if !ok {
		return false
	}
	if count == 0 {
		// Without matches the literals are the content.
		if lits.size > f.size-f.out || f.at != end || !d.decodeLiterals(&lits, f.buf[f.out:f.size]) {
			return false
		}
		if !lits.inPlace {
			copy(f.buf[f.out:f.out+lits.size], lits.bytes)
		}
		f.out += lits.size
		return true
	}
	if !d.decodeLiterals(&lits, nil) || !d.readTables(end) {
		return false
	}
	return d.sequences(&lits, count, end) && f.out-start <= f.blockMax
}

// sequenceCount reads how many sequences a block has (RFC 8878, 3.1.1.3.2.1).
func (f *frameState) sequenceCount(end int) (int, bool) {
	rest := f.src[f.at:end]
	switch {
	case len(rest) == 0:
		return 0, false
	case rest[0] < 128:
		f.at++
		return int(rest[0]), true
	case rest[0] < 255 && len(rest) >= 2:
		f.at += 2
		return int(rest[0]-128)<<8 | int(rest[1]), true
	case len(rest) >= 3:
		f.at += 3
		return 0x7f00 + int(rest[1]) + int(rest[2])<<8, true
	}
	return 0, false
}
