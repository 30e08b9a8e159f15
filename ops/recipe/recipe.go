// Package recipe makes containers of chips by recipes: a source, windows of it, fields, and what becomes of each chip.
//
//	r, err := recipe.Parse(yaml)
//	result, err := recipe.Make(ctx, r, "chips.tacozip", recipe.Options{})
//
// The loader reads the windows, so a recipe takes all that a run takes, and chips have the pixels that a run would see.
// Package convert encodes them, and package store/taco/build writes the container while they are made.
package recipe

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/internal/yamljson"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/ops/columns"
	"github.com/chaski-eo/chaski/ops/convert"
)

// Recipe describes a container and its source. The tags are the names in JSON and YAML.
type Recipe struct {
	// Collection has the members of COLLECTION.json.
	Collection map[string]json.RawMessage `json:"collection"`
	// Source is the dataset that chips are cut from: all that a spec of the loader takes. A relative path is
	// relative to the directory of the recipe.
	Source string `json:"source"`
	// Parts are further containers, whose samples follow.
	Parts []string `json:"parts"`
	// Where is SQL, the part after WHERE over the columns of the source. BBox is west, south, east, north in
	// degrees, and Datetime is A/B.
	Where    string    `json:"where"`
	BBox     []float64 `json:"bbox"`
	Datetime string    `json:"datetime"`
	// Missing says what happens to ids for which a field with a pattern has no file: error or drop.
	Missing string `json:"missing"`

	Windows Windows `json:"windows"`
	Fields  []Field `json:"fields"`
	// Columns are the metadata columns of the source that level 0 of the container gets. "*" stands for all.
	Columns []string `json:"columns"`
	Split   *Split   `json:"split"`
	// Statistics says whether the columns geotiff:stats are computed. Default true.
	Statistics *bool `json:"statistics"`
	// Index says whether each file gets its chunk index in a column, so that a reader opens no header. Default true.
	Index   *bool   `json:"index"`
	Quality Quality `json:"quality"`
	// BadSamples is what becomes of samples that cannot be read: "error" (default) or "skip".
	BadSamples string `json:"bad_samples"`
}

// Windows says which windows of each sample become chips: the members of a sampler of the loader. Chips have no steps
// and one size, and their fields are of one dataset: Sizes, Length, Order, Step and Cover do not apply. Weights and ROI
// are relative to the directory of the recipe.
type Windows struct {
	// Kind of the sampler is one of the names below. Default: Whole.
	spec.Sampler
	PerFile int    `json:"per_file"` // Sampler.PerAsset
	Seed    uint64 `json:"seed"`     // of random, weighted and ground
}

// Kinds of Windows.
const (
	Whole  = "whole"
	Ground = "ground" // at places on the ground, over the rows of the source as scenes
)

// kinds are the kinds of samplers by the names that recipes have for them.
var kinds = map[string]string{Whole: spec.WholeChip, "grid": spec.GridWindow, "random": spec.RandomWindow,
	"weighted": spec.WeightedWindow, Ground: spec.GeoWindow}

// inPixels reports whether windows are parts of a raster of the source, at a row and a column of it.
func (w *Windows) inPixels() bool { return w.Kind != Whole && w.Kind != Ground }

// Field is one raster of each chip. A recipe of one field makes samples that are files themselves. Of the members of a
// field of the loader it has those that say which pixels a chip has: see Field.pixels.
type Field struct {
	spec.Field
	// NoData is the value of nodata in the chips. Pixels that are nodata in the source, are masked there or lie
	// past its edge become it, and valid ones that have this value get the next one. Default: the source's.
	NoData *spec.Float `json:"nodata"`
	Codec  Codec       `json:"codec"`
}

// pixels returns the members of the field that say which pixels a chip has.
func (f *Field) pixels() spec.Field {
	return spec.Field{Name: f.Name, Column: f.Column, Pattern: f.Pattern, Columns: f.Columns, Patterns: f.Patterns,
		Grid: f.Grid, Bands: f.Bands, BandNames: f.BandNames, DType: f.DType, Clip: f.Clip, Resample: f.Resample,
		Ground: f.Ground, Vector: f.Vector}
}

// Codec says how the chips of a field are stored. It is the options of 'chaski convert'.
type Codec struct {
	Format string  `json:"format"`   // tog (default), rumi, rumi2 or rumi3
	Graph  string  `json:"graph"`    // of rumi: auto (default), best, or steps
	Level  int     `json:"level"`    // zstd level, 1 to 22; default 13
	Tile   int     `json:"tile"`     // side of a tile in pixels; default 512, or less for a smaller chip
	Cost   float64 `json:"max_cost"` // see convert.Options.MaxCost
	// Strict makes properties that the format cannot hold an error, such as the nodata value in rumi2 and rumi3.
	// Otherwise they are left out. Default true.
	Strict *bool `json:"strict"`

	// Only of rumi3.

	Unit  string `json:"unit"`  // see convert.Options.Unit
	Geozl int    `json:"geozl"` // see convert.Options.Geozl
	// Time is the time of all chips: a time, or A/B. Default: the time of the row of the source, as in batches.
	Time string `json:"time"`
}

// Split divides the chips into named parts, which the column split names.
type Split struct {
	// By is hash (of the source's ids), place (cells of Cell degrees, in which chips stay together), or column
	// (equal values of Column stay together).
	By     string             `json:"by"`
	Column string             `json:"column"`
	Cell   float64            `json:"cell"`
	Seed   uint64             `json:"seed"`
	Shares map[string]float64 `json:"shares"`
}

// Quality says which chips are left out.
type Quality struct {
	// MaxNoData is the largest share of samples of a field, from 0 to 1, that may be nodata, masked or past the edge.
	MaxNoData *float64 `json:"max_nodata"`
	// Fields are the fields that MaxNoData is about. Default: all.
	Fields []string `json:"fields"`
	// Pairs is what becomes of samples whose rasters do not lie together on the ground: "error" (default; see
	// BadSamples) or "drop".
	Pairs string `json:"pairs"`
	// Labels leaves out chips without enough pixels of some classes. Default: all chips stay.
	Labels *Labels `json:"labels"`
}

// MaxBytes bounds a recipe, as the loader bounds a spec.
const MaxBytes = 1 << 20

// Parse reads a recipe of YAML or JSON and checks it. Unknown keys, keys given twice and values of other types are
// errors, which name the key, its value and the rule. Errors have no kind.
func Parse(b []byte) (*Recipe, error) {
	if len(b) > MaxBytes {
		return nil, fmt.Errorf("recipe: %d bytes, at most %d", len(b), MaxBytes)
	}
	recipe := &Recipe{}
	// The library must not end a program on what somebody wrote.
	err := crash.Call(func() error {
		data, err := asJSON(b)
		if err == nil {
			err = spec.Read(data, recipe)
		}
		return err
	})
	if errors.Is(err, io.EOF) {
		err = errors.New("it is empty")
	}
	if err == nil {
		recipe.defaults()
		err = recipe.check()
	}
	if err != nil {
		return nil, fmt.Errorf("recipe: %s", strings.ReplaceAll(strings.TrimPrefix(err.Error(), "yaml: "), "\n", " "))
	}
	return recipe, nil
}

// asJSON returns a recipe as JSON.
func asJSON(b []byte) ([]byte, error) {
	if json.Valid(b) {
		return b, nil
	}
	var document yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(b))
	if err := decoder.Decode(&document); err != nil {
		return nil, err
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("a second document follows the first")
	}
	members, err := yamljson.Members(&document)
	if err != nil {
		return nil, err
	}
	return json.Marshal(members)
}

func (r *Recipe) defaults() {
	r.Windows.Kind = cmp.Or(r.Windows.Kind, Whole)
	r.BadSamples, r.Quality.Pairs = cmp.Or(r.BadSamples, "error"), cmp.Or(r.Quality.Pairs, "error")
	yes := true
	r.Statistics, r.Index = cmp.Or(r.Statistics, &yes), cmp.Or(r.Index, &yes)
	if len(r.Fields) == 0 {
		r.Fields = []Field{{}}
	}
	if len(r.Fields) == 1 {
		r.Fields[0].Name = cmp.Or(r.Fields[0].Name, "image")
	}
	for i := range r.Fields {
		field := &r.Fields[i]
		field.Codec.Format = cmp.Or(field.Codec.Format, convert.TOG)
		if field.Codec.Format != convert.TOG {
			field.Codec.Graph = cmp.Or(field.Codec.Graph, "auto")
		}
		field.Codec.Strict = cmp.Or(field.Codec.Strict, &yes)
		field.Codec.Level = cmp.Or(field.Codec.Level, 13)
	}
}

// check checks the recipe without its source. The spec that follows from the recipe is checked by the loader, and
// options of codecs by package convert.
func (r *Recipe) check() error {
	oneOf := func(name, value string, values ...string) error {
		if slices.Contains(values, value) {
			return nil
		}
		return fmt.Errorf("%s is %q: it must be %s", name, value, strings.Join(values, " or "))
	}
	if r.Source == "" {
		return errors.New("source is missing")
	}
	if r.BBox != nil && len(r.BBox) != 4 {
		return fmt.Errorf("bbox has %d numbers: it must be [west, south, east, north]", len(r.BBox))
	}
	if r.Collection == nil {
		return errors.New("collection is missing: it has id, dataset_version, description, licenses, providers " +
			"and tasks")
	}
	for _, err := range []error{
		oneOf("windows.kind", r.Windows.Kind, slices.Sorted(maps.Keys(kinds))...),
		oneOf("bad_samples", r.BadSamples, "error", "skip"),
		oneOf("quality.pairs", r.Quality.Pairs, "error", "drop"),
		r.checkWindows(), r.checkFields(), r.checkQuality(), r.Split.check(),
	} {
		if err != nil {
			return err
		}
	}
	if _, err := r.collection(); err != nil {
		return err
	}
	_, err := r.spec("")
	var wrong *spec.MemberError
	if errors.As(err, &wrong) && !strings.Contains(wrong.Where, "field") {
		return errors.New(wrong.Named("windows." + cmp.Or(inRecipe[wrong.Member], wrong.Member)))
	}
	return err
}

// inRecipe has the names that a recipe gives to members of a sampler, where they differ.
var inRecipe = map[string]string{"per_asset": "per_file", "stride_y": "stride", "stride_x": "stride"}

// checkWindows refuses what the loader takes, but chips cannot have.
func (r *Recipe) checkWindows() error {
	switch windows := &r.Windows; {
	case windows.Kind == Whole && (windows.Size != nil || windows.Height != 0 || windows.Width != 0):
		return errors.New("windows.size is given, and windows.kind is whole: it is the size of windows")
	case len(windows.Size) > 2 || windows.Sizes != nil:
		return errors.New("windows.size has several sides: the chips of a container have one size")
	case windows.Length != 0 || windows.Order != "" || windows.Step != "":
		return errors.New("windows.length, order and step are for sequences: a chip is one image")
	case windows.Cover != "":
		return errors.New("windows.cover is for scenes of several datasets: a recipe has one source")
	}
	return nil
}

func (r *Recipe) checkFields() error {
	seen := map[string]bool{}
	for i, field := range r.Fields {
		switch {
		case field.Name == "":
			return fmt.Errorf("field %d has no name", i)
		case seen[field.Name]:
			return fmt.Errorf("two fields are called %q", field.Name)
		case field.Vector != nil && !slices.Contains([]string{"", spec.MaskVector, spec.InstanceVector},
			field.Vector.Kind):
			return fmt.Errorf("field %q: vector.kind is %q: a raster is %s or %s", field.Name, field.Vector.Kind,
				spec.MaskVector, spec.InstanceVector)
		case !slices.Contains([]string{"", "native", "float32", "uint8", "int64"}, field.DType):
			return fmt.Errorf("field %q: dtype is %q: it must be native, float32, uint8 or int64", field.Name,
				field.DType)
		case !reflect.DeepEqual(field.pixels(), field.Field):
			return fmt.Errorf("field %q has members of tensors, such as layout or normalize: a chip has pixels "+
				"as they are", field.Name)
		case field.Clip && field.DType != "uint8":
			return fmt.Errorf("field %q: clip is true, and dtype is %q: it is for uint8", field.Name, field.DType)
		}
		if err := field.checkCodec(); err != nil {
			return fmt.Errorf("field %q: %w", field.Name, err)
		}
		seen[field.Name] = true
	}
	return nil
}

func (f *Field) checkCodec() error {
	codec := &f.Codec
	switch formats := []string{convert.TOG, convert.Rumi, convert.Rumi2, convert.Rumi3}; {
	case !slices.Contains(formats, codec.Format):
		return fmt.Errorf("codec.format is %q: it must be %s", codec.Format, strings.Join(formats, " or "))
	case codec.Format == convert.TOG && (codec.Graph != "" || codec.Cost != 0):
		return fmt.Errorf("codec.graph and codec.max_cost are for rumi: codec.format is %s", codec.Format)
	case codec.Format != convert.Rumi3 && (codec.Unit != "" || codec.Geozl != 0 || codec.Time != ""):
		return fmt.Errorf("codec.unit, codec.geozl and codec.time are for rumi3: codec.format is %s", codec.Format)
	}
	o, err := f.options(16, 16)
	if err == nil {
		err = o.Check()
	}
	if err != nil {
		return fmt.Errorf("codec: %w", err)
	}
	return nil
}

func (r *Recipe) checkQuality() error {
	if m := r.Quality.MaxNoData; m != nil && !(*m >= 0 && *m <= 1) {
		return fmt.Errorf("quality.max_nodata is %g: it must be from 0 to 1", *m)
	}
	for _, name := range r.Quality.Fields {
		i := r.field(name)
		switch {
		case i < 0:
			return fmt.Errorf("quality.fields: there is no field %q", name)
		case r.Fields[i].Vector != nil:
			return fmt.Errorf("quality.fields: field %q is of shapes, which have no nodata", name)
		}
	}
	return r.checkLabels()
}

// field returns the number of a field, or -1.
func (r *Recipe) field(name string) int {
	return slices.IndexFunc(r.Fields, func(f Field) bool { return f.Name == name })
}

func (r *Recipe) checkLabels() error {
	labels := r.Quality.Labels
	if labels == nil {
		return nil
	}
	number := r.field(labels.Field)
	switch {
	case labels.Field == "":
		return errors.New("quality.labels.field is missing")
	case number < 0:
		return fmt.Errorf("quality.labels.field: there is no field %q", labels.Field)
	case r.Fields[number].DType == "float32":
		return fmt.Errorf("quality.labels.field: field %q has dtype float32: classes are whole numbers", labels.Field)
	case r.Fields[number].Vector != nil && r.Fields[number].Vector.Kind == spec.InstanceVector:
		return fmt.Errorf("quality.labels.field: field %q is of instances, which have no classes", labels.Field)
	}
	return labels.check()
}

func (s *Split) check() error {
	if s == nil {
		return nil
	}
	switch {
	case !slices.Contains([]string{"hash", "place", "column"}, s.By):
		return fmt.Errorf("split.by is %q: it must be hash, place or column", s.By)
	case (s.By == "column") != (s.Column != ""):
		return fmt.Errorf("split.by is %s and split.column is %q: by column needs one, and nothing else does", s.By,
			s.Column)
	case s.By == "place" && !(s.Cell > 0 && !math.IsInf(s.Cell, 0)):
		return fmt.Errorf("split.cell is %g: by place needs the side of cells in degrees", s.Cell)
	case s.By != "place" && s.Cell != 0:
		return fmt.Errorf("split.cell is %g: it is for by place", s.Cell)
	case len(s.Shares) == 0:
		return errors.New("split.shares is missing, such as {train: 0.8, val: 0.2}")
	}
	for name := range s.Shares {
		if name == "" || strings.ContainsFunc(name, unicode.IsControl) {
			return fmt.Errorf("split.shares has the name %q: it must have characters, and no control characters", name)
		}
	}
	_, err := s.hash()
	return err
}

// Labels says which classes the pixels of a chip must have. The answer depends on the window alone, so every worker
// and part gives the same.
type Labels struct {
	// Field is the field of labels: one band of whole numbers, or a mask of shapes.
	Field string `json:"field"`
	// Classes are values of Field, which are whole numbers. A chip stays if it has enough pixels of one of them.
	Classes []int64 `json:"classes"`
	// MinShare is the least share of the pixels of a chip that is enough, from 0 to 1. Nodata, masked pixels and those
	// past the edge are of no class, but count as pixels. Default: one pixel is enough.
	MinShare float64 `json:"min_share"`
}

// check checks the values that do not depend on the field.
func (l *Labels) check() error {
	switch {
	case len(l.Classes) == 0:
		return errors.New("quality.labels.classes is missing, such as [3, 7]")
	case !(l.MinShare >= 0 && l.MinShare <= 1):
		return fmt.Errorf("quality.labels.min_share is %g: it must be from 0 to 1", l.MinShare)
	}
	return nil
}

// in reports whether the valid samples of an image have enough pixels of one class.
func (l *Labels) in(pixels *loader.Tensor, valid []byte) (bool, error) {
	refuse := func(format string, args ...any) (bool, error) {
		return false, fault.New(fault.Unsupported, "field "+l.Field, fault.NoOffset, format, args...)
	}
	if n := pixels.Shape[1]; n != 1 {
		return refuse("a chip has %d bands: quality.labels needs one, as bands: [0] gives it", n)
	}
	if !pixels.DType.Integer() {
		return refuse("a chip is %s: classes of quality.labels are whole numbers", pixels.DType)
	}
	counts := make([]int, len(l.Classes))
	width, size := int(pixels.Shape[3]), pixels.DType.Size()
	var line []float64
	for pos := 0; pos < len(valid); pos += width {
		line = columns.AppendValues(line[:0], pixels.Data[pos*size:][:width*size], pixels.DType)
		for x, v := range line {
			if i := slices.Index(l.Classes, int64(v)); i >= 0 && valid[pos+x] != 0 {
				counts[i]++
			}
		}
	}
	// Divided, because the quotient of 7 and 100 is 0.07 as the recipe has it, and the product of 0.07 and 100 is more
	// than 7.
	largest := slices.Max(counts)
	return largest > 0 && float64(largest)/float64(len(valid)) >= l.MinShare, nil
}
