package rumi_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/codec/openzl"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/rumi"
	"github.com/chaski-eo/chaski/source/openers"
)

// Writing is three steps: cut, compress tile by tile with any graph, assemble. Reading needs a header,
// made once and kept beside the path.
func Example() {
	dir, err := os.MkdirTemp("", "rumi")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "scene.tif")

	shape := [3]int{3, 600, 700}
	pixels := make([]byte, 0, 2*3*600*700)
	for i := range 3 * 600 * 700 {
		pixels = binary.LittleEndian.AppendUint16(pixels, uint16(i))
	}
	layout := rumi.Layout{Shape: shape, DType: chunk.Uint16, TileH: 512, TileW: 512}
	tiler, err := rumi.NewTiler(pixels, layout)
	if err != nil {
		log.Fatal(err)
	}
	encoder, err := openzl.NewEncoder("delta>zstd", openzl.EncodeOptions{})
	if err != nil {
		log.Fatal(err)
	}
	frames := make([][]byte, tiler.Len())
	for i := range frames {
		frames[i], err = encoder.Encode(nil, tiler.AppendTile(nil, i), 2, 512, 512)
		if err != nil {
			log.Fatal(err)
		}
	}
	var file bytes.Buffer
	if _, err := rumi.Write(&file, frames, layout); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		log.Fatal(err)
	}

	var files openers.Files
	defer files.Close()
	r, err := files.Open(context.Background(), path)
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	blob, err := rumi.IndexFile(context.Background(), r)
	if err != nil {
		log.Fatal(err)
	}
	header, err := rumi.Parse(blob)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(header.Shape, header.DType)

	window := raster.Selection{Slice: true, Start: 0, Stop: 512}
	a, err := raster.Read(context.Background(), []string{path}, raster.ReadOptions{
		Headers: [][]byte{blob}, Layout: "y x b", B: raster.Selection{List: []int{2, 1, 0}}, Y: window, X: window,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(a.Shape, a.Axes, binary.LittleEndian.Uint16(a.Data) == uint16(2*600*700%(1<<16)))
	// Output:
	// [3 600 700] uint16
	// [512 512 3] [y x b] true
}
