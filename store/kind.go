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

// Kind is what a path leads to: a kind of Register, or Other. Callers look for the kind that has Times or Lists, and
// for the kind of a class in Files: Register panics if two kinds have the same.
type Kind struct {
	// Noun names the kind for people, such as "a container".
	Noun string
	// Named reports whether a remote path has the name of this kind: it is asked for first, and the others only if it
	// is not. nil for a kind without names.
	Named func(source.Path) bool
	// Is looks at the names and first bytes of files. Its errors are outages, which leave open what a path is.
	Is func(context.Context, source.Opener, source.Path) (bool, error)
	// Files is the class of local files that are of this kind by their names, without a look at their bytes, as
	// archives of all kinds begin alike; 0 for none.
	Files magic.Class
	// Times is true if a timestamp opens an earlier state, Lists if a list of paths is one dataset of this kind.
	Times, Lists bool
	// Inside is true if a path FILE::PATH, whose FILE has the name of this kind, is one of this kind, too.
	Inside bool
	// Flat is true if there are no dimensions to name.
	Flat bool
	// Usage says of a path how its rasters are read, for the error that it is not one raster. Its %s is the path.
	Usage string
	// Raster opens the images of a store for a field, as the field, the array and the dimensions that a user names
	// choose them, if the class of the URI's name is in Files. nil for a kind that is no sample of other datasets.
	Raster func(ctx context.Context, o source.Opener, uri, field, array, dims string, l Limits) (Raster, error)
	// Labels opens the labels of the images of a store by the name of an array. One that has more than a value for each
	// image, or pixels, is fault.NotFound with single. nil where Raster is.
	Labels func(ctx context.Context, o source.Opener, uri, name string, single bool, l Limits) (Labels, error)
	// Arrays returns the paths of the arrays in a store, sorted. nil where Raster is.
	Arrays func(ctx context.Context, o source.Opener, uri string, l Limits) ([]string, error)
	// Parts reports whether a local name without a file stands for files with the names of parts; nil if none does.
	Parts func(ctx context.Context, o source.Opener, uri string) bool
	// Verify checks every byte of a path. Its error is a fault of the path, unless the context is done.
	Verify func(ctx context.Context, c *Check, path string) error
}

// Limits of a store, in bytes; 0 for the defaults of its kind.
type Limits struct{ MaxChunk, MaxIndexes, MaxMeta int64 }

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
}

// Raster is the images of a store.
type Raster interface {
	Images
	// URI is the address of the first array.
	URI() string
	// Grid is an index without ranges, of the shape and type of all images.
	Grid() chunk.Index
	// BandNames returns the names of the bands, or nil.
	BandNames() []string
	// Place returns the EPSG code of the CRS, 0 if it is unknown, and the geotransform as GDAL has it, or nil.
	Place(ctx context.Context) (epsg int, transform *[6]float64)
	// Held returns the bytes of memory that the store holds, and fails if they are over its limits.
	Held() (int64, error)
}

// Other is all that is no store by itself: a raster, a table, a directory of files, a pattern, or nothing.
var Other = &Kind{Noun: "another file or directory"}

// kinds are all but Other, by their nouns.
var kinds []*Kind

// Register adds a kind, and returns it. The package of a store calls it when the program starts, so a program
// opens the stores whose packages it imports.
func Register(k *Kind) *Kind {
	for _, other := range kinds {
		if k.Files != 0 && k.Files == other.Files || k.Times && other.Times || k.Lists && other.Lists {
			panic("store: " + k.Noun + " and " + other.Noun + " have the same part, and one kind alone may")
		}
	}
	kinds = append(kinds, k)
	slices.SortFunc(kinds, func(a, b *Kind) int { return cmp.Compare(a.Noun, b.Noun) })
	return k
}

// OpenRaster is Kind.Raster of the kind that a URI has the name of.
func OpenRaster(ctx context.Context, o source.Opener, uri, field, array, dims string, l Limits) (Raster, error) {
	kind, err := sampleKind(uri)
	if err != nil {
		return nil, err
	}
	return kind.Raster(ctx, o, uri, field, array, dims, l)
}

// OpenLabels is Kind.Labels of the kind that a URI has the name of.
func OpenLabels(ctx context.Context, o source.Opener, uri, name string, single bool, l Limits) (Labels, error) {
	kind, err := sampleKind(uri)
	if err != nil {
		return nil, err
	}
	return kind.Labels(ctx, o, uri, name, single, l)
}

// Arrays is Kind.Arrays of the kind that a URI has the name of.
func Arrays(ctx context.Context, o source.Opener, uri string, l Limits) ([]string, error) {
	kind, err := sampleKind(uri)
	if err != nil {
		return nil, err
	}
	return kind.Arrays(ctx, o, uri, l)
}

// ErrNoContainers is the error of a program without the package of containers.
var ErrNoContainers = fault.NotImported("dataset", "reads containers", "loader/containers")

// Missing returns the error of a program that lacks the package of the store that a URI has the name of, nil if it has
// the package.
func Missing(uri string) error {
	_, err := sampleKind(uri)
	return err
}

// sampleKind returns the kind with a Raster that a URI has the name of.
func sampleKind(uri string) (*Kind, error) {
	format := magic.Named(source.Name(uri))
	kind := Find(func(k *Kind) bool { return k.Raster != nil && k.Files == format.Class })
	if kind == Other {
		return nil, fault.WithFile(fault.NotImported("dataset", "reads "+format.Noun,
			"loader/stores/"+format.Name+"s"), uri)
	}
	return kind, nil
}

// Find returns the first kind that want reports true for, or Other.
func Find(want func(*Kind) bool) *Kind {
	if i := slices.IndexFunc(kinds, want); i >= 0 {
		return kinds[i]
	}
	return Other
}

// String returns the noun.
func (k *Kind) String() string { return k.Noun }

// Of returns what a path leads to. The name of a raster or a table decides without a request, and so does a remote
// path into a container (CONTAINER::PATH). A directory that is two things at once, such as one with the metadata of
// both Zarr and TileDB, is fault.Unsupported. What cannot be opened is Other: opening it has the better error. If no
// kind was found and a server did not answer, its error is returned.
func Of(ctx context.Context, o source.Opener, uri string) (*Kind, error) {
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
	candidates := make([]*Kind, 0, len(kinds))
	for _, kind := range kinds {
		if named := p.Remote() && kind.Named != nil && kind.Named(p); !named {
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
		case result.Files != 0 && strings.EqualFold(path.Ext(name), ".zip"): // all ZIPs begin like containers
		default:
			return Other, fault.WithFile(fault.New(fault.Unsupported, "dataset",
				"is %v and %v at once: move one of them to a directory of its own", result, kind), uri)
		}
	}
	if result == Other && outage != nil {
		return Other, outage
	}
	byName := Find(func(k *Kind) bool { return k.Files != 0 && k.Files == class })
	if byName != Other && !p.Remote() {
		if st, err := openers.RootsOf(o).Stat(p.Local()); err == nil && st.Mode().IsRegular() {
			result = byName // a ZIP, maybe a bad one
		}
	}
	if result == Other && !p.Remote() && Find(func(k *Kind) bool { return k.Lists }) == Other {
		for _, table := range []string{"METADATA/level0.parquet", "METADATA/sample.parquet"} {
			if _, err := openers.RootsOf(o).Stat(pathname.Join(p.Local(), table)); err == nil {
				return Other, fault.WithFile(ErrNoContainers, uri) // it would be read as a folder of files
			}
		}
	}
	icechunk := pathname.Join(p.Local(), "snapshots/1CECHNKREP0F1RSTCMT0") // the first snapshot of each of its stores
	if _, err := openers.RootsOf(o).Stat(icechunk); err == nil && result == Other && !p.Remote() {
		return Other, fault.WithFile(fault.New(fault.Unsupported, "dataset",
			"is an Icechunk store, which is not read: copy it to Zarr"), uri)
	}
	return result, nil
}

// Inside reports whether a path is FILE::PATH of a kind that has such paths.
func Inside(uri string) bool {
	file, _, inside := source.Split(uri)
	class := magic.Named(source.Name(file)).Class
	return inside && Find(func(k *Kind) bool { return k.Inside && k.Files == class }) != Other
}

// Is reports whether a path leads to a kind, and to no other one.
func Is(ctx context.Context, o source.Opener, uri string, k *Kind) bool {
	found, err := Of(ctx, o, uri)
	return err == nil && found == k
}
