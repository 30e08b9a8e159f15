// Package parts is how a server sends batches: parts of a payload as messages of gRPC, or on a pipe.
package parts

import (
	"io"

	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/chaski-eo/chaski/grpc/internal/wire"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
)

// Part is a part of the payload of a batch, whose data are pieces of memory, in order.
type Part struct {
	Ticket, Offset, Total uint64
	Data                  [][]byte
}

// Codec is the codec of a server: protobuf's, which also sends a Part as the StreamReply that it stands for.
type Codec struct{ encoding.CodecV2 }

// NewCodec returns a Codec.
func NewCodec() Codec { return Codec{encoding.GetCodecV2(protocodec.Name)} }

// Marshal implements encoding.CodecV2. It copies the data of a Part, once: they are the caller's again.
func (c Codec) Marshal(message any) (mem.BufferSlice, error) {
	part, ok := message.(*Part)
	if !ok {
		return c.CodecV2.Marshal(message)
	}
	length := 0
	for _, data := range part.Data {
		length += len(data)
	}
	fields, err := proto.Marshal(&chaskiv1.Part{Ticket: part.Ticket, Offset: part.Offset, Total: part.Total})
	if err != nil {
		return nil, err
	}
	fields = protowire.AppendTag(fields, partData, protowire.BytesType)
	fields = protowire.AppendVarint(fields, uint64(length))
	head := protowire.AppendTag(nil, replyPart, protowire.BytesType)
	head = append(protowire.AppendVarint(head, uint64(len(fields)+length)), fields...)
	pool := mem.DefaultBufferPool()
	buffer := pool.Get(len(head) + length)
	out := append((*buffer)[:0], head...)
	for _, data := range part.Data {
		out = append(out, data...)
	}
	return mem.BufferSlice{mem.NewBuffer(buffer, pool)}, nil
}

// Field numbers of a StreamReply and of its Part.
const (
	replyPart = 1
	partData  = 4
)

// WritePart writes a part of a batch; parts of a batch follow each other. Where w is a connection, it has taken the
// data when WritePart returns.
func (p *Part) WritePart(w io.Writer) error {
	if p.Offset == 0 {
		head := wire.PipeHead{Kind: wire.PipeBatch, Ticket: p.Ticket, Length: p.Total}
		if _, err := w.Write(head.Bytes()); err != nil {
			return err
		}
	}
	for _, data := range p.Data {
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	return nil
}

// WriteReply writes a StreamReply, as protobuf has it.
func WriteReply(w io.Writer, message []byte) error {
	_, err := w.Write(append(wire.PipeHead{Kind: wire.PipeReply, Length: uint64(len(message))}.Bytes(), message...))
	return err
}
