// Package wire has what client and server of chaski.v1 share: faults as messages, and batches on a pipe
// (proto/chaski/v1/chaski.proto, at Attach).
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
)

// PipeMagic begins what a client sends on a pipe (proto/chaski/v1/chaski.proto, at Attach), and is the answer. No
// connection of HTTP/2 begins so.
const PipeMagic = "chaski\x00\x01"

// PipeToken is what a client shows to open a pipe, or the secret of a pipe.
type PipeToken [16]byte

// Kinds of replies on a pipe.
const (
	pipeBatch = 1
	pipeReply = 2
)

// PipeHello returns what a client sends first.
func PipeHello(token []byte, secret PipeToken) []byte {
	return append(append([]byte(PipeMagic), token...), secret[:]...)
}

// pipeHead is the head of a reply.
type pipeHead struct{ kind, ticket, length uint64 }

// pipeHeadBytes is its size: three numbers of 8 bytes.
const pipeHeadBytes = 3 * 8

func (h pipeHead) bytes() []byte {
	out := binary.LittleEndian.AppendUint64(make([]byte, 0, pipeHeadBytes), h.kind)
	out = binary.LittleEndian.AppendUint64(out, h.ticket)
	return binary.LittleEndian.AppendUint64(out, h.length)
}

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
		if _, err := w.Write(pipeHead{pipeBatch, p.Ticket, p.Total}.bytes()); err != nil {
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
	_, err := w.Write(append(pipeHead{pipeReply, 0, uint64(len(message))}.bytes(), message...))
	return err
}

// PipeReader reads the replies of a pipe.
type PipeReader struct {
	in      io.Reader
	most    int // bytes of a StreamReply
	buffer  []byte
	current pipeHead // of the batch that arrives
	left    uint64   // of its bytes
}

// NewPipeReader returns a reader that reads up to n bytes at once. A StreamReply has most bytes at most.
func NewPipeReader(in io.Reader, n, most int) *PipeReader {
	return &PipeReader{in: in, most: most, buffer: make([]byte, n)}
}

var errPipe = errors.New("wire: a reply on a pipe is neither a batch nor a message that fits")

// Next returns the next reply, or as much of a batch as is there, as a part whose data are valid until the next call.
func (p *PipeReader) Next() (*chaskiv1.StreamReply, error) {
	if p.left == 0 {
		var head [pipeHeadBytes]byte
		if _, err := io.ReadFull(p.in, head[:]); err != nil {
			return nil, err
		}
		number := func(i int) uint64 { return binary.LittleEndian.Uint64(head[8*i:]) }
		p.current = pipeHead{number(0), number(1), number(2)}
		if p.current.kind != pipeBatch {
			return p.message()
		}
		p.left = p.current.length
	}
	count, err := p.in.Read(p.buffer[:min(p.left, uint64(len(p.buffer)))])
	if count == 0 && err != nil {
		return nil, err
	}
	offset := p.current.length - p.left
	p.left -= uint64(count)
	part := &chaskiv1.Part{Ticket: p.current.ticket, Offset: offset, Total: p.current.length, Data: p.buffer[:count]}
	return &chaskiv1.StreamReply{Kind: &chaskiv1.StreamReply_Part{Part: part}}, nil
}

func (p *PipeReader) message() (*chaskiv1.StreamReply, error) {
	if p.current.kind != pipeReply || p.current.length > uint64(p.most) {
		return nil, errPipe
	}
	message := make([]byte, p.current.length)
	if _, err := io.ReadFull(p.in, message); err != nil {
		return nil, err
	}
	var reply chaskiv1.StreamReply
	if err := proto.Unmarshal(message, &reply); err != nil {
		return nil, fmt.Errorf("wire: a reply on a pipe: %w", err)
	}
	return &reply, nil
}
