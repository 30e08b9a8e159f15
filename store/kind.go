// Package store says what a path is. A path may lead to many rasters at once: to a TileDB array, to a Zarr array or
// group, or to a container of one of its generations. The package of each registers its Kind. All that opens paths asks
// Of, so training, verifying and describing a path never read different things.
package store

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
)

// Kind is what a path leads to: a kind of Register, or Other. What can be done with its paths beside is an interface of
// its own, which the type of a kind implements: those below, rows.Dataset, rows.Members and survey.Describer.
type Kind interface {
	// String names the kind for people, such as "a container".
	String() string
	// Is looks at the names and first bytes of files. Its errors are outages, which leave open what a path is.
	Is(context.Context, source.Opener, source.Path) (bool, error)
}

// Named is a Kind that the name of a remote path tells: it is asked for first, and the others only if it is not.
type Named interface{ Named(source.Path) bool }

// Files is a Kind of files and directories that their names tell. They may be samples of other datasets, or have
// paths inside: FILE::PATH.
type Files interface {
	Arrays
	Format() *magic.Format
}

// Arrays is a Kind of arrays of images.
type Arrays interface {
	Kind
	Open(ctx context.Context, o source.Opener, uri string, opt Options) (Group, error)
}

// Times is a Kind with earlier states: Options.Since and Until.
type Times interface {
	Arrays
	Times()
}

// Attributed is a Kind of arrays whose images are those of attributes.
type Attributed interface {
	Arrays
	// Attributes returns the names of the attributes of what Open opened.
	Attributes(Group) []string
}

// Lists is a Kind whose lists of paths are one dataset each.
type Lists interface {
	Kind
	// Parts reports whether a local name without a file stands for files with the names of parts.
	Parts(ctx context.Context, o source.Opener, uri string) bool
}

// Several is a Kind whose paths are never one raster. Usage says how the rasters of a path are read.
type Several interface{ Usage(path string) string }

// Verifier is a Kind that checks every byte of a path. Its error is a fault of the path, unless the context is done.
type Verifier interface {
	Verify(ctx context.Context, c *Check, path string) error
}

// Options of a store; 0 for the defaults of its kind.
type Options struct {
	MaxChunk, MaxIndexes, MaxMeta int64  // bytes
	Key                           []byte // of encrypted arrays
	Since, Until                  uint64 // of Times: milliseconds since 1970
}

// Group is an open array, or a group of arrays. It keeps no file open, and is safe for concurrent use.
type Group interface {
	// Raster returns the images of a field, as the field, the array and the dimensions that a user names choose them.
	Raster(ctx context.Context, field, array, dims string) (Raster, error)
	// IsLabel reports whether an array has one value for each image.
	IsLabel(ctx context.Context, array, dims string) bool
	// Labels returns the values that an array has for each image.
	Labels(ctx context.Context, array string) (Labels, error)
	// Arrays returns the paths of the arrays, sorted.
	Arrays(ctx context.Context) ([]string, error)
	// Text returns what decides the meaning of an array, for fingerprints, or "" if it cannot be read.
	Text(ctx context.Context, array string) string
	// Attribute returns a number or a string among the attributes of the array or the group at a path; kind is 0 if
	// none has the name.
	Attribute(ctx context.Context, path, name string) (v column.Value, kind column.Kind)
	// Held returns the bytes of memory that the store holds, and fails if they are over its limits.
	Held() (int64, error)
	// Describe describes the store at a path, for reports.
	Describe(ctx context.Context, path string) (any, error)
}

// Fingerprinted is a Group with a fingerprint of its own, which all that is read of it shares.
type Fingerprinted interface{ Fingerprint() string }

// Images are images of one shape: the chunk.Array of the indexes of a Raster.
type Images interface {
	// Len is the number of images along the axis n, and HasN whether there is one.
	Len() int64
	HasN() bool
	// Index returns the chunk index of an image.
	Index(i int64) *chunk.Index
	// Verify checks every byte of all images.
	Verify(ctx context.Context, c *Check) error
}

// Labels are values of the images of a store, in memory.
type Labels interface {
	Len() int64
	Kind() column.Kind
	Unit() time.Duration // of times; 0 for other values
	Value(image int64) column.Value
	Bytes() int64 // of memory
	// Text is as in About.
	Text() string
	// Scalars are the labels as one value for each image, and Classes as classes.
	Scalars() (Labels, error)
	Classes() (Labels, error)
	// Steps returns labels (t) of the steps of time of a raster as lists, the same for each of its images, and nil for
	// other labels.
	Steps(Raster) (Labels, error)
}

// Timed is a Raster that may know when its images were taken.
type Timed interface {
	// Times returns the times of the steps of an image, or its one time, in microseconds since 1970 UTC; nil where
	// nothing says it.
	Times(ctx context.Context, image int64) ([]column.Value, error)
}

// Raster is the images of a store.
type Raster interface {
	Len() int64
	// HasN reports whether the images lie along an axis n. Without one there is one image.
	HasN() bool
	Index(i int64) *chunk.Index
	// Grid is an index without ranges, of the shape and type of all images.
	Grid() chunk.Index
	About() About
	// Place returns the EPSG code of the CRS, 0 if it is unknown, and the geotransform as GDAL has it, or nil.
	Place(ctx context.Context) (epsg int, transform *[6]float64)
}

// About is what a Raster knows of its arrays.
type About struct {
	URI   string   // of the first array
	Bands []string // their names, or nil
	// BandAxis is the array whose values are names of the bands, if there is one; "" where no name leads to it.
	BandAxis string
	Text     string // what decides the meaning of the arrays, for fingerprints
	Unnamed  bool   // the dimensions have no names
}

// CheckImage returns an error about an array whose two dimensions nobody names, in a store of n images, if it may have
// labels (n, k) or (k, n): it would be the image of each of them.
func CheckImage(height, width int, n int64) error {
	if n < 2 || int64(height) != n && int64(width) != n {
		return nil
	}
	return fault.New(fault.Unsupported, "dimensions", "its shape is [%d %d], and there are %d images: kind "+
		"\"number\", or dims \"n b\" or \"b n\", says that each has a list of it; dims \"y x\" says that it is an "+
		"image of all", height, width, n)
}

// Coordinated is a Raster whose images have coordinates along n, which are not their numbers.
type Coordinated interface {
	// Axis is the name of n, "" of a raster without n.
	Axis() string
	Coordinate(i int64) (number int64, text string)
}

// other is all that is no store by itself.
type other struct{}

func (other) String() string                                               { return "another file or directory" }
func (other) Is(context.Context, source.Opener, source.Path) (bool, error) { return false, nil }

// Other is all that is no store by itself: a raster, a table, a directory of files, a pattern, or nothing.
var Other Kind = other{}

// kinds are all but Other, by their nouns.
var kinds []Kind

// Register adds a kind, and returns it. The package of a store calls it when the program starts, so a program
// opens the stores whose packages it imports.
func Register(k Kind) Kind {
	if files, ok := k.(Files); ok {
		magic.Add(files.Format())
	}
	kinds = append(kinds, k)
	slices.SortFunc(kinds, func(a, b Kind) int { return cmp.Compare(a.String(), b.String()) })
	return k
}

// Find returns the kinds that can do what T says.
func Find[T any]() (list []T) {
	for _, k := range kinds {
		if t, ok := k.(T); ok {
			list = append(list, t)
		}
	}
	return list
}

// known lists the formats whose kinds a program may leave out, and formats that are not read. A directory has such a
// format if one of files exists below it. Kinds that are registered come first.
var known = []struct {
	format string // the name of the format, or ""
	files  []string
	lists  bool // it is read by a kind of Lists
	err    *fault.Error
}{
	{format: "zarr", err: fault.NotImported("dataset", "reads a Zarr store", "store/zarr")},
	{format: "hdf5", err: fault.NotImported("dataset", "reads an HDF5 or NetCDF-4 file", "store/hdf5")},
	// Of containers a directory would be read as a folder of files.
	{files: []string{"METADATA/level0.parquet", "METADATA/sample.parquet"}, lists: true, err: ErrNoContainers},
	// Each Icechunk store has this as its first snapshot.
	{files: []string{"snapshots/1CECHNKREP0F1RSTCMT0"}, err: fault.New(fault.Unsupported, "dataset",
		"is an Icechunk store, which is not read: copy it to Zarr")},
}

// ErrNoContainers is the error of a program without the package of containers.
var ErrNoContainers = fault.NotImported("dataset", "reads containers", "loader/containers")

// OfFormat returns the kind of files of a format, or nil.
func OfFormat(f *magic.Format) Files {
	for _, k := range Find[Files]() {
		if k.Format() == f {
			return k
		}
	}
	return nil
}

// Open opens a store whose URI has the name of a kind of files.
func Open(ctx context.Context, o source.Opener, uri string, opt Options) (Group, error) {
	if err := Missing(uri); err != nil {
		return nil, err
	}
	return OfFormat(formatOf(uri)).Open(ctx, o, uri, opt)
}

// formatOf returns the format of a store by its name. Values of databases, whose keys have no endings, are tensors.
func formatOf(uri string) *magic.Format {
	format := magic.Named(source.Name(uri))
	for _, k := range Find[Files]() {
		if format.Class == 0 && source.InDatabase(uri) && k.Format().Name == "tensors" {
			return k.Format()
		}
	}
	return format
}

// Missing returns the error of a program that lacks the package of the store that a URI has the name of, nil if it has
// the package.
func Missing(uri string) error {
	format := formatOf(uri)
	if OfFormat(format) != nil {
		return nil
	}
	for _, k := range known {
		if k.format != "" && k.format == format.Name {
			return fault.WithFile(k.err, uri)
		}
	}
	return fault.WithFile(fault.New(fault.Unsupported, "dataset", "%s is not read", format.Noun), uri)
}

// Of returns what a path leads to. The name of a raster or a table decides without a request, and so does a remote
// path into a container (CONTAINER::PATH). A directory that is two things at once, such as one with the metadata of
// both Zarr and TileDB, is fault.Unsupported. What cannot be opened is Other: opening it has the better error. If no
// kind was found and a server did not answer, its error is returned.
func Of(ctx context.Context, o source.Opener, uri string) (Kind, error) {
	p, err := source.Parse(uri)
	if err != nil {
		return Other, nil
	}
	name := p.Base()
	class := magic.Named(name).Class
	// Containers have the extension of a table in JSON, too.
	file := class.Pixels() || class.Table() && !strings.EqualFold(path.Ext(name), ".json")
	_, _, inside := source.Split(p.Name)
	switch {
	case p.Remote() && (inside && !Inside(p.Name) || file):
		return Other, nil
	case !p.Remote() && file:
		if st, err := openers.RootsOf(o).Stat(p.Local()); err != nil || !st.IsDir() {
			return Other, nil
		}
	}
	candidates := make([]Kind, 0, len(kinds))
	for _, kind := range kinds {
		if namer, ok := kind.(Named); !ok || !p.Remote() || !namer.Named(p) {
			candidates = append(candidates, kind)
		} else if is, err := kind.Is(ctx, o, p); err != nil {
			return Other, err
		} else if is {
			return kind, nil
		}
	}
	// Each question may be a request, so they are asked at the same time.
	found := make([]bool, len(candidates))
	var group errgroup.Group
	for i, kind := range candidates {
		group.Go(func() (err error) {
			found[i], err = kind.Is(ctx, o, p)
			return err
		})
	}
	outage := group.Wait()
	if err := ctx.Err(); err != nil {
		return Other, err
	}
	result := Other
	for i, kind := range candidates {
		switch {
		case !found[i]:
		case result == Other:
			result = kind
		case isFiles(result) && strings.EqualFold(path.Ext(name), ".zip"): // all ZIPs begin like containers
		default:
			return Other, fault.WithFile(fault.New(fault.Unsupported, "dataset",
				"is %v and %v at once: move one of them to a directory of its own", result, kind), uri)
		}
	}
	if result == Other && outage != nil {
		return Other, outage
	}
	if p.Remote() {
		return result, nil
	}
	roots := openers.RootsOf(o)
	if byName := OfFormat(magic.Named(name)); byName != nil {
		if st, err := roots.Stat(p.Local()); err == nil && st.Mode().IsRegular() {
			return byName, nil // a ZIP, maybe a bad one
		}
	}
	for _, k := range known {
		for _, file := range k.files {
			if result != Other || k.lists && len(Find[Lists]()) > 0 {
				continue
			}
			if _, err := roots.Stat(pathname.Join(p.Local(), file)); err == nil {
				return Other, fault.WithFile(k.err, uri)
			}
		}
	}
	return result, nil
}

func isFiles(k Kind) bool {
	_, ok := k.(Files)
	return ok
}

// Inside reports whether a path is FILE::PATH of a kind that has such paths.
func Inside(uri string) bool {
	file, _, inside := source.Split(uri)
	return inside && OfFormat(magic.Named(source.Name(file))) != nil
}
