package loader

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/kernel"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/store/catalog"
)

// remarkKind is a remark on raster fields. A new one is an entry in remarkKinds.
type remarkKind struct {
	says string
	// field returns the field's part of the remark, such as its name, or "" if the remark does not hold for it.
	field func(field *Field, first *catalog.Asset, count catalog.StepCount) string
	// matters says whether anything depends on it; nil if it always does.
	matters func(e *Engine, d *dataset) bool
}

var remarkKinds = []remarkKind{
	{says: "the last band of the files is alpha: it is their mask, and no band of the tensor unless bands picks it, " +
		"as data", field: opaque},
	{says: "arrays of these shapes are taken for pictures (y, x, b): dims of a field says otherwise, as " +
		`dims="b y x"`, field: picture},
	{says: "no pixel equals these values of nodata, which the files' dtype does not have", field: unheld},
	{says: "nodata of one band of 8 bits is kept, as of labels: fill of the field says what becomes of it",
		field: label(true)},
	{says: "nodata of one band of integers becomes 0, which is a class in labels: dtype \"int64\" keeps it, and " +
		"\"float32\" says that the field is an image", field: label(false),
		matters: func(_ *Engine, d *dataset) bool { return len(d.rasters) > 1 }},
	{says: "physical is true, and the first file has no scales and offsets, as SCALE and OFFSET of GDAL: its values " +
		"are as stored. Columns with them, also raster:bands of STAC, are scale and offset of the field",
		field: unscaled},
	{says: "the files have scales and offsets: pixels are as stored, and physical=True makes physical values of them",
		field: scaled},
	{says: "dims is given, which is of arrays: files of other formats have their own axes", field: undimmed},
	{says: "the files have nodata values of all bands together (NODATA_VALUES, or a transparent colour): such " +
		"pixels are read as valid ones; 'gdal_translate -mask mask IN OUT.tif' makes a mask of them", field: joint},
	{says: "times picks steps that the first file does not have: steps that a file lacks are padding, and " +
		`"steps" of a batch is 0 there`, field: lacking},
	{says: "the catalog has bounds without transforms: rasters are taken to have north up; 'chaski index' makes a " +
		"catalog with transforms", field: boxed, matters: func(e *Engine, d *dataset) bool {
		return e.spec.Geo || len(d.rasters) > 1 || d.kind.Ground
	}},
}

// add notes what there is to say of a field and its first asset. count is as rows.CheckTimes returned it.
func (r *remarks) add(field *Field, first *catalog.Asset, count catalog.StepCount) {
	if r.of == nil {
		r.of = make([][]string, len(remarkKinds))
	}
	for i, kind := range remarkKinds {
		if remark := kind.field(field, first, count); remark != "" {
			r.of[i] = append(r.of[i], remark)
		}
	}
	if r.unplaced == nil {
		r.unplaced = first.Fault(first.Unplaced("geo needs"))
	}
}

// log logs the remarks on d.
func (r *remarks) log(e *Engine, d *dataset) {
	log := e.options.Logger.With(slog.String("source", d.source.Source))
	if len(r.placeless) > 0 {
		log.Info("rasters without a place on the ground are paired by their sizes alone", "fields", r.placeless)
	}
	for i, fields := range r.of {
		if kind := &remarkKinds[i]; len(fields) > 0 && (kind.matters == nil || kind.matters(e, d)) {
			log.Warn(kind.says, "fields", fields)
		}
	}
	if len(r.partial) > 0 {
		e.warnPartial(d, r.partial...)
	}
	if e.spec.Geo && r.unplaced != nil {
		log.Warn("members of geo are NaN where the place of a raster is not known", "first", fault.Line(r.unplaced))
	}
}

func opaque(field *Field, first *catalog.Asset, _ catalog.StepCount) string {
	if first.Index.Alpha && field.Bands == nil && field.BandNames == nil {
		return field.Name
	}
	return ""
}

func picture(field *Field, first *catalog.Asset, _ catalog.StepCount) string {
	if !first.TakenForPicture() {
		return ""
	}
	x := first.Index
	return fmt.Sprintf("%s (%d, %d, %d)", field.Name, x.Height, x.Width, x.Bands)
}

func unheld(field *Field, first *catalog.Asset, _ catalog.StepCount) string {
	num := first.Index.DType.Num()
	if !first.Index.DType.Integer() || num == kernel.None {
		return ""
	}
	var said []string
	for _, value := range slices.Concat(field.NoData...) {
		if _, ok := kernel.IntBits(num, float64(value)); !ok {
			said = append(said, fmt.Sprintf("%s (%v in %s)", field.Name, float64(value), first.Index.DType))
		}
	}
	return strings.Join(said, ", ")
}

func unscaled(field *Field, first *catalog.Asset, _ catalog.StepCount) string {
	scaled := func(a catalog.Asset) bool { return a.Index.Physical != nil }
	if !field.IsPhysical() || field.Scale != nil || field.Offset != nil {
		return ""
	}
	if scaled(*first) || slices.ContainsFunc(first.Parts, scaled) {
		return ""
	}
	return field.Name
}

// scaled returns the name of a field if its files have scales that the spec leaves open, and so chaski does not apply
// them.
func scaled(field *Field, first *catalog.Asset, _ catalog.StepCount) string {
	if !field.MayBePhysical() || field.Normalize != nil || first.Index.Physical == nil {
		return ""
	}
	return field.Name
}

func undimmed(field *Field, first *catalog.Asset, _ catalog.StepCount) string {
	if first.Parts != nil {
		first = &first.Parts[0]
	}
	file := magic.Named(first.URI).Class
	if field.Dims == "" || first.Axes.Dims != "" || first.Index.OfArray() ||
		first.Member == "" && file != magic.Parquet && !file.Pixels() {
		return ""
	}
	return field.Name
}

// label returns what names a field that may be labels, of samples of 8 bits (small) or of more.
func label(small bool) func(*Field, *catalog.Asset, catalog.StepCount) string {
	return func(field *Field, first *catalog.Asset, _ catalog.StepCount) string {
		nodata, ok := pixels.LabelNoData(field, first.Index)
		if !ok || small != (first.Index.DType.Size() == 1) {
			return ""
		}
		return fmt.Sprintf("%s (%v)", field.Name, nodata)
	}
}

func joint(field *Field, first *catalog.Asset, _ catalog.StepCount) string {
	if x := first.Index; x.Joint != "" && x.Mask == nil && field.NoData == nil {
		return field.Name + " (" + x.Joint + ")"
	}
	return ""
}

func lacking(field *Field, first *catalog.Asset, count catalog.StepCount) string {
	n := first.Index.Steps()
	if len(field.Times) == 0 || slices.Max(field.Times) < n {
		return ""
	}
	if count.Of > 0 {
		return fmt.Sprintf("%s (%d of the first file; %d of %d files lack some)", field.Name, n, count.Lacking,
			count.Of)
	}
	return fmt.Sprintf("%s (%d of the first file)", field.Name, n)
}

func boxed(field *Field, first *catalog.Asset, _ catalog.StepCount) string {
	if first.Place != nil && first.Place.Boxed {
		return field.Name
	}
	return ""
}
