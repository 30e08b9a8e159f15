package raster

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/ops/convert"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/visible"
	"github.com/chaski-eo/chaski/store"
)

// fileConversion is one file to write, from a raster, a stack of rasters, or one image of an
// array.
type fileConversion struct {
	src, dst string
	stack    []string     // with --stack: all sources
	images   store.Raster // of the array; nil if src is a raster
	image    int64
}

// jobs returns the conversions of the arguments.
func (f *convertFlags) jobs(ctx context.Context, files source.Opener, paths []string) ([]fileConversion, error) {
	st, err := os.Stat(f.out)
	folder := err == nil && st.IsDir() || strings.HasSuffix(f.out, "/") ||
		strings.HasSuffix(f.out, string(filepath.Separator)) || len(paths) > 1
	var jobs []fileConversion
	for _, pattern := range paths {
		pattern = source.LocalPath(pattern)
		kind, err := store.Of(ctx, files, pattern)
		if err != nil {
			return nil, err
		}
		if array, ok := kind.(store.Attributed); ok {
			if f.steps != "" {
				return nil, console.Usagef("--t picks steps of time of rumi3: %s is an array", pattern)
			}
			if jobs, err = f.images(ctx, files, jobs, array, pattern); err != nil {
				return nil, err
			}
			continue
		}
		if name := f.ofArrays(); name != "" {
			return nil, console.Usagef("--%s is for arrays: %s is not an array", name, pattern)
		}
		dir := strings.HasSuffix(pattern, "/") // of a remote one, which cannot be asked
		if !source.IsRemote(pattern) {
			st, err := os.Stat(pattern)
			if err != nil {
				return nil, console.FileError(pattern, err)
			}
			dir = st.IsDir()
		}
		switch {
		case !dir && !folder:
			jobs = append(jobs, fileConversion{src: pattern, dst: f.out})
		case !dir:
			jobs = append(jobs, fileConversion{src: pattern, dst: f.inFolder(baseName(pattern))})
		default:
			if jobs, err = f.below(ctx, files, jobs, pattern); err != nil {
				return nil, err
			}
		}
	}
	if len(jobs) == 0 {
		return nil, fault.WithFile(fault.New(fault.NotFound, "folder", "there is no raster in it"),
			paths[0])
	}
	if f.stack {
		if jobs, err = f.stacked(jobs); err != nil {
			return nil, err
		}
	}
	if len(jobs) == 1 && jobs[0].images != nil && !folder {
		jobs[0].dst = f.out
	}
	return jobs, f.apart(jobs)
}

// ofArrays returns the name of a flag that is set and is only for arrays, or "".
func (f *convertFlags) ofArrays() string {
	switch {
	case f.at.Value != nil:
		return "timestamp"
	case f.attr != "":
		return "attr"
	case f.dims != "":
		return "dims"
	}
	return ""
}

// stacked returns one conversion of all rasters.
func (f *convertFlags) stacked(jobs []fileConversion) ([]fileConversion, error) {
	job := fileConversion{src: jobs[0].src, dst: f.out}
	for _, conversion := range jobs {
		if conversion.images != nil {
			return nil, console.Usagef("--stack is for rasters: %s is an array", conversion.src)
		}
		job.stack = append(job.stack, conversion.src)
	}
	if st, err := os.Stat(f.out); err == nil && st.IsDir() || strings.HasSuffix(f.out, "/") {
		return nil, console.Usagef("-o is %q: --stack writes one file", f.out)
	}
	return []fileConversion{job}, nil
}

// baseName returns the last part of a path. For a URL it leaves out the query, which would otherwise
// become a part of the name.
func baseName(p string) string {
	if source.IsRemote(p) {
		if u, err := url.Parse(p); err == nil {
			return path.Base(u.Path)
		}
	}
	return filepath.Base(p)
}

// formatsOf has the formats whose endings files have, for each format of --to. The first generation of rumi is a TIFF.
var formatsOf = map[string][]*magic.Format{convert.TOG: {magic.TIFF}, convert.Rumi: {magic.TIFF, magic.Rumi},
	convert.Rumi2: {magic.Rumi}, convert.Rumi3: {magic.Rumi}}

// apart checks that rasters have different destinations with endings of what is written, and that these are free
// unless --overwrite is set. It looks before the first conversion, so hours of work do not end with this error.
func (f *convertFlags) apart(jobs []fileConversion) error {
	sources := map[string]string{}
	for _, conversion := range jobs {
		if err := console.EndsLike(conversion.dst, formatsOf[f.to]...); err != nil {
			return err
		}
		dst := pathname.Join(conversion.dst)
		if src, twice := sources[dst]; twice {
			return console.Usagef("%s and %s would both become %s: convert them to different directories", src,
				conversion.src, conversion.dst)
		}
		sources[dst] = conversion.src
		if f.overwrite || source.IsRemote(conversion.dst) { // writing an object finds out
			continue
		}
		if _, err := os.Lstat(conversion.dst); err == nil {
			return fault.WithFile(fault.New(fault.Unsupported, "file",
				"exists; --overwrite replaces it"), conversion.dst)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return console.FileError(conversion.dst, err)
		}
	}
	return nil
}

// inFolder returns the file in the directory DST for the relative path rel of a source.
func (f *convertFlags) inFolder(rel string) string {
	ext := ".tif"
	if f.to == convert.Rumi2 || f.to == convert.Rumi3 {
		ext = ".rumi"
	}
	name := strings.TrimSuffix(rel, filepath.Ext(rel)) + ext
	if source.IsRemote(f.out) {
		return strings.TrimRight(f.out, "/") + "/" + filepath.ToSlash(name)
	}
	return pathname.Join(f.out, name)
}

// below appends the rasters below dir. It follows links and leaves out hidden files and directories, and the
// destination, since a second run would otherwise convert the output of the first.
func (f *convertFlags) below(ctx context.Context, files source.Opener, jobs []fileConversion,
	dir string) ([]fileConversion, error) {
	out, outErr := os.Stat(f.out) // it need not exist yet
	err := visible.Each(ctx, files, dir, func(found visible.Entry) error {
		if found.Dir {
			if st, err := os.Stat(found.Path); err == nil && outErr == nil && os.SameFile(st, out) {
				return fs.SkipDir
			}
			return nil
		}
		if magic.Named(found.Name).Class != magic.Raster {
			return nil
		}
		if !filepath.IsLocal(filepath.FromSlash(found.Name)) {
			return fault.WithFile(fault.New(fault.Unsupported, "folder",
				"its file %q would be written outside of DST", found.Name), dir)
		}
		jobs = append(jobs, fileConversion{src: found.Path, dst: f.inFolder(found.Name)})
		return nil
	})
	return jobs, err
}

// maxImages is the largest number of files that an array becomes: each needs an entry of some 100 bytes
// in the list of conversions.
const maxImages = 10_000_000

// minChunk is the least limit of a decoded tile, in bytes: tiles may be larger than the images that are converted.
const minChunk = 256 << 20

// images appends the images of the array at path.
func (f *convertFlags) images(ctx context.Context, files source.Opener, jobs []fileConversion,
	kind store.Attributed, path string) ([]fileConversion, error) {
	options := store.Options{MaxChunk: max(f.o.MaxBytes, minChunk)}
	options.Since, options.Until = f.at.Range()
	array, err := kind.Open(ctx, files, path, options)
	if err != nil {
		return nil, err
	}
	attributes := []string{f.attr}
	if f.attr == "" {
		attributes = kind.Attributes(array)
	}
	for _, name := range attributes {
		images, err := array.Raster(ctx, "", name, f.dims)
		if err != nil {
			return nil, fault.WithFile(err, path)
		}
		if images.Len() > maxImages-int64(len(jobs)) {
			return nil, fault.WithFile(fault.New(fault.Limit, "array",
				"it holds %d images: at most %d can be converted", images.Len(), maxImages), path)
		}
		folder := ""
		if len(attributes) > 1 {
			folder = folderName(name)
		}
		for i := range images.Len() {
			jobs = append(jobs, fileConversion{src: path, images: images, image: i,
				dst: f.inFolder(filepath.Join(folder, imageName(images, i)+".tif"))})
		}
	}
	return jobs, nil
}

// imageName returns the coordinate of an image. Zeros pad it to the digits of the last image: names sort by coordinate.
func imageName(images store.Raster, i int64) string {
	axis, ok := images.(store.Coordinated)
	if !ok {
		return strconv.FormatInt(i, 10)
	}
	_, name := axis.Coordinate(i)
	_, last := axis.Coordinate(images.Len() - 1)
	// A negative coordinate is not padded: zeros before its sign would make it no number.
	if n := len(last) - len(name); n > 0 && name[0] != '-' {
		name = strings.Repeat("0", n) + name
	}
	return name
}

// folderName returns a directory name for an attribute. It escapes separators and dots, because a name
// such as ../x would otherwise lead out of DST.
func folderName(name string) string {
	name = url.PathEscape(name)
	if strings.Trim(name, ".") == "" {
		name = "attribute" + name
	}
	return name
}
