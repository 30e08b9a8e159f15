package rows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/catalog"
)

// Opener opens the dataset of a source with the given fields.
type Opener func(ctx context.Context, src spec.Source, fields []spec.Field) (*Table, error)

// warnDropped logs how many samples were left out because a field lacks what its pattern names.
func warnDropped(t *catalog.Table, src, lacks string, o resources.Options) {
	if n := t.Remarks.Dropped; n > 0 {
		o.Logger.Warn("incomplete samples are left out: some field has "+lacks+" for them",
			"samples", n, "left", t.Len(), "such as", t.Remarks.Lacking, "dataset", src)
	}
}

// WithOwnFields replaces the one field of a spec with AllFields by the fields of its first dataset,
// if that is a catalog of pairs. Other specs are returned unchanged.
func WithOwnFields(ctx context.Context, s spec.Spec, o resources.Options) (spec.Spec, error) {
	if !s.AllFields {
		return s, nil
	}
	s.AllFields = false
	src := s.Root()
	for len(src.Sources) > 0 {
		src = src.Sources[0]
	}
	field := s.Fields[0]
	named := field.Column+field.Pattern != ""
	if src.Source == "" || named || field.Stacked() || field.Beside() {
		return s, nil
	}
	names, err := catalog.Fields(ctx, src.Source, catalog.Options{Opener: o.Opener, Roots: o.Roots})
	if err != nil || len(names) == 0 {
		return s, err
	}
	// A fill for images, such as 0, may be a class of labels, so one fill for integer fields of
	// both kinds would silently make labels of nodata.
	dtype := cmp.Or(field.DType, "native")
	integers := dtype == "native" || strings.Contains(dtype, "int")
	if len(names) > 1 && field.Fill != nil && field.Normalize == nil && integers {
		return s, fmt.Errorf("spec: fill is %v and dtype is %q for all fields of the catalog, %q, "+
			"and some may be labels: give fields, and fill to those that it is for",
			float64(*field.Fill), dtype, names)
	}
	s.Fields = nil
	for _, name := range names {
		field.Name = name
		s.Fields = append(s.Fields, field)
		field.Validity = "" // it names one tensor, so only the first field keeps it
	}
	return s, s.Validate()
}

// Open opens the dataset of a source with the fields from. Options that do not suit the kind of
// dataset are errors.
func Open(ctx context.Context, src spec.Source, from []spec.Field, o resources.Options) (*Table, error) {
	o.AllColumns = o.AllColumns || slices.ContainsFunc(from, func(f spec.Field) bool {
		return f.Beside() && f.Vector.OwnTable()
	})
	from = spec.TableFields(from)
	if slices.ContainsFunc(from, func(f spec.Field) bool { return f.Scenes != nil }) {
		return openJoined(ctx, src, from, o)
	}
	flat, stacks := flatten(from)
	table, err := openFlat(ctx, src, flat, o)
	if err != nil || stacks == nil {
		return table, err
	}
	if err := table.stack(flat, stacks); err != nil {
		_ = table.Close() // it was only read
		return nil, fault.WithFile(err, src.Source)
	}
	return table, nil
}

// openJoined opens the dataset of a source and those that fields name, each with its own fields. The conditions and
// options of the source are for its own dataset.
func openJoined(ctx context.Context, src spec.Source, from []spec.Field, o resources.Options) (t *Table, err error) {
	joined := &Joined{begins: []int64{0}, fields: make([][]int, len(from))}
	defer func() {
		if err != nil {
			err = errors.Join(err, joined.Close())
		}
	}()
	paths := []string{""}
	for _, f := range from {
		for _, path := range f.Scenes {
			if !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	leading := spec.Leading(from)
	for place, path := range paths {
		joined.leads = append(joined.leads, slices.Contains(leading, path))
		var mine []spec.Field
		for i, field := range from {
			number := -1
			if listed := field.Scenes; slices.Contains(listed, path) || listed == nil && path == "" {
				number = len(mine)
				field.Scenes = nil
				mine = append(mine, field)
			}
			joined.fields[i] = append(joined.fields[i], number)
		}
		if len(mine) == 0 {
			return nil, errors.New("spec: scenes: no field has rasters of the source itself")
		}
		source := src
		if place > 0 {
			source = spec.Source{Source: path, Sampler: src.Sampler, More: src.More}
		}
		table, err := Open(ctx, source, mine, o)
		if err != nil {
			return nil, err
		}
		joined.tables = append(joined.tables, table)
		joined.begins = append(joined.begins, joined.begins[place]+table.N)
	}
	return joined.table(), nil
}

// openFlat implements Open for fields that are not stacks.
func openFlat(ctx context.Context, src spec.Source, from []spec.Field, o resources.Options) (*Table, error) {
	hasPattern := func(f spec.Field) bool { return f.Pattern != "" }
	if src.Missing == spec.MissingDrop && src.IDList == "" && src.Tables == nil &&
		!slices.ContainsFunc(from, hasPattern) {
		return nil, errors.New("spec: missing is \"drop\", but no field has a pattern, and there are no ids or " +
			"tables: tables and containers say themselves what belongs together")
	}
	for i := range from {
		of, traits := CatalogSource(from[i]), from[i].Traits()
		if of.Pattern != "" && traits.Metadata && !traits.Paths && !of.OfTexts() {
			return nil, InField(from[i].Name, from[i].HoldsRasters())
		}
	}
	kind, err := kindOf(ctx, &src, o)
	if err != nil {
		return nil, err
	}
	table, err := openWithSides(ctx, kind, &src, from, o)
	if err != nil {
		return nil, err
	}
	err = table.split(ctx, from)
	if err == nil {
		err = table.scale(ctx, from)
	}
	if err == nil {
		err = table.noteLacking(ctx, from)
	}
	if err != nil {
		return nil, fault.WithFile(errors.Join(err, table.Close()), src.Source)
	}
	table.showBands(from, o.Opener)
	if !source.IsRemote(src.Source) || !ofFolder(kind) {
		table.mark(ctx, o.Opener, src.Source)
	}
	return table, nil
}

// openWithSides opens the dataset of a source, and the tables that are joined to it.
func openWithSides(ctx context.Context, kind store.Kind, src *spec.Source, from []spec.Field, o resources.Options) (
	*Table, error) {
	if len(src.Tables) == 0 {
		return openKind(ctx, kind, src, from, o)
	}
	sides, err := openSides(ctx, &src.Subset, src.Dims, from, moreColumns(src, from), o)
	if err != nil {
		return nil, err
	}
	own, places := ownFields(from, sides)
	table, err := openKind(ctx, kind, src, own, o)
	err = inNoSide(err, own, sides)
	if err != nil {
		return nil, errors.Join(err, closeSides(sides))
	}
	if err := table.joinFields(ctx, from, places, sides); err != nil {
		return nil, errors.Join(fault.WithFile(err, src.Source), table.Close())
	}
	return table, nil
}

// inNoSide says of the error about a field's column, which the dataset lacks, that the tables lack it, too.
func inNoSide(err error, own []spec.Field, sides []*side) error {
	missing, ok := errors.AsType[*fault.Error](err)
	if !ok || missing.Kind != fault.NotFound {
		return err
	}
	for _, f := range own {
		if f.Column != "" && f.Vector == nil && missing.Part == fmt.Sprintf("field %q", f.Name) {
			said := *missing
			said.Msg += "; no table has it: " + fault.List(sides, func(s *side) string { return path.Base(s.Path) })
			return &said
		}
	}
	return err
}

// moreColumns returns the columns that a source and fields need beside the columns of its conditions and of
// values.
func moreColumns(src *spec.Source, fields []spec.Field) []string {
	names := slices.Concat(src.PickColumns(), src.More)
	for _, field := range fields {
		names = slices.Concat(names, field.Scale, field.Offset)
	}
	return names
}

// CatalogSource returns what a field says of where it is.
func CatalogSource(field spec.Field) catalog.Source {
	kind := field.Traits().Opens
	if field.Kind == spec.NumberField && field.Pattern != "" {
		kind = catalog.Text
	}
	return catalog.Source{
		Field: field.Name, Column: field.Column, Blob: field.Blob, Pattern: field.Pattern,
		Kind: kind, Label: field.Traits().Metadata,
		Strings: field.Kind == spec.TextField || field.Split != "",
		Beside:  field.Vector != nil, Axes: field.Axes(),
		Optional: field.MayLack() || field.Vector != nil && field.Vector.Missing == spec.MissingEmpty,
	}
}

// Dataset is a store.Kind whose paths are datasets in a way of its own.
type Dataset interface {
	// OpenDataset opens a path, or the paths that a source lists, with the given fields. The options have their
	// defaults.
	OpenDataset(ctx context.Context, src *spec.Source, fields []spec.Field, o resources.Options) (*Table, error)
}

// Members is a store.Kind with names of rasters in its paths: CONTAINER::PATH, or a byte range.
type Members interface {
	// OpenMember opens the bytes of CONTAINER::PATH as a file of its own.
	OpenMember(ctx context.Context, o source.Opener, name string) (source.Reader, error)
	Member(ctx context.Context, o resources.Options, name string) (catalog.Asset, error)
}

// OpenMember opens the bytes of a name CONTAINER::PATH.
func OpenMember(ctx context.Context, o source.Opener, name string) (file source.Reader, err error) {
	err = fault.WithFile(store.ErrNoContainers, name)
	for _, kind := range store.Find[Members]() {
		if file, err = kind.OpenMember(ctx, o, name); fault.KindOf(err) != fault.NotFound {
			break
		}
	}
	return file, err
}

// openKind opens what a source leads to.
func openKind(ctx context.Context, kind store.Kind, src *spec.Source, fields []spec.Field, o resources.Options) (*Table,
	error) {
	switch kind := kind.(type) {
	case Dataset:
		return kind.OpenDataset(ctx, src, fields, o)
	case store.Arrays:
		return openArrays(ctx, kind, src, fields, o)
	}
	return openCatalog(ctx, src, fields, o)
}

// kindOf returns what a source leads to. A list of paths names containers, and base_path an index of them.
func kindOf(ctx context.Context, src *spec.Source, o resources.Options) (kind store.Kind, err error) {
	lists := store.Find[store.Lists]()
	switch {
	case len(src.Parts) == 0 && src.BasePath == "", len(lists) > 1:
		if kind, err = store.Of(ctx, o.Opener, src.Source); err != nil {
			return nil, err
		}
	case len(lists) == 0:
		return nil, fault.WithFile(store.ErrNoContainers, src.Source)
	default:
		kind = lists[0]
	}
	refusal := ""
	_, isArrays := kind.(store.Arrays)
	switch {
	case isArrays || kind == store.Other:
	case src.Dims != "" && src.BasePath != "":
		refusal = " is what base_path is for, and dims is for arrays: leave one of them out"
	case src.Dims != "":
		refusal = " has no dimensions to name: dims is for arrays"
	case src.Timestamp != nil:
		refusal = " has no times: timestamp is for arrays"
	}
	if refusal != "" {
		return nil, fault.WithFile(fault.New(fault.Unsupported, "dataset", "%v%s", kind, refusal),
			src.Source)
	}
	return kind, nil
}

// CatalogOptions returns how tables of a subset are opened: with its columns and more.
func CatalogOptions(s *spec.Subset, more []string, o resources.Options) catalog.Options {
	parts := inBraces(s.Columns())
	return catalog.Options{
		Opener: o.Opener, MaxChunk: o.MaxChunkBytes, CacheBytes: o.CacheBytes, Roots: o.Roots,
		Columns: slices.Concat(s.Columns(), parts, more), AllColumns: o.AllColumns || s.Queries() ||
			slices.ContainsFunc(s.IDs(), inSQL.MatchString),
		Texts: append(s.Texts(), parts...), Codes: s.Codes(),
	}
}

// checkImages refuses fields of rows that are images which say neither a column nor a pattern, and would be the image
// of another field again, such as a label that is meant to be a number of a table. A view of the image has bands,
// resampling or normalisation of its own.
func checkImages(fields []spec.Field) error {
	image := ""
	for _, f := range fields {
		switch {
		case f.Column+f.Pattern+f.Blob != "" || f.Traits().Paths:
		case f.Traits().Metadata:
			return fault.New(fault.NotFound, fmt.Sprintf("field %q", f.Name),
				"kind is %q: name its column, such as %q", f.Kind, catalog.FolderColumn)
		case image == "":
			image = f.Name
		case len(f.Bands)+len(f.BandNames) == 0 && !f.ByPosition && f.Resample == "" && f.Normalize == nil:
			return fault.New(fault.NotFound, fmt.Sprintf("field %q", f.Name),
				"it would be the image of the field %q again: name its column, its pattern, or its bands", image)
		}
	}
	return nil
}

// openCatalog opens a catalog, a table, a directory, a pattern or a file.
func openCatalog(ctx context.Context, src *spec.Source, from []spec.Field, o resources.Options) (*Table, error) {
	fields := make([]catalog.Source, len(from))
	for i, field := range from {
		fields[i] = CatalogSource(field)
	}
	options := CatalogOptions(&src.Subset, moreColumns(src, from), o)
	options.DropIncomplete, options.Dims = src.Missing == spec.MissingDrop, src.Dims
	table, err := catalog.Open(ctx, src.Source, fields, options)
	if err != nil {
		return nil, err
	}
	refusal := ""
	switch {
	case src.Dims != "" && !table.HasStores():
		refusal = "dims of rows is for arrays of Zarr, HDF5 and TileDB, such as (n, y, x, b): of NumPy files " +
			"the field's dims says them"
	case src.Timestamp != nil:
		refusal = "timestamp is for a TileDB array, and this is none"
	}
	switch {
	case refusal != "" && table.Len() == 0:
		err = fault.New(fault.NotFound, "dataset", "%s", refusal)
	case refusal != "":
		err = fault.New(fault.Unsupported, "dataset", "%s", refusal)
	case table.OfImages() && !table.HasStores(): // whose fields may be arrays of their names
		err = checkImages(from)
	}
	if err != nil {
		return nil, fault.WithFile(errors.Join(err, table.Close()), src.Source)
	}
	warnDropped(table, src.Source, "no file", o)
	said := &table.Remarks
	if said.Twice != "" {
		o.Logger.Warn("files of a field are samples of their own, too, as another pattern matches them: a condition "+
			"on one of its names leaves them out",
			"field", said.TwiceField, "such as", said.Twice, "dataset", src.Source)
	}
	if said.PairBy != nil {
		o.Logger.Warn("images and masks are not paired here: give fields these patterns to pair them",
			"image", said.PairBy[0], "mask", said.PairBy[1], "dataset", src.Source)
	}
	// A raster of 64 KiB in a page of 2 MiB costs 32 times its bytes. Pages of 1 MiB, the usual aim, are below that.
	if said.PageBytes > 2<<20 {
		o.Logger.Warn("rasters share large pages of a Parquet file: reading a raster reads its whole page, once for "+
			"all samples in work. Write smaller pages: write_table(..., write_batch_size=1, data_page_size=65536, "+
			"write_page_index=True) in pyarrow",
			"page bytes", said.PageBytes, "file", said.PageFile)
	}
	made := New(table)
	made.Marks, made.Array = table.Marks(), table.HasStores()
	return made, nil
}
