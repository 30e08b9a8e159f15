package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/chaski-eo/chaski/grpc/internal/wire"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
)

// pipeBuffer is how many bytes are read from a pipe at once: as many as a Unix socket holds, and few enough for them to
// be in a cache of the processor when they are converted.
const pipeBuffer = 256 << 10

// pipe is the connection by which the replies of one stream come (proto/chaski/v1/chaski.proto, at Attach).
type pipe struct {
	conn   net.Conn
	secret wire.PipeToken
	in     *wire.PipeReader
}

// openPipe opens a pipe to the server that shows a token, or returns nil: replies come by gRPC then. A server that does
// not answer in time is asked once.
func (p *peer) openPipe(ctx context.Context, token []byte) *pipe {
	otherwise := len(p.options.Dial) > 0 // these may say how connections are made
	if len(token) != len(wire.PipeToken{}) || otherwise || p.noPipes.Load() {
		return nil
	}
	opened, err := p.dialPipe(ctx, token)
	if err == nil {
		return opened
	}
	p.options.Logger.Debug("batches come by gRPC", "server", p.target, "error", err)
	if errors.Is(err, context.DeadlineExceeded) {
		p.noPipes.Store(true)
	}
	return nil
}

func (p *peer) dialPipe(ctx context.Context, token []byte) (*pipe, error) {
	ctx, cancel := context.WithTimeout(ctx, connectFor)
	defer cancel()
	network, address, err := pipeAddress(p.target)
	if err != nil {
		return nil, err
	}
	var dialer net.Dialer
	raw, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() }) // ends what waits for it
	opened, err := p.greet(ctx, raw, token)
	if !stop() || err != nil {
		return nil, errors.Join(ctx.Err(), err, raw.Close())
	}
	return opened, nil
}

// greet has the server let a pipe in.
func (p *peer) greet(ctx context.Context, raw net.Conn, token []byte) (*pipe, error) {
	conn, _, err := p.options.Credentials.Clone().ClientHandshake(ctx, p.authority, raw)
	if err != nil {
		return nil, err
	}
	opened := &pipe{conn: conn, in: wire.NewPipeReader(conn, pipeBuffer, maxMessage)}
	_, _ = rand.Read(opened.secret[:]) // it does not fail: crypto/rand
	if _, err := conn.Write(wire.PipeHello(token, opened.secret)); err != nil {
		return nil, err
	}
	var answer [len(wire.PipeMagic)]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil || string(answer[:]) != wire.PipeMagic {
		return nil, errors.Join(errors.New("the server does not let the pipe in"), err)
	}
	return opened, nil
}

// pipeAddress returns where the server of a target listens, as package net names it.
func pipeAddress(target string) (network, address string, err error) {
	if name, ok := strings.CutPrefix(target, "unix-abstract:"); ok {
		return "unix", "@" + name, nil
	}
	if path, ok := strings.CutPrefix(target, "unix:"); ok {
		return "unix", strings.TrimPrefix(path, "//"), nil
	}
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: "https", Host: target}})
	if err != nil || proxy != nil { // gRPC goes through it
		return "", "", errors.Join(fmt.Errorf("no pipe to %s through a proxy", target), err)
	}
	return "tcp", target, nil
}

func (p *pipe) close() { _ = p.conn.Close() } // what has not come is not wanted

// errPipe is of a pipe that broke on the way.
var errPipe = errors.New("the pipe of the stream broke")

// replySource is where the replies of a stream come from: its pipe until that ends, then gRPC, which says why it did.
type replySource struct {
	pipe   *pipe // may be nil
	stream interface {
		Recv() (*chaskiv1.StreamReply, error)
	}
	cancel context.CancelCauseFunc // of the stream
	came   bool                    // a reply by the pipe: what is left of the call then is its status
}

// next reads the next reply. A batch comes in several.
func (r *replySource) next() (*chaskiv1.StreamReply, error) {
	if r.pipe != nil {
		reply, err := r.pipe.in.Next()
		if err == nil {
			r.came = true
			return reply, nil
		}
		r.pipe.close()
		r.pipe = nil
		if r.came { // the server closes the pipe as it ends the call
			late := time.AfterFunc(connectFor, func() { r.cancel(fmt.Errorf("%w: %w", errPipe, err)) })
			defer late.Stop()
		}
	}
	return r.stream.Recv()
}
