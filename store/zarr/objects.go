package zarr

import (
	"context"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// maxAsked bounds the objects of an array that are requested one by one, if the store cannot list: 2^22 requests of 1
// ms take over an hour.
const maxAsked = 1 << 22

// objects calls each with the coordinates of every object that holds chunks of the array, in any order, and stray with
// the name of every object that is neither a chunk of the array nor metadata. Where the store cannot list, it calls
// each for all objects that may exist.
func (a *Array) objects(ctx context.Context, each func(at []int64) error, stray func(name string)) error {
	grid := gridOf(a.Shape, a.objectSides())
	visit := func(name string) error {
		places, ok := a.keys.parse(name, grid)
		if ok {
			return each(places)
		}
		if !isMeta(name) {
			stray(name)
		}
		return nil
	}
	if _, refers := a.open.(*references); !refers && !source.IsRemote(a.URI) {
		return a.localObjects(ctx, "", len(grid)+1, visit)
	}
	err := source.List(ctx, a.open, a.URI, func(e source.Entry) error { return visit(e.Path) })
	if fault.KindOf(err) != fault.Unsupported {
		return err
	}
	if slices.Contains(grid, 0) {
		return nil
	}
	if n := cells(grid, maxAsked); n < 0 {
		return fault.WithFile(fault.New(fault.Limit, "array", fault.NoOffset,
			"%v chunks or shards, of which at most %d are asked for where a store cannot list", grid, maxAsked), a.URI)
	}
	return eachIn(Box{make([]int64, len(grid)), grid}, func(at []int64) error { return each(slices.Clone(at)) })
}

// isMeta reports whether the metadata of an array has this name.
func isMeta(name string) bool { return slices.Contains([]string{meta3, array2, attrs2}, name) }

// localObjects visits the files in a directory of the array, and in those below it down to some levels.
func (a *Array) localObjects(ctx context.Context, dir string, levels int, visit func(name string) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	list, err := source.Names(ctx, a.open, source.Join(a.URI, dir))
	if err != nil {
		return err
	}
	for _, name := range list {
		name, below := strings.CutSuffix(name, "/")
		if name = path.Join(dir, name); below && levels > 1 {
			err = a.localObjects(ctx, name, levels-1, visit)
		} else {
			err = visit(name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// parse returns the coordinates that the name of an object has in a grid of objects. It reports false if no chunk has
// this name.
func (k keys) parse(name string, grid []int64) ([]int64, bool) {
	rest := name
	if k.prefix != "" {
		var ok bool
		if rest, ok = strings.CutPrefix(rest, k.prefix); !ok {
			return nil, false
		}
		rest = strings.TrimPrefix(rest, k.sep)
	}
	var places []int64
	if len(grid) > 0 {
		for part := range strings.SplitSeq(rest, k.sep) {
			n, err := strconv.ParseInt(part, 10, 64)
			if err != nil || len(places) == len(grid) || n < 0 || n >= grid[len(places)] {
				return nil, false
			}
			places = append(places, n)
		}
	}
	// Names with other spellings of the numbers, such as 00 or +1, are not chunks.
	return places, len(places) == len(grid) && k.name(places) == name
}
