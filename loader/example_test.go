package loader_test

import (
	"context"
	"fmt"
	"log"
	"path/filepath"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/shuffle"
)

// A TileDB array as a dataset: its first dimension counts the images here.
func ExampleOpen_array() {
	e, err := loader.Open(context.Background(), loader.Spec{
		Source: filepath.Join("..", "testdata", "tiledb", "arrays", "dense_3d_mixed_order"), Dims: "n y x", BatchSize: 3,
		Fields: []loader.Field{{Name: "image", Column: "v"}},
	}, loader.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	b, err := e.Start(context.Background(), shuffle.Ticket{Count: 3, RowStride: 1}, false).Wait(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	defer b.Release()
	t := b.Tensor("image")
	fmt.Println(e.Len(), "samples,", t.Shape, t.DType)
	// Output: 3 samples, [3 1 24 31] int32
}
