package client_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"path/filepath"

	"github.com/chaski-eo/chaski/grpc/client"
	"github.com/chaski-eo/chaski/grpc/server"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/spec"
)

// Random windows of one chip, normalised, from a server to a consumer: one epoch of it.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	source, err := filepath.Abs("../../testdata/demo/coast.tif")
	if err != nil {
		log.Fatal(err)
	}

	// The server. It is usually another process: chaski serve --listen HOST:PORT --root DIR
	s, err := server.New(server.Options{Roots: []string{filepath.Dir(source)}})
	if err != nil {
		log.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	stopped := make(chan error)
	go func() { stopped <- s.Serve(ctx, l) }()

	// The consumer.
	c, err := client.Dial(l.Addr().String(), client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	run, err := c.Open(ctx, loader.Spec{
		Source:    source,
		BatchSize: 4,
		Shuffle:   true,
		Sampler:   loader.Sampler{Kind: spec.RandomWindow, Height: 128, Width: 128, PerAsset: 10},
		Fields: []loader.Field{{
			Name: "image", Bands: []int{2, 1, 0}, DType: "float32",
			Normalize: &spec.Normalize{Scale: []float64{1e-4}, Offset: []float64{0}},
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	batches, err := run.Loader(batch.LoaderOptions{Epochs: 1})
	if err != nil {
		log.Fatal(err)
	}
	for b, err := range batches.All(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		image := b.Tensor("image")
		fmt.Println(image.DType, image.Axes, image.Shape, b.Valid)
	}
	fmt.Println("samples:", batches.State().Samples)

	batches.Close()
	if err := c.Close(); err != nil {
		log.Fatal(err)
	}
	stop()
	if err := <-stopped; err != nil {
		log.Fatal(err)
	}
	// Output:
	// float32 [n b y x] [4 3 128 128] [true true true true]
	// float32 [n b y x] [4 3 128 128] [true true true true]
	// float32 [n b y x] [2 3 128 128] [true true]
	// samples: 10
}
