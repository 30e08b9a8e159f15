package tiff_test

import (
	"context"
	"fmt"
	"log"

	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/tiff"
)

// What a TOG's header says: its image, and where the first of its tiles is.
func ExampleOpen() {
	ctx := context.Background()
	files := &openers.Files{}
	defer files.Close()
	r, err := files.Open(ctx, "../testdata/demo/coast.tif")
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	m, err := tiff.Open(ctx, r, tiff.Limits{})
	if err != nil {
		log.Fatal(err)
	}
	x := m.Index
	fmt.Println(x.Bands, x.Height, x.Width, x.DType, "in", len(x.Ranges), "tiles of", x.ChunkH, x.ChunkW)
	fmt.Println(x.Ranges[0].Len, "bytes at", x.Ranges[0].Off)
	// Output:
	// 6 640 640 uint16 in 150 tiles of 128 128
	// 22019 bytes at 2485
}
