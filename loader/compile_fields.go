package loader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store/catalog"
)

// firstAssets returns the assets of the first sample, of the raster fields with these numbers. The first must not lack.
func (d *dataset) firstAssets(ctx context.Context, columns []int, policy string) ([]rows.First, error) {
	if len(columns) > 0 && d.fields[columns[0]].MayLack() {
		return nil, noLead(&d.fields[columns[0]])
	}
	assets, err := rows.FirstOf(ctx, d.table, d.fields, columns, policy, d.rows)
	if err != nil {
		return nil, d.notPaths(err, columns)
	}
	return assets, nil
}

// noLead returns the error about a field that may lack, as all others may.
func noLead(f *Field) error {
	return rows.InField(f.Name, fault.New(fault.Unsupported, "missing",
		"the rasters of one field make the windows, and all fields may lack: give one that each sample has"))
}

// compileFields opens the assets of the first sample, and compiles the fields for them.
func (d *dataset) compileFields(ctx context.Context, policy string) error {
	var columns []int
	for i, field := range d.fields {
		kind := d.table.Fields[i].Kind
		if err := field.CheckKind(kind); err != nil {
			return fault.WithFile(rows.InField(field.Name, err), d.source.Source)
		}
		if kind != catalog.Raster {
			if err := d.addValue(ctx, field, i, kind); err != nil {
				return rows.InField(field.Name, err)
			}
			continue
		}
		columns = append(columns, i)
	}
	columns = rows.LeadFirst(d.fields, columns)
	assets, err := d.firstAssets(ctx, columns, policy)
	if err != nil {
		return err
	}
	for place, i := range columns {
		compiled, asset := d.fields[i], assets[place].Asset
		count, err := rows.CheckTimes(ctx, d.table, i, &compiled, &asset)
		if err != nil {
			return err
		}
		d.remote = d.remote || asset.Remote() ||
			slices.ContainsFunc(asset.Parts, func(p catalog.Asset) bool { return p.Remote() })
		if grid := asset.Index.Grid; grid != nil {
			d.together = max(d.together, grid.Array.Together())
		}
		pixels.SetPhysical(&compiled, &asset)
		if compiled.BandNames != nil {
			if compiled.Bands, err = d.names.pick(ctx, &compiled, asset); err != nil {
				return rows.InField(compiled.Name, err)
			}
		}
		steps := d.table.Fields[i].Steps
		if err := d.filesAsSteps(&compiled, steps); err != nil {
			return fault.WithFile(err, d.source.Source)
		}
		if d.timeless && compiled.Layout == spec.TimeLayout {
			compiled.Layout = ""
		}
		field, err := pixels.NewRaster(compiled, i, asset.Index)
		if err != nil {
			return asset.Fault(rows.InField(compiled.Name, err))
		}
		if _, ok := clockOf(&asset); ok && len(d.rasters) == 0 {
			d.timed, d.moments = true, len(field.StepList())
		}
		d.files = append(d.files, steps)
		d.noteWorker(field, asset)
		field.Expect(&asset)
		field.ReadLegend(ctx, d.opener, asset)
		if err := cmp.Or(d.compileParts(field, &asset, policy), d.setSteps(field, &compiled, steps)); err != nil {
			return rows.InField(compiled.Name, err)
		}
		d.remarks.add(&compiled, &asset, count)
		if d.kind.Ground { // each field finds its pixels by its own place
			d.rasters = append(d.rasters, field)
			continue
		}
		lead := d.table.Lead(ctx, columns[0], &assets[0], &assets[place])
		if err = d.setRatio(field, lead, &asset, policy); err != nil {
			return asset.Fault(rows.InField(compiled.Name, err))
		}
		// Fields of one file lie together.
		if field.Ground != spec.IgnoreGround && (lead.Place == nil || asset.Place == nil) &&
			asset.Name() != lead.Name() {
			d.remarks.placeless = append(d.remarks.placeless, field.Name)
		}
		d.rasters = append(d.rasters, field)
	}
	if len(assets) == 0 {
		return d.compileSize(nil)
	}
	return d.compileSize(assets[0].Index)
}

// setSteps makes a sequence of a raster field f whose steps are rows, scenes, or files of a sample.
func (d *dataset) setSteps(field *pixels.Raster, f *Field, files *rows.Steps) error {
	n := 0
	switch {
	case d.kind.Ground && !f.Still(d.fields):
		n = d.sampler.Length
	case d.kind.Ground, d.source.Time != nil && f.Timeless():
	case d.source.Time != nil:
		n = d.source.Time.Length
	case files != nil:
		n = len(files.Fields)
	}
	return field.SetSteps(n)
}

// setRatio sets the ratio of a field by the assets of the source's first field and of its own in one sample. With the
// policy "error" it fails if the two lie at different places.
func (d *dataset) setRatio(field *pixels.Raster, lead, own *catalog.Asset, policy string) (err error) {
	if d.kind.Whole && d.sampler.Views == nil {
		field.Ratio = pixels.WholeRatio(lead.Index, own.Index)
	} else if d.sampler.AllWhole() {
		field.Ratio = pixels.ResizedRatio(lead.Index, own.Index, d.sampler.Height, d.sampler.Width)
	} else if field.Ratio, err = pixels.NewRatio(lead.Index, own.Index); err != nil {
		return err
	}
	if policy == spec.BadError {
		return field.SameGround(lead, own)
	}
	return nil
}

// compileParts compiles the parts of a field's first stack, and notes those that cover less than it. With the policy
// "error" it fails if a part lies elsewhere.
func (d *dataset) compileParts(field *pixels.Raster, stack *catalog.Asset, policy string) error {
	err := field.CompileParts(stack)
	if err != nil || d.kind.Ground { // where each part finds its pixels by its own place
		return err
	}
	err = field.EachPart(stack, func(k int, part *pixels.Raster, l *pixels.Lay) error {
		if remark := partial(part, &stack.Parts[k], l); remark != "" {
			d.remarks.partial = append(d.remarks.partial, remark)
		}
		return nil
	})
	if policy != spec.BadError {
		return nil
	}
	return err
}

// filesAsSteps prepares a raster field whose steps of time are files of a sample: the steps that it picks are those
// files.
func (d *dataset) filesAsSteps(f *Field, steps *rows.Steps) error {
	switch {
	case steps == nil:
		return nil
	case d.kind.Ground:
		return d.table.Single(d.fields, "windows on the ground")
	case d.source.Time != nil:
		return d.table.Single(d.fields, "the steps of a sequence of rows")
	}
	f.Times = nil
	return nil
}

// addValue compiles field number i, whose column holds values of a kind. All lists of numbers must be as long as the
// first one that has any.
func (d *dataset) addValue(ctx context.Context, f Field, i int, kind catalog.Kind) error {
	field := newValueField(f, i, kind)
	field.packs = field.fromSpec && d.name != "" // of a mixture
	if field.holds.IsList() && field.classes == nil {
		// Arrow writes empty lists of a fixed size as lists of one null.
		known := func(element catalog.Value) bool { return !element.Null }
		found := false
		for k := int64(0); k < d.rows.Len(d.table.N) && !found; k++ {
			value, err := d.table.Fields[i].Value(ctx, d.rows.At(k))
			if err != nil {
				return err
			}
			found = slices.ContainsFunc(value.List, known)
			field.length = cmp.Or(field.length, len(value.List))
		}
		if !found {
			return fault.WithFile(fault.New(fault.NotFound, "column", "no list has a number"),
				d.source.Source)
		}
	}
	d.values = append(d.values, field)
	return nil
}

// numeric reports whether a column holds numbers, or lists of them.
func numeric(k catalog.Kind) bool { return k.Elem() == catalog.Int || k.Elem() == catalog.Float }

// agrees returns an error if the batches of a source differ from the batches of the first one in shape,
// dtype or kind.
func (d *dataset) agrees(first *dataset) error {
	if d == first {
		return nil
	}
	if !slices.Equal(d.sampler.Sizes, first.sampler.Sizes) {
		return fmt.Errorf("windows have the sizes %v, and in the first source %v: a mixture's batches need one size",
			d.sampler.Sizes, first.sampler.Sizes)
	}
	if err := d.sameViews(first); err != nil {
		return err
	}
	for i, f := range d.fields {
		kind, firstKind := d.table.Fields[i].Kind, first.table.Fields[i].Kind
		alike := kind.IsList() == firstKind.IsList() && f.Kind != spec.ClassField
		numbers := numeric(kind) && numeric(firstKind) && alike
		switch {
		case kind == firstKind || numbers && f.Traits().Casts && f.DType != "native":
		case numbers:
			return fmt.Errorf("field %q is of kind %s, and in the first source %s: a dtype of the field, such as "+
				`"float32", is for both`, f.Name, kind, firstKind)
		default:
			return fmt.Errorf("field %q is of kind %s, and in the first source %s", f.Name, kind, firstKind)
		}
	}
	for i, field := range d.values {
		if field.timeless != first.values[i].timeless {
			return fmt.Errorf("field %q: its layout has no axis t in one source, and one in another", field.name)
		}
		if other := first.values[i]; field.width() != other.width() {
			return fmt.Errorf("field %q has lists of %d numbers, and in the first source of %d", field.name,
				field.width(), other.width())
		}
	}
	for i, field := range d.vectors {
		other := first.vectors[i]
		if field.To != other.To {
			return fmt.Errorf("field %q is of %s, and in the first source of %s", field.Name, field.To, other.To)
		}
		if !slices.Equal(field.Columns, other.Columns) || !slices.Equal(field.More, other.More) {
			return fmt.Errorf("field %q has the columns %q of %v, and in the first source %q of %v", field.Name,
				field.Columns, field.More, other.Columns, other.More)
		}
		if (field.Ragged() || other.Ragged()) && field.Vector.Kind != other.Vector.Kind {
			return fmt.Errorf("field %q is of kind %q, and in the first source of kind %q", field.Name,
				field.Vector.Kind, other.Vector.Kind)
		}
	}
	for i, r := range d.rasters {
		field, raster := r.Tensor(), first.rasters[i].Tensor()
		if field.To != raster.To || len(field.Picked) != len(raster.Picked) || field.TimeSteps != raster.TimeSteps ||
			field.Steps != raster.Steps ||
			field.H != raster.H || field.W != raster.W {
			return fmt.Errorf("field %q is %s, and in the first source %s: a mixture's batches need one shape, "+
				"unless its batches are of one source", field.Name, shapeText(field), shapeText(raster))
		}
		if err := r.SameOrder(first.rasters[i]); err != nil {
			return rows.InField(field.Name, err)
		}
	}
	return nil
}

// notPaths explains an error about a file whose name has no extension, if a member of a field makes it a raster: its
// column may hold other texts.
func (d *dataset) notPaths(err error, columns []int) error {
	var e *fault.Error
	if !errors.As(err, &e) || e.Kind != fault.NotFound || magic.Named(e.File).Class != 0 {
		return err
	}
	for _, i := range columns {
		field := &d.fields[i]
		if member := field.ForRasters(); member != "" && field.Column != "" {
			err = fault.New(fault.NotFound, "column "+field.Column, "%s is given, which is for rasters, and the "+
				"column names no file: there is no %q; without %s the column holds strings, and with kind %q their "+
				"numbers", member, fault.Short(path.Base(e.File)), member, spec.ClassField)
			return fault.WithFile(rows.InField(field.Name, err), d.source.Source)
		}
	}
	return err
}
