package spec

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/chaski-eo/chaski/format/chunk"
)

// Field is one named part of a sample: a raster, a column of numbers or strings, or shapes.
type Field struct {
	// Name is the name of the field and of its tensor in a batch.
	Name string `json:"name" role:"fixed,any"`
	// Kind is the kind of the field: "raster", "number", "text" (strings), "class" (the numbers of strings: see
	// Classes), or "array" for a raster or numbers. Without it the column decides: a column of strings holds rasters if
	// all of its non-empty strings end in .tif, .tiff or .rumi, and strings if none does. A mix is an error, and so is
	// a column that does not hold the given kind. "text" of a column of rasters, or of the files of a directory, gives
	// their paths.
	Kind string `json:"kind,omitempty" hash:"rule" role:"spec,any"`
	// Column is the column of the table that holds the path of the raster, or the values of a
	// metadata column. In a container it is a column of level 0 or, for rasters, the path of ids
	// below the sample ("s2/image"), which may be a sequence of files ("s2/t*.tif"), the steps of an
	// axis t; "PATH@COLUMN" is a column of the row at that path. In an array
	// it is the attribute; in a Zarr group, or in each of a directory or glob of them, the path of an array, or of a
	// group of arrays as bands.
	// Directories, globs and catalogs have the columns "folder", the name of the folder of a file, "name", the name of
	// the file without its ending, "path", and the names of patterns.
	// Default for a catalog, directory or glob: its assets. Default for a
	// container: the column with the name of the field, or the sample itself, or the row of that
	// name below it. Default for an array: the attribute with the name of the field, or the only
	// attribute.
	Column string `json:"column,omitempty" role:"any"`
	// Blob is the column that holds the header blob of the raster (rumi or chunk index). Default:
	// none.
	Blob string `json:"blob,omitempty"`
	// Pattern finds the files of the field by their paths below the source: "masks/{id}.tif", or
	// "{split}/{scene}/*_{id}.tif". Files whose names agree form a sample, and each name is a column. A pattern that
	// lacks a name has one file for all its values. * stands for any text, **/ for any folders. Zarr stores may be
	// followed by an array: "s2/{id}.zarr.zip::bands". Of a table the names are columns, which make the path of each
	// row.
	Pattern string `json:"pattern,omitempty" role:"any"`
	// Scenes are the paths of the datasets of scenes that the field has rasters in, for windows on the ground: labels
	// that lie elsewhere than images, for example. "" is the source of the spec. Column, Pattern and the like apply to
	// each of them. Ground.Cover says where windows lie then. Default: the source.
	Scenes []string `json:"scenes,omitempty" hash:"place" role:"spec"`
	// Match gives the field an axis t in sequences of scenes with the steps of another dataset: "step" takes the
	// scenes that have the step's value in the column of the step, such as its day, and "nearest" the one whose time is
	// nearest to the step's. The field is missing in a step without such a scene. Default: one image without an
	// axis t, as labels are.
	Match string `json:"match,omitempty" role:"spec"`
	// MatchDays is how many days a scene may be from its step with Match "nearest". Default: any number.
	MatchDays float64 `json:"match_days,omitempty" role:"spec"`
	// Columns makes one tensor of rasters that lie in columns of their own, such as the bands of a satellite scene:
	// all bands of the first, then all of the second, and so on. Each is a column as Column says. The rasters of a
	// sample are brought to one grid: see Grid. A sample that lacks one of them is bad. Columns of numbers make one
	// tensor (n k): int64, or float64 if one has floats.
	Columns []string `json:"columns,omitempty" role:"fixed"`
	// Patterns is Columns for files that are found by their paths: each is a pattern as Pattern says.
	Patterns []string `json:"patterns,omitempty" role:"fixed"`
	// Grid is the grid of the rasters of Columns or Patterns: "first" (default) for the first one's, or the size
	// of its pixels in metres, from the upper left corner of the first one. Rasters on this grid, or moved by whole
	// pixels, are copied. Others are resampled as Resample says, on the ground or, without a place or with Ground
	// "ignore", by their sizes. Pixels that a raster does not cover are nodata.
	Grid Grid `json:"grid,omitempty" role:"fixed"`

	// Classes are the strings of Column in the order of their values, with kind "class", its default: the first one is
	// 0. JSON may have integers here, for a column of integers. A sample with another string is bad. Of a column of
	// lists the tensor is (n, k): for each class 1 if the list has it, else 0. Default: all strings of the column in
	// the order of their bytes, or its integers in theirs, of all sources together and also of rows that are not
	// selected, so parts of a split have the same values. The engine fills them in.
	Classes []string `json:"classes,omitempty" role:"fixed,any"`
	// Split separates the strings in a text of Column, such as " " of "clear primary", which is then a list of them.
	// Blanks around them do not count.
	Split string `json:"split,omitempty" role:"fixed,any"`

	// Bands picks bands by their index from 0, in this order. A band may be repeated. Default: all, which must have the
	// same names in all files that name them. JSON may have BandNames here, or "position" for ByPosition.
	Bands []int `json:"bands,omitempty" role:"default,raster"`
	// BandNames picks bands by the descriptions that files give them, in this order, in place of
	// Bands. The engine looks them up in every file, whose header it reads if the catalog does not have them. A file
	// that lacks one is a bad sample. If the files of a container have no descriptions, its collection's are used.
	BandNames []string `json:"band_names,omitempty" role:"default,raster"`
	// ByPosition takes all bands by their order alone, whatever names files give them.
	ByPosition bool `json:"by_position,omitempty" role:"default,raster"`
	// DType is the dtype of the tensor: "native" (as stored), "float32", "float16", "bfloat16",
	// "uint8" or "int64". "int64" is for real rasters; a sample with a number that int64 lacks is bad. "auto" is
	// float32, but as stored for classes, unless they are normalised: these have a palette in their file, or one band
	// of 8 bits with a nodata value other than 0, and no Fill. With kind "number" or "array" numbers may have any real
	// dtype; a row whose number the dtype cannot hold is a bad sample. Default: "native" for rasters, and int64 or
	// float64 for numbers.
	DType string `json:"dtype,omitempty" role:"default,spec,any"`
	// Times picks steps of time by their index from 0, in this order, of files that have them, or the files of a
	// sequence of TACO 3 by their numbers. A step may be repeated; one that a file lacks is padding. Default: all.
	Times []int `json:"times,omitempty" role:"raster,fixed"`
	// Pages says what the pages of TIFFs of several are: "bands", all bands of the first, then all of the second, and
	// so on, or "steps" of time. They must be alike: in size, bands, dtype, compression and nodata. Other formats have
	// no pages. Default: the first page is read, and no other.
	Pages string `json:"pages,omitempty" role:"raster"`
	// Dims names the axes of the field's arrays in their order: of NumPy files by t, b, y and x, as in "y x b", of Zarr
	// and TileDB arrays as the dims of the source do, in place of these. An axis that it leaves out has the length 1.
	// Other files ignore it. Default for NumPy files: "y x", "b y x" or "t b y x"; but "y x b" for pictures, whose
	// last axis has 3 or 4, the others at least 32. Default for lists of samples in cells: "y x", behind t and b if
	// Sizes has them.
	Dims string `json:"dims,omitempty" role:"raster"`
	// Layout is an einops pattern over the axes n b y x, and t for sequences and for files with steps of
	// time. Default "n b y x", or "n t b y x" for sequences, for files with an axis of time, also of one step, and
	// with Times or Pages "steps". A field whose layout has no t has one raster for each sequence of rows; "n" is this
	// layout for numbers and strings. All rows of a sequence must have the same one.
	Layout string `json:"layout,omitempty" role:"default,makes,spec"`
	// Sizes gives the lengths of names in the layout that are not axes. Of lists of samples in cells it gives the
	// lengths of the axes, too, as in {"y": 64, "x": 64}: one missing length follows from the others, and if y and x
	// are missing, they are the sides of a square.
	Sizes map[string]int `json:"sizes,omitempty" role:"default,makes,spec"`
	// LUT is a look-up table: it replaces stored integers by values, before Normalize. JSON may have a list of values,
	// for 0, 1 and so on, or an object of values by number, or by colour as in "255,0,0".
	LUT *LUT `json:"lut,omitempty"`
	// Physical makes physical values of stored pixels, before Normalize: sample*scale + offset, by the scales and
	// offsets that each file has of its bands (SCALE and OFFSET of GDAL in TIFF and rumi files, scale_factor and
	// add_offset in Zarr, HDF5 and NetCDF); bands without them keep their samples. DType must be a float, or "auto".
	// NoData and masks are of stored pixels. Default: true for arrays that say what their values are, as xarray decodes
	// them, if DType and LUT allow it; false for other rasters.
	Physical *bool `json:"physical,omitempty" role:"makes,raster"`
	// Scale and Offset are columns of numbers of the source, for Physical values by row in place of the files' own:
	// one for all bands of a file, or one for each. Of Columns or Patterns it may be one for each raster. JSON
	// may have one name. They make Physical true.
	Scale  Names `json:"scale,omitempty" role:"makes,raster"`
	Offset Names `json:"offset,omitempty" role:"makes,raster"`
	// Normalize scales and shifts pixels to float values. In JSON the name of a method stands for its numbers, of the
	// statistics that the spec has of the field. Default: none.
	Normalize *Normalize `json:"normalize,omitempty" role:"default,makes"`
	// Clip lets dtype "uint8" make 0 of stored numbers below 0, 255 of those above 255, and 0, or Fill, of NaN. Without
	// it and Normalize a sample with such a pixel is bad, unless the pixel is nodata and Fill is given.
	Clip bool `json:"clip,omitempty" role:"default,makes"`
	// Fill is the value of nodata and padding, in units of the result. Pixels that the mask of a
	// file marks as not valid are nodata, too. Default: 0 for padding, and for nodata
	// if DType is a float or the field is normalised; native and integer tensors keep nodata as
	// stored, because 0 may be a class there.
	Fill *Float `json:"fill,omitempty" role:"default,makes"`
	// NoData lists the stored values of missing pixels, in place of the value that a file declares: one list for all
	// bands of the tensor, or a list for each. JSON may have a value or one list. An empty one says that no pixel is
	// missing. If NoData is not set, NaN is missing, too, where the field has Fill or Validity and the file lacks a
	// mask: files of floats need not declare it.
	NoData [][]Float `json:"nodata,omitempty" role:"makes,raster"`
	// Missing says what a sample without a file of Pattern, or with a null in Column, is: "error" (default) refuses the
	// dataset, or makes the sample bad; "fill" keeps the sample: the field is nodata there, or 0, NaN or "", and
	// "there.NAME", uint8 (n), says for each field where it is there. Of windows on the ground the scenes count that
	// have the field. In each dataset one raster field must not lack: its files make the windows.
	Missing string `json:"missing,omitempty" role:"any"`
	// Pad lets a window reach past the edge of the asset, with padding there. Without it windows
	// are moved inside, and assets smaller than the window are an error.
	Pad bool `json:"pad,omitempty" role:"default,makes"`
	// Validity names a second tensor, uint8 and of the same layout: 1 where a pixel is valid, 0
	// where it is nodata, masked or padding. Default: no such tensor.
	Validity string `json:"validity,omitempty" role:"default,raster,spec"`
	// Resample is the method by which a sampler brings windows to their size, and Grid rasters to one grid:
	// "nearest", "bilinear" or "antialias", which is for floats: bilinear with a filter that widens as
	// windows shrink. Default: "bilinear" for tensors of floats, else "nearest". See docs/order.md.
	Resample string `json:"resample,omitempty" role:"raster"`
	// Ground says whether the rasters of this field must lie where the first raster field's lie: "match"
	// (default) makes a sample bad whose rasters have corners more than half a pixel of the coarser one apart, in the
	// CRS of the first; "ignore" goes by their sizes only. Rasters that lack a place are accepted.
	Ground string `json:"ground,omitempty" role:"raster"`
	// Wavelengths are the centre wavelengths of the bands of the tensor in micrometres, which chaski passes on: models
	// that take any sensor are given them beside each batch.
	Wavelengths []float64 `json:"wavelengths,omitempty" hash:"note"`
	// GSD is the ground sampling distance of the field in metres, which chaski passes on like Wavelengths.
	GSD float64 `json:"gsd,omitempty" hash:"note"`
	// Vector makes this a field of shapes, drawn into the window. Such a field has no other members but Name, and
	// comes last in a batch.
	Vector *Vector `json:"vector,omitempty"`
}

// withRole returns the members of a Field with a word in their tag `role`:
//
//	default  Defaults of a spec may have it
//	makes    it makes a raster of a field that has it, where there are defaults
//	raster   only rasters have it
//	any      metadata columns have it, too
//	spec     sources do not override it, since all have one tensor
//	fixed    it has no effect in the overrides of a source
func withRole(role string) (names []string) {
	for _, m := range membersOf(reflect.TypeFor[Field]()) {
		if slices.Contains(m.roles, role) {
			names = append(names, m.name)
		}
	}
	return names
}

// largest are the largest finite numbers of the dtypes of floats. bfloat16 has 8 bits of precision.
var largest = map[string]float64{"float32": math.MaxFloat32, Auto: math.MaxFloat32, "float16": 65504,
	"bfloat16": 0x1.fep127}

// maxNoData bounds the values of NoData, since each sample is compared with all of them.
const maxNoData = 16

// MissNaN reports whether NaN is missing where no file says so.
func (f *Field) MissNaN() bool {
	return (f.Fill != nil || f.Validity != "") && f.NoData == nil
}

// MissingFill is the value of Field.Missing beside MissingError.
const MissingFill = "fill"

// MayLack reports whether samples stay that lack the field.
func (f *Field) MayLack() bool { return f.Missing == MissingFill }

// validateMissing checks what samples and pixels that are missing are and become.
func (f *Field) validateMissing() error {
	if f.Missing != "" && f.Missing != MissingError && f.Missing != MissingFill {
		return wrong("missing", f.Missing, "it must be %q or %q", MissingError, MissingFill)
	}
	if f.Fill != nil {
		fill := float64(*f.Fill)
		switch limit, limited := largest[f.DType]; {
		case math.IsNaN(fill) && (f.DType == "uint8" || f.DType == "int64"):
			return fmt.Errorf("fill is NaN, which %s does not have", f.DType)
		case limited && math.Abs(fill) > limit && !math.IsInf(fill, 0):
			return fmt.Errorf("fill is %v, over what %s has", fill, f.DType)
		}
	}
	tooMany := func(values []Float) bool { return len(values) > maxNoData }
	if len(f.NoData) > chunk.MaxBands || slices.ContainsFunc(f.NoData, tooMany) {
		return fmt.Errorf("nodata has too many values: at most %d for each of %d bands", maxNoData, chunk.MaxBands)
	}
	return nil
}

// Default layouts: without an axis of time, and with one.
const (
	DefaultLayout = "n b y x"
	TimeLayout    = "n t b y x"
)

// RowLayout is the layout of numbers and strings that a sequence has once, and not for each step.
const RowLayout = "n"

// Timeless reports whether the field has one value for each sequence of rows, as its layout has no axis t.
func (f *Field) Timeless() bool {
	words := strings.FieldsFunc(f.Layout, func(r rune) bool { return !unicode.IsLetter(r) })
	return f.Layout != "" && !slices.Contains(words, "t") && !strings.Contains(f.Layout, "...")
}

// normalize does it for one field.
func (f *Field) normalize() error {
	if f.LUT != nil && f.Normalize.byStats() {
		return errors.New("normalize: statistics are of the stored pixels, and lut gives others: give mean and std")
	}
	n, err := f.Normalize.numbers(f)
	if err == nil {
		f.Normalize = n
	}
	return within("normalize", err)
}

// members returns the names of the tensors of a field. A name is empty if the field lacks the
// tensor.
func (f *Field) members() []string {
	if f.Vector != nil {
		return f.Vector.members(f.Name)
	}
	return []string{f.Name, f.Validity}
}

// Validate checks a field with defaults as far as that is possible without its column. The error
// names the member, but not the field.
func (f Field) Validate() error {
	switch {
	case f.Name == "":
		return errors.New("has no name")
	case f.Vector != nil:
		return f.Vector.validate(&f)
	case f.Column != "" && f.Pattern != "":
		return errors.New("both column and pattern are given")
	case f.Scenes != nil && len(f.Scenes) == 0:
		return errors.New("scenes is empty: it must have a path, or \"\" for the source")
	case len(f.Bands) > chunk.MaxBands:
		return fmt.Errorf("bands has %d indices: it must have at most %d", len(f.Bands), chunk.MaxBands)
	}
	if f.BandNames != nil && (f.Bands != nil || len(f.BandNames) == 0 ||
		len(f.BandNames) > chunk.MaxBands || slices.Contains(f.BandNames, "")) {
		if len(f.BandNames) == 0 {
			return errors.New("bands is empty: give at least one band, by index (bands) or name (band_names)")
		}
		return wrong("band_names", f.BandNames, "it must have names, and no bands beside it")
	}
	if f.ByPosition && (f.Bands != nil || f.BandNames != nil) {
		return errors.New("by_position is true, and bands are given: it is for all bands")
	}
	for _, b := range f.Bands {
		if b < 0 || b >= chunk.MaxBands {
			return fmt.Errorf("bands has %d: indices must be from 0 to %d", b, chunk.MaxBands-1)
		}
	}
	if len(f.Times) > chunk.MaxBands {
		return fmt.Errorf("times has %d indices: it must have at most %d", len(f.Times), chunk.MaxBands)
	}
	for _, t := range f.Times {
		if t < 0 || t >= chunk.MaxPlanes {
			return fmt.Errorf("times has %d: indices must be from 0 to %d", t, chunk.MaxPlanes-1)
		}
	}
	if f.GSD < 0 || math.IsInf(f.GSD, 1) {
		return wrong("gsd", f.GSD, "it must be a number of metres above 0")
	}
	wrongLength := func(w float64) bool { return !(w > 0) || math.IsInf(w, 1) }
	if n := len(f.Wavelengths); n == 0 && f.Wavelengths != nil || n > chunk.MaxBands ||
		slices.ContainsFunc(f.Wavelengths, wrongLength) {
		return fmt.Errorf("wavelengths has %d numbers: they must be above 0, in micrometres, 1 to %d of them", n,
			chunk.MaxBands)
	}
	if err := cmp.Or(f.validateKind(), f.validateStack()); err != nil {
		return err
	}
	if err := f.validateMissing(); err != nil {
		return err
	}
	if f.Clip && f.DType != "uint8" {
		return fmt.Errorf("clip is true, and dtype is %q: it is for dtype \"uint8\"", f.DType)
	}
	if !slices.Contains([]string{"", Nearest, Bilinear, Antialias}, f.Resample) {
		return wrong("resample", f.Resample, "it must be %q, %q or %q", Nearest, Bilinear, Antialias)
	}
	if !slices.Contains([]string{"", MatchGround, IgnoreGround}, f.Ground) {
		return wrong("ground", f.Ground, "it must be %q or %q", MatchGround, IgnoreGround)
	}
	if !slices.Contains([]string{chunk.FirstPage, chunk.BandsPages, chunk.StepsPages}, f.Pages) {
		return wrong("pages", f.Pages, "it must be %q or %q", chunk.BandsPages, chunk.StepsPages)
	}
	if err := cmp.Or(checkDims(f.Dims), f.normalize()); err != nil {
		return err
	}
	if err := f.LUT.validate(f.Stacked()); err != nil {
		return within("lut", err)
	}
	if err := f.validatePhysical(); err != nil {
		return err
	}
	if f.LUT != nil && f.Resample != "" && f.Resample != Nearest {
		return fmt.Errorf("resample is %q: lut is given, which takes the nearest pixels: leave resample out",
			f.Resample)
	}
	return f.Normalize.Validate(f.DType)
}

// Axes returns what the field says of the axes of its files.
func (f *Field) Axes() chunk.Axes {
	axes := chunk.Axes{Pages: f.Pages, Dims: f.Dims}
	for i, name := range chunk.AxisNames {
		axes.Lengths[i] = f.Sizes[string(name)]
	}
	return axes
}

// IsPhysical reports whether the spec gives the field physical values: Physical is true, or columns have scales or
// offsets.
func (f *Field) IsPhysical() bool {
	return f.Physical != nil && *f.Physical || f.Scale != nil || f.Offset != nil
}

// setPhysical makes Physical true where columns have scales or offsets.
func (f *Field) setPhysical() {
	if f.IsPhysical() {
		f.Physical = new(true)
	}
}

// MayBePhysical reports whether physical values of arrays are the default of the field.
func (f *Field) MayBePhysical() bool {
	return f.Physical == nil && f.LUT == nil && slices.Contains(floatDTypes, f.DType)
}

// validatePhysical checks that the field can have physical values, if it does.
func (f *Field) validatePhysical() error {
	for _, list := range []Names{f.Scale, f.Offset} {
		if list != nil && len(list) == 0 || len(list) > chunk.MaxBands || slices.Contains(list, "") {
			return fmt.Errorf("scale or offset is %q: it must be the name of a column, or one for each band", list)
		}
	}
	switch {
	case f.IsPhysical() && !slices.Contains(floatDTypes, f.DType):
		return fmt.Errorf("physical is true, and dtype is %q: it must be one of %s", f.DType,
			strings.Join(floatDTypes, ", "))
	case f.IsPhysical() && f.LUT != nil:
		return errors.New("physical is true, and lut is given: lut replaces stored pixels")
	}
	return nil
}

// floatDTypes are the dtypes of floats.
var floatDTypes = []string{Auto, "float32", "float16", "bfloat16"}

// Auto is the dtype float32, but native for classes that are not normalised: see Field.DType.
const Auto = "auto"

// RasterDTypes are the dtypes that tensors of rasters can have.
var RasterDTypes = []string{"native", "float32", "float16", "bfloat16", "uint8", "int64", Auto}

// rasterMember returns the name of the first member that is set and that only rasters have, or "".
// It skips dtype, because numbers have one, too.
func (f *Field) rasterMember() string {
	others := withRole("any")
	if f.Layout == RowLayout {
		others = append(others, "layout")
	}
	if f.Kind == NumberField {
		others = append(others, "columns")
	}
	return bandsOr(firstMember(f, func(name string) bool { return !slices.Contains(others, name) }))
}

// bandsOr returns "bands", which JSON may have for all members that pick bands, in place of one of these.
func bandsOr(name string) string {
	if name == "band_names" || name == "by_position" {
		return "bands"
	}
	return name
}

// RasterOnly returns the name of a member that is set and that is for rasters alone, or "". Layout, normalize, fill and
// pad are left out, because they may come from settings for all fields.
func (f *Field) RasterOnly() string {
	names := withRole("raster")
	return bandsOr(firstMember(f, func(name string) bool { return slices.Contains(names, name) }))
}

// ForRasters returns RasterOnly or, without such a member, the one of the others that made a raster of the field.
func (f *Field) ForRasters() string {
	makes := withRole("makes")
	return cmp.Or(f.RasterOnly(), firstMember(f, func(name string) bool {
		return slices.Contains(makes, name) && (name != "layout" || f.Layout != RowLayout)
	}))
}

// Whether the rasters of a field must lie where the first raster field's lie.
const (
	MatchGround  = "match"
	IgnoreGround = "ignore"
)

// Methods of resampling.
const (
	Nearest  = "nearest"
	Bilinear = "bilinear"
	// Antialias is Bilinear with a filter that widens as windows shrink, so every pixel counts: the filter of
	// Pillow, and of torchvision with antialias=True. Only tensors of floats can use it.
	Antialias = "antialias"
)

// checkDims checks the names in Spec.Dims. Whether the array has these dimensions shows when it is
// opened.
func checkDims(dims string) error {
	names := strings.Fields(dims)
	unknown := func(name string) bool { return !slices.Contains([]string{"n", "t", "b", "y", "x"}, name) }
	if _, twice := repeated(names); twice || slices.ContainsFunc(names, unknown) {
		return fmt.Errorf("dims %q: dimensions are called n, t, b, y and x, each once", dims)
	}
	return nil
}
