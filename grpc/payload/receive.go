package payload

import (
	"encoding/binary"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/batch"
)

// Memory makes the memory of batches and takes it back.
type Memory interface {
	// Take returns memory of n bytes or more with any content.
	Take(n int) batch.Buffer
	// Give takes memory back; with keep it may be used for another batch.
	Give(m batch.Buffer, keep bool)
}

// Receiver makes a batch of a payload while it arrives. Each byte is converted or copied to its place in the batch as
// soon as it is here, while it still lies in a cache: put together first, a payload of some megabytes would be written
// to memory and read again. Strings, offsets and masks are kept apart until the end.
type Receiver struct {
	memory Memory
	total  int
	first  int // bytes of the payload's first piece of memory at the sender
	got    int // bytes of the payload so far

	head     []byte   // the header with its size, as far as it has arrived
	decoder  *decoder // nil until the header is whole
	batch    *batch.Batch
	sinks    []byteSink // of the bytes that have not arrived, in order
	finals   [][]byte   // the data of the tensors, converted
	buffers  map[uint64]*buffer
	hasLetGo bool // the batch's memory is the caller's, or is given back
}

// byteSink takes the bytes of a range.
type byteSink struct {
	span
	to writer
}

// writer takes the bytes of a range one piece after the other.
type writer interface{ write(p []byte) }

// buffer is a writer that keeps the written bytes.
type buffer []byte

func (b *buffer) write(p []byte) { *b = append(*b, p...) }

// copied is a writer to the start of itself.
type copied []byte

func (c *copied) write(p []byte) { *c = (*c)[copy(*c, p):] }

// NewReceiver returns a receiver of a payload of total bytes, whose batch is put into memory.
func NewReceiver(total int, memory Memory) *Receiver {
	return &Receiver{memory: memory, total: total, first: total}
}

// Copy reads a payload that goes on from head in shared, as EncodeShared makes it, and puts the batch into memory.
// Offsets of errors are from the start of head.
func Copy(head, shared []byte, memory Memory) (*batch.Batch, error) {
	receiver := &Receiver{memory: memory, total: len(head) + len(shared), first: len(head)}
	defer receiver.Drop()
	for _, piece := range [][]byte{head, shared} {
		if err := receiver.Write(piece); err != nil {
			return nil, err
		}
	}
	return receiver.Batch()
}

// Write takes the next bytes of the payload; together they are no more than total. Errors are *fault.Error of kind
// corrupt or unsupported (another version).
func (r *Receiver) Write(p []byte) error {
	if len(p) > r.total-r.got {
		return fault.At(fault.Corrupt, "payload", int64(r.total), "%d bytes more than %d", len(p)-r.total+r.got,
			r.total)
	}
	if r.decoder == nil {
		taken, err := r.header(p)
		if err != nil {
			return err
		}
		r.got += taken
		p = p[taken:]
	}
	for len(p) > 0 && len(r.sinks) > 0 {
		sink := &r.sinks[0]
		skip := int(min(uint64(len(p)), sink.offset-uint64(r.got))) // padding
		p, r.got = p[skip:], r.got+skip
		count := int(min(uint64(len(p)), sink.length))
		sink.to.write(p[:count])
		p, r.got = p[count:], r.got+count
		sink.offset, sink.length = sink.offset+uint64(count), sink.length-uint64(count)
		if sink.length == 0 {
			r.sinks = r.sinks[1:]
		}
	}
	r.got += len(p)
	return nil
}

// header takes bytes until the header is complete, and returns how many.
func (r *Receiver) header(p []byte) (n int, err error) {
	for {
		want := sizePrefix
		if len(r.head) >= sizePrefix {
			size := binary.LittleEndian.Uint32(r.head)
			if uint64(size) > uint64(r.first-sizePrefix) {
				return n, fault.At(fault.Corrupt, "payload", 0, "header of %d bytes in a payload of %d", size, r.first)
			}
			want += int(size)
		}
		m := min(want-len(r.head), len(p)-n)
		r.head = append(r.head, p[n:n+m]...)
		n += m
		switch {
		case len(r.head) < want:
			return n, nil
		case want > sizePrefix || len(r.head) >= sizePrefix && binary.LittleEndian.Uint32(r.head) == 0:
			return n, r.place()
		}
	}
}

// place reads the header, and prepares the memory of the batch.
func (r *Receiver) place() error {
	r.decoder = newDecoder(r.head[sizePrefix:], r.first, r.total-r.first)
	batch := r.decoder.batch()
	if r.decoder.err != nil {
		return r.decoder.err
	}
	size := 0
	for i := range batch.Tensors {
		size += roundUp(finalSize(&batch.Tensors[i], r.decoder.places[i].data))
	}
	memory := r.memory.Take(size)
	batch.SetMemory(memory, func(keep bool) { r.memory.Give(memory, keep) })
	r.batch, r.buffers = batch, map[uint64]*buffer{}
	rest := memory.Bytes()
	for i := range batch.Tensors {
		tensor, place := &batch.Tensors[i], &r.decoder.places[i]
		n := finalSize(tensor, place.data)
		dst := rest[:n:n]
		rest = rest[roundUp(n):]
		r.finals = append(r.finals, dst)
		if err := r.lead(tensor, place, dst); err != nil {
			return err
		}
	}
	slices.SortFunc(r.sinks, func(a, b byteSink) int { return int(a.offset) - int(b.offset) })
	for i := 1; i < len(r.sinks); i++ {
		if a, b := r.sinks[i-1], r.sinks[i]; a.offset+a.length > b.offset {
			return fault.At(fault.Corrupt, "payload", int64(b.offset), "it lies in two ranges")
		}
	}
	return nil
}

// lead adds the sinks of a tensor whose elements become to.
func (r *Receiver) lead(t *batch.Tensor, at *tensorPlace, to []byte) error {
	data := at.data
	switch {
	case t.Kind != batch.Dense:
		r.keep(data)
	case t.Convert == nil:
		c := copied(to)
		r.add(data, &c)
	default:
		converter, err := newConverter(t, to)
		if err != nil {
			return err
		}
		r.add(data, converter)
	}
	r.keep(at.offsets)
	r.keep(at.mask)
	return nil
}

func (r *Receiver) keep(s span) {
	if s.length > 0 {
		keeper := new(buffer)
		// All ranges together are no longer than the payload that the caller wants, so the other side cannot make
		// it larger.
		*keeper = make(buffer, 0, s.length)
		r.buffers[s.offset] = keeper
		r.add(s, keeper)
	}
}

func (r *Receiver) add(s span, to writer) {
	if s.length > 0 {
		r.sinks = append(r.sinks, byteSink{s, to})
	}
}

// finalSize returns the bytes that a tensor takes in the memory of the batch.
func finalSize(t *batch.Tensor, data span) int {
	switch {
	case t.Kind != batch.Dense:
		return 0
	case t.Convert == nil:
		return int(data.length)
	}
	return int(data.length) / t.DType.Size() * t.Convert.To.Size()
}

// Batch returns the batch of a payload that is all there. The caller releases it.
func (r *Receiver) Batch() (*batch.Batch, error) {
	if r.batch == nil || r.got < r.total || len(r.sinks) > 0 {
		return nil, fault.At(fault.Corrupt, "payload", int64(r.got), "it ends after %d of %d bytes", r.got, r.total)
	}
	r.decoder.load(r.batch, func(s span) []byte {
		if k := r.buffers[s.offset]; k != nil && s.length > 0 {
			return *k
		}
		return nil
	})
	if r.decoder.err != nil {
		return nil, r.decoder.err
	}
	for i := range r.batch.Tensors {
		tensor := &r.batch.Tensors[i]
		if tensor.Kind != batch.Dense {
			continue
		}
		if tensor.Convert == nil {
			tensor.Data = r.finals[i]
		} else if err := converted(tensor, r.finals[i]); err != nil {
			return nil, err
		}
	}
	r.hasLetGo = true
	return r.batch, nil
}

// Drop gives the memory of a batch back that Batch did not return. It may be called at any time.
func (r *Receiver) Drop() {
	if r.batch != nil && !r.hasLetGo {
		r.hasLetGo = true
		r.batch.Release()
	}
}
