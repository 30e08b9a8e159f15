// Command loader prints the mean of every batch of a dataset. It shows how a training program in Go
// uses package loader.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/chaski-eo/chaski/loader"
	_ "github.com/chaski-eo/chaski/loader/formats" // all of them
	"github.com/chaski-eo/chaski/loader/spec"
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
		Sampler:   loader.Sampler{Kind: spec.RandomWindow, Height: 64, Width: 64},
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
		fmt.Println(image.Shape, mean(image.Float32(), batch.Valid))
	}
	return nil
}

// mean returns the mean of the samples of the rows that are valid: other rows only pad the last batch.
func mean(samples []float32, valid []bool) float64 {
	sum, n := 0.0, 0
	row := len(samples) / len(valid)
	for i, ok := range valid {
		if !ok {
			continue
		}
		for _, v := range samples[i*row : (i+1)*row] {
			sum += float64(v)
		}
		n += row
	}
	return sum / float64(max(n, 1))
}
