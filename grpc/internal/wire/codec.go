// Package wire is how chaski.v1 messages get on and off the wire without copies of a batch.
//
// Its codec is protobuf's for every message but two: Part, which is sent, refers to memory of a
// batch, and Reply, which is received, refers to the buffers of the transport. Both are plain
// chaski.v1.StreamReply messages to the other side (proto/chaski/v1/chaski.proto).
package wire

import (
	"fmt"
	"slices"

	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
)

// Codec is the codec of client and server. It answers to protobuf's name.
type Codec struct{ proto encoding.CodecV2 }

// NewCodec returns a Codec.
func NewCodec() Codec { return Codec{encoding.GetCodecV2(protocodec.Name)} }

// Name implements encoding.CodecV2.
func (Codec) Name() string { return protocodec.Name }

// Marshal implements encoding.CodecV2.
func (c Codec) Marshal(v any) (mem.BufferSlice, error) {
	if p, ok := v.(*Part); ok {
		return p.marshal(), nil
	}
	return c.proto.Marshal(v)
}

// Unmarshal implements encoding.CodecV2.
func (c Codec) Unmarshal(data mem.BufferSlice, v any) error {
	if r, ok := v.(*Reply); ok {
		return r.unmarshal(data)
	}
	return c.proto.Unmarshal(data, v)
}

// Owner owns the memory of a Part. Hold is called once for every piece that is handed to the
// transport, which puts the piece into the pool that Hold returns when it is done with it.
type Owner interface {
	Hold() mem.BufferPool
}

// Part is a StreamReply with a part whose data are pieces of memory, in order.
type Part struct {
	Ticket, Offset, Total uint64
	Data                  [][]byte
	Owner                 Owner
}

// Field numbers of StreamReply and Part.
const (
	replyPart  = 1
	partTicket = 1
	partOffset = 2
	partTotal  = 3
	partData   = 4
)

func (p *Part) marshal() mem.BufferSlice {
	n := 0
	for _, d := range p.Data {
		n += len(d)
	}
	var inner []byte
	for i, v := range []uint64{p.Ticket, p.Offset, p.Total} {
		inner = protowire.AppendTag(inner, protowire.Number(partTicket+i), protowire.VarintType)
		inner = protowire.AppendVarint(inner, v)
	}
	inner = protowire.AppendTag(inner, partData, protowire.BytesType)
	inner = protowire.AppendVarint(inner, uint64(n))
	head := protowire.AppendTag(nil, replyPart, protowire.BytesType)
	head = protowire.AppendVarint(head, uint64(len(inner)+n))
	head = append(head, inner...)

	out := make(mem.BufferSlice, 0, 1+len(p.Data))
	out = append(out, mem.SliceBuffer(head))
	for _, d := range p.Data {
		out = append(out, p.buffer(d))
	}
	return out
}

// buffer hands d to the transport. The transport keeps no account of small buffers: those are
// copied.
func (p *Part) buffer(d []byte) mem.Buffer {
	d = slices.Clip(d)
	if mem.IsBelowBufferPoolingThreshold(len(d)) {
		return mem.SliceBuffer(slices.Clone(d))
	}
	return mem.NewBuffer(&d, p.Owner.Hold())
}

// Reply is a received StreamReply: a fault, a lease, or a part whose data stay in the transport's buffers
// until Free.
type Reply struct {
	Fault                 *chaskiv1.Fault // nil for the others
	Lease                 *chaskiv1.Lease // nil for the others
	Ticket, Offset, Total uint64          // of a part
	Len                   int             // bytes of the part's data

	message mem.BufferSlice
	start   int // of the data in message
}

// Each calls f for the pieces of the part's data, in order, until f returns an error, and returns that. The pieces are
// the transport's buffers.
func (r *Reply) Each(f func(p []byte) error) error {
	skip := r.start
	for _, b := range r.message {
		p := b.ReadOnlyData()
		n := min(skip, len(p))
		skip -= n
		if p = p[n:]; len(p) == 0 {
			continue
		}
		if err := f(p); err != nil {
			return err
		}
	}
	return nil
}

// Free gives the transport's buffers back. The reply is empty afterwards.
func (r *Reply) Free() {
	r.message.Free()
	*r = Reply{}
}

func (r *Reply) unmarshal(data mem.BufferSlice) error {
	*r = Reply{}
	if r.part(data) {
		data.Ref()
		r.message = data
		return nil
	}
	// Not as our server writes it: a fault, or a message with fields in another order.
	*r = Reply{}
	var m chaskiv1.StreamReply
	if err := proto.Unmarshal(data.Materialize(), &m); err != nil {
		return err
	}
	switch k := m.Kind.(type) {
	case *chaskiv1.StreamReply_Fault:
		r.Fault = k.Fault
	case *chaskiv1.StreamReply_Lease:
		r.Lease = k.Lease
	case *chaskiv1.StreamReply_Part:
		p := k.Part
		r.Ticket, r.Offset, r.Total, r.Len = p.GetTicket(), p.GetOffset(), p.GetTotal(), len(p.GetData())
		r.message = mem.BufferSlice{mem.SliceBuffer(p.GetData())}
	default:
		return fmt.Errorf("wire: reply is none of part, fault, lease")
	}
	return nil
}

// part reads a message that is one part with its data last, and reports whether data is one.
func (r *Reply) part(data mem.BufferSlice) bool {
	s := scan{in: data.Reader()}
	defer func() { _ = s.in.Close() }() // gives back references; it cannot fail
	total := s.in.Remaining()
	if s.varint() != protowire.EncodeTag(replyPart, protowire.BytesType) ||
		s.varint() != uint64(s.in.Remaining()) || s.bad {
		return false
	}
	for last := protowire.Number(0); s.in.Remaining() > 0 && !s.bad; {
		num, typ := protowire.DecodeTag(s.varint())
		if num <= last {
			return false
		}
		last = num
		v := s.varint()
		switch {
		case s.bad:
			return false
		case num == partData && typ == protowire.BytesType:
			if v != uint64(s.in.Remaining()) {
				return false
			}
			r.start, r.Len = total-s.in.Remaining(), s.in.Remaining()
			return true
		case typ != protowire.VarintType:
			return false
		case num == partTicket:
			r.Ticket = v
		case num == partOffset:
			r.Offset = v
		case num == partTotal:
			r.Total = v
		default:
			return false
		}
	}
	return false
}

// scan reads varints one byte at a time: there are a few before a megabyte of data.
type scan struct {
	in  *mem.Reader
	bad bool
}

func (s *scan) varint() uint64 {
	var b [10]byte
	for i := range b {
		c, err := s.in.ReadByte()
		if err != nil {
			break
		}
		b[i] = c
		if c < 0x80 {
			v, n := protowire.ConsumeVarint(b[:i+1])
			s.bad = s.bad || n < 0
			return v
		}
	}
	s.bad = true
	return 0
}
