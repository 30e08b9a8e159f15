package server

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/shuffle/steps"
)

// instant is an engine whose batches cost nothing, because all have the same memory.
type instant struct {
	*fakeEngine
	tensor batch.Tensor
}

// batchBytes is the size of a benchmark's tensor: 64 chips of (3, 256, 512) uint16.
const batchBytes = 64 * 3 * 256 * 512 * 2

func newInstant(_ context.Context, s loader.Spec, _ loader.Options) (Engine, error) {
	data := cast.Aligned(batchBytes)
	for i := range data {
		data[i] = byte(i * 31 >> 3)
	}
	return &instant{newFake(s, 1<<40, 0), batch.Tensor{
		Name: "image", DType: chunk.Uint16, Axes: []string{"n", "b", "y", "x"},
		Shape: []int64{64, 3, 256, 512}, Data: data,
	}}, nil
}

func (e *instant) Start(_ context.Context, t steps.Ticket, _ bool) Pending { return made{e, t} }

type made struct {
	engine *instant
	ticket steps.Ticket
}

func (m made) Cancel() {}

func (m made) Wait(context.Context) (*batch.Batch, error) {
	rows := m.ticket.Rows()
	return &batch.Batch{
		Epoch: m.ticket.Epoch, First: m.ticket.First, Rows: rows,
		Valid: make([]bool, rows), Positions: make([]int64, rows), Samples: make([]int64, rows),
		Tensors: []batch.Tensor{m.engine.tensor},
	}, nil
}

func listenBench(b *testing.B, network string) (net.Listener, string) {
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(b.TempDir(), "s")
	}
	l, err := net.Listen(network, address)
	if err != nil {
		b.Fatal(err)
	}
	if network == "unix" {
		return l, "unix:" + address
	}
	return l, l.Addr().String()
}

// BenchmarkStream sends one stream of batches of 50 MB to the Go client.
func BenchmarkStream(b *testing.B) {
	for _, network := range []string{"unix", "tcp"} {
		for _, part := range []int{256 << 10, 1 << 20, 2 << 20, 4 << 20} {
			b.Run(fmt.Sprintf("%s/part=%dKiB", network, part>>10), func(b *testing.B) {
				l, target := listenBench(b, network)
				s := start(b, l, Options{Open: newInstant, PartBytes: part})
				defer s.stop(b)
				c := dialTo(b, target)
				run, err := c.Open(b.Context(), spec(64))
				if err != nil {
					b.Fatal(err)
				}
				ld, err := run.Loader(batch.LoaderOptions{})
				if err != nil {
					b.Fatal(err)
				}
				defer ld.Close()
				b.SetBytes(batchBytes)
				for b.Loop() {
					batch, err := ld.Next(b.Context())
					if err != nil {
						b.Fatal(err)
					}
					batch.Release()
				}
			})
		}
	}
}

// BenchmarkPython serves the same to ../testdata/stream.py, which prints its measurements. It needs
// a Python with grpcio and protobuf in CHASKI_PYTHON.
func BenchmarkPython(b *testing.B) {
	python := os.Getenv("CHASKI_PYTHON")
	if python == "" {
		b.Skip("CHASKI_PYTHON is not set")
	}
	for _, network := range []string{"unix", "tcp"} {
		for _, part := range []int{256 << 10, 1 << 20, 2 << 20, 4<<20 - 4096} {
			b.Run(fmt.Sprintf("%s/part=%dKiB", network, part>>10), func(b *testing.B) {
				l, target := listenBench(b, network)
				s := start(b, l, Options{Open: newInstant, PartBytes: part})
				defer s.stop(b)
				for b.Loop() {
					cmd := exec.Command(python, "../testdata/stream.py", target)
					cmd.Stderr = os.Stderr
					out, err := cmd.Output()
					if err != nil {
						b.Fatal(err)
					}
					b.Logf("%s", out)
				}
			})
		}
	}
}
