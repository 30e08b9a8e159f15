package cli

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/ops/convert"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/tiledb"
)

// maxImages bounds the files that an array becomes.
const maxImages = 10_000_000

// images appends the images of an array.
func (f *convertFlags) images(ctx context.Context, files source.Opener, jobs []conversion, path string) ([]conversion, error) {
	if f.to == convert.TileDB {
		return nil, usagef("%s is an array: it becomes tog, rumi or rumi2", path)
	}
	a, err := openArray(ctx, tiledb.Over{Opener: files}, path, f.at.options(tiledb.Options{MaxResult: f.o.MaxBytes}))
	if err != nil {
		return nil, err
	}
	var attrs []int
	for i := range a.Schema.Attrs {
		if f.attr == "" || a.Schema.Attrs[i].Name == f.attr {
			attrs = append(attrs, i)
		}
	}
	if len(attrs) == 0 {
		return nil, fault.WithFile(fault.New(fault.NotFound, "array schema", fault.NoOffset, "no attribute is called %q", f.attr), path)
	}
	for _, at := range attrs {
		m, err := a.Images(at, f.dims)
		if err != nil {
			return nil, err
		}
		lo, hi := m.Written()
		if hi-lo > maxImages-int64(len(jobs)) {
			return nil, fault.WithFile(fault.New(fault.Limit, "array", fault.NoOffset, "%d images, at most %d", hi-lo, maxImages), path)
		}
		folder := ""
		if len(attrs) > 1 {
			folder = folderName(a.Schema.Attrs[at].Name)
		}
		for i := lo; i < hi; i++ {
			jobs = append(jobs, conversion{src: path, dst: f.inFolder(filepath.Join(folder, m.ID(i)+".tif")), images: m, image: i})
		}
	}
	return jobs, nil
}

// folderName returns a name for a folder that stays where it is put.
func folderName(name string) string {
	name = url.PathEscape(name)
	if strings.Trim(name, ".") == "" {
		name = "attribute" + name
	}
	return name
}

// array makes one array of all rasters.
func (f *convertFlags) array(ctx context.Context, s streams, jobs []conversion) error {
	dims := f.dims
	if dims == "" {
		dims = "n b y x"
	}
	a := convert.ArrayOptions{Attr: f.attr}
	var err error
	if a.Dims, err = convert.ParseDims(dims); err != nil {
		return wrongUsage(err)
	}
	if a.Extents, err = convert.ParseExtents(f.extents, a.Dims, f.o.Tile); err != nil {
		return wrongUsage(err)
	}
	if a.Attr == "" {
		a.Attr = "image"
	}
	if a.Key, err = tiledb.KeyFromEnv(); err != nil {
		return err
	}
	if f.out == "-" {
		return usagef("an array is a folder, not standard output")
	}
	bar := newProgress(s.err, "converting", int64(len(jobs)))
	defer bar.done()
	f.o.Progress = func(done, total int) { bar.set(int64(done), int64(total)) }
	paths := make([]string, len(jobs))
	for i, j := range jobs {
		paths[i] = j.src
	}
	out := filepath.Clean(f.out)
	a.Overwrite = f.overwrite
	a.Left = func(i int, names []string) { f.losses.add(i, paths[i], names) }
	if err := os.MkdirAll(filepath.Dir(out), 0o777); err != nil {
		return fileError(filepath.Dir(out), err)
	}
	return fileError(f.out, convert.Array(ctx, out, paths, f.o, a))
}
