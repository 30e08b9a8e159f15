package client

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"

	"github.com/chaski-eo/chaski/grpc/internal/wire"
	"github.com/chaski-eo/chaski/loader/batch"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
)

// Bounds and buffers of a connection, in bytes.
const (
	maxMessage = 18 << 20 // server.MaxPartBytes, and room for the message around it
	// window is how many bytes a server may send ahead: 10 Gbit/s for 6 ms. It is fixed,
	// because gRPC's estimate starts at 64 KiB and needs some batches to grow.
	window     = 8 << 20
	readBuffer = 256 << 10 // 16 frames, so most frames cost no system call
)

// peer is the connection to one server. It is safe for concurrent use.
type peer struct {
	serverAddress
	authority string // what a certificate is of
	options   Options
	conn      *grpc.ClientConn
	stub      chaskiv1.ChaskiClient

	mu          sync.Mutex
	leases      *leaseConn  // may be nil
	noLeasesFor string      // token for which noLeases holds
	noLeases    error       // why there are no leases
	noPipes     atomic.Bool // none came in time
	closed      bool        // no connection is made any more
}

func dialPeer(at serverAddress, o Options) (*peer, error) {
	target := at.target
	dial := []grpc.DialOption{
		grpc.WithTransportCredentials(o.Credentials),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithReadBufferSize(readBuffer),
		grpc.WithStaticStreamWindowSize(window),
		grpc.WithStaticConnWindowSize(window),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 20 * time.Second}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: o.Backoff, Multiplier: 2, Jitter: 0.2,
				MaxDelay: 20 * o.Backoff},
			MinConnectTimeout: 5 * time.Second,
		}),
	}
	if at.name != "" {
		// The certificate is of the name, not of the address that was found by it.
		dial = append(dial, grpc.WithAuthority(at.name))
	}
	if o.Token != nil {
		if o.Credentials.Info().SecurityProtocol == "insecure" && !o.PlainToken {
			if err := maySend(target); err != nil {
				return nil, fmt.Errorf("chaski at %s: %w", target, err)
			}
		}
		dial = append(dial, grpc.WithPerRPCCredentials(o.Token))
	}
	conn, err := grpc.NewClient(target, append(dial, o.Dial...)...)
	if err != nil {
		return nil, fmt.Errorf("chaski at %s: %w", target, err)
	}
	return &peer{serverAddress: at, authority: cmp.Or(at.name, target), options: o, conn: conn,
		stub: chaskiv1.NewChaskiClient(conn)}, nil
}

func (p *peer) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.leases != nil {
		p.leases.close()
		p.leases = nil
	}
	return p.conn.Close()
}

// usable returns the error of a connection after the client was closed.
func (p *peer) usable() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errClosed
	}
	return nil
}

// failed adds the name of the server to an error, and restores the fault in its status.
func (p *peer) failed(err error) error {
	return fmt.Errorf("chaski at %s: %w", p.target, wire.StatusError(err))
}

func (p *peer) describe(ctx context.Context, spec []byte) (*chaskiv1.DescribeReply, error) {
	ctx, cancel := context.WithTimeout(ctx, p.options.Timeout)
	defer cancel()
	return p.stub.Describe(ctx, &chaskiv1.DescribeRequest{Spec: spec,
		Rows: uint32(min(p.options.Rows, math.MaxUint32))})
}

func (p *peer) info(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, p.options.Timeout)
	defer cancel()
	infoReply, err := p.stub.Info(ctx, &chaskiv1.InfoRequest{Path: path})
	if err != nil {
		return nil, p.failed(err)
	}
	return infoReply.GetJson(), nil
}

func (p *peer) report(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, p.options.Timeout)
	defer cancel()
	reply, err := p.stub.Report(ctx, &chaskiv1.ReportRequest{})
	if err != nil {
		return nil, p.failed(err)
	}
	return reply.GetFigures(), nil
}

func (p *peer) read(ctx context.Context, r *chaskiv1.ReadRequest) (*batch.Tensor, error) {
	ctx, cancel := context.WithTimeout(ctx, p.options.Timeout)
	defer cancel()
	stream, err := p.stub.Read(ctx, r)
	if err != nil {
		return nil, p.failed(err)
	}
	parts := assembly{memory: new(batch.Pool)}
	defer parts.drop()
	for !parts.isComplete() {
		reply, err := stream.Recv()
		if err != nil {
			return nil, p.failed(err)
		}
		if fault := reply.GetFault(); fault != nil {
			return nil, p.failed(wire.FaultError(fault))
		}
		if err := parts.add(reply.GetPart(), 0, p.options.MaxBatchBytes); err != nil {
			return nil, p.failed(err)
		}
	}
	b, err := parts.to.Batch()
	if err != nil {
		return nil, p.failed(err)
	}
	if len(b.Tensors) != 1 || b.Tensors[0].Kind != batch.Dense {
		return nil, p.failed(fmt.Errorf("%w: the answer is not one array", ErrProtocol))
	}
	return &b.Tensors[0], nil
}
