package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/grpc/client"
	"github.com/chaski-eo/chaski/grpc/payload"
	"github.com/chaski-eo/chaski/grpc/server"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/survey"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

// coast is a real chip: 6 bands of 640 by 640 uint16, nodata 0.
const coast = "../../testdata/demo/coast.tif"

// serve serves the files below root until the test ends, and returns its address.
func serve(t testing.TB, root string) string {
	t.Helper()
	s, err := server.New(server.Options{Roots: []string{root}, Logger: quiet, PartBytes: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	return run(t, s.Serve)
}

func run(t testing.TB, serve func(context.Context, net.Listener) error) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "unix:" + path
}

func dial(t testing.TB, target string, o client.Options) *client.Client {
	t.Helper()
	o.Logger = quiet
	if o.Backoff == 0 {
		o.Backoff = time.Millisecond
	}
	c, err := client.Dial(target, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// copied is a batch that outlives Release.
type copied struct {
	epoch              uint64
	first              int64
	valid              []bool
	positions, samples []int64
	tensors            [][]byte
}

func (c copied) equal(d copied) bool {
	return c.epoch == d.epoch && c.first == d.first && slicesEqual(c.valid, d.valid) &&
		slicesEqual(c.positions, d.positions) &&
		slicesEqual(c.samples, d.samples) && bytes.Equal(bytes.Join(c.tensors, nil), bytes.Join(d.tensors, nil))
}

func slicesEqual[T comparable](a, b []T) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func keep(b *batch.Batch) copied {
	c := copied{b.Epoch, b.First, b.Valid, b.Positions, b.Samples, nil}
	for _, t := range b.Tensors {
		c.tensors = append(c.tensors, []byte(t.Name+t.DType.String()+strings.Join(t.Axes, ",")), bytes.Clone(t.Data),
			bytes.Clone(t.Offsets))
	}
	return c
}

// TestSameBatchesAsInProcess: real specs give the same batches in this process and over the wire,
// with the conversion on either side.
func TestSameBatchesAsInProcess(t *testing.T) {
	source, err := filepath.Abs(coast)
	if err != nil {
		t.Fatal(err)
	}
	fill, nan := spec.Float(-3), spec.Float(0)
	if err := json.Unmarshal([]byte(`"nan"`), &nan); err != nil {
		t.Fatal(err)
	}
	window := loader.Sampler{Kind: spec.RandomWindow, Height: 64, Width: 96, PerAsset: 23}
	for name, fields := range map[string][]loader.Field{
		"native": {{Name: "image"}},
		"float32": {
			{
				Name: "image", DType: "float32", Fill: &nan,
				Normalize: &spec.Normalize{Scale: []float64{1e-4}, Offset: []float64{-0.1}},
			},
		},
		"per band": {
			{
				Name: "image", DType: "float32", Bands: []int{5, 0, 0}, Layout: "n y x b", Fill: &fill,
				Normalize: &spec.Normalize{
					Scale:  []float64{1e-4, 2, 3e-3},
					Offset: []float64{0, 1, -1}, Clip: &[2]spec.Float{-1, 100},
				},
			},
		},
		"bfloat16": {{Name: "image", DType: "bfloat16", Layout: "(n b) (y x)", Validity: "ok"}},
		"no fill":  {{Name: "image", DType: "float32"}},
	} {
		if testing.Short() && name != "native" && name != "bfloat16" {
			continue // the same goroutines convert and send any of them
		}
		t.Run(name, func(t *testing.T) {
			sameBatches(t, loader.Spec{
				Source: source, Fields: fields, BatchSize: 5, Shuffle: true, Seed: 3, Sampler: window,
			})
		})
	}
}

// TestSameBatchesOfMaskedFiles: so do files with masks, in windows that pass their edges.
func TestSameBatchesOfMaskedFiles(t *testing.T) {
	fill := spec.Float(-3)
	for _, name := range []string{"tog.tif", "strips-be.tif", "bytes.tif"} {
		source, err := filepath.Abs(filepath.Join("..", "..", "testdata", "masks", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, height := range []int{24, 120} {
			t.Run(fmt.Sprintf("%s windows of %d rows", name, height), func(t *testing.T) {
				fields := []loader.Field{{
					Name: "image", DType: "float32", Layout: "n y x b", Fill: &fill, Pad: true,
					Normalize: &spec.Normalize{Scale: []float64{0.5}, Offset: []float64{-1}},
				}}
				window := loader.Sampler{Kind: spec.RandomWindow, Height: height, Width: 40, PerAsset: 9}
				sameBatches(t, loader.Spec{
					Source: source, Fields: fields, BatchSize: 4, Shuffle: true, Seed: 5, Sampler: window,
				})
			})
		}
	}
}

// sameBatches compares two epochs of a spec, for one rank of two.
func sameBatches(t *testing.T, spec loader.Spec) {
	t.Helper()
	e, err := loader.Open(t.Context(), spec, loader.Options{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	local, err := loader.NewLoader(e, loader.LoaderOptions{Rank: 1, World: 2, Epochs: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	var want []copied
	for b, err := range local.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, keep(b))
	}
	c := dial(t, serve(t, filepath.Dir(spec.Source)), client.Options{})
	run, err := c.Open(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if run.Hash() != e.Hash() || run.Len() != e.Len() || run.Steps() != e.Steps() ||
		run.Fingerprint() != e.Fingerprint() || len(run.Fields()) != len(e.Fields()) {
		t.Errorf("run %v %v %v, want %v %v %v", run.Hash(), run.Len(), run.Steps(), e.Hash(), e.Len(), e.Steps())
	}
	for _, native := range []bool{false, true} {
		l, err := run.Loader(batch.LoaderOptions{Rank: 1, World: 2, Epochs: 2, Native: native})
		if err != nil {
			t.Fatal(err)
		}
		i := 0
		for b, err := range l.All(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if i >= len(want) || !keep(b).equal(want[i]) {
				t.Fatalf("step %d differs (native %v)", i, native)
			}
			i++
		}
		if i != len(want) || i == 0 || !reflect.DeepEqual(l.State(), local.State()) {
			t.Errorf("%d steps, want %d; state %+v, want %+v", i, len(want), l.State(), local.State())
		}
		l.Close()
	}
}

func TestOutsideOfTheRoots(t *testing.T) {
	source, err := filepath.Abs(coast)
	if err != nil {
		t.Fatal(err)
	}
	address := serve(t, t.TempDir())
	c := dial(t, address, client.Options{})
	_, err = c.Open(t.Context(), loader.Spec{Source: source, BatchSize: 1})
	if err == nil || !strings.Contains(err.Error(), address) {
		t.Errorf("opened: %v", err)
	}
	if _, err := c.Info(t.Context(), source); err == nil {
		t.Error("Info of a file outside")
	}
	if _, err := c.Read(t.Context(), &chaskiv1.ReadRequest{Paths: []string{source}}); err == nil {
		t.Error("Read of a file outside")
	}
}

func TestReadAndInfo(t *testing.T) {
	source, err := filepath.Abs(coast)
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, serve(t, filepath.Dir(source)), client.Options{})
	want, err := raster.Read(t.Context(), []string{source}, raster.ReadOptions{
		Layout: "y x b", Y: raster.Selection{Slice: true, Start: 10, Stop: 300},
		B: raster.Selection{List: []int{3, 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Read(t.Context(), &chaskiv1.ReadRequest{
		Paths: []string{source}, Layout: "y x b", Y: "10:300", B: "3,1", NumThreads: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	shape := make([]int64, len(want.Shape))
	for i, length := range want.Shape {
		shape[i] = int64(length)
	}
	if got.DType != want.DType || !slicesEqual(got.Shape, shape) || !slicesEqual(got.Axes, want.Axes) ||
		!bytes.Equal(got.Data, want.Data) {
		t.Errorf("%v %v %v, want %v %v %v", got.DType, got.Shape, got.Axes, want.DType, want.Shape, want.Axes)
	}
	_, err = c.Read(t.Context(), &chaskiv1.ReadRequest{Paths: []string{source}, B: "9"})
	if fault.KindOf(err) != fault.NotFound {
		t.Error(err)
	}
	_, err = c.Read(t.Context(), &chaskiv1.ReadRequest{Paths: []string{source}, B: "x"})
	if status.Code(err) != codes.InvalidArgument {
		t.Error(err)
	}
	b, err := c.Info(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	var info survey.FileInfo
	if err := json.Unmarshal(b, &info); err != nil || info.Raster == nil || info.Raster.Shape != [3]int{6, 640, 640} {
		t.Errorf("%s, %v", b, err)
	}
}

// replyStream is the server's end of a stream of batches.
type replyStream = grpc.BidiStreamingServer[chaskiv1.StreamRequest, chaskiv1.StreamReply]

// liar is a server whose answers the test chooses.
type liar struct {
	chaskiv1.UnimplementedChaskiServer
	described atomic.Int64
	hash      func(n int64) string
	stream    func(g replyStream, first *chaskiv1.Ticket) error
	streams   atomic.Int64
	spec      string // of its descriptions; empty: the client's own
}

func (l *liar) Describe(_ context.Context, r *chaskiv1.DescribeRequest) (*chaskiv1.DescribeReply, error) {
	n := l.described.Add(1)
	hash := "h"
	if l.hash != nil {
		hash = l.hash(n)
	}
	spec := r.GetSpec()
	if l.spec != "" {
		spec = []byte(l.spec)
	}
	return &chaskiv1.DescribeReply{SpecHash: hash, Handle: hash, Samples: 100, Spec: spec}, nil
}

// TestSpecOfAServer: a run has the batches of the spec that its server describes, if these are possible.
func TestSpecOfAServer(t *testing.T) {
	for spec, steps := range map[string]int64{
		`{"batch_size": 30}`:                   4,
		`{"batch_size": 30, "last": "pad"}`:    4,
		`{"batch_size": 30, "last": "drop"}`:   3,
		`{"batch_size": 30, "last": "other"}`:  0,
		`{"batch_size": 0}`:                    0,
		`{"batch_size": -4}`:                   0,
		`{"batch_size": 1099511627776}`:        0,
		`{"batch_size": 99999999999999999999}`: 0,
		`{}`:                                   0,
		`[]`:                                   0,
		`{"batch_size"`:                        0,
	} {
		l := &liar{spec: spec}
		r, err := dial(t, l.serve(t), client.Options{}).Open(t.Context(), json.RawMessage(`{"source": "x"}`))
		switch {
		case steps == 0 && !errors.Is(err, client.ErrProtocol):
			t.Errorf("%s: %v", spec, err)
		case steps > 0 && (err != nil || r.Steps() != steps || string(r.Spec()) != spec):
			t.Errorf("%s: %v", spec, err)
		}
	}
}

func (l *liar) Stream(g replyStream) error {
	l.streams.Add(1)
	r, err := g.Recv()
	if err != nil {
		return err
	}
	return l.stream(g, r.GetTicket())
}

func (l *liar) serve(t *testing.T) string {
	return run(t, func(ctx context.Context, lis net.Listener) error {
		g := grpc.NewServer(grpc.WaitForHandlers(true))
		chaskiv1.RegisterChaskiServer(g, l)
		stop := context.AfterFunc(ctx, g.Stop)
		defer stop()
		if err := g.Serve(lis); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			return err
		}
		return nil
	})
}

func part(p *chaskiv1.Part) *chaskiv1.StreamReply {
	return &chaskiv1.StreamReply{Kind: &chaskiv1.StreamReply_Part{Part: p}}
}

// encoded returns the payload of an empty batch with rows rows.
func encoded(epoch uint64, first int64, rows int) []byte {
	segments, _ := payload.Encode(&batch.Batch{
		Epoch: epoch, First: first, Rows: rows,
		Valid: make([]bool, rows), Positions: make([]int64, rows), Samples: make([]int64, rows),
	})
	return bytes.Join(segments, nil)
}

// TestServerLies: every lie of a server is an error that names the server, after one attempt.
func TestServerLies(t *testing.T) {
	good := encoded(0, 0, 10)
	n := uint64(len(good))
	bad := bytes.Clone(good)
	bad[4] ^= 0xff // where the root table is
	for name, replies := range map[string][]*chaskiv1.StreamReply{
		"other ticket": {part(&chaskiv1.Part{Ticket: 77, Total: n, Data: good})},
		"gap": {
			part(&chaskiv1.Part{Ticket: 1, Total: n, Data: good[:50]}),
			part(&chaskiv1.Part{Ticket: 1, Offset: 51, Total: n, Data: good[51:]}),
		},
		"begins late": {part(&chaskiv1.Part{Ticket: 1, Offset: 1, Total: n, Data: good[1:]})},
		"too long":    {part(&chaskiv1.Part{Ticket: 1, Total: n - 1, Data: good})},
		"too large":   {part(&chaskiv1.Part{Ticket: 1, Total: 1 << 62, Data: good})},
		"total changes": {
			part(&chaskiv1.Part{Ticket: 1, Total: n, Data: good[:50]}),
			part(&chaskiv1.Part{Ticket: 1, Offset: 50, Total: n + 1, Data: good[50:]}),
		},
		"empty part":      {part(&chaskiv1.Part{Ticket: 1, Total: n})},
		"empty payload":   {part(&chaskiv1.Part{Ticket: 1})},
		"corrupt payload": {part(&chaskiv1.Part{Ticket: 1, Total: n, Data: bad})},
		"other rows": {
			part(&chaskiv1.Part{Ticket: 1, Total: uint64(len(encoded(0, 0, 11))), Data: encoded(0, 0, 11)}),
		},
		"other position": {part(&chaskiv1.Part{Ticket: 1, Total: n, Data: encoded(0, 10, 10)})},
		"other epoch": {
			part(&chaskiv1.Part{Ticket: 1, Total: uint64(len(encoded(1, 0, 10))), Data: encoded(1, 0, 10)}),
		},
		"other fault": {{Kind: &chaskiv1.StreamReply_Fault{Fault: &chaskiv1.Fault{Ticket: 9}}}},
	} {
		t.Run(name, func(t *testing.T) {
			l := &liar{stream: func(g replyStream, _ *chaskiv1.Ticket) error {
				for _, r := range replies {
					if err := g.Send(r); err != nil {
						return err
					}
				}
				<-g.Context().Done()
				return nil
			}}
			target := l.serve(t)
			b, err := next(t, target, client.Options{Timeout: 5 * time.Minute})
			if err == nil || !strings.Contains(err.Error(), target) {
				t.Errorf("batch %+v, error %v", b, err)
			}
			if n := l.streams.Load(); n != 1 {
				t.Errorf("%d attempts", n)
			}
		})
	}
}

// next opens a spec with batches of 10, and returns the result of the first Next.
func next(t *testing.T, target string, o client.Options) (*batch.Batch, error) {
	t.Helper()
	c := dial(t, target, o)
	r, err := c.Open(t.Context(), loader.Spec{Source: "x", BatchSize: 10})
	if err != nil {
		return nil, err
	}
	l, err := r.Loader(batch.LoaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Next(t.Context())
}

// TestNoPatience: without patience, the first failure of a server alone ends a run.
func TestNoPatience(t *testing.T) {
	l := &liar{stream: func(replyStream, *chaskiv1.Ticket) error {
		return status.Error(codes.Unavailable, "not now")
	}}
	_, err := next(t, l.serve(t), client.Options{Patience: -1})
	if status.Code(err) != codes.Unavailable || l.streams.Load() != 1 {
		t.Errorf("%v after %d attempts, want 1", err, l.streams.Load())
	}
}

func TestNobodyListens(t *testing.T) {
	target := "unix:" + filepath.Join(t.TempDir(), "nobody")
	_, err := next(t, target, client.Options{})
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), target) {
		t.Error(err)
	}
}

// TestDataChanged: a run does not continue with a server that comes back with other data.
func TestDataChanged(t *testing.T) {
	l := &liar{
		hash: func(n int64) string { return "h" + strings.Repeat("x", int(n)) },
		stream: func(replyStream, *chaskiv1.Ticket) error {
			return status.Error(codes.Unavailable, "going down")
		},
	}
	_, err := next(t, l.serve(t), client.Options{})
	if err == nil || !strings.Contains(err.Error(), "other data now") || l.streams.Load() != 1 {
		t.Error(err)
	}
}

// TestUnknownSpecForEver: patience bounds the attempts if the server never knows the spec.
func TestUnknownSpecForEver(t *testing.T) {
	l := &liar{stream: func(g replyStream, first *chaskiv1.Ticket) error {
		return g.Send(&chaskiv1.StreamReply{
			Kind: &chaskiv1.StreamReply_Fault{
				Fault: &chaskiv1.Fault{Ticket: first.GetId(), Kind: "unknown spec", Message: "?"},
			},
		})
	}}
	_, err := next(t, l.serve(t), client.Options{Patience: 50 * time.Millisecond})
	if err == nil || l.streams.Load() < 2 || l.described.Load() < l.streams.Load() {
		t.Errorf("%v after %d streams and %d descriptions", err, l.streams.Load(), l.described.Load())
	}
}

// TestNextIsBoundedByItsContext: a cancelled Next leaves its step to the next call.
func TestNextIsBoundedByItsContext(t *testing.T) {
	open := make(chan struct{})
	l := &liar{stream: func(g replyStream, first *chaskiv1.Ticket) error {
		select {
		case <-open:
		case <-g.Context().Done():
			return nil
		}
		p := encoded(0, 0, 10)
		if err := g.Send(part(&chaskiv1.Part{Ticket: first.GetId(), Total: uint64(len(p)), Data: p})); err != nil {
			return err
		}
		<-g.Context().Done()
		return nil
	}}
	c := dial(t, l.serve(t), client.Options{})
	r, err := c.Open(t.Context(), loader.Spec{Source: "x", BatchSize: 10})
	if err != nil {
		t.Fatal(err)
	}
	ld, err := r.Loader(batch.LoaderOptions{Epochs: 1, Prefetch: 1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ld.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(open)
	b, err := ld.Next(t.Context())
	if err != nil || b.First != 0 {
		t.Errorf("%+v, %v", b, err)
	}
	ld.Close()
	if _, err := ld.Next(t.Context()); !errors.Is(err, batch.ErrClosed) || errors.Is(err, io.EOF) {
		t.Error(err)
	}
}
