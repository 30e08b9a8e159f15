package catalog

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
	"github.com/chaski-eo/chaski/store/catalog/internal/listing"
)

// Limits of Zarr stores that are samples of a dataset, where many are open at a time.
const (
	storeMeta    = 16 << 20 // bytes of metadata
	storeIndexes = 64 << 10 // bytes of shard indexes
	storeImages  = 64 << 10 // images along n, since metadata of some bytes may promise any number
	storeOpens   = 16       // stores that are opened at a time
	storeTries   = 16       // samples that are tried for one that can be read
)

// storeRows are what a dataset has of the stores of arrays among its files.
type storeRows struct {
	dims    string                     // the dimensions of the arrays, where a field does not say them
	fields  []int                      // the fields that have stores
	images  []int32                    // of each sample the number of its image in its stores; nil: each has one
	columns map[string]*columns.Column // that conditions name, from arrays of the stores; nil without such an array
}

// Remote reports whether reading the asset takes requests.
func (a *Asset) Remote() bool { return source.IsRemote(source.FileOf(a.URI)) }

// IsStore reports whether a path or URI has the extension of a store of arrays.
func IsStore(uri string) bool { return magic.Named(source.Name(uri)).Class == magic.Store }

// storeOf splits the name of a Zarr store, PATH or PATH::ARRAY, or of an array in a value of a database. Other names
// stay whole.
func storeOf(name string) (uri, array string, ok bool) {
	if uri, array, _ = source.Split(name); IsStore(uri) || array != "" && source.InDatabase(uri) {
		return uri, array, true
	}
	return name, "", false
}

// fileOf splits what names a file and, behind "::", an array in it: of a Zarr store or a .npz file. Other names stay
// whole.
func fileOf(name string) (file, array string) {
	if file, array, ok := source.SplitArray(name); ok {
		return file, array
	}
	file, array, _ = storeOf(name)
	return file, array
}

// arrayOf returns the name of an array in a .npz file or in a value of a database. Other files keep their name.
func arrayOf(file, array string) string {
	if array != "" && (magic.Named(file) == magic.NPZ || source.InDatabase(file)) {
		return source.ArrayName(file, array)
	}
	return file
}

// inArrays reports whether a file is a NumPy array whose axes are in an order that only arrays of stores have, or are
// said of the rows, so it is opened as one.
func (t *Table) inArrays(f *fieldColumns, name string) bool {
	needsArray := !f.axes.Plain() || f.axes.Dims == "" && t.stores.dims != ""
	return needsArray && magic.Named(name) == magic.NPY && store.OfFormat(magic.NPY) != nil
}

// OpenStore opens an array of a Zarr store, or a group of arrays as bands, as store.Group.Raster picks it for a field.
// The asset is its first image.
func OpenStore(ctx context.Context, o source.Opener, uri, field, array, dims string, maxChunk int) (Asset, error) {
	group, err := openStore(ctx, o, uri, maxChunk)
	if err != nil {
		return Asset{}, err
	}
	raster, err := group.Raster(ctx, field, array, dims)
	if err != nil {
		return Asset{}, err
	}
	grid := raster.Grid()
	epsg, transform := raster.Place(ctx)
	held, err := group.Held()
	info := raster.About()
	return Asset{URI: info.URI, Index: raster.Index(0), Names: info.Bands, storeBytes: held,
		Place: NewPlace(epsg, transform, grid.Height, grid.Width)}, err
}

// openStore opens a store that is a sample of a dataset.
func openStore(ctx context.Context, o source.Opener, uri string, maxChunk int) (store.Group, error) {
	return store.Open(ctx, o, uri,
		store.Options{MaxChunk: int64(maxChunk), MaxIndexes: storeIndexes, MaxMeta: storeMeta})
}

// Images returns the images of a Zarr store, nil for other assets.
func (a *Asset) Images() store.Images {
	if a.Index.Grid == nil {
		return nil
	}
	images, _ := a.Index.Grid.Array.(store.Images)
	return images
}

// image returns the asset of a sample of the asset of its file.
func (t *Table) image(a Asset, row int64) (Asset, error) {
	raster, image := a.Images(), int64(0)
	if raster == nil {
		return a, nil
	}
	switch n := raster.Len(); {
	case t.stores.images == nil && n != 1:
		return a, fault.WithFile(fault.New(fault.Unsupported, "dimensions",
			"%d images along n: the first store has no such axis, so that each is one sample", n), a.URI)
	case t.stores.images != nil:
		if image = int64(t.stores.images[row]); image >= n {
			return a, fault.WithFile(fault.New(fault.Corrupt, "dimensions",
				"%d images along n, more when the dataset was opened", n), a.URI)
		}
	}
	a.Index = raster.Index(image)
	return a, nil
}

// HasStores reports whether a field has Zarr stores.
func (t *Table) HasStores() bool { return len(t.stores.fields) > 0 }

// expand makes a sample of each image along n of the files that are Zarr stores, and reads the labels that fields and
// columns name.
func (t *Table) expand(ctx context.Context) error {
	for i := range t.fields {
		if t.fields[i].kind != Raster {
			continue
		}
		err := t.values(i).Scan(ctx, func(_ int64, c Value) error {
			if c.Null {
				return nil
			}
			text := arrayOf(string(c.Text), t.fields[i].array)
			if _, _, ok := storeOf(text); ok || t.inArrays(&t.fields[i], text) {
				t.stores.fields = append(t.stores.fields, i)
			}
			return errStop
		})
		if err != nil && !errors.Is(err, errStop) {
			return err
		}
	}
	many, err := t.hasN(ctx)
	if err != nil {
		return err
	}
	var counts []int64
	if len(t.stores.fields) > 0 {
		counts = slices.Repeat([]int64{1}, int(t.n))
	}
	if many {
		group, gctx := errgroup.WithContext(ctx)
		group.SetLimit(storeOpens)
		for row := range t.n {
			group.Go(func() (err error) {
				counts[row], err = t.imagesOf(gctx, row)
				return err
			})
		}
		if err := cmp.Or(group.Wait(), t.noLabels(ctx, counts)); err != nil {
			return err
		}
	}
	if err := t.readLabels(ctx, counts); err != nil || !many {
		return err
	}
	return t.repeat(ctx, counts)
}

// noLabels returns an error about a field of images that may be labels: an array of the first .npz file whose axes
// nobody names, beside images along n in the same file.
func (t *Table) noLabels(ctx context.Context, counts []int64) error {
	for i := range t.fields {
		f := &t.fields[i]
		if t.n == 0 || f.kind != Raster || f.axes.Dims+t.stores.dims != "" || slices.Contains(t.stores.fields, i) {
			continue
		}
		asset, err := t.file(ctx, i, 0)
		file, array := fileOf(asset.URI)
		if err != nil || array == "" || magic.Named(file) != magic.NPZ {
			continue // reading the sample has the error
		}
		err = store.CheckImage(asset.Index.Height, asset.Index.Width, counts[0])
		if asset.Index.Bands == 1 && err != nil {
			return fault.WithFile(fault.WithPart(err, "field "+f.name, fault.NoOffset), asset.URI)
		}
	}
	return nil
}

// isLabel returns the array of labels that a field of a listing of stores reads, or "" for a field of anything else. An
// array goes before a column of paths of its name.
func (t *Table) isLabel(ctx context.Context, l *listing.Listing, s *Source, fields []Source) (string, error) {
	name, ofPaths := cmp.Or(s.Column, s.Field), slices.Contains(PathColumns, s.Column)
	switch {
	case s.Kind == Raster || s.Pattern+s.Blob != "" || named(fields, name):
		return "", nil
	case s.Label && s.Column != "" && !ofPaths:
		return name, nil
	}
	uri, err := t.allow(l.Paths[0])
	if err != nil {
		return "", err
	}
	group, err := openStore(ctx, t.opener, uri, t.maxChunk)
	switch {
	case err == nil && group.IsLabel(ctx, name, t.stores.dims):
		return name, ctx.Err()
	case ctx.Err() != nil || source.Unreachable(err):
		return "", cmp.Or(ctx.Err(), err)
	}
	return "", nil // opening it as images has the error
}

// readLabels reads the labels of fields and of columns that may be arrays of the stores, for samples that have counts
// images each.
func (t *Table) readLabels(ctx context.Context, counts []int64) error {
	for i := range t.fields {
		f := &t.fields[i]
		if f.labels == "" {
			continue
		}
		var err error
		if f.main, err = t.labelColumn(ctx, f.labels, counts); err != nil {
			return fault.WithPart(err, "field "+f.name, fault.NoOffset)
		}
		f.kind, f.rows = f.main.Kind, nil
	}
	for _, name := range slices.Sorted(maps.Keys(t.stores.columns)) {
		if t.pathColumns[name] != nil || len(t.stores.fields) == 0 {
			continue
		}
		made, err := t.labelColumn(ctx, name, counts)
		if fault.KindOf(err) == fault.NotFound && name == imageAxis {
			made, err = alongN(counts), nil
		}
		if fault.KindOf(err) == fault.NotFound { // whoever reads the column says so
			continue
		}
		if err != nil {
			return err
		}
		t.stores.columns[name] = made
	}
	return nil
}

// imageAxis is the column of the number of each image along n in its store, where no array has this name.
const imageAxis = "n"

// alongN returns a column with the number of each image in its store. counts has the number of images of each sample.
func alongN(counts []int64) *columns.Column {
	parts := make([]*column.Column, len(counts))
	for i, n := range counts {
		parts[i] = column.Of(Int, 0, n, func(row int64) Value { return Value{Int: row} })
	}
	return column.Concat(parts)
}

// labelColumn returns an array of the stores of all samples as a column, with a row for each image.
func (t *Table) labelColumn(ctx context.Context, name string, counts []int64) (*columns.Column, error) {
	if len(t.stores.fields) == 0 {
		return nil, fault.New(fault.Unsupported, "column "+name, "labels of stores are beside their images: "+
			"a field of them must be there, too")
	}
	perRow := make([]store.Labels, t.n)
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(storeOpens)
	for row := range t.n {
		group.Go(func() error {
			value, err := t.Value(gctx, t.stores.fields[0], row)
			if err != nil {
				return err
			}
			file, _ := fileOf(string(value.Text))
			group, err := t.group(gctx, file)
			if err != nil {
				return err
			}
			labels, err := group.Labels(gctx, name)
			if err != nil {
				return err
			}
			if perRow[row] = labels; labels.Len() != counts[row] {
				return fault.WithFile(fault.New(fault.Unsupported, "column "+name, "%d values for %d images",
					labels.Len(), counts[row]), t.resolve(file))
			}
			return budget.Grow(gctx, labels.Bytes())
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	parts := make([]*column.Column, t.n)
	for row, labels := range perRow {
		parts[row] = column.Of(labels.Kind(), labels.Unit(), labels.Len(), labels.Value)
		if kind := labels.Kind(); kind != perRow[0].Kind() || labels.Unit() != perRow[0].Unit() {
			return nil, fault.New(fault.Unsupported, "column "+name, "%ss in the store of sample %d, %ss in the first",
				kind, row, perRow[0].Kind())
		}
	}
	return column.Concat(parts), nil
}

// hasN reports whether the stores of the first sample that can be read have an axis n.
func (t *Table) hasN(ctx context.Context) (bool, error) {
	for row := range min(t.n, storeTries) {
		for _, i := range t.stores.fields {
			asset, err := t.file(ctx, i, row)
			switch {
			case ctx.Err() != nil:
				return false, ctx.Err()
			case err != nil: // reading the sample says so
				continue
			case asset.Images() != nil:
				return asset.Images().HasN(), nil
			}
		}
	}
	return false, nil
}

// imagesOf returns how many images the stores of a sample have.
func (t *Table) imagesOf(ctx context.Context, row int64) (int64, error) {
	count := int64(1)
	var files []string // the stores with images, in the order of the fields
	for _, i := range t.stores.fields {
		asset, err := t.file(ctx, i, row)
		if err != nil {
			return 0, err
		}
		raster := asset.Images()
		switch {
		case raster == nil:
			continue
		case raster.Len() > storeImages:
			return 0, fault.WithFile(fault.New(fault.Limit, "dimensions",
				"%d images along n, at most %d of each of several stores", raster.Len(), storeImages), asset.URI)
		case files != nil && raster.Len() != count:
			return 0, fault.WithFile(fault.New(fault.Unsupported, "dimensions",
				"%d images along n, %d in %s", raster.Len(), count, files[0]), asset.URI)
		}
		count = raster.Len()
		if file, _, _ := storeOf(asset.URI); !slices.Contains(files, file) {
			files = append(files, file)
		}
	}
	return count, t.sameIDs(ctx, files)
}

// idArray is the array of a store that names its images.
const idArray = "id"

// sameIDs returns an error about stores whose images would be pairs by their places along n, but have other ids there.
// Stores without ids are pairs of all.
func (t *Table) sameIDs(ctx context.Context, files []string) error {
	if len(files) < 2 {
		return nil
	}
	var first store.Labels
	for _, file := range files {
		ids, err := t.idsOf(ctx, file)
		if err != nil {
			return err
		}
		if first == nil {
			first = ids
		}
		if ids == nil || ids.Len() != first.Len() {
			continue
		}
		for i := range ids.Len() {
			if was, is := first.Value(i).In(first.Kind()), ids.Value(i).In(ids.Kind()); was != is {
				return fault.WithFile(fault.New(fault.Unsupported, "array "+idArray, "image %d is %.64q, and %.64q of "+
					"%s: images of both files are in another order: join one of them by its ids, as in tables={%q: %q}",
					i, is, was, files[0], path.Base(file), idArray), file)
			}
		}
	}
	return nil
}

// idsOf returns the array idArray of a store, with a value for each image along n, or nil without one.
func (t *Table) idsOf(ctx context.Context, file string) (store.Labels, error) {
	group, err := openStore(ctx, t.opener, file, t.maxChunk)
	if err != nil || !group.IsLabel(ctx, idArray, "") {
		return nil, ctx.Err()
	}
	ids, err := group.Labels(ctx, idArray)
	if err != nil {
		return nil, ctx.Err() // nobody asked for it
	}
	return ids, nil
}

// repeat makes as many samples of each sample as counts says, of one image each.
func (t *Table) repeat(ctx context.Context, counts []int64) error {
	total := int64(0)
	for _, n := range counts {
		total += n // of at most storeImages
	}
	if err := columns.CheckRows(total); err != nil {
		return err
	}
	const rowBytes = 8
	if err := budget.Grow(ctx, rowBytes*total*int64(len(t.fields)+2)); err != nil {
		return err
	}
	for _, n := range counts {
		for image := range n {
			t.stores.images = append(t.stores.images, int32(image))
		}
	}
	repeated := func(rows []int64) []int64 {
		out := make([]int64, 0, total)
		for row, n := range counts {
			original := int64(row)
			if rows != nil {
				original = rows[row]
			}
			for range n {
				out = append(out, original)
			}
		}
		return out
	}
	t.order, t.n = repeated(t.order), total
	for i := range t.fields {
		if t.fields[i].labels == "" {
			t.fields[i].rows = repeated(t.fields[i].rows)
		}
	}
	return nil
}

// named returns the name of a sample of the name of its file: FILE::IMAGE of one among several images.
func (t *Table) named(file string, row int64) string {
	if t.stores.images == nil {
		return file
	}
	return file + source.Separator + strconv.Itoa(int(t.stores.images[row]))
}

// filesOf returns the files that a pattern names: those that hold the arrays behind "::".
func filesOf(pattern string) listing.Files {
	file, _ := fileOf(pattern)
	return listing.FilesOf(file)
}

// withArrays returns a listing that has the arrays of stores, too, as FILE::ARRAY: of the files that match a pattern
// with names or stars behind its "::".
func (t *Table) withArrays(ctx context.Context, l *listing.Listing, fields []Source) (*listing.Listing, error) {
	var texts []string
	for _, s := range fields {
		if file, array := fileOf(s.Pattern); array != "" && IsStore(file) {
			texts = append(texts, file)
		}
	}
	patterns, err := listing.ParsePatterns(texts)
	if len(patterns) == 0 {
		return l, err
	}
	found := make([][]string, len(l.Paths))
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(storeOpens)
	for i, path := range l.Paths {
		matches := func(p *listing.Pattern) bool {
			_, ok, _ := p.Match(path, nil)
			return ok
		}
		if !slices.ContainsFunc(patterns, matches) {
			continue
		}
		group.Go(func() error {
			group, err := t.group(gctx, path)
			if err == nil {
				found[i], err = group.Arrays(gctx)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return l.WithInner(ctx, found)
}
