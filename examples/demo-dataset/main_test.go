package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/loader/raster"
)

const (
	scene = "../../testdata/demo/coast.tif"
	// sceneSHA256 is of the samples before GDAL wrote them (testdata/README.md).
	sceneSHA256 = "1f03fc72bc6b08d3432ed7fbede8909842b882c255a605c580240de2e98b868a"
)

func read(t *testing.T, path string, o raster.ReadOptions) *raster.Array {
	t.Helper()
	a, err := raster.Read(context.Background(), []string{path}, o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func slice(start, n int) raster.Selection {
	return raster.Selection{Slice: true, Start: start, Stop: start + n}
}

// TestScene promises that the scene of the demo is read as it was written.
func TestScene(t *testing.T) {
	sum := sha256.Sum256(read(t, scene, raster.ReadOptions{}).Data)
	if got := hex.EncodeToString(sum[:]); got != sceneSHA256 {
		t.Fatalf("sha256 %s, want %s", got, sceneSHA256)
	}
}

// TestChips promises that chips of either format are the windows of the scene that their numbers
// say, and that masks hold known classes and as many of each as is said.
func TestChips(t *testing.T) {
	const size, stride = 128, 192
	out := t.TempDir()
	img := read(t, scene, raster.ReadOptions{})
	n, classes, err := cut(t.Context(), img, out, size, 0, 512, stride)
	if err != nil {
		t.Fatal(err)
	}
	if n != 9 { // rows and columns 0, 192, 384
		t.Fatalf("%d chips", n)
	}
	var seen counts
	for i := range n {
		y, x := i/3*stride, i%3*stride
		name := fmt.Sprintf("%05d.tif", i)
		got := read(t, filepath.Join(out, "images", name), raster.ReadOptions{})
		want := read(t, scene, raster.ReadOptions{Y: slice(y, size), X: slice(x, size)})
		if !bytes.Equal(got.Data, want.Data) {
			t.Errorf("chip %d is not the window at (%d, %d)", i, y, x)
		}
		for _, class := range read(t, filepath.Join(out, "masks", name), raster.ReadOptions{}).Data {
			seen[class]++
		}
	}
	if seen != classes || seen[land]+seen[water]+seen[vegetation]+seen[nodata] != n*size*size {
		t.Errorf("masks: %v, said: %v", seen, classes)
	}
	for class, least := range map[int]int{land: 1000, water: 1000, vegetation: 1000} {
		if seen[class] < least {
			t.Errorf("class %d has %d pixels", class, seen[class])
		}
	}
}

// TestMaskNoData promises that pixels without data have no class.
func TestMaskNoData(t *testing.T) {
	c := chip{make([]byte, 2*6*4), 2, 2}
	for band := range 6 {
		for i := 1; i < 4; i++ { // all but the first pixel
			c.pixels[2*(band*4+i)] = byte(10 * (band + 1))
		}
	}
	var n counts
	if got := c.mask(&n); got[0] != nodata || got[1] == nodata || n[nodata] != 1 {
		t.Errorf("mask %v, counts %v", got, n)
	}
}
