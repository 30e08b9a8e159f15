package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/chaski-eo/chaski/grpc/internal/parts"
	"github.com/chaski-eo/chaski/grpc/internal/wire"
	"github.com/chaski-eo/chaski/internal/accept"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
)

const (
	// maxRequest is the most bytes of a request. A spec of 1 MiB fits.
	maxRequest = 2 << 20
	// callWindow is how many bytes a client may send ahead of what is read: the least of HTTP/2. Without a fixed one,
	// gRPC lets it grow to 16 MiB. A larger message opens the window for itself once its handler reads it, so a call
	// takes callWindow and maxRequest at most.
	callWindow = 64 << 10
)

// pipeWait is how long a pipe may wait for its stream: the client opens that at once, unless it is stopped for a while.
const pipeWait = 30 * time.Second

// pipes are the connections that wait for the streams whose replies they will take (proto/chaski/v1/chaski.proto, at
// Attach). Who knows the secret of one is let in by the gate with the call of its stream; until then a pipe is a
// connection like any other that has not proven itself.
type pipes struct {
	token wire.PipeToken

	mu      sync.Mutex
	waiting map[wire.PipeToken]*replyPipe
}

func newPipes() *pipes {
	made := &pipes{waiting: map[wire.PipeToken]*replyPipe{}}
	_, _ = rand.Read(made.token[:]) // it does not fail: crypto/rand
	return made
}

// replyPipe takes the replies of one stream. It is the stream's sender: a message is with the system when SendMsg
// returns. Later requests of the stream may come by it.
type replyPipe struct {
	conn  net.Conn
	place *accept.Conn // nil if the listener is not ours
	late  *time.Timer
	out   *bufio.Writer
	ctx   context.Context // of the call
	large *places         // of requests beyond callWindow that are read; nil: any
	in    *bufio.Reader
}

// split returns the connection if gRPC is to serve it. A pipe is kept, and answered, and the error says so.
func (p *pipes) split(conn net.Conn, place *accept.Conn) (net.Conn, error) {
	head := make([]byte, len(wire.PipeMagic))
	count, err := io.ReadFull(conn, head)
	switch {
	case count == 0:
		return nil, err
	case string(head) != wire.PipeMagic:
		// gRPC finds out what is wrong with a short one.
		return startedConn{conn, io.MultiReader(bytes.NewReader(head[:count]), conn)}, nil
	}
	var token, secret wire.PipeToken
	for _, part := range [][]byte{token[:], secret[:]} {
		if _, err := io.ReadFull(conn, part); err != nil {
			return nil, err
		}
	}
	if subtle.ConstantTimeCompare(token[:], p.token[:]) == 0 || !p.keep(conn, place, secret) {
		return nil, io.EOF // gRPC closes it without a word
	}
	return nil, credentials.ErrConnDispatched
}

// keep answers a pipe and lets it wait for its stream.
func (p *pipes) keep(conn net.Conn, place *accept.Conn, secret wire.PipeToken) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting[secret] != nil {
		return false
	}
	if _, err := io.WriteString(conn, wire.PipeMagic); err != nil {
		return false
	}
	p.waiting[secret] = &replyPipe{conn: conn, place: place, out: bufio.NewWriter(conn),
		late: time.AfterFunc(pipeWait, func() {
			if late := p.take(secret); late != nil {
				late.close()
			}
		})}
	return true
}

// take returns the pipe with a secret, which waits no more, or nil.
func (p *pipes) take(secret wire.PipeToken) *replyPipe {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := p.waiting[secret]
	delete(p.waiting, secret)
	if taken != nil {
		taken.late.Stop()
	}
	return taken
}

func (p *pipes) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for secret, waiting := range p.waiting {
		waiting.late.Stop()
		waiting.close()
		delete(p.waiting, secret)
	}
}

// attach returns the pipe of a stream, which ends with ctx, or nil if it is not known. Its large requests take places.
func (p *pipes) attach(ctx context.Context, secret []byte, large *places) (*replyPipe, error) {
	if len(secret) != len(wire.PipeToken{}) {
		return nil, status.Errorf(codes.InvalidArgument, "attach has a pipe of %d bytes, not 16", len(secret))
	}
	pipe := p.take(wire.PipeToken(secret))
	if pipe == nil {
		return nil, nil
	}
	if pipe.place != nil {
		pipe.place.Prove()
	}
	pipe.ctx, pipe.in, pipe.large = ctx, bufio.NewReader(pipe.conn), large
	// It is also closed because a SendMsg may wait for the client.
	context.AfterFunc(ctx, pipe.close)
	return pipe, nil
}

// receive returns the next request, or io.EOF when the client has closed its side.
func (p *replyPipe) receive() (*chaskiv1.StreamRequest, error) {
	var head [4]byte
	if _, err := io.ReadFull(p.in, head[:]); errors.Is(err, io.EOF) {
		return nil, err
	} else if err != nil {
		return nil, broken(err)
	}
	size := int64(binary.LittleEndian.Uint32(head[:]))
	if size > maxRequest {
		return nil, status.Errorf(codes.ResourceExhausted,
			"a request of %d bytes on a pipe, at most %d", size, maxRequest)
	}
	if size > callWindow && p.large != nil {
		leave, err := p.large.take(p.ctx)
		if err != nil {
			return nil, broken(err)
		}
		defer leave()
	}
	var message bytes.Buffer // grows with what arrives
	if _, err := io.CopyN(&message, p.in, size); err != nil {
		return nil, broken(err)
	}
	var request chaskiv1.StreamRequest
	if err := proto.Unmarshal(message.Bytes(), &request); err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "a request on a pipe: %v", err)
	}
	return &request, nil
}

// SendMsg implements sender.
func (p *replyPipe) SendMsg(m any) error {
	var err error
	switch m := m.(type) {
	case *parts.Part:
		err = m.WritePart(p.out)
	case *chaskiv1.StreamReply:
		var message []byte
		if message, err = proto.Marshal(m); err == nil {
			err = parts.WriteReply(p.out, message)
		}
	}
	if err == nil {
		err = p.out.Flush()
	}
	if err != nil {
		return broken(err)
	}
	return nil
}

func broken(err error) error {
	return status.Errorf(codes.Unavailable, "the pipe to the client broke: %v", err)
}

func (p *replyPipe) close() { _ = p.conn.Close() } // all that it has taken is sent, so its error does not matter

// startedConn is a connection whose first bytes were read.
type startedConn struct {
	net.Conn
	all io.Reader
}

// Read implements net.Conn.
func (b startedConn) Read(to []byte) (int, error) { return b.all.Read(to) }
