package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"google.golang.org/grpc"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/internal/procs"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/loader/survey"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

// ReadTensor is the name of the one tensor that Read answers with.
const ReadTensor = "array"

// Read implements chaski.v1.Chaski: the answer is the payload of a batch without rows that has one
// tensor.
func (s *Server) Read(r *chaskiv1.ReadRequest, g grpc.ServerStreamingServer[chaskiv1.StreamReply]) error {
	leave, err := s.place(g.Context(), s.reads)
	if err != nil {
		return failed(err)
	}
	defer leave()
	leases, err := s.shared.leaseConnOf(r.GetAttach())
	if err != nil {
		return err
	}
	if leases != nil {
		// The client may have missed the reply. It must not keep a lease unknowingly.
		defer leases.recall(r.GetAttach().GetStream())
	}
	array, err := s.read(g.Context(), r, leases)
	if err != nil {
		return failed(err)
	}
	watch := newWatch(g.Context(), g, &s.options, func() bool {
		return s.reads.hasWaiting() || s.options.Loader.Budget.Waiting() > 0
	})
	watch.sent = s.sentTo(g.Context())
	return watch.run(&s.answering, func() error { return s.answer(watch, leases, r.GetAttach(), batchOf(array)) })
}

// batchOf returns an array as the batch that Read answers with.
func batchOf(a *raster.Array) *batch.Batch {
	batch := &batch.Batch{Tensors: []batch.Tensor{{Name: ReadTensor, DType: a.DType, Axes: a.Axes,
		Shape: num.As[int64](a.Shape), Data: a.Data}}}
	memory, ok := a.Memory().(*arrayMemory)
	if !ok {
		batch.OnRelease(a.Release)
		return batch
	}
	batch.SetMemory(memory.sharedSegment, func(keep bool) {
		memory.discard = !keep
		a.Release()
	})
	return batch
}

// answer sends the array of a Read: as a lease to c, if c is a client on this host and there is room, else in parts.
func (s *Server) answer(w *sendWatch, c *leaseConn, attach *chaskiv1.Attach, b *batch.Batch) error {
	if c != nil {
		if n, err := c.offer(w, b, &s.arrays.leased, 0, attach.GetStream()); n > 0 || err != nil {
			return err
		}
	} else if address := s.shared.describe(); attach != nil && address != nil && len(b.Tensors[0].Data) >= minArray {
		if err := w.SendMsg(&chaskiv1.StreamReply{Kind: &chaskiv1.StreamReply_Shared{Shared: address}}); err != nil {
			b.Release()
			return err
		}
	}
	_, err := sendParts(w, 0, b, s.options.PartBytes)
	return err
}

// place waits until the client may be sent more, and then for a place, which leave gives back.
func (s *Server) place(ctx context.Context, p *places) (leave func(), err error) {
	ctx, cancel := s.whileServing(ctx)
	defer cancel()
	if err := s.clients.wait(ctx, clientOf(ctx)); err != nil {
		return nil, err
	}
	return p.take(ctx)
}

// sentTo returns what counts the bytes that the client of a call is sent.
func (s *Server) sentTo(ctx context.Context) func(n int) {
	client, limit := clientOf(ctx), limitsOf(ctx).Rate
	return func(n int) { s.clients.spent(client, limit, n) }
}

// read reads the array of a request, for a client on this host into memory that it may be lent.
func (s *Server) read(ctx context.Context, r *chaskiv1.ReadRequest, c *leaseConn) (*raster.Array, error) {
	view := s.viewOf(ctx)
	readOptions := raster.ReadOptions{
		Layout:   r.GetLayout(),
		Threads:  int(min(r.GetNumThreads(), uint32(procs.Workers()))),
		Headers:  r.GetHeaders(),
		MaxBytes: s.options.MaxReadBytes,
		Options:  view.loader,
	}
	if c != nil {
		readOptions.Alloc = s.arrays.alloc(c)
	}
	if len(r.GetSizes()) > 0 {
		readOptions.Sizes = map[string]int{}
		for name, n := range r.GetSizes() {
			readOptions.Sizes[name] = int(n)
		}
	}
	for _, sel := range []struct {
		to   *raster.Selection
		text string
	}{{&readOptions.N, r.GetN()}, {&readOptions.T, r.GetT()}, {&readOptions.B, r.GetB()}, {&readOptions.Y, r.GetY()},
		{&readOptions.X, r.GetX()}} {
		var err error
		if *sel.to, err = raster.ParseSelection(sel.text); err != nil {
			return nil, invalid{err}
		}
	}
	corners := r.GetCorners()
	if len(corners)%2 != 0 {
		return nil, invalid{fmt.Errorf("%d numbers are the rows and columns of windows: there must be two a window",
			len(corners))}
	}
	for c := range slices.Chunk(corners, 2) {
		readOptions.Corners = append(readOptions.Corners, [2]int{int(c[0]), int(c[1])})
	}
	if r.Overview != nil {
		level := int(r.GetOverview())
		readOptions.Overview = &level
	}
	if len(view.loader.Roots) == 0 {
		return nil, errNoRoot
	}
	if r.GetCheckHeaders() {
		if err := checkHeaders(ctx, r.GetPaths(), &readOptions); err != nil {
			return nil, err
		}
	}
	array, err := raster.Read(ctx, r.GetPaths(), readOptions)
	if err != nil {
		return nil, askedWrong(err)
	}
	return array, nil
}

// checkHeaders compares the headers of a request with the files' own, and drops them: the read takes the files' own.
func checkHeaders(ctx context.Context, paths []string, o *raster.ReadOptions) error {
	for i, path := range paths {
		_, meta, err := catalog.OpenAsset(ctx, o.Options.Opener, path, o.Options.MaxChunkBytes)
		if err != nil {
			return err
		}
		header, err := meta.Header()
		if err != nil {
			return fault.WithFile(err, path)
		}
		if i >= len(o.Headers) || !bytes.Equal(header, o.Headers[i]) {
			return invalid{fmt.Errorf("%s: the header is that of another file", path)}
		}
	}
	o.Headers = nil
	return nil
}

// Info implements chaski.v1.Chaski: it returns the JSON of survey.Describe.
func (s *Server) Info(ctx context.Context, r *chaskiv1.InfoRequest) (*chaskiv1.InfoReply, error) {
	view := s.viewOf(ctx)
	if len(view.loader.Roots) == 0 {
		return nil, failed(errNoRoot)
	}
	key, local := "file "+r.GetPath()+view.key, !source.IsRemote(r.GetPath())
	described, err := s.engines.openings.do(ctx, view, key, local, func(ctx context.Context) (any, error) {
		info, err := survey.Describe(ctx, r.GetPath(), nil, view.loader)
		if err != nil {
			return nil, err
		}
		described, err := json.Marshal(info)
		return []byte(fault.WithoutSecrets(string(described))), err
	})
	if err != nil {
		return nil, failed(err)
	}
	return &chaskiv1.InfoReply{Json: described.([]byte)}, nil
}

// errNoRoot is the answer of a server without roots to all questions about files.
var errNoRoot = fault.New(fault.NotFound, "path", "this server serves no files: it has no root")
