package server

import "encoding/binary"

// The parts of HTTP/2 (RFC 9113, section 4.1 and 6) that say how many bytes of messages have arrived.
const (
	prefaceBytes = 24 // of a client, before its first frame
	frameHead    = 9

	frameData         = 0
	frameHeaders      = 1
	frameReset        = 3
	frameContinuation = 9 // of headers

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
	padded      bool // a data frame had padding, which no client of gRPC sends: what it moves is not counted
}

// frameEvents are what frames.scan calls. All but ended may be nil.
type frameEvents struct {
	opened func(call uint32)           // after the headers of a call, or a part of them
	began  func(call uint32, n int)    // before a data frame with a payload of n bytes
	frame  func()                      // after each frame
	data   func(call uint32, b []byte) // for the payload of data frames
	ended  func(call uint32, reset bool)
}

// scan calls e for what is in b.
func (f *frames) scan(b []byte, e *frameEvents) {
	for len(b) > 0 {
		var n int
		switch {
		case f.skip > 0:
			n = min(f.skip, len(b))
			f.skip -= n
			b = b[n:]
			continue
		case f.have < frameHead:
			n = copy(f.head[f.have:], b)
			if f.have += n; f.have < frameHead {
				return
			}
			f.begin()
			if f.kind == frameData && f.left > 0 && e.began != nil {
				e.began(f.call, f.left)
			}
		default:
			n = min(f.left, len(b))
			if f.left -= n; f.kind == frameData && e.data != nil {
				e.data(f.call, b[:n])
			}
		}
		b = b[n:]
		if f.left == 0 {
			f.have = 0
			f.finish(e)
		}
	}
}

// finish calls e for a frame that has arrived.
func (f *frames) finish(e *frameEvents) {
	if e.frame != nil {
		e.frame()
	}
	if e.opened != nil && (f.kind == frameHeaders || f.kind == frameContinuation) {
		e.opened(f.call)
	}
	if f.kind == frameReset || f.kind <= frameHeaders && f.flags&flagEnd != 0 {
		e.ended(f.call, f.kind == frameReset)
	}
}

// begin reads the head of a frame.
func (f *frames) begin() {
	f.left = int(f.head[0])<<16 | int(f.head[1])<<8 | int(f.head[2])
	f.kind, f.flags = f.head[3], f.head[4]
	f.call = binary.BigEndian.Uint32(f.head[5:]) & (1<<31 - 1)
	f.padded = f.padded || f.kind == frameData && f.flags&flagPadded != 0
}
