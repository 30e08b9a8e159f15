package raster

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/open"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/ops/convert"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/tiledb"
)

// conversion is one file to convert, or one image of an array.
type conversion struct {
	src, dst string
	images   *tiledb.Images // nil: a file
	image    int64
}

// jobs pairs each raster with the file that it becomes.
func (f *convertFlags) jobs(ctx context.Context, files source.Opener, paths []string) ([]conversion, error) {
	st, err := os.Stat(f.out)
	folder := err == nil && st.IsDir() || strings.HasSuffix(f.out, "/") || strings.HasSuffix(f.out, string(filepath.Separator)) || len(paths) > 1
	var jobs []conversion
	for _, p := range paths {
		p = source.LocalPath(p)
		if tiledb.Is(ctx, files, p) {
			if jobs, err = f.images(ctx, files, jobs, p); err != nil {
				return nil, err
			}
			continue
		}
		if f.at.Value != nil {
			return nil, console.Usagef("--timestamp is for arrays; %s is none", p)
		}
		dir := false
		if !source.IsRemote(p) {
			st, err := os.Stat(p)
			if err != nil {
				return nil, console.FileError(p, err)
			}
			dir = st.IsDir()
		}
		switch {
		case f.to == convert.TileDB && !dir:
			jobs = append(jobs, conversion{src: p})
		case !dir && !folder:
			jobs = append(jobs, conversion{src: p, dst: f.out})
		case !dir:
			jobs = append(jobs, conversion{src: p, dst: f.inFolder(baseName(p))})
		default:
			if jobs, err = f.walk(ctx, jobs, p); err != nil {
				return nil, err
			}
		}
	}
	if len(jobs) == 0 {
		return nil, fault.WithFile(fault.New(fault.NotFound, "folder", fault.NoOffset, "no raster below it"), paths[0])
	}
	if f.to == convert.TileDB {
		return jobs, nil
	}
	if len(jobs) == 1 && jobs[0].images != nil && !folder {
		jobs[0].dst = f.out
	}
	return jobs, f.apart(jobs)
}

// baseName returns the name of a file, of a remote one without the query of its URL.
func baseName(p string) string {
	if source.IsRemote(p) {
		if u, err := url.Parse(p); err == nil {
			return path.Base(u.Path)
		}
	}
	return filepath.Base(p)
}

// apart checks that no two rasters become one file, and that none exists unless it may be replaced.
func (f *convertFlags) apart(jobs []conversion) error {
	from := map[string]string{}
	for _, j := range jobs {
		dst := filepath.Clean(j.dst)
		if src, twice := from[dst]; twice {
			return console.Usagef("%s and %s would both become %s", src, j.src, j.dst)
		}
		from[dst] = j.src
		if f.overwrite {
			continue
		}
		if _, err := os.Lstat(j.dst); err == nil {
			return fault.WithFile(fault.New(fault.Unsupported, "file", fault.NoOffset, "exists; --overwrite replaces it"), j.dst)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return console.FileError(j.dst, err)
		}
	}
	return nil
}

// inFolder returns the name in the destination's folder of a raster with a path relative to it.
func (f *convertFlags) inFolder(rel string) string {
	ext := ".tif"
	if f.to == convert.Rumi2 {
		ext = ".rumi"
	}
	return filepath.Join(f.out, strings.TrimSuffix(rel, filepath.Ext(rel))+ext)
}

// walk appends the rasters below dir, links followed. It leaves out hidden files and folders, and the destination.
func (f *convertFlags) walk(ctx context.Context, jobs []conversion, dir string) ([]conversion, error) {
	out, outErr := os.Stat(f.out) // which need not exist yet
	isOut := func(d fs.DirEntry) bool {
		st, err := d.Info()
		return err == nil && outErr == nil && os.SameFile(st, out)
	}
	err := source.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return console.FileError(p, err)
		case ctx.Err() != nil:
			return ctx.Err()
		case d.IsDir() && p != dir && (strings.HasPrefix(d.Name(), ".") || isOut(d)):
			return fs.SkipDir
		case d.IsDir() || strings.HasPrefix(d.Name(), "."):
			return nil
		}
		switch strings.ToLower(filepath.Ext(p)) {
		case ".tif", ".tiff", ".rumi":
			rel, err := filepath.Rel(dir, p)
			if err != nil {
				return err
			}
			jobs = append(jobs, conversion{src: p, dst: f.inFolder(rel)})
		}
		return nil
	})
	return jobs, err
}

// maxImages bounds the files that an array becomes.
const maxImages = 10_000_000

// images appends the images of an array.
func (f *convertFlags) images(ctx context.Context, files source.Opener, jobs []conversion, path string) ([]conversion, error) {
	if f.to == convert.TileDB {
		return nil, console.Usagef("%s is an array: it becomes tog, rumi or rumi2", path)
	}
	a, err := open.Array(ctx, tiledb.Over{Opener: files}, path, f.at.Options(tiledb.Options{MaxResult: f.o.MaxBytes}))
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
