// Command soakwrite writes to a TileDB array by package tiledb, while soak_disk.py cuts the power. No
// command of chaski writes so.
//
//	soakwrite create ARRAY                makes an array without cells
//	soakwrite dense|slabs NUMBER ARRAY    adds a fragment, whose cells follow from the number
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"

	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/tiledb"
	"github.com/chaski-eo/chaski/store/tiledb/filter"
)

// side is the number of cells of an array in each of two dimensions.
const side = 512

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "soakwrite:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "create":
		return tiledb.Create(args[1], schema(), nil)
	case len(args) == 3:
		number, err := strconv.ParseUint(args[1], 10, 32)
		if err != nil {
			return err
		}
		return write(args[0], number, args[2])
	}
	return errors.New("usage: soakwrite create ARRAY | dense|slabs NUMBER ARRAY")
}

// schema returns the schema of an array of int16 with two dimensions of int32, y and x.
func schema() *tiledb.Schema {
	typ := tiledb.Int32
	s := &tiledb.Schema{Dense: true, Capacity: 1000, DimType: typ, Coords: tiledb.DefaultFilters(),
		Offsets: tiledb.DefaultFilters(),
		Attrs:   []tiledb.Attr{{Name: "dn", Type: tiledb.Int16, Values: 1, Pipeline: filter.Pipeline{MaxChunk: 4096}}}}
	for _, name := range []string{"y", "x"} {
		s.Dims = append(s.Dims, tiledb.Dim{Name: name, Extent: 64,
			Domain: tiledb.Interval{Lo: typ.CoordOf(0), Hi: typ.CoordOf(side - 1)}})
	}
	return s
}

func write(form string, number uint64, path string) error {
	ctx := context.Background()
	var files source.Files
	defer files.Close()
	array, err := tiledb.Open(ctx, &files, path, tiledb.Options{})
	if err != nil {
		return err
	}
	rnd := rand.New(rand.NewPCG(number, 0))
	noise := func(cells uint64) []tiledb.Values {
		buf := make([]byte, 0, 2*cells)
		for range cells {
			buf = binary.LittleEndian.AppendUint16(buf, uint16(rnd.Uint32()))
		}
		return []tiledb.Values{{Data: buf}}
	}
	switch form {
	case "dense":
		return array.WriteDense(ctx, array.Schema.Domain(), noise(side*side))
	case "slabs":
		return array.WriteDenseSlabs(ctx, array.Schema.Domain(), func(slab tiledb.Box) ([]tiledb.Values, error) {
			n := uint64(1)
			for _, d := range slab {
				n *= uint64(d.Hi-d.Lo) + 1
			}
			return noise(n), nil
		})
	}
	return fmt.Errorf("%q is not dense or slabs", form)
}
