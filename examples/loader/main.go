// Command loader prints the mean of every batch of a dataset: what a training program in Go does
// with package loader.
package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"log"
	"math"
	"os"

	"github.com/chaski-eo/chaski/loader"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: loader DATASET")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dataset string) error {
	engine, err := loader.Open(ctx, loader.Spec{
		Source:    dataset, // a folder, a glob, a table or a catalog
		Fields:    []loader.Field{{Name: "image", DType: "float32"}},
		BatchSize: 32,
		Shuffle:   true,
		Sampler:   loader.Sampler{Kind: loader.RandomWindow, Height: 64, Width: 64},
	}, loader.Options{})
	if err != nil {
		return err
	}
	defer engine.Close()
	l, err := loader.NewLoader(engine, loader.LoaderOptions{Epochs: 1})
	if err != nil {
		return err
	}
	defer l.Close()
	for batch, err := range l.All(ctx) {
		if err != nil {
			return err
		}
		image := batch.Tensor("image") // (n b y x)
		fmt.Println(image.Shape, mean(image.Data))
		batch.Release()
	}
	return nil
}

// mean returns the mean of little-endian float32 samples.
func mean(data []byte) float64 {
	sum := 0.0
	for i := 0; i < len(data); i += 4 {
		sum += float64(math.Float32frombits(binary.LittleEndian.Uint32(data[i:])))
	}
	return sum / float64(len(data)/4)
}
