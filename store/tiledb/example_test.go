package tiledb_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log"
	"path/filepath"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/tiledb"
)

// A box of cells of a dense array, both ends of each interval included.
func Example() {
	ctx := context.Background()
	var files openers.Files
	defer files.Close()
	a, err := tiledb.Open(ctx, &files, filepath.Join("..", "..", "testdata", "tiledb", "arrays",
		"dense_2d_order_rc"), tiledb.Options{})
	if err != nil {
		log.Fatal(err)
	}
	box, err := a.Schema.ParseBox("1..2,-4..-2")
	if err != nil {
		log.Fatal(err)
	}
	v, err := a.NewReader().Dense(ctx, a.Schema.Attr("v"), box)
	if err != nil {
		log.Fatal(err)
	}
	for i := 0; i < len(v.Data); i += 2 {
		fmt.Print(int16(binary.LittleEndian.Uint16(v.Data[i:])), " ")
	}
	// Output: 4972 4953 4954 1038 1030 1000
}

// A dense array as images: its dimensions are rows and columns here.
func ExampleArray_Images() {
	ctx := context.Background()
	var files openers.Files
	defer files.Close()
	a, err := tiledb.Open(ctx, &files, filepath.Join("..", "..", "testdata", "tiledb", "arrays",
		"dense_2d_order_rc"), tiledb.Options{})
	if err != nil {
		log.Fatal(err)
	}
	m, err := a.Images(a.Schema.Attr("v"), "y x")
	if err != nil {
		log.Fatal(err)
	}
	g := m.Grid()
	fmt.Println(m.Len(), "image,", g.Bands, g.Height, g.Width, g.DType, "in tiles of", g.ChunkH, g.ChunkW)
	window := make([]byte, 1*2*3*g.DType.Size())
	if err := m.Read(ctx, a.NewReader(), window, 0, chunk.Box{B1: 1, Y1: 2, X1: 3}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(int16(binary.LittleEndian.Uint16(window)))
	// Output:
	// 1 image, 1 33 34 int16 in tiles of 8 5
	// 4972
}
