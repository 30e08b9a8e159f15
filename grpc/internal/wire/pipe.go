// Package wire has what client and server of chaski.v1 share: faults as messages, and batches on a pipe
// (proto/chaski/v1/chaski.proto, at Attach).
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

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
	PipeBatch = 1
	PipeReply = 2
)

// PipeHello returns what a client sends first.
func PipeHello(token []byte, secret PipeToken) []byte {
	return append(append([]byte(PipeMagic), token...), secret[:]...)
}

// PipeHead is the head of a reply.
type PipeHead struct{ Kind, Ticket, Length uint64 }

// pipeHeadBytes is its size: three numbers of 8 bytes.
const pipeHeadBytes = 3 * 8

// Bytes returns the head as it is sent.
func (h PipeHead) Bytes() []byte {
	out := binary.LittleEndian.AppendUint64(make([]byte, 0, pipeHeadBytes), h.Kind)
	out = binary.LittleEndian.AppendUint64(out, h.Ticket)
	return binary.LittleEndian.AppendUint64(out, h.Length)
}

// PipeReader reads the replies of a pipe.
type PipeReader struct {
	in      io.Reader
	most    int // bytes of a StreamReply
	buffer  []byte
	current PipeHead // of the batch that arrives
	rest    uint64   // of its bytes
}

// NewPipeReader returns a reader that reads up to n bytes at once. A StreamReply has most bytes at most.
func NewPipeReader(in io.Reader, n, most int) *PipeReader {
	return &PipeReader{in: in, most: most, buffer: make([]byte, n)}
}

var errPipe = errors.New("wire: a reply on a pipe is neither a batch nor a message that fits")

// Next returns the next reply, or as much of a batch as is there, as a part whose data are valid until the next call.
func (p *PipeReader) Next() (*chaskiv1.StreamReply, error) {
	if p.rest == 0 {
		var head [pipeHeadBytes]byte
		if _, err := io.ReadFull(p.in, head[:]); err != nil {
			return nil, err
		}
		number := func(i int) uint64 { return binary.LittleEndian.Uint64(head[8*i:]) }
		p.current = PipeHead{number(0), number(1), number(2)}
		if p.current.Kind != PipeBatch {
			return p.message()
		}
		p.rest = p.current.Length
	}
	count, err := p.in.Read(p.buffer[:min(p.rest, uint64(len(p.buffer)))])
	if count == 0 && err != nil {
		return nil, err
	}
	offset := p.current.Length - p.rest
	p.rest -= uint64(count)
	part := &chaskiv1.Part{Ticket: p.current.Ticket, Offset: offset, Total: p.current.Length, Data: p.buffer[:count]}
	return &chaskiv1.StreamReply{Kind: &chaskiv1.StreamReply_Part{Part: part}}, nil
}

func (p *PipeReader) message() (*chaskiv1.StreamReply, error) {
	if p.current.Kind != PipeReply || p.current.Length > uint64(p.most) {
		return nil, errPipe
	}
	message := make([]byte, p.current.Length)
	if _, err := io.ReadFull(p.in, message); err != nil {
		return nil, err
	}
	var reply chaskiv1.StreamReply
	if err := proto.Unmarshal(message, &reply); err != nil {
		return nil, fmt.Errorf("wire: a reply on a pipe: %w", err)
	}
	return &reply, nil
}
