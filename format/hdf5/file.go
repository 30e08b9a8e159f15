package hdf5

import (
	"cmp"
	"context"
	"encoding/binary"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/meter"
	"github.com/chaski-eo/chaski/source"
)

// Limits of the structures of a file.
const (
	maxBlock = 64 << 20 // bytes of one structure
	// A page is how much is read around a structure. Most have some 100 bytes, and writers put them side by side. Of
	// remote files a request costs about as much as 256 KiB.
	localPage  = 16 << 10
	remotePage = 256 << 10
	maxPages   = 4 << 20 // bytes of pages that are kept
	maxDepth   = 32      // of B-trees, indirect blocks and datatypes
	blockWork  = 64      // to look at a structure takes as long as these bytes
)

// undefined is the address that leads nowhere, as offset returns it.
const undefined = math.MaxUint64

// file is what is known of a file. It does not change, but for the meter.
type file struct {
	meter      *meter.Meter
	size       int64
	base       uint64 // of all addresses
	offsetSize int    // bytes of an address
	lengthSize int    // bytes of a length
}

// walk reads structures for one purpose.
type walk struct {
	*file
	r   source.Reader
	ctx context.Context

	pages    map[int64][]byte
	pageSize int64
	take     func(n int64) error // charges memory
	elements []element           // that resolve reads
}

func (f *file) walk(ctx context.Context, r source.Reader) *walk {
	w := &walk{file: f, r: r, ctx: ctx, pages: map[int64][]byte{}, pageSize: localPage,
		take: func(int64) error { return nil }}
	if _, remote := r.(source.Gapped); remote {
		w.pageSize = remotePage
	}
	return w
}

// corrupt is an error at an address.
func corrupt(part string, addr uint64, format string, args ...any) error {
	return fault.At(fault.Corrupt, part, int64(min(addr, math.MaxInt64)), format, args...)
}

func unsupported(part, format string, args ...any) error {
	return fault.New(fault.Unsupported, part, format, args...)
}

// position returns the offset in the file of n bytes at an address, or an error if the file does not have them.
func (f *file) position(part string, addr, n uint64) (int64, error) {
	size := uint64(f.size)
	if pos := addr + f.base; addr != undefined && pos >= addr && pos <= size && n <= size-pos {
		return int64(pos), nil
	}
	return 0, corrupt(part, addr, "%d bytes at address %d reach past the end of the file, which has %d bytes", n, addr,
		size)
}

// read returns n bytes at an address. They must not be changed.
func (w *walk) read(part string, addr, n uint64) ([]byte, error) {
	if n > maxBlock {
		return nil, fault.At(fault.Limit, part, int64(min(addr, math.MaxInt64)), "%d bytes, at most %d", n, maxBlock)
	}
	pos, err := w.position(part, addr, n)
	if err != nil {
		return nil, err
	}
	if err := w.spend(part, addr, int64(n)+blockWork); err != nil {
		return nil, err
	}
	first := pos / w.pageSize
	if n == 0 {
		return nil, nil
	}
	if last := (pos + int64(n) - 1) / w.pageSize; first != last {
		return w.meter.Read(w.ctx, w.r, part, pos, int64(n))
	}
	page, err := w.page(part, first)
	if err != nil {
		return nil, err
	}
	start := pos - first*w.pageSize
	return page[start : start+int64(n) : start+int64(n)], nil
}

// spend counts work: bytes that are looked at, or what takes as long.
func (w *walk) spend(part string, addr uint64, n int64) error {
	return cmp.Or(w.meter.Work(part, int64(min(addr, math.MaxInt64)), n), w.ctx.Err())
}

// keep counts bytes of memory before they are made.
func (w *walk) keep(part string, addr uint64, n int64) error {
	return cmp.Or(w.meter.Memory(part, int64(min(addr, math.MaxInt64)), n), w.take(n))
}

// page returns a page of the file.
func (w *walk) page(part string, number int64) ([]byte, error) {
	if page := w.pages[number]; page != nil {
		return page, nil
	}
	// A read of the system takes as long as 4 KiB in memory.
	if err := w.spend(part, uint64(number*w.pageSize), 4<<10); err != nil {
		return nil, err
	}
	page, err := source.Read(w.ctx, w.r, number*w.pageSize, min(w.pageSize, w.size-number*w.pageSize))
	if err != nil {
		return nil, err
	}
	w.meter.Found(number*w.pageSize, page)
	if int64(len(w.pages)) >= maxPages/w.pageSize {
		for old := range w.pages { // any one
			delete(w.pages, old)
			break
		}
	}
	w.pages[number] = page
	return page, nil
}

// block is a structure whose fields are read in their order. After the first that is cut off, fields are 0, and err
// says so.
type block struct {
	*file
	part string
	addr uint64 // of the first byte
	all  []byte
	pos  int
	err  error
}

// block reads a structure.
func (w *walk) block(part string, addr, n uint64) (*block, error) {
	b, err := w.read(part, addr, n)
	return &block{file: w.file, part: part, addr: addr, all: b}, err
}

// signedBlock reads a structure that begins with a signature, and with a version if one is given.
func (w *walk) signedBlock(part string, addr, n uint64, signature string, version ...byte) (*block, error) {
	b, err := w.block(part, addr, n)
	if err != nil {
		return nil, err
	}
	return b, b.signature(signature, version...)
}

// checkedBlock is signedBlock of a structure that ends with a checksum.
func (w *walk) checkedBlock(part string, addr, n uint64, signature string, version ...byte) (*block, error) {
	b, err := w.block(part, addr, n)
	if err == nil {
		err = b.checked()
	}
	if err != nil {
		return nil, err
	}
	return b, b.signature(signature, version...)
}

// of returns a structure that lies in other bytes.
func (f *file) of(part string, addr uint64, b []byte) *block {
	return &block{file: f, part: part, addr: addr, all: b}
}

// take returns the next n bytes, or nil if there are fewer.
func (b *block) take(n int) []byte {
	if b.err == nil && (n < 0 || n > len(b.all)-b.pos) {
		b.err = corrupt(b.part, b.addr, "%d bytes needed at %d of %d", n, b.pos, len(b.all))
	}
	if b.err != nil {
		return nil
	}
	b.pos += n
	return b.all[b.pos-n : b.pos]
}

func (b *block) rest() int { return len(b.all) - b.pos }

// uint returns a number of n bytes, at most 8.
func (b *block) uint(n int) (v uint64) {
	for i, c := range b.take(n) {
		v |= uint64(c) << (8 * i)
	}
	return v
}

func (b *block) u8() byte { return byte(b.uint(1)) }

func (b *block) u16() int { return int(b.uint(2)) }

func (b *block) u32() uint32 { return uint32(b.uint(4)) }

func (b *block) length() uint64 { return b.uint(b.lengthSize) }

// offset returns an address, undefined if all of its bits are set.
func (b *block) offset() uint64 {
	addr := b.uint(b.offsetSize)
	if addr == undefined>>(64-8*b.offsetSize) {
		return undefined
	}
	return addr
}

// fail returns the first error of the fields, or one of the structure.
func (b *block) fail(format string, args ...any) error {
	if b.err != nil {
		return b.err
	}
	return corrupt(b.part, b.addr, format, args...)
}

// signature checks the bytes at the front, and the version behind them if one is given.
func (b *block) signature(want string, version ...byte) error {
	if got := b.take(len(want)); string(got) != want {
		return b.fail("begins with %q, not %q", got, want)
	}
	if len(version) == 0 {
		return nil
	}
	_, err := b.version(version...)
	return err
}

// version checks a byte that must be one of a few.
func (b *block) version(want ...byte) (byte, error) {
	got := b.u8()
	if b.err == nil && !slices.Contains(want, got) {
		return 0, unsupported(b.part, "version %d", got)
	}
	return got, b.err
}

// checksums is false in tests alone: damage then reaches the code behind the checksums.
var checksums = true

// checked cuts the checksum off, which are the last four bytes, and checks it.
func (b *block) checked() error {
	n := len(b.all) - 4
	if n < 0 {
		return b.fail("%d bytes, without room for a checksum", len(b.all))
	}
	stored, sum := binary.LittleEndian.Uint32(b.all[n:]), lookup3(b.all[:n])
	if stored != sum && checksums {
		return b.fail("its checksum is %08x, its bytes have %08x", stored, sum)
	}
	b.all = b.all[:n]
	return nil
}
