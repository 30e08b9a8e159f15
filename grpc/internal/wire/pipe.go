package wire

import (
	"encoding/binary"
	"errors"
	"io"

	"google.golang.org/grpc/mem"
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

// Next reads the next StreamReply, or as much of a batch as is there, as a part whose data are valid until the next
// call.
func (p *PipeReader) Next(r *Reply) error {
	if p.left == 0 {
		var head [pipeHeadBytes]byte
		if _, err := io.ReadFull(p.in, head[:]); err != nil {
			return err
		}
		number := func(i int) uint64 { return binary.LittleEndian.Uint64(head[8*i:]) }
		p.current = pipeHead{number(0), number(1), number(2)}
		if p.current.kind != pipeBatch {
			return p.message(r)
		}
		p.left = p.current.length
	}
	n, err := p.in.Read(p.buffer[:min(p.left, uint64(len(p.buffer)))])
	if n == 0 && err != nil {
		return err
	}
	*r = Reply{Ticket: p.current.ticket, Offset: p.current.length - p.left, Total: p.current.length, Len: n,
		message: mem.BufferSlice{mem.SliceBuffer(p.buffer[:n])}}
	p.left -= uint64(n)
	return nil
}

func (p *PipeReader) message(r *Reply) error {
	if p.current.kind != pipeReply || p.current.length > uint64(p.most) {
		return errPipe
	}
	message := make([]byte, p.current.length)
	if _, err := io.ReadFull(p.in, message); err != nil {
		return err
	}
	return r.unmarshal(mem.BufferSlice{mem.SliceBuffer(message)})
}
