// Package meter bounds what it costs to read the structures of a file by the bytes that are there. A file may claim any
// size, consist of holes, and let all of its addresses lead to one place, so neither its size nor its numbers say how
// much work and memory are due. Bytes that were read for the first time, and are not all zero, do.
package meter

import (
	"context"
	"slices"
	"sync"

	"github.com/chaski-eo/chaski/fault"
)

// What is due. Real files need a tenth: their structures are read once or twice, and a structure of 100 bytes becomes
// some 500 of memory.
const (
	spareWork    = 64 << 20 // bytes that are looked at, about 0.1 s
	workOfByte   = 32
	spareMemory  = 8 << 20
	memoryOfByte = 8
)

// Piece is how much of a large range is read first.
const Piece = 4 << 20

// blockBytes is the unit in which bytes are found: holes of file systems are multiples of it.
const blockBytes = 4 << 10

// spanBlocks are the blocks that one entry of found has a bit for.
const spanBlocks = 64

// Meter counts what the structures of one file have cost. It is safe for concurrent use.
type Meter struct {
	mu      sync.Mutex
	work    int64            // bytes that may still be looked at
	memory  int64            // bytes that may still be made
	nonzero map[int64]uint64 // blocks that hold anything but zeros
}

// New returns a meter of a file before it is read.
func New() *Meter { return &Meter{work: spareWork, memory: spareMemory, nonzero: map[int64]uint64{}} }

// Found says that b stands at an offset of the file.
func (m *Meter) Found(off int64, b []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(b) > 0 {
		number := off / blockBytes
		part := b[:min(int64(len(b)), (number+1)*blockBytes-off)]
		off, b = off+int64(len(part)), b[len(part):]
		span, bit := number/spanBlocks, uint64(1)<<(number%spanBlocks)
		if m.nonzero[span]&bit == 0 && slices.ContainsFunc(part, func(c byte) bool { return c != 0 }) {
			m.nonzero[span] |= bit
			m.work += workOfByte * blockBytes
			m.memory += memoryOfByte * blockBytes
		}
	}
}

// Work counts n bytes that are looked at, at an offset of a part of the file. More than are due are fault.Limit.
func (m *Meter) Work(part string, off, n int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.work -= n; m.work < 0 {
		return fault.At(fault.Limit, part, off, "structures of the file lie on each other or in holes: reading them "+
			"takes more than %d bytes of work for each byte that is there", workOfByte)
	}
	return nil
}

// Memory counts n bytes that are made of what is read, before they are. More than are due are fault.Limit.
func (m *Meter) Memory(part string, off, n int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.memory -= n; m.memory < 0 {
		return fault.At(fault.Limit, part, off, "structures of the file lie on each other or in holes: they take more "+
			"than %d bytes of memory for each byte that is there", memoryOfByte)
	}
	return nil
}

// Reader is a source.Reader.
type Reader interface {
	ReadAt(ctx context.Context, p []byte, off int64) error
}

// Read returns n bytes of a file from an offset on, which is a number that the file claims. It reads a large range
// piece by piece: one of holes ends when the memory for it is not due.
func (m *Meter) Read(ctx context.Context, r Reader, part string, off, n int64) ([]byte, error) {
	var data []byte
	for have := int64(0); have < n; have = int64(len(data)) {
		m.mu.Lock()
		piece := min(n-have, max(Piece, have), max(m.memory, Piece)-have)
		m.mu.Unlock()
		if piece <= 0 {
			return nil, fault.At(fault.Limit, part, off, "%d bytes, of which %d are zeros, as in a hole", n, have)
		}
		if err := m.Work(part, off, piece); err != nil {
			return nil, err
		}
		data = slices.Grow(data, int(piece))[:have+piece]
		if err := r.ReadAt(ctx, data[have:], off+have); err != nil {
			return nil, err
		}
		m.Found(off+have, data[have:])
	}
	return data, nil
}
