// Command demo-dataset cuts a scene of Sentinel-2 into a small labelled dataset, in the layout that
// the loader pairs by name:
//
//	OUT/train/images/{id}.tif   uint16, the scene's six bands
//	OUT/train/masks/{id}.tif    uint8, one band: 0 land, 1 water, 2 vegetation, 255 nodata
//	OUT/val/...                 the same, from rows of the scene that no training chip touches
//	OUT/labels.tif              the mask of the whole scene
//
// Chips of even number are TOGs (zstd and a predictor), chips of odd number rumi files (OpenZL
// frames): the loader takes both, side by side in one folder.
//
// The labels are thresholds of two normalised differences of the same bands, (B05-B11)/(B05+B11) for
// water and (B8A-B05)/(B8A+B05) for vegetation. They serve to show loading and training; a network
// that learns them knows no more than the two formulas.
package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/ops/convert"
)

// Bands of the scene.
const (
	b05 = 0
	b8a = 3
	b11 = 4
)

// Classes of the mask.
const (
	land       = 0
	water      = 1
	vegetation = 2
	nodata     = 255
)

const (
	vegetationAbove = 0.4
	level           = 5 // of zstd
)

func main() {
	scene := flag.String("scene", "testdata/demo/coast.tif", "TOG of the bands B05 B06 B07 B8A B11 B12, uint16")
	out := flag.String("out", ".demo", "folder to write train and val to; what is there is replaced")
	size := flag.Int("size", 128, "edge of a chip, and of its tile, in pixels: a multiple of 16")
	stride := flag.Int("stride", 24, "pixels from a training chip to the next: less than the size, and they overlap")
	flag.Parse()
	if err := run(context.Background(), *scene, *out, *size, *stride); err != nil {
		fmt.Fprintln(os.Stderr, "demo-dataset:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, scene, out string, size, stride int) error {
	img, err := raster.Read(ctx, []string{scene}, raster.ReadOptions{Threads: runtime.NumCPU()})
	if err != nil {
		return err
	}
	if len(img.Shape) != 3 || img.Shape[0] != 6 || img.DType != chunk.Uint16 {
		return fmt.Errorf("%s: %v of %v, not six bands of uint16", scene, img.Shape, img.DType)
	}
	height, w := img.Shape[1], img.Shape[2]
	whole := chip{img.Data, height, w}
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	if err := whole.writeMask(ctx, filepath.Join(out, "labels.tif")); err != nil {
		return err
	}
	if size < 16 || stride < 1 || 2*size > height || size > w {
		return fmt.Errorf("chips of %d pixels every %d from a scene of %d by %d", size, stride, height, w)
	}
	// The lowest rows of the scene are for validation.
	sets := []struct {
		name   string
		y0, y1 int
		step   int
	}{
		{"train", 0, height - size, stride},
		{"val", height - size, height, size / 2},
	}
	for _, s := range sets {
		n, classes, err := cut(ctx, img, filepath.Join(out, s.name), size, s.y0, s.y1, s.step)
		if err != nil {
			return err
		}
		fmt.Printf("%-5s  %4d chips of 6 x %d x %d: %s\n", s.name, n, size, size, classes)
	}
	return nil
}

// cut writes the chips of rows y0 to y1, and returns how many there are and which classes they have.
func cut(ctx context.Context, img *raster.Array, out string, size, y0, y1, step int) (int, counts, error) {
	for _, kind := range []string{"images", "masks"} {
		if err := os.RemoveAll(filepath.Join(out, kind)); err != nil {
			return 0, counts{}, err
		}
		if err := os.MkdirAll(filepath.Join(out, kind), 0o777); err != nil {
			return 0, counts{}, err
		}
	}
	var corners [][2]int
	for y := y0; y+size <= y1; y += step {
		for x := 0; x+size <= img.Shape[2]; x += step {
			corners = append(corners, [2]int{y, x})
		}
	}
	list := make([]counts, len(corners))
	var g errgroup.Group
	g.SetLimit(runtime.NumCPU())
	for i, corner := range corners {
		g.Go(func() error {
			c := chip{crop(img, corner[0], corner[1], size), size, size}
			return c.write(ctx, out, i, c.mask(&list[i]))
		})
	}
	if err := g.Wait(); err != nil {
		return 0, counts{}, err
	}
	var sum counts
	for _, c := range list {
		for k, v := range c {
			sum[k] += v
		}
	}
	return len(corners), sum, nil
}

// crop copies a square window of every band.
func crop(img *raster.Array, y0, x0, size int) []byte {
	const width = 2 // bytes of a sample
	height, w := img.Shape[1], img.Shape[2]
	out := make([]byte, 0, img.Shape[0]*size*size*width)
	for b := range img.Shape[0] {
		for y := y0; y < y0+size; y++ {
			start := ((b*height+y)*w + x0) * width
			out = append(out, img.Data[start:start+size*width]...)
		}
	}
	return out
}

// chip is an image of shape (6, height, width), uint16.
type chip struct {
	pixels        []byte
	height, width int
}

// at returns sample i of a band.
func (c chip) at(band, i int) float64 {
	return float64(binary.LittleEndian.Uint16(c.pixels[2*(band*c.height*c.width+i):]))
}

// counts are the pixels of a mask by class.
type counts [256]int

func (c counts) String() string {
	total := 0
	for _, n := range c {
		total += n
	}
	pct := func(class int) float64 { return 100 * float64(c[class]) / float64(max(1, total)) }
	return fmt.Sprintf("%.0f%% land, %.0f%% water, %.0f%% vegetation, %.0f%% nodata",
		pct(land), pct(water), pct(vegetation), pct(nodata))
}

// mask labels every pixel.
func (c chip) mask(n *counts) []byte {
	out := make([]byte, c.height*c.width)
	for i := range out {
		redEdge, nir, swir := c.at(b05, i), c.at(b8a, i), c.at(b11, i)
		switch {
		case redEdge == 0 || nir == 0 || swir == 0: // 0 is the scene's nodata
			out[i] = nodata
		case redEdge > swir:
			out[i] = water
		case (nir-redEdge)/(nir+redEdge) > vegetationAbove:
			out[i] = vegetation
		default:
			out[i] = land
		}
		n[out[i]]++
	}
	return out
}

// write writes image and mask number i.
func (c chip) write(ctx context.Context, out string, i int, mask []byte) error {
	image := convert.Chip{Shape: [3]int{6, c.height, c.width}, DType: chunk.Uint16, Pixels: c.pixels}
	label := convert.Chip{Shape: [3]int{1, c.height, c.width}, DType: chunk.Uint8, Pixels: mask}
	options := convert.Options{Format: convert.Rumi, Graph: "delta>zstd", Tile: c.width, Level: level, Workers: 1,
		MaxBytes: math.MaxInt64}
	if i%2 == 0 {
		options.Format, options.Graph = convert.TOG, ""
		image.NoData, label.NoData = "0", fmt.Sprint(nodata)
	}
	for folder, picture := range map[string]*convert.Chip{"images": &image, "masks": &label} {
		if err := write(ctx, filepath.Join(out, folder, fmt.Sprintf("%05d.tif", i)), picture, options); err != nil {
			return err
		}
	}
	return nil
}

// writeMask writes the mask alone, as a TOG.
func (c chip) writeMask(ctx context.Context, name string) error {
	label := convert.Chip{Shape: [3]int{1, c.height, c.width}, DType: chunk.Uint8, Pixels: c.mask(&counts{}),
		NoData: fmt.Sprint(nodata)}
	return write(ctx, name, &label, convert.Options{Format: convert.TOG, Tile: 128, Level: level, Workers: 1,
		MaxBytes: math.MaxInt64})
}

func write(ctx context.Context, name string, chip *convert.Chip, options convert.Options) error {
	var file bytes.Buffer
	if err := chip.Write(ctx, &file, options); err != nil {
		return err
	}
	return os.WriteFile(name, file.Bytes(), 0o666)
}
