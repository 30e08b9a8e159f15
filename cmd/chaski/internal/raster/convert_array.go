package raster

import (
	"cmp"
	"context"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/ops/convert"
	"github.com/chaski-eo/chaski/store/tiledb"
)

// array writes one array of all rasters.
func (f *convertFlags) array(ctx context.Context, env console.Env, jobs []conversion) ([]converted, error) {
	dims := cmp.Or(f.dims, "n b y x")
	a := convert.ArrayOptions{Attr: f.attr}
	var err error
	if a.Dims, err = convert.ParseDims(dims); err != nil {
		return nil, console.WrongUsage(err)
	}
	if a.Extents, err = convert.ParseExtents(f.extents, a.Dims, f.o.Tile); err != nil {
		return nil, console.WrongUsage(err)
	}
	a.Attr = cmp.Or(a.Attr, "image")
	if a.Key, err = tiledb.KeyFromEnv(); err != nil {
		return nil, err
	}
	if f.out == "-" {
		return nil, console.Usagef("-o is \"-\": an array is a directory and cannot go to standard output")
	}
	bar := console.NewBar(env.Err, "converting", int64(len(jobs)))
	defer bar.Done()
	f.o.Progress = func(done, total int) { bar.Set(int64(done), int64(total)) }
	paths := make([]string, len(jobs))
	for i, j := range jobs {
		paths[i] = j.src
	}
	out := pathname.Join(f.out)
	a.Overwrite = f.overwrite
	results := make([]converted, len(jobs))
	a.Left = func(i int, names []string) { results[i].Left = names }
	if err := durable.MkdirAll(pathname.Dir(out)); err != nil {
		return nil, console.FileError(pathname.Dir(out), err)
	}
	return results, console.FileError(f.out, convert.Array(ctx, out, paths, f.o, a))
}
