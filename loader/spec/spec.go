package spec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
)

// maxSamples bounds N, so that positions of any ticket stay in int64.
const maxSamples = 1 << 62

// SpecVersion is the version of Spec's JSON.
const SpecVersion = 1

// Spec says which batches a dataset gives. Together with the dataset's fingerprint it determines
// every byte of every batch; how many workers, ranks or servers there are does not.
type Spec struct {
	// Version is SpecVersion.
	Version int `json:"version"`
	// Source is a catalog (.parquet), a table of samples (.csv, .parquet), a container (package taco), a
	// directory, a glob, one file, or the folder of a TileDB array. It is not part of the spec hash: data
	// may move.
	Source string `json:"source"`
	Container
	// Dims says what each dimension of an array is, in their order: n, b, y or x, of which n and b may be
	// missing. Default: the dimensions' own names.
	Dims string `json:"dims,omitempty"`
	// Timestamp opens an array at a time: the fragments that were written from the first to the second, in milliseconds
	// since 1970, both included, are those that there are. Default: all.
	Timestamp *Timestamp `json:"timestamp,omitempty"`
	// Fields of a sample, in the order of the batch. Default: one raster field "image".
	Fields []Field `json:"fields"`
	// AllFields takes the settings of Fields, of which there is one, for every field of a catalog of pairs. Of another dataset
	// it does nothing. Without Fields, Open and OpenTable set it. The spec of an engine has the fields that came of it.
	AllFields bool `json:"all_fields,omitempty"`
	// BatchSize is G, the samples of a global batch, over all ranks.
	BatchSize int `json:"batch_size"`
	// Shuffle gives every epoch an order of its own; without it samples come in dataset order.
	Shuffle bool `json:"shuffle"`
	// Seed of the order and the windows.
	Seed uint64 `json:"seed"`
	// DropLast leaves out the last, short global batch of an epoch.
	DropLast bool `json:"drop_last,omitempty"`
	// Take is the samples of an epoch, in place of as many as the dataset has. The next epoch goes on where this one ended: every
	// sample comes once before any comes again. 0: all.
	Take int64 `json:"take,omitempty"`
	// Sampler says which window of a sample is read. Default: the whole chip.
	Sampler Sampler `json:"sampler"`
	// BadSamples is the policy for samples that cannot be read: "error" (default), "skip", "replace" or
	// "fill".
	BadSamples string `json:"bad_samples"`
	// BadLimit ends an epoch with an error once a loader met more bad samples of it; nil for no limit.
	BadLimit *BadLimit `json:"bad_limit,omitempty"`
	// Augment is the set of flips and rotations that every sample gets one of: "flip_x", "flip_y", "flips",
	// "rotations" or "d4". Default: none.
	Augment string `json:"augment,omitempty"`
	// Windows adds the tensor WindowMember to batches: which window of its asset each row is.
	Windows bool `json:"windows,omitempty"`
	// Subset says which rows of Source count and how they are grouped.
	Subset
	// Mixture draws from several sources in place of Source.
	Mixture
}

// Timestamp is a range of time in milliseconds since 1970, both ends included.
type Timestamp [2]uint64

// UnmarshalJSON reads two numbers; encoding/json would pass over a third.
func (t *Timestamp) UnmarshalJSON(b []byte) error {
	var all []uint64
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	if len(all) != len(t) {
		return fmt.Errorf("timestamp: %d numbers, not two", len(all))
	}
	copy(t[:], all)
	return nil
}

func (t *Timestamp) validate() error {
	if t != nil && (t[0] > t[1] || t[1] == 0) {
		return fmt.Errorf("timestamp: from %d to %d", t[0], t[1])
	}
	return nil
}

// BadLimit bounds the bad samples of an epoch that one loader, which has the rows of one rank, may meet. See Loader.Next
// and BadCounter.
type BadLimit struct {
	// Count is the number of bad rows allowed; nil for any.
	Count *int64 `json:"count,omitempty"`
	// Rate is the share of the rank's rows of a whole epoch that may be bad; nil for any.
	Rate *float64 `json:"rate,omitempty"`
}

// Field is one named member of a sample.
type Field struct {
	Name string `json:"name"`
	// Kind says what the field is: RasterField, NumberField, TextField, or ArrayField for either of the first two. Without
	// it, what the column holds decides, and of a column of texts whether they end in .tif, .tiff or .rumi: all of them,
	// or none, but for those that are empty. It is an error where the column does not hold that.
	Kind string `json:"kind,omitempty"`
	// Column is the table's column that holds the raster's path, or the value that rides along. Of a
	// container it is a column of level 0 or, of a raster, the path of ids below the sample ("s2/image");
	// "PATH@COLUMN" is a column of what lies at a path. Of an array it is the attribute. Default for a catalog,
	// directory or glob: its assets; for a container: the column of the field's name, or the sample itself,
	// or what lies below it under that name; for an array: the attribute of the field's name, or its only one.
	Column string `json:"column,omitempty"`
	// Blob is the column that holds the raster's header blob (rumi or chunk index), if any.
	Blob string `json:"blob,omitempty"`
	// Pattern pairs files by what {id} stands for in their paths below the source: "masks/{id}.tif".
	Pattern string `json:"pattern,omitempty"`

	// Bands picks bands by zero-based index, in this order; repeats are fine. Default: all.
	Bands []int `json:"bands,omitempty"`
	// BandNames picks bands by what files call them, in this order, in place of Bands: see BandNames, the function. They
	// are looked up in every file, which takes a look at its directory, and a file that lacks one is a bad sample. Of a
	// container whose files name none, they are those of its collection.
	BandNames []string `json:"band_names,omitempty"`
	// DType of the tensor: "native" (default, as stored), "float32", "float16", "bfloat16", "uint8" or, of rasters
	// of integers other than uint64, "int64". With NumberField or ArrayField it is that of numbers, too, which may
	// have any real dtype of package chunk; a row with a number that the dtype has not is bad. Otherwise numbers are
	// int64 or float64.
	DType string `json:"dtype,omitempty"`
	// Layout is an einops pattern over the axes n b y x. Default "n b y x".
	Layout string `json:"layout,omitempty"`
	// Sizes gives lengths to names of the layout that are not axes.
	Sizes map[string]int `json:"sizes,omitempty"`
	// Normalize maps samples to float values. Default: none.
	Normalize *Normalize `json:"normalize,omitempty"`
	// Fill is the element for nodata samples and padding, in units of the result. Pixels that a file's
	// mask takes out (chunk.Index.Mask) are nodata like any other. Without Fill, padding is 0; nodata samples
	// are 0 where DType is a float or the field is normalised, and keep their value elsewhere: in native and
	// integer tensors, where 0 may be a class.
	Fill *Float `json:"fill,omitempty"`
	// Pad lets a window reach past the edge of the asset, filled; without it, windows are moved
	// inside and assets smaller than the window are an error.
	Pad bool `json:"pad,omitempty"`
	// Validity names a further uint8 tensor of the same layout: 1 where a sample is valid, 0 where it
	// is nodata, masked or padding.
	Validity string `json:"validity,omitempty"`
	// Resample says how windows of a sampler that resamples come to their size: "nearest", "bilinear" or
	// "antialias". Default: bilinear where the tensor is of floats, else nearest. See docs/order.md.
	Resample string `json:"resample,omitempty"`
	// Points makes the field one of points, with Name alone besides. Such fields come last in a batch.
	Points *Points `json:"points,omitempty"`
}

// What a field is.
const (
	RasterField = "raster"
	NumberField = "number"
	TextField   = "text" // of a column of rasters, or of a folder: the path, as the dataset has it
	ArrayField  = "array"
)

// WantedKinds are what a column of texts must be.
var WantedKinds = map[string]catalog.Kind{RasterField: catalog.Raster, TextField: catalog.Text}

// Normalize is y = f32(f32(x*Scale) + Offset), then clipped. Scale and Offset have one value a
// picked band or one for all; they are rounded to float32 once.
type Normalize struct {
	Scale  []float64 `json:"scale"`
	Offset []float64 `json:"offset"`
	// Clip bounds the result to [Clip[0], Clip[1]].
	Clip *[2]Float `json:"clip,omitempty"`
}

// Sampler kinds.
const (
	WholeChip      = "chip"
	RandomWindow   = "random_window"
	GridWindow     = "grid"
	ResizedWindow  = "resized_window"
	WeightedWindow = "weighted_window"
	TileWindow     = "tile_window"
)

// Sampler says which window of a sample is read. docs/order.md defines each kind exactly.
type Sampler struct {
	// Kind is WholeChip (default) or one of the others.
	Kind string `json:"kind"`
	// Height and Width of the window in pixels of the first raster field; with ResizedWindow those of the
	// result.
	Height int `json:"height,omitempty"`
	Width  int `json:"width,omitempty"`
	// PerAsset is the number of samples an epoch takes from each asset. Default 1. GridWindow has as many
	// as there are. With TileWindow it is the number of visits; default: as many as an asset has tiles.
	PerAsset int `json:"per_asset,omitempty"`

	// StrideY and StrideX are the steps of GridWindow in pixels. Default: the window's size, no overlap.
	StrideY int `json:"stride_y,omitempty"`
	StrideX int `json:"stride_x,omitempty"`
	// Pad leaves the last windows of a grid at their stride, past the edge; every raster field must pad.
	// Otherwise they are moved inside.
	Pad bool `json:"pad,omitempty"`

	// ScaleMin and ScaleMax bound the area of a ResizedWindow, relative to Height by Width pixels or, with
	// OfAsset, to the asset. Default 0.5 to 2, and 0.08 to 1.
	ScaleMin float64 `json:"scale_min,omitempty"`
	ScaleMax float64 `json:"scale_max,omitempty"`
	// Ratio bounds the aspect of a ResizedWindow, relative to that of the result, to 1/Ratio up to Ratio.
	// Default 4/3.
	Ratio   float64 `json:"ratio,omitempty"`
	OfAsset bool    `json:"of_asset,omitempty"`

	// Weights is the file of weights of a WeightedWindow. Its content, not its path, is part of the
	// spec hash.
	Weights string `json:"weights,omitempty"`

	// TileHeight and TileWidth are the tiles of TileWindow in pixels of the first raster field. Default: the
	// chunks of its first asset.
	TileHeight int `json:"tile_height,omitempty"`
	TileWidth  int `json:"tile_width,omitempty"`
	// PerVisit is the windows that a visit of TileWindow takes of its tile. Default 16.
	PerVisit int `json:"per_visit,omitempty"`
	// Pool is the visits whose windows are shuffled together. Default: as many as PoolBytes has room for.
	Pool int `json:"pool,omitempty"`
	// PoolBytes is the memory for the decoded tiles of a pool. Default DefaultPoolBytes.
	PoolBytes int64 `json:"pool_bytes,omitempty"`
}

// DefaultPoolBytes is the default of Sampler.PoolBytes.
const DefaultPoolBytes = 64 << 20

// Bad-sample policies.
const (
	BadError   = "error"   // ends the run
	BadSkip    = "skip"    // the row is not valid
	BadReplace = "replace" // another sample stands in its place
	BadFill    = "fill"    // the row is valid, and missing everywhere; of a sequence, its bad steps are
)

// Limits of a spec.
const (
	maxFields    = 64
	maxBatch     = 1 << 20
	maxPerAsset  = 1 << 20
	MaxWindow    = 1 << 16
	maxSpecBytes = 1 << 20
)

// ParseSpec reads a spec's JSON, fills in defaults and checks it. Unknown members are an error.
func ParseSpec(b []byte) (Spec, error) {
	var s Spec
	if len(b) > maxSpecBytes {
		return s, fmt.Errorf("spec: %d bytes, at most %d", len(b), maxSpecBytes)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return s, fmt.Errorf("spec: %w", ofType(err))
	}
	if _, err := d.Token(); err != io.EOF {
		return s, errors.New("spec: more follows the JSON value")
	}
	s = s.WithDefaults()
	return s, s.Validate()
}

// ofType says of a JSON value of the wrong type which member it is and what that takes, in words of JSON.
func ofType(err error) error {
	var e *json.UnmarshalTypeError
	if !errors.As(err, &e) || e.Field == "" {
		return err
	}
	want := "an object"
	switch k := e.Type.Kind(); {
	case k == reflect.String:
		want = "a string"
	case k == reflect.Bool:
		want = "true or false"
	case k == reflect.Slice, k == reflect.Array:
		want = "an array"
	case k == reflect.Float32, k == reflect.Float64:
		want = "a number"
	case e.Type.Size() > 0 && k >= reflect.Int && k <= reflect.Uintptr:
		want = fmt.Sprintf("a whole number of %d bits", 8*e.Type.Size())
	}
	return fmt.Errorf("%s is of JSON's type %s, not %s", e.Field, e.Value, want)
}

// WithDefaults returns the spec with every default filled in. It does not change s.
func (s Spec) WithDefaults() Spec {
	if s.Version == 0 {
		s.Version = SpecVersion
	}
	s.Sampler = s.Sampler.withDefaults()
	s.Subset = s.Subset.WithDefaults()
	s.Mixture = s.Mixture.withDefaults()
	if s.BadSamples == "" {
		s.BadSamples = BadError
	}
	if len(s.Fields) == 0 {
		s.Fields = []Field{{Name: "image"}}
	}
	s.Fields = slices.Clone(s.Fields)
	pointsLast(s.Fields)
	for i := range RowFields(s.Fields) {
		f := &s.Fields[i]
		if f.DType == "" {
			f.DType = "native"
		}
		if f.Layout == "" && f.Kind != NumberField && f.Kind != TextField {
			f.Layout = "n b y x"
			if s.inTime() {
				f.Layout = "n t b y x"
			}
		}
	}
	return s
}

// Validate checks what can be checked without the dataset. The error names the member.
func (s Spec) Validate() error {
	switch {
	case s.Version != SpecVersion:
		return fmt.Errorf("spec: version %d; this is version %d", s.Version, SpecVersion)
	case s.Source == "" && len(s.Sources) == 0:
		return errors.New("spec: source is empty")
	case s.Source != "" && len(s.Sources) > 0:
		return errors.New("spec: both source and sources are given")
	case s.BatchSize < 1 || s.BatchSize > maxBatch:
		return fmt.Errorf("spec: batch_size is %d: it must be from 1 to %d", s.BatchSize, maxBatch)
	case !slices.Contains([]string{BadError, BadSkip, BadReplace, BadFill}, s.BadSamples):
		return fmt.Errorf("spec: bad_samples is %q: it must be %q, %q, %q or %q", s.BadSamples, BadError, BadSkip, BadReplace, BadFill)
	case s.Take < 0 || s.Take > maxSamples:
		return fmt.Errorf("spec: take is %d: it must be from 1 to %d samples, or 0 for all", s.Take, int64(maxSamples))
	case s.AllFields && len(s.Fields) != 1:
		return fmt.Errorf("spec: all_fields with %d fields: it takes the settings of one", len(s.Fields))
	case len(s.Fields) > maxFields:
		return fmt.Errorf("spec: %d fields, at most %d", len(s.Fields), maxFields)
	}
	if err := s.Sampler.validate(); err != nil {
		return fmt.Errorf("spec: sampler: %w", err)
	}
	if _, err := s.Elements(); err != nil {
		return err
	}
	if err := s.BadLimit.validate(); err != nil {
		return err
	}
	if err := s.validateSources(); err != nil {
		return fmt.Errorf("spec: %w", err)
	}
	names := map[string]bool{"valid": true, "position": true, "sample": true} // what a batch has anyway
	for _, n := range s.extras() {
		if names[n] {
			return fmt.Errorf("spec: two members of a batch are called %q", n)
		}
		names[n] = true
	}
	if n := len(RowFields(s.Fields)); n < len(s.Fields) && (n == 0 || s.inTime()) {
		return errors.New("spec: points lie in the windows of a raster field, and sequences have none")
	}
	for _, f := range s.Fields {
		if err := f.Validate(); err != nil {
			return fmt.Errorf("spec: field %q: %w", f.Name, err)
		}
		for _, n := range f.members() {
			if n != "" && names[n] {
				return fmt.Errorf("spec: two members of a batch are called %q", n)
			}
			names[n] = true
		}
	}
	return nil
}

func (s Sampler) withDefaults() Sampler {
	if s.Kind == "" {
		s.Kind = WholeChip
	}
	if s.PerAsset == 0 && s.Kind != GridWindow && s.Kind != TileWindow {
		s.PerAsset = 1
	}
	switch s.Kind {
	case GridWindow:
		s.StrideY, s.StrideX = cmp.Or(s.StrideY, s.Height), cmp.Or(s.StrideX, s.Width)
	case ResizedWindow:
		if s.ScaleMin == 0 && s.ScaleMax == 0 {
			s.ScaleMin, s.ScaleMax = 0.5, 2
			if s.OfAsset {
				s.ScaleMin, s.ScaleMax = 0.08, 1
			}
		}
		if s.Ratio == 0 {
			s.Ratio = 4. / 3
		}
	case TileWindow:
		s.PerVisit = cmp.Or(s.PerVisit, 16)
		if s.Pool == 0 {
			s.PoolBytes = cmp.Or(s.PoolBytes, DefaultPoolBytes)
		}
	}
	return s
}

func (s Sampler) validate() error {
	if s.Kind == WholeChip {
		if s.PerAsset != 1 {
			return fmt.Errorf("per_asset is %d: it needs windows, and the kind is %q", s.PerAsset, WholeChip)
		}
		if s.Height < 0 || s.Width < 0 || s.Height > MaxWindow || s.Width > MaxWindow || (s.Height == 0) != (s.Width == 0) {
			return fmt.Errorf("the size is %d by %d pixels: both sides must be from 1 to %d", s.Height, s.Width, MaxWindow)
		}
		return s.onlyOf()
	}
	kinds := []string{RandomWindow, GridWindow, ResizedWindow, WeightedWindow, TileWindow}
	least := 1
	switch {
	case !slices.Contains(kinds, s.Kind):
		return fmt.Errorf("kind is %q: it must be %q or one of %q", s.Kind, WholeChip, kinds)
	case s.Height < 1 || s.Width < 1 || s.Height > MaxWindow || s.Width > MaxWindow:
		return fmt.Errorf("the window is %d by %d pixels: both sides must be from 1 to %d", s.Height, s.Width, MaxWindow)
	case s.Kind == GridWindow && s.PerAsset != 0:
		return errors.New("per_asset is for random windows: a grid has as many as there are")
	case s.Kind == GridWindow || s.Kind == TileWindow:
		least = 0
	}
	if s.PerAsset < least || s.PerAsset > maxPerAsset {
		return fmt.Errorf("per_asset is %d: it must be from %d to %d", s.PerAsset, least, maxPerAsset)
	}
	if s.Kind == WeightedWindow && s.Weights == "" {
		return errors.New("weighted_window needs weights, a file of 'chaski stats --sampling'")
	}
	return s.onlyOf()
}

// onlyOf refuses members of other kinds, which would mean nothing.
func (s Sampler) onlyOf() error {
	for _, m := range []struct {
		set  bool
		name string
		kind string
	}{
		{s.StrideY != 0 || s.StrideX != 0, "stride", GridWindow},
		{s.Pad, "pad", GridWindow},
		{s.ScaleMin != 0 || s.ScaleMax != 0, "scale", ResizedWindow},
		{s.Ratio != 0 || s.OfAsset, "ratio or of_asset", ResizedWindow},
		{s.Weights != "", "weights", WeightedWindow},
		{s.TileHeight != 0 || s.TileWidth != 0, "tile", TileWindow},
		{s.PerVisit != 0 || s.Pool != 0 || s.PoolBytes != 0, "per_visit or pool", TileWindow},
	} {
		if m.set && m.kind != s.Kind {
			return fmt.Errorf("%s is a member of kind %q, not of %q", m.name, m.kind, s.Kind)
		}
	}
	for _, m := range []struct {
		name string
		v    int
	}{
		{"stride_y", s.StrideY},
		{"stride_x", s.StrideX},
		{"tile_height", s.TileHeight},
		{"tile_width", s.TileWidth},
		{"per_visit", s.PerVisit},
		{"pool", s.Pool},
	} {
		if m.v < 0 || m.v > maxPerAsset {
			return fmt.Errorf("%s is %d: it must be from 0 to %d", m.name, m.v, maxPerAsset)
		}
	}
	if s.PoolBytes < 0 {
		return fmt.Errorf("pool_bytes is %d: it must be at least 0", s.PoolBytes)
	}
	return nil
}

// sets are the transforms by name.
var sets = map[string]shuffle.Elements{
	"": 0, "flip_x": shuffle.FlipsX, "flip_y": shuffle.FlipsY, "flips": shuffle.Flips, "rotations": shuffle.Rotations, "d4": shuffle.D4,
}

func (s Spec) Elements() (shuffle.Elements, error) {
	g, ok := sets[s.Augment]
	if !ok {
		return 0, fmt.Errorf(`spec: augment is %q: it must be "flip_x", "flip_y", "flips", "rotations" or "d4"`, s.Augment)
	}
	return g, nil
}

func (b *BadLimit) validate() error {
	switch {
	case b == nil:
		return nil
	case b.Count != nil && *b.Count < 0:
		return fmt.Errorf("spec: the count of bad_limit is %d: it must be at least 0", *b.Count)
	case b.Rate != nil && !(*b.Rate >= 0 && *b.Rate <= 1):
		return fmt.Errorf("spec: the rate of bad_limit is %v: it must be from 0 to 1", *b.Rate)
	}
	return nil
}

// members are the names of a field's tensors, some of which may be empty.
func (f *Field) members() []string {
	if f.Points != nil {
		return []string{f.Name, f.Name + PointValues, f.Name + PointCount}
	}
	return []string{f.Name, f.Validity}
}

func (f Field) Validate() error {
	switch {
	case f.Name == "":
		return errors.New("has no name")
	case f.Points != nil:
		return f.Points.validate(&f)
	case f.Column != "" && f.Pattern != "":
		return errors.New("both column and pattern are given")
	case len(f.Bands) > chunk.MaxBands:
		return fmt.Errorf("bands has %d indices: it must have at most %d", len(f.Bands), chunk.MaxBands)
	}
	if f.BandNames != nil && (f.Bands != nil || len(f.BandNames) == 0 || len(f.BandNames) > chunk.MaxBands || slices.Contains(f.BandNames, "")) {
		return fmt.Errorf("band_names is %q: it must have names, and no bands beside it", f.BandNames)
	}
	for _, b := range f.Bands {
		if b < 0 || b >= chunk.MaxBands {
			return fmt.Errorf("bands has %d: indices must be from 0 to %d", b, chunk.MaxBands-1)
		}
	}
	if err := f.validateKind(); err != nil {
		return err
	}
	if f.Fill != nil && math.IsNaN(float64(*f.Fill)) && (f.DType == "uint8" || f.DType == "int64") {
		return fmt.Errorf("fill is NaN, which %s does not have", f.DType)
	}
	if !slices.Contains([]string{"", Nearest, Bilinear, Antialias}, f.Resample) {
		return fmt.Errorf("resample is %q: it must be %q, %q or %q", f.Resample, Nearest, Bilinear, Antialias)
	}
	return f.Normalize.Validate(f.DType)
}

// rasterDTypes are the dtypes of tensors of rasters, numberDTypes those of numbers.
var (
	rasterDTypes = []string{"native", "float32", "float16", "bfloat16", "uint8", "int64"}
	numberDTypes = append([]string{"float64", "uint16", "uint32", "uint64", "int8", "int16", "int32"}, rasterDTypes...)
)

// validateKind checks the kind, and that the dtype and other members go with it.
func (f *Field) validateKind() error {
	dtypes := rasterDTypes
	switch f.Kind {
	case "", RasterField:
	case ArrayField, NumberField:
		dtypes = numberDTypes
	case TextField:
		dtypes = []string{"native"}
	default:
		return fmt.Errorf("kind is %q: it must be %q, %q, %q or %q", f.Kind, RasterField, NumberField, TextField, ArrayField)
	}
	if !slices.Contains(dtypes, f.DType) {
		if f.Kind == TextField {
			return fmt.Errorf("dtype is %q, but kind is %q: strings have no dtype", f.DType, f.Kind)
		}
		return fmt.Errorf("dtype is %q: it must be one of %s", f.DType, strings.Join(dtypes, ", "))
	}
	if f.Kind != NumberField && f.Kind != TextField {
		return nil
	}
	if f.Pattern != "" && f.Kind == NumberField {
		return fmt.Errorf("kind is %q and pattern is %q: files hold rasters", f.Kind, f.Pattern)
	}
	if m := f.rasterMember(); m != "" {
		return fmt.Errorf("kind is %q and %s is given: that is for rasters", f.Kind, m)
	}
	return nil
}

// rasterMember returns the name of a member that is given and that only rasters have, or "". dtype is none of them.
func (f *Field) rasterMember() string {
	for _, m := range []struct {
		given bool
		name  string
	}{
		{f.Bands != nil || f.BandNames != nil, "bands"}, {f.Validity != "", "validity"}, {f.Resample != "", "resample"}, {f.Blob != "", "blob"},
		{f.Layout != "", "layout"}, {f.Sizes != nil, "sizes"}, {f.Normalize != nil, "normalize"}, {f.Fill != nil, "fill"}, {f.Pad, "pad"},
	} {
		if m.given {
			return m.name
		}
	}
	return ""
}

// sayRaster is what helps where texts are paths.
const sayRaster = `kind "raster" says that texts are paths, whatever they end in`

// CheckKind refuses a field whose column holds something else than what its kind or other members are for.
func (f *Field) CheckKind(holds catalog.Kind) error {
	raster, text := holds == catalog.Raster, holds == catalog.Text
	column := fmt.Sprintf("column %q holds %ss", cmp.Or(f.Column, f.Name), holds)
	bad := func(format string, args ...any) error {
		return fault.New(fault.Unsupported, "kind", fault.NoOffset, "%s, and %s", fmt.Sprintf(format, args...), column)
	}
	switch {
	case f.Kind == RasterField && !raster:
		return bad("the field is a raster (by its kind, or as it has bands, layout, sizes, normalize, fill, pad, validity or resample)")
	case f.Kind == TextField && !text || f.Kind == NumberField && (raster || text):
		return bad("kind is %q", f.Kind)
	case f.Kind == ArrayField && text:
		return bad("dtype is %q, which is for rasters and numbers (%s)", f.DType, sayRaster)
	case raster && !slices.Contains(rasterDTypes, f.DType):
		return bad("dtype is %q, and rasters have %s", f.DType, strings.Join(rasterDTypes, ", "))
	case !raster && f.Kind == "": // what is left may be what all fields have by default
		own := Field{Bands: f.Bands, BandNames: f.BandNames, Validity: f.Validity, Resample: f.Resample}
		if m := own.rasterMember(); m != "" {
			return bad("%s is given, which is for rasters (%s)", m, sayRaster)
		}
	}
	return nil
}

// Ways of resampling.
const (
	Nearest  = "nearest"
	Bilinear = "bilinear"
	// Antialias is Bilinear with a filter that widens as windows shrink, to floats only: as Pillow has it, and
	// torchvision with antialias=True.
	Antialias = "antialias"
)

func (n *Normalize) Validate(dtype string) error {
	if n == nil {
		return nil
	}
	if dtype == "native" || dtype == "int64" {
		return fmt.Errorf("normalize needs dtype float32, float16, bfloat16 or uint8, and dtype is %q", dtype)
	}
	if len(n.Scale) == 0 || len(n.Scale) != len(n.Offset) {
		return fmt.Errorf("normalize: %d scales and %d offsets", len(n.Scale), len(n.Offset))
	}
	for i := range n.Scale {
		if n.Scale[i] == 0 {
			return fmt.Errorf("normalize: scale %d of %d is 0: every sample of the band would become its offset", i, len(n.Scale))
		}
		if underflows(n.Scale[i]) || underflows(n.Offset[i]) {
			return fmt.Errorf("normalize: scale %g and offset %g are not numbers of float32", n.Scale[i], n.Offset[i])
		}
	}
	if n.Clip != nil && !(n.Clip[0] <= n.Clip[1]) {
		return fmt.Errorf("normalize: clip [%g, %g]", n.Clip[0], n.Clip[1])
	}
	return nil
}

// underflows reports whether v is NaN, or becomes 0 or infinite as float32.
func underflows(v float64) bool {
	f := float64(float32(v))
	return math.IsNaN(v) || math.IsInf(f, 0) || f == 0 && v != 0
}
