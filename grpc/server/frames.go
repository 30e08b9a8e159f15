package server

import "encoding/binary"

// The parts of HTTP/2 (RFC 9113, section 4.1 and 6) that say how many bytes of messages have arrived.
const (
	prefaceBytes = 24 // of a client, before its first frame
	frameHead    = 9

	frameData    = 0
	frameHeaders = 1
	frameReset   = 3

	flagEnd    = 0x1
	flagPadded = 0x8
)

// frames finds the frames in the bytes of one direction of a connection, however they are cut.
type frames struct {
	skip int // bytes before the first frame
	head [frameHead]byte
	have int // bytes of head
	left int // bytes of the payload that are missing

	kind, flags byte
	call        uint32
	padKnown    bool
	pad         int // bytes at the end of the payload
}

// scan calls data for the payload of data frames, without padding, and first before each of them, and ended after the
// last frame of a call.
func (f *frames) scan(b []byte, first func(call uint32), data func(call uint32, b []byte), ended func(call uint32)) {
	for len(b) > 0 {
		switch {
		case f.skip > 0:
			n := min(f.skip, len(b))
			f.skip -= n
			b = b[n:]
			continue
		case f.have < frameHead:
			n := copy(f.head[f.have:], b)
			f.have += n
			b = b[n:]
			if f.have < frameHead {
				return
			}
			f.begin()
			if f.kind == frameData && f.left > 0 {
				first(f.call)
			}
		default:
			n := min(f.left, len(b))
			f.payload(b[:n], data)
			b = b[n:]
		}
		if f.have == frameHead && f.left == 0 {
			f.have = 0
			if f.kind == frameReset || f.kind <= frameHeaders && f.flags&flagEnd != 0 {
				ended(f.call)
			}
		}
	}
}

// begin reads the head of a frame.
func (f *frames) begin() {
	f.left = int(f.head[0])<<16 | int(f.head[1])<<8 | int(f.head[2])
	f.kind, f.flags = f.head[3], f.head[4]
	f.call = binary.BigEndian.Uint32(f.head[5:]) & (1<<31 - 1)
	f.pad, f.padKnown = 0, f.kind != frameData || f.flags&flagPadded == 0
}

// payload takes bytes of the payload.
func (f *frames) payload(b []byte, data func(call uint32, b []byte)) {
	if !f.padKnown && len(b) > 0 {
		f.pad, f.padKnown = int(b[0]), true
		f.left--
		b = b[1:]
	}
	content := min(max(f.left-f.pad, 0), len(b))
	f.left -= len(b)
	if f.kind == frameData && content > 0 {
		data(f.call, b[:content])
	}
}
