package loader_test

import (
	"context"
	"fmt"
	"log"
	"path/filepath"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle/steps"
)

// A TileDB array as a dataset: its first dimension counts the images here.
func ExampleOpen_array() {
	e, err := loader.Open(context.Background(), loader.Spec{
		Source: filepath.Join("..", "testdata", "tiledb", "arrays", "dense_3d_mixed_order"),
		Dims:   "n y x", BatchSize: 3, Fields: []loader.Field{{Name: "image", Column: "v"}},
	}, loader.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	b, err := e.Start(context.Background(), steps.Ticket{Count: 3, RowStride: 1}, false).Wait(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	defer b.Release()
	t := b.Tensor("image")
	fmt.Println(e.Len(), "samples,", t.Shape, t.DType)
	// Output: 3 samples, [3 1 24 31] int32
}

func Example() {
	ctx := context.Background()
	engine, err := loader.Open(ctx, loader.Spec{
		Source:    "../testdata/raster/tog/tog-series-0.tif",
		BatchSize: 2,
		Shuffle:   true,
		Sampler:   loader.Sampler{Kind: spec.RandomWindow, Height: 64, Width: 64, PerAsset: 4},
		Fields: []loader.Field{{
			Name: "image", Bands: []int{2, 1, 0}, DType: "float32",
			Normalize: &spec.Normalize{Scale: []float64{1.0 / 255}, Offset: []float64{0}},
		}},
	}, loader.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()
	run, err := loader.NewLoader(engine, loader.LoaderOptions{Epochs: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer run.Close()
	for batch, err := range run.All(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		image := batch.Tensor("image")
		fmt.Println(image.Shape, image.DType, batch.Valid, "after it:", run.State().Samples)
	}
	// Output:
	// [2 3 64 64] float32 [true true] after it: 2
	// [2 3 64 64] float32 [true true] after it: 4
}
