package spec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chaski-eo/chaski/shuffle"
)

// InSource adds the name of a source of the spec to an error.
func InSource(name string, err error) error { return within(fmt.Sprintf("source %q", name), err) }

// ErrPerBatch is returned if the shares of a mixture cannot be exact in a batch, because the
// mixture around it does not give it a fixed number of rows.
var ErrPerBatch = errors.New(
	"per_batch needs per_batch, and weights in place of a temperature, of the mixture around it")

// ErrOneSource is returned if the batches of a mixture cannot be of one source, because the mixture around it has mixed
// ones.
var ErrOneSource = errors.New(`batches "one source" needs the same of the mixture around it`)

// Untils maps the values of Mixture.Until to the rules of package shuffle.
var Untils = map[Text]shuffle.Until{
	UntilShortest: shuffle.Shortest, UntilLongest: shuffle.Longest, UntilLength: shuffle.Given,
}

// SetCounts sets the counts of the sources of a mixture, from their weights or from the
// temperature, so that they sum to total. It keeps counts that the spec has. sources are only
// needed for a temperature.
func (s *Source) SetCounts(sources []shuffle.Source, total int64) error {
	weights := make([]float64, len(s.Sources))
	given := int64(0)
	for i := range s.Sources {
		weights[i] = cmp.Or(s.Sources[i].Weight, 1)
		given += s.Sources[i].Count
	}
	// A completed spec has counts, and they must stay: the order depends on them. Package shuffle
	// checks their sum.
	if given != 0 {
		return nil
	}
	if s.Temperature != 0 {
		sizes, err := Lengths(sources)
		if err != nil {
			return err
		}
		if weights, err = shuffle.Temperature(sizes, s.Temperature); err != nil {
			return err
		}
	}
	counts, err := shuffle.Apportion(total, weights)
	for i := range counts {
		s.Sources[i].Count, s.Sources[i].Weight = counts[i], 0
	}
	return err
}

// Lengths returns the number of samples that an epoch of each source has.
func Lengths(sources []shuffle.Source) ([]int64, error) {
	out := make([]int64, len(sources))
	for i, s := range sources {
		plan, err := shuffle.NewPlan(shuffle.Spec{Source: s, Batch: 1}) // Sampler.Sides changes no length
		if err != nil {
			return nil, within(fmt.Sprintf("source %d", i), err)
		}
		out[i] = plan.Len()
	}
	return out, nil
}

// Mixture draws samples from several sources in fixed proportions. See docs/order.md.
type Mixture struct {
	// Sources are the sources of the mixture. Empty: the spec has one dataset, and no mixture.
	Sources []Source `json:"sources,omitempty"`
	// Temperature weights each source by its number of samples to the power of 1/Temperature: 1
	// draws in proportion to the sizes, more draws more evenly. Default: the weights of the sources.
	Temperature float64 `json:"temperature,omitempty"`
	// Until says when an epoch ends: "shortest" (default) before a source would repeat a sample,
	// "longest" after every source has given every sample, "length" after Length samples. A number stands for both.
	Until Text `json:"until,omitempty"`
	// Length is the number of samples of an epoch, with "length".
	Length int64 `json:"length,omitempty"`
	// PerBatch makes the shares exact in every global batch, and an epoch a whole number of
	// batches. Without it they are exact in every 10,000 samples in a row. A mixture in a mixture
	// can only have it if the outer one has it, too.
	PerBatch bool `json:"per_batch,omitempty"`
	// Batches is "one source" if every global batch comes wholly from one source, the same on all ranks. Sources may
	// then differ in bands, shapes, dtypes and steps of time. Shares are of batches: exact in every 10,000 in a row,
	// and in any stretch but for about one batch; an epoch is a whole number of batches. A mixture in a mixture can
	// only have it if the outer one has it, too. Default: batches are mixed, and all sources have one shape.
	Batches string `json:"batches,omitempty"`
}

// OneSource is the value of Mixture.Batches.
const OneSource = "one source"

// Rules for the end of an epoch of a mixture.
const (
	UntilShortest = "shortest" // before a source would repeat a sample
	UntilLongest  = "longest"  // after every source has given every sample
	UntilLength   = "length"   // after Length samples
)

// Source is one of the sources of a mixture: a dataset, or a mixture again.
type Source struct {
	// Name is the name of the source in errors and reports. Default: its number, from 0.
	Name string `json:"name,omitempty" hash:"place"`
	// Source is the path or URI of the dataset, as in Spec.
	Source    string `json:"source,omitempty" hash:"place"`
	Container `hash:"place"`
	// Dims names the dimensions of an array, as in Spec.
	Dims string `json:"dims,omitempty"`
	// Timestamp opens an array as it was in a range of time, as in Spec.
	Timestamp *Timestamp `json:"timestamp,omitempty"`
	// Fields overrides settings of the fields of the spec, by their names: column, pattern, blob,
	// bands, normalisation, fill, padding, resampling, wavelengths and ground sampling distance.
	Fields []Field `json:"fields,omitempty"`
	// Sampler replaces the sampler of the spec. Its windows must have the same size in the batch.
	Sampler *Sampler `json:"sampler,omitempty"`
	// Weight is the share of the source, relative to the other sources. Default 1.
	Weight float64 `json:"weight,omitempty"`
	// Count is the number of rows of the source in 10,000 positions, or with PerBatch in a global
	// batch, or with Batches of its batches in 10,000. The engine fills it in.
	Count int64 `json:"count,omitempty"`
	// More are columns that the engine reads beside those that the spec names. They need not exist.
	More []string `json:"-"`
	Subset
	Mixture
}

// Subset selects rows of a dataset and groups them.
type Subset struct {
	// IDList is the path of a list of the samples that count: a text file with an id on each line, or PATH::COLUMN, a
	// column of a table (.csv, .tsv, .parquet, .json). A column by its number, from 0, is of a CSV file without a
	// header. An id is what the sample is called, or the end of the path of one of its rasters from a slash on, with or
	// without the ending. Samples keep the dataset's order. An id that names no sample is an error: see Missing.
	IDList string `json:"id_list,omitempty" hash:"place"`
	// IDColumn is the column of the dataset that holds the ids. Each id then names all rows that have it. Default: what
	// the samples are called.
	IDColumn string `json:"id_column,omitempty"`
	// Tables are other tables whose columns the dataset has, too: of each sample those of the row with its key. JSON
	// may have an object here, of a column of the dataset by the path of each table, or of an object that has the
	// dataset's column by the table's: {"labels.csv": "id"} or {"labels.csv": {"Image ID": "id"}}.
	Tables []SideTable `json:"tables,omitempty"`
	// Where lists conditions. A row must meet all of them. A condition is an object, a list of column, operator and
	// value, or SQL, which may also stand for the list.
	Where []Condition `json:"where,omitempty"`
	// BBox, BBoxCRS and Datetime are conditions, which apply after Where.
	BBox     *[4]float64 `json:"bbox,omitempty"`
	BBoxCRS  EPSG        `json:"bbox_crs,omitempty"`
	Datetime *string     `json:"datetime,omitempty"`
	// Bad lists the ids of samples that are left out, such as those that 'chaski verify --samples' finds. It applies
	// after Where.
	Bad []string `json:"bad,omitempty"`
	// Split divides the rows into named parts. It needs Use. A string is the part that counts, where a column has the
	// part of each row.
	Split *Split `json:"split,omitempty"`
	// Use is the name of the part of Split whose rows the run reads.
	Use string `json:"use,omitempty"`
	// Strata draws the rows of every value of a column in fixed shares. A string is the column.
	Strata *Strata `json:"strata,omitempty"`
	// Time groups rows into sequences, which are then the samples.
	Time *Time `json:"time,omitempty"`
	// Missing says what happens to ids for which a field with a pattern has no file: "error"
	// (default) refuses the dataset, "drop" leaves the ids out, and the engine logs how many. The same holds
	// for ids of IDList that name no sample, and for samples without a row in one of Tables.
	Missing string `json:"missing,omitempty" hash:"rule"`
}

// SideTable is a table that is joined to the samples of a dataset.
type SideTable struct {
	// Path is the path of a table (.csv, .tsv, .parquet, .json). No two of its rows may have the same key.
	Path string `json:"path" hash:"place"`
	// On is the column of the dataset that has the key of each sample, also where a table has a column of this name.
	On string `json:"on"`
	// Column is the column of the table that has the keys. A key is the value of On, or the end of it from a slash
	// on, with or without the ending of an image. A column by its number, from 0, is of a CSV file without a header.
	// Default: the name of On.
	Column string `json:"column,omitempty"`
}

// Values of Subset.Missing.
const (
	MissingError = "error" // the dataset is not opened
	MissingDrop  = "drop"  // incomplete samples are left out, and the engine logs how many
)

// Condition selects rows. It is one of: a comparison of a column with a value (Column, Op, Value),
// SQL, a query (Select), a bounding box (BBox), a range of time (Datetime), or groups of containers
// (Concat). A null meets no comparison.
type Condition struct {
	// Column is the column that is compared with Value. With BBox it is the column of geometries, with Datetime the
	// column of times. Default for these two: the first of the usual names that the table has.
	Column string `json:"column,omitempty"`
	// Op is "==", "!=", "<", "<=", ">", ">=" or "in".
	Op string `json:"op,omitempty"`
	// Value is a number or a string, of the type of the column, or with "in" a list of them. For a
	// column of dates or timestamps it may be a string in ISO 8601; a year, month or day is its
	// first moment, in UTC.
	Value json.RawMessage `json:"value,omitempty"`

	// SQL is the part of a query after WHERE, on the columns of level 0. See package format/tables/query.
	SQL string `json:"sql,omitempty"`
	// Select is a SELECT with the column of ids in its result. It selects the samples with these
	// ids. Its table "data" has the rows that the conditions before this one leave.
	Select string `json:"select,omitempty"`
	// BBox is a bounding box (west, south, east, north) in the CRS of BBoxCRS. It selects samples
	// whose geometry, or in a catalog the bounds of the raster, intersects the box. In longitude
	// and latitude the box crosses the antimeridian if west is greater than east. Geometries in
	// another CRS are compared by where they lie on Earth; an unknown CRS is an error.
	BBox *[4]float64 `json:"bbox,omitempty"`
	// BBoxCRS is the EPSG code of the CRS of BBox. Default: 4326, longitude and latitude in
	// degrees.
	BBoxCRS EPSG `json:"bbox_crs,omitempty"`
	// Within selects only samples that lie wholly inside BBox.
	Within bool `json:"within,omitempty"`
	// Datetime is a range "A/B" of dates, which are whole days in UTC, or timestamps. It selects
	// samples that begin in the range.
	Datetime string `json:"datetime,omitempty"`
	// Level is the level whose geometry or time BBox or Datetime looks at. A sample is selected if
	// one of the rows below it on that level matches. Default: the first level that has such a
	// column.
	Level int `json:"level,omitempty"`

	// Concat divides the containers of a source into groups with conditions of their own, and joins
	// the samples that they leave, in order. It must be the first condition.
	Concat []Group `json:"concat,omitempty"`
}

// Container has the options of a source that is a container.
type Container struct {
	// Parts are further containers, whose samples follow in order. Like Source, they are not part
	// of the spec hash.
	Parts []string `json:"parts,omitempty"`
	// BasePath is the directory of the containers of a TACOCAT or a TACOLLECTION.json. Default: the
	// directory beside it.
	BasePath string `json:"base_path,omitempty"`
}

// Split divides rows into named parts. A row's part depends only on the row, so rows that are added
// or removed later move no others.
type Split struct {
	// By decides the part of a row: "hash" (its id), "column" (the value of Column, so equal values
	// stay together), "date" (Ranges of Column), "cell" (its place on the ground, so neighbours
	// stay together), "given" (Column holds the name of the part) or "place", which divides windows on
	// the ground, not rows: windows of two parts do not overlap.
	By string `json:"by"`
	// Column is the column for "column", "date" and "given". Default for "given": the first of split,
	// tortilla:data_split, split:split and ml:split that the table has.
	Column string `json:"column,omitempty"`
	// Seed is the seed of the hash. It is apart from the seed of the spec, so that a split stays
	// the same from run to run. Default 0.
	Seed uint64 `json:"seed,omitempty"`
	// Shares are the parts in order, for "hash", "column", "cell" and "place", or an object of their weights by name.
	Shares []Share `json:"shares,omitempty"`
	// Exact keeps the shares among the ids, values or cells of all rows, for "hash", "column" and "cell": of 4 ids at
	// 3 : 1, 3 and 1. A part has at least one, if there are enough. Rows that are added later may move others. By
	// default each is a draw of its own.
	Exact bool `json:"exact,omitempty"`
	// Ranges are the parts in order, for "date", or an object of [from, to] by name.
	Ranges []Range `json:"ranges,omitempty"`
	// Size is the side of a cell in units of Columns, or in degrees with LonLat and for "place".
	Size float64 `json:"size,omitempty"`
	// MarginM is the least distance of windows of two parts for "place", in metres of the map. Default
	// 0.
	MarginM float64 `json:"margin_m,omitempty"`
	// LonLat makes cells of longitude and latitude, as CRS does. The centre of Columns is converted from the CRS
	// of the row. Without these columns it is the centroid of a container's sample (stac:centroid,
	// istac:centroid).
	LonLat bool `json:"lonlat,omitempty"`
	// CRS is the column of EPSG codes that Columns are in, with LonLat. Default: epsg, as in
	// catalogs. See package internal/crs/lonlat for the codes.
	CRS string `json:"crs,omitempty"`
	// Columns are the columns of the minimum x, minimum y, maximum x and maximum y of a row.
	// Default: minx, miny, maxx and maxy, as in catalogs.
	Columns []string `json:"columns,omitempty"`

	part string // Subset.Use, if JSON has a string
}

// ByPlace is the value of Split.By that divides windows on the ground, and not rows.
const ByPlace = "place"

const (
	maxPlace  = 90        // degrees: a larger square leaves nothing to divide
	maxMargin = 1_000_000 // metres: more than the squares of a split are wide
)

// OfRows reports whether the split divides rows.
func (s *Split) OfRows() bool { return s != nil && s.By != ByPlace }

// SplitColumns lists the usual names of the column of Split "given". The first one that is there is
// used.
var SplitColumns = []string{"split", "tortilla:data_split", "split:split", "ml:split"}

// Share is a part of a split.
type Share struct {
	// Name is the name of the part.
	Name string `json:"name"`
	// Weight is the share of the part, relative to the other parts.
	Weight float64 `json:"weight,omitempty"`
	// Parts is the share out of 2^32. The engine fills it in and removes Weight.
	Parts int64 `json:"parts,omitempty"`
}

// Range is a part of a split by date: the rows with From <= value < To.
type Range struct {
	// Name is the name of the part.
	Name string `json:"name"`
	// From and To are numbers, dates or timestamps (see Condition), or strings in the order of
	// their bytes. Default: no bound.
	From json.RawMessage `json:"from,omitempty"`
	To   json.RawMessage `json:"to,omitempty"`
}

// Strata is a mixture of the strata of a dataset: the rows with one value of a column.
type Strata struct {
	// Column is the column whose values make the strata.
	Column string `json:"column"`
	// Temperature weights each value by its number of rows, as in Mixture. Default: every value is
	// drawn equally often (class-balanced).
	Temperature float64 `json:"temperature,omitempty"`
	// Until is "shortest", "longest" or "length" as in Mixture. Default: "length".
	Until Text `json:"until,omitempty"`
	// Length is the number of samples of an epoch. Default: the samples of all rows, with PerBatch
	// rounded down to whole batches, but at least one.
	Length int64 `json:"length,omitempty"`
	// PerBatch makes the shares exact in every global batch, and an epoch a whole number of batches,
	// as in Mixture. In a mixture it needs PerBatch of that mixture, too.
	PerBatch bool `json:"per_batch,omitempty"`
}

// countIn moves a number of samples from a member until to the member length.
func (t *Text) countIn(length *int64) {
	if n, err := strconv.ParseInt(string(*t), 10, 64); err == nil && n > 0 && *length == 0 {
		*t, *length = UntilLength, n
	}
}

// Time groups rows into sequences: the rows with one value of Key, ordered by Order.
type Time struct {
	// Key is the column whose value is the same for all rows of a series.
	Key string `json:"key"`
	// Order is the column that orders the rows of a series: numbers, times, or strings that say a
	// time, such as ISO 8601 dates. Other strings are refused.
	Order string `json:"order"`
	// Length is the number of steps of a sample, from 1 to 65,536.
	Length int `json:"length"`
	// Stride is the number of steps from the start of one sample of a series to the start of the
	// next. Default: Length, so that samples do not overlap.
	Stride int `json:"stride,omitempty"`
	// Cut leaves out the end of a series if it does not fill a sample. Without it the end is
	// padded.
	Cut bool `json:"cut,omitempty"`
	// Validity names a second tensor, uint8 (n t): 1 for a step that exists, 0 for padding. Default
	// "steps".
	Validity string `json:"validity,omitempty"`
}

// hasOptions reports whether a member is given that only mixtures have, beside their sources.
func (m *Mixture) hasOptions() bool {
	return m.Temperature != 0 || m.Until != "" || m.Length != 0 || m.PerBatch || m.Batches != ""
}

func (m Mixture) withDefaults() Mixture {
	if len(m.Sources) == 0 {
		return m
	}
	m.Until = cmp.Or(m.Until, UntilShortest)
	m.Until.countIn(&m.Length)
	m.Sources = slices.Clone(m.Sources)
	for i := range m.Sources {
		src := &m.Sources[i]
		if src.Sampler != nil {
			f := src.Sampler.withDefaults()
			src.Sampler = &f
		}
		src.Fields = slices.Clone(src.Fields)
		src.Subset = src.Subset.WithDefaults()
		src.Mixture = src.Mixture.withDefaults()
	}
	return m
}

// WithDefaults returns a copy of the subset in which every default is filled in.
func (s Subset) WithDefaults() Subset {
	s.Where = compactedWhere(s.Where)
	s.Tables = slices.Clone(s.Tables)
	for i := range s.Tables {
		s.Tables[i].Column = cmp.Or(s.Tables[i].Column, s.Tables[i].On)
	}
	if s.BBox != nil {
		s.Where = append(s.Where, Condition{BBox: s.BBox, BBoxCRS: s.BBoxCRS})
		s.BBox, s.BBoxCRS = nil, 0
	}
	if s.Datetime != nil {
		s.Where = append(s.Where, Condition{Datetime: strings.TrimSpace(*s.Datetime)})
		s.Datetime = nil
	}
	if s.Split != nil {
		split := s.Split.withDefaults()
		if s.Use == "" {
			s.Use, split.part = split.part, ""
		}
		s.Split = &split
	}
	if s.Strata != nil {
		strata := *s.Strata
		strata.Until = cmp.Or(strata.Until, UntilLength)
		strata.Until.countIn(&strata.Length)
		s.Strata = &strata
	}
	if s.Time != nil {
		filled := *s.Time
		filled.Stride = cmp.Or(filled.Stride, filled.Length)
		filled.Validity = cmp.Or(filled.Validity, DefaultValidity)
		s.Time = &filled
	}
	return s
}

func (s Split) withDefaults() Split {
	if s.By == "cell" && s.Columns == nil {
		s.Columns = slices.Clone(BoundsColumns)
	}
	if s.LonLat && s.CRS == "" {
		s.CRS = "epsg"
	}
	s.LonLat = s.LonLat || s.CRS != ""
	s.Ranges = slices.Clone(s.Ranges)
	for i := range s.Ranges {
		s.Ranges[i].From, s.Ranges[i].To = compacted(s.Ranges[i].From), compacted(s.Ranges[i].To)
	}
	weights := make([]float64, len(s.Shares))
	for i, share := range s.Shares {
		// Filled-in parts decide the rows of a split and must not be computed a second time.
		if share.Parts != 0 {
			return s
		}
		weights[i] = share.Weight
	}
	parts, err := shuffle.Apportion(shuffle.SplitTotal, weights)
	if err != nil || s.checkFractions() != nil {
		// Validate reports the error, because defaults have no way to.
		return s
	}
	s.Shares = slices.Clone(s.Shares)
	for i := range s.Shares {
		s.Shares[i].Parts, s.Shares[i].Weight = parts[i], 0
	}
	return s
}

// compactedWhere returns a copy of the conditions, also in their groups, with compacted
// values.
func compactedWhere(where []Condition) []Condition {
	where = slices.Clone(where)
	for i := range where {
		condition := &where[i]
		condition.Value, condition.Concat = compacted(condition.Value), slices.Clone(condition.Concat)
		for k := range condition.Concat {
			condition.Concat[k].Where = compactedWhere(condition.Concat[k].Where)
		}
	}
	return where
}

// compacted returns JSON without white space, so that white space does not change the spec hash. Tables hold 1 and 0
// for true and false, also in a list.
func compacted(m json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, m) != nil {
		return m
	}
	has := func(word string) bool { return bytes.Contains(b.Bytes(), []byte(word)) }
	var list []json.RawMessage // takes 24 bytes for each number of the list
	if !has("true") && !has("false") || json.Unmarshal(b.Bytes(), &list) != nil || list == nil {
		return number(b.Bytes())
	}
	parts := make([][]byte, len(list))
	for i := range list {
		parts[i] = number(list[i])
	}
	return slices.Concat([]byte("["), bytes.Join(parts, []byte(",")), []byte("]"))
}

// number returns 1 and 0 for true and false, and other JSON as it is.
func number(m json.RawMessage) json.RawMessage {
	switch string(m) {
	case "true":
		return json.RawMessage("1")
	case "false":
		return json.RawMessage("0")
	}
	return m
}

// Root returns the outermost source of a spec: its dataset or its mixture.
func (s *Spec) Root() Source {
	return Source{
		Source: s.Source, Container: s.Container, Dims: s.Dims, Timestamp: s.Timestamp,
		Subset: s.Subset, Mixture: s.Mixture,
	}
}

// inTime reports whether samples are sequences.
func (s *Spec) inTime() bool { return s.Sequence() != nil }

// Sequence returns how rows of the first source with sequences form them, or nil if samples are single rows. Of windows
// on the ground it has the length and the name of the validity.
func (s *Spec) Sequence() *Time {
	var first *Time
	_ = s.walk(func(src Source, _ int) error {
		if len(src.Sources) == 0 {
			first = cmp.Or(first, s.SequenceOf(&src))
		}
		return nil
	})
	return first
}

// SequenceOf returns Sequence of one source that is not a mixture.
func (s *Spec) SequenceOf(src *Source) *Time {
	if o := cmp.Or(src.Sampler, &s.Sampler); src.Time == nil && o.Kind == GeoWindow && o.Length > 0 {
		return &Time{Length: o.Length, Validity: DefaultValidity}
	}
	return src.Time
}

// DefaultValidity is the default of Time.Validity, and the name that sequences of windows on the ground have.
const DefaultValidity = "steps"

// SourceColumn is the tensor in the batches of a mixture that holds the dataset of each row.
const SourceColumn = "source"

// WindowMember is the tensor of Spec.Windows, int64 (n, 4): y, x, height and width of the window of
// each row, in pixels of the first raster field, before it is resampled, flipped or turned. y +
// height and x + width may lie past the edge if the field pads. Rows without a sample hold -1. All
// steps of a sequence share the window.
const WindowMember = "window"

// IDMember is the tensor of Spec.IDs.
const IDMember = "id"

// GeoMembers are the tensors of Spec.Geo, int64 (n) of EPSG codes and else float64. They describe the first raster
// field's window as it lies in the tensor: resampled, flipped and turned. All steps of a sequence have the values of
// the first. Rows without a sample, and rasters without a place, have the EPSG code 0 and NaN; with a CRS that is not
// known "geo.lonlat" and "geo.gsd" have NaN.
var GeoMembers = [...]string{"geo.transform", "geo.epsg", "geo.bounds", "geo.lonlat", "geo.gsd"}

// GeoTime is the tensor of Spec.Geo with the times of rows, int64 (n), or (n t) of sequences: microseconds since 1970
// UTC, and the least int64 for a row without a time.
const GeoTime = "geo.time"

// ThereMember returns the name of the tensor that says in which rows a field is there: uint8 (n), or (n t) of a field
// with steps. Batches with BadFill, or with a field that may lack, have one for each field.
func ThereMember(field string) string { return "there." + field }

// MissingFill is the value of Field.Missing beside MissingError.
const MissingFill = "fill"

// MayLack reports whether samples stay that lack the field.
func (f *Field) MayLack() bool { return f.Missing == MissingFill }

// SaysWhatIsThere reports whether batches have a tensor ThereMember for each field.
func (s *Spec) SaysWhatIsThere() bool {
	lacks := func(f Field) bool { return f.MayLack() }
	return (s.BadSamples == BadFill || slices.ContainsFunc(s.Fields, lacks)) && !s.IDs
}

// ClockColumns returns the columns that GeoTime looks at, in this order: the one that orders sequences, the columns of
// the rules by which scenes and their steps stand, and the usual ones.
func (s *Source) ClockColumns(o *Sampler) (names []string) {
	if s.Time != nil {
		names = append(names, s.Time.Order)
	}
	if o.Kind == GeoWindow {
		names = append(names, o.rules()...)
	}
	return append(names, TimeColumns...)
}

// extras returns the names of the tensors of a batch that are not fields.
func (s *Spec) extras() (names []string) {
	if len(s.Sources) > 0 {
		names = append(names, SourceColumn)
	}
	if s.Windows {
		names = append(names, WindowMember)
	}
	if s.Geo {
		names = append(append(append(names, "geo"), GeoMembers[:]...), GeoTime)
	}
	if s.SaysWhatIsThere() {
		names = append(names, "there")
		for _, field := range s.Fields {
			names = append(names, ThereMember(field.Name))
		}
	}
	fixed := len(names)
	_ = s.walk(func(src Source, _ int) error {
		if t := s.SequenceOf(&src); t != nil && !slices.Contains(names[fixed:], t.Validity) {
			names = append(names, t.Validity)
		}
		return nil
	})
	return names
}

// walk calls visit for every source, the outermost first, with its depth in mixtures from 0.
func (s *Spec) walk(visit func(Source, int) error) error {
	var into func(Source, int) error
	into = func(src Source, depth int) error {
		if err := visit(src, depth); err != nil {
			return err
		}
		for i, c := range src.Sources {
			if err := into(c, depth+1); err != nil {
				return InSource(c.Named(i), err)
			}
		}
		return nil
	}
	return into(s.Root(), 0)
}

// Named returns the name of the source, or i, its number in the mixture, if it has none.
func (s *Source) Named(i int) string {
	if s.Name != "" {
		return s.Name
	}
	return fmt.Sprint(i)
}

func (s *Spec) validateSources() error {
	fields := map[string]bool{}
	for _, field := range s.Fields {
		fields[field.Name] = true
	}
	n, steps := 0, s.Sequence()
	return s.walk(func(src Source, depth int) error {
		if n++; n > maxSources {
			return fmt.Errorf("over %d sources", maxSources)
		}
		if depth > maxMixed {
			return fmt.Errorf("mixtures in mixtures over %d deep", maxMixed)
		}
		if n := len(src.Source); n > maxPath {
			return fmt.Errorf("source is a path of %d bytes: at most %d are allowed", n, maxPath)
		}
		if err := src.validate(depth, fields); err != nil {
			return err
		}
		for _, field := range src.Fields {
			for _, f := range s.Fields {
				if field.Name == f.Name && (field.Vector != nil) != (f.Vector != nil) {
					return fmt.Errorf("field %q is one of shapes in the spec or in the source, not in both", field.Name)
				}
			}
		}
		if len(src.Sources) > 0 {
			return nil
		}
		// A batch has one tensor for all sources, so their sequences need one length and one name.
		mine := s.SequenceOf(&src)
		if s.Batches == OneSource {
			return nil
		}
		if (mine == nil) != (steps == nil) ||
			steps != nil && (mine.Length != steps.Length || mine.Validity != steps.Validity) {
			return errors.New(
				"time: all sources need sequences of the same length, with the same name for their validity")
		}
		return nil
	})
}

// validate checks a source as far as that is possible without its data. depth is the number of
// mixtures around it; fields holds the names of the fields of the spec.
func (s *Source) validate(depth int, fields map[string]bool) error {
	mixed := len(s.Sources) > 0
	switch {
	case mixed && (s.Source != "" || s.Parts != nil || s.BasePath != ""):
		return errors.New("both source and sources are given")
	case !mixed && s.Source == "":
		return errors.New("source is empty")
	case !mixed && s.Mixture.hasOptions():
		return errors.New("temperature, until, length, per_batch and batches are members of a mixture")
	case mixed && (s.IDList != "" || s.Tables != nil || s.Where != nil || s.BBoxCRS != 0 || s.Split != nil ||
		s.Use != "" || s.Strata != nil || s.Time != nil || s.Missing != "" ||
		depth > 0 && (s.Fields != nil || s.Sampler != nil)):
		return errors.New("rows, fields and samplers belong to the sources of a mixture, not to the mixture")
	case mixed && (s.Dims != "" || s.Timestamp != nil):
		return errors.New("dims and timestamp belong to the sources of a mixture")
	case s.Weight < 0 || s.Count < 0:
		return wrong("weight", s.Weight, "it must be above 0")
	}
	if err := cmp.Or(checkDims(s.Dims), s.Timestamp.validate(), s.validateFields(fields)); err != nil {
		return err
	}
	if s.Sampler != nil {
		if err := s.Sampler.validate(); err != nil {
			return err
		}
	}
	if mixed {
		return s.validateMixture()
	}
	return s.Subset.Validate()
}

// ofSpec lists the members of a field that sources do not override, since all have one tensor.
var ofSpec = []string{"scenes", "match", "match_days", "kind", "layout", "sizes", "dtype", "validity"}

// validateFields checks the overrides of a source. names holds the names of the fields of the spec.
func (s *Source) validateFields(names map[string]bool) error {
	for _, field := range s.Fields {
		if !names[field.Name] {
			return fmt.Errorf("field %q: the spec has no field of this name", field.Name)
		}
		if firstMember(&field, func(name string) bool { return slices.Contains(ofSpec, name) }) != "" {
			return fmt.Errorf("field %q: scenes, match, match_days, kind, layout, sizes, dtype and validity are the "+
				"spec's", field.Name)
		}
		if !field.Beside() {
			// An override has no dtype, and Validate needs one. float32 allows every other member;
			// they are checked against the dtype of the spec's field when it is compiled.
			field.DType = "float32"
			if field.Clip {
				field.DType = "uint8" // which also allows them, but for a fill of NaN
			}
		}
		if err := field.Validate(); err != nil {
			return within(fmt.Sprintf("field %q", field.Name), err)
		}
	}
	return nil
}

// validateMixture checks the weights of the sources of a mixture, and the end of its epochs.
func (s *Source) validateMixture() error {
	for i := range s.Sources {
		if src := &s.Sources[i]; s.Temperature != 0 && src.Weight != 0 && src.Weight != 1 {
			return fmt.Errorf(
				"source %q has a weight, and the mixture a temperature, which weights sources by their sizes",
				src.Named(i))
		}
	}
	switch {
	case s.Batches != "" && s.Batches != OneSource:
		return wrong("batches", s.Batches, "it must be %q; without it they are mixed", OneSource)
	case s.Batches != "" && s.PerBatch:
		return fmt.Errorf("batches is %q, and per_batch is true: a batch has shares of several sources, or is of one",
			s.Batches)
	}
	return validUntil(s.Until, s.Length, s.Temperature)
}

func validUntil(until Text, length int64, temperature float64) error {
	switch {
	case until != UntilShortest && until != UntilLongest && until != UntilLength:
		return wrong("until", until, "it must be %q, %q or %q", UntilShortest, UntilLongest, UntilLength)
	case length < 0 || length > maxSamples || until != UntilLength && length != 0:
		return fmt.Errorf("length is %d, but until is %q", length, until)
	// The negation also refuses NaN, for which every comparison is false.
	case !(temperature >= 0):
		return wrong("temperature", temperature, "it must be above 0")
	}
	return nil
}

// Validate checks a subset with defaults as far as that is possible without the data.
func (s *Subset) Validate() error {
	if s.Missing != "" && s.Missing != MissingError && s.Missing != MissingDrop {
		return wrong("missing", s.Missing, "it must be %q or %q", MissingError, MissingDrop)
	}
	if s.IDColumn != "" && s.IDList == "" {
		return wrong("id_column", s.IDColumn, "it is the column of ids, and there are none")
	}
	if len(s.Tables) > maxTables {
		return fmt.Errorf("tables: %d tables, at most %d", len(s.Tables), maxTables)
	}
	for i, table := range s.Tables {
		if table.Path == "" || table.On == "" {
			return fmt.Errorf("tables: table %d needs path and on, a column of the dataset", i)
		}
	}
	if s.BBoxCRS != 0 {
		return fmt.Errorf("bbox_crs is %d, but there is no bbox", s.BBoxCRS)
	}
	if n := conditions(s.Where); n > maxConditions {
		return fmt.Errorf("where: %d conditions", n)
	}
	if err := validateWhere(s.Where, 0); err != nil {
		return within("where", err)
	}
	if (s.Split == nil) != (s.Use == "") {
		return errors.New("split and use belong together: a split needs use, the part that counts, and use a split")
	}
	if s.Split != nil {
		if s.Split.part != "" {
			return fmt.Errorf("use is %q, but split, %q, already names the part", s.Use, s.Split.part)
		}
		if err := s.Split.validate(s.Use); err != nil {
			return within("split", err)
		}
	}
	if strata := s.Strata; strata != nil {
		if strata.Column == "" {
			return errors.New("strata: no column")
		}
		if err := validUntil(strata.Until, strata.Length, strata.Temperature); err != nil {
			return within("strata", err)
		}
	}
	if time := s.Time; time != nil {
		switch {
		case time.Key == "" || time.Order == "":
			return errors.New("time: needs key and order, two columns")
		case time.Length < 1 || time.Length > maxSteps || time.Stride < 1 || time.Stride > maxSteps:
			return fmt.Errorf("time: length is %d and stride is %d: both must be from 1 to %d",
				time.Length, time.Stride, maxSteps)
		case s.Strata != nil:
			return errors.New("time: sequences cannot be drawn by strata")
		}
	}
	return nil
}

// validateWhere checks conditions. depth is the number of groups around them.
func validateWhere(where []Condition, depth int) error {
	for i := range where {
		condition := &where[i]
		err := condition.validate()
		if err == nil && condition.Concat != nil {
			err = validateGroups(condition.Concat, i, depth)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// validate checks that a condition is of exactly one kind, and its members as far as that is
// possible without the data.
func (c *Condition) validate() error {
	kinds := 0
	for _, set := range []bool{
		c.Op != "" || c.Value != nil, strings.TrimSpace(c.SQL) != "", c.Select != "", c.BBox != nil,
		c.Datetime != "", c.Concat != nil,
	} {
		if set {
			kinds++
		}
	}
	switch {
	case kinds == 0 && c.Column == "":
		return errors.New("a condition is empty: it has no column, sql or the like; leave it out for all samples")
	case kinds > 1:
		return errors.New("a condition is one of column with op and value, sql, select, bbox, datetime and concat")
	case c.SQL != "" || c.Select != "" || c.Concat != nil:
		if c.Column != "" || c.Level != 0 || c.Within || c.BBoxCRS != 0 {
			return errors.New("sql, select and concat take no column, level, within or bbox_crs")
		}
		return nil
	case c.BBoxCRS != 0 && c.BBox == nil:
		return fmt.Errorf("bbox_crs is %d, but there is no bbox that it could be of", c.BBoxCRS)
	case c.BBoxCRS < 0:
		return wrong("bbox_crs", c.BBoxCRS, "it is an EPSG code")
	case c.BBox != nil:
		_, _, err := c.Place()
		return err
	case c.Datetime != "":
		if c.Within {
			return errors.New("within is for bbox")
		}
		_, _, err := c.Place()
		return err
	case c.Column == "" || !slices.Contains(operators, c.Op):
		return fmt.Errorf("column %q: the operator is %q: it must be one of %s", c.Column, c.Op,
			strings.Join(operators, " "))
	case c.Level != 0 || c.Within:
		return errors.New("level and within are for bbox and datetime")
	}
	if _, err := c.Operands(); err != nil {
		return within(fmt.Sprintf("column %q", c.Column), err)
	}
	return nil
}

// Called returns the name of the argument by which a user gives such a condition, for errors.
func (c *Condition) Called() string {
	switch {
	case c.Select != "":
		return "sql"
	case c.BBox != nil:
		return "bbox"
	case c.Datetime != "":
		return "datetime"
	}
	return "where"
}

// Compares reports whether the condition compares a column with a value, which every table can do.
func (c *Condition) Compares() bool { return c.Op != "" }

// validate checks a split with defaults, and that it has a part with the name use.
func (s *Split) validate(use string) error {
	var names []string
	var err error
	switch s.By {
	case "given":
		parts := s.Shares != nil || s.Exact || s.Ranges != nil || s.Seed != 0 || s.Size != 0
		if parts || s.Columns != nil || s.LonLat || s.CRS != "" {
			return errors.New("by \"given\" takes a column, and nothing else")
		}
		// The value of use cannot be checked, because only the column has the names of the parts.
		return nil
	case "hash", "column", "cell", ByPlace:
		names, err = s.shareNames()
	case "date":
		names, err = s.rangeNames()
	default:
		return wrong("by", s.By, `it must be "hash", "column", "date", "cell", "place" or "given"`)
	}
	switch {
	case err != nil:
		return err
	case (s.By == "column" || s.By == "date") != (s.Column != ""):
		return fmt.Errorf("by %q, and column %q", s.By, s.Column)
	// The negation also refuses NaN, for which every comparison is false.
	case (s.By == "cell" || s.By == ByPlace) && !(s.Size > 0):
		return wrong("size", s.Size, "the side of a cell must be above 0")
	case s.By == ByPlace && s.Size > maxPlace:
		return wrong("size", s.Size, "the side of a square must be at most %d degrees", maxPlace)
	case s.Exact && (s.By == "date" || s.By == ByPlace):
		return fmt.Errorf("by %q, and exact: it is for \"hash\", \"column\" and \"cell\"", s.By)
	case s.MarginM != 0 && s.By != ByPlace:
		return fmt.Errorf("by %q, and margin_m %v: it is for \"place\"", s.By, s.MarginM)
	case !(s.MarginM >= 0 && s.MarginM <= maxMargin):
		return wrong("margin_m", s.MarginM, "it must be from 0 to %d metres", maxMargin)
	case s.By == ByPlace && s.Columns != nil:
		return fmt.Errorf("by %q, and columns: windows are divided, not rows", s.By)
	case (s.By == "cell" || s.By == ByPlace) != (s.Size != 0) ||
		s.By == "cell" && len(s.Columns) != 4:
		return fmt.Errorf("by %q, cells of size %v and %d columns of bounds", s.By, s.Size, len(s.Columns))
	case s.LonLat && s.By != "cell" || s.LonLat != (s.CRS != ""):
		return fmt.Errorf("by %q, in longitude and latitude %t, of a CRS in column %q", s.By, s.LonLat, s.CRS)
	case !slices.Contains(names, use):
		return fmt.Errorf("no part %q; there are %q", use, names)
	}
	return nil
}

// fractionTolerance is how far fractions may be from a sum of 1: three thirds, rounded to two digits, miss it by 0.01,
// and seven sevenths by 0.02.
const fractionTolerance = 0.021

// checkFractions refuses weights of at most 1, not all of them whole numbers, that do not sum to 1. They are meant as
// fractions of the rows: 0.8 and 0.3 are not 8 to 3 but a mistake.
func (s *Split) checkFractions() error {
	sum, fractions := 0.0, false
	for _, share := range s.Shares {
		if share.Parts != 0 || share.Weight > 1 {
			return nil
		}
		fractions = fractions || share.Weight < 1
		sum += share.Weight
	}
	if !fractions || math.Abs(sum-1) <= fractionTolerance {
		return nil
	}
	return fmt.Errorf("shares sum to %.4g: fractions must sum to 1; whole numbers are weights, such as 4 and 1", sum)
}

// shareNames checks the shares of a split and returns their names.
func (s *Split) shareNames() (names []string, err error) {
	if len(s.Shares) > maxShares || len(s.Shares) == 0 || s.Ranges != nil {
		return nil, fmt.Errorf("by %q takes shares, 1 to %d", s.By, maxShares)
	}
	for _, share := range s.Shares {
		if share.Parts == 0 { // WithDefaults could not fill it in
			if _, err := shuffle.Apportion(1, []float64{share.Weight}); err != nil {
				return nil, fmt.Errorf("share %q is %v: it must be a finite number above 0", share.Name, share.Weight)
			}
		}
	}
	if err := s.checkFractions(); err != nil {
		return nil, err
	}
	h := s.Hash()
	if err := h.Check(); err != nil {
		return nil, err
	}
	for _, share := range s.Shares {
		names = append(names, share.Name)
	}
	// Otherwise a row of the second share would be in no part.
	if name, twice := repeated(names); twice {
		return nil, fmt.Errorf("two shares are called %q", name)
	}
	return names, nil
}

// rangeNames checks the ranges of a split by date and returns their names.
func (s *Split) rangeNames() (names []string, err error) {
	if len(s.Ranges) > maxShares || len(s.Ranges) == 0 || s.Shares != nil {
		return nil, fmt.Errorf("by \"date\" takes ranges, 1 to %d", maxShares)
	}
	for _, part := range s.Ranges {
		for _, raw := range []json.RawMessage{part.From, part.To} {
			if len(raw) == 0 {
				continue
			}
			if _, err := OperandOf(raw); err != nil {
				return nil, within(fmt.Sprintf("range %q", part.Name), err)
			}
		}
		if part.empty() {
			return nil, fmt.Errorf("range %q is [%s, %s]: it must begin before it ends", part.Name, part.From, part.To)
		}
		names = append(names, part.Name)
	}
	return names, nil
}

// empty reports whether no value is in a range, because it ends where it begins, or before.
func (r *Range) empty() bool {
	low, err1 := OperandOf(r.From)
	high, err2 := OperandOf(r.To)
	if err1 != nil || err2 != nil || low.IsText != high.IsText {
		return false // one has no bound, or they are compared with columns of different kinds
	}
	begin, end := low, high
	if low.IsText && begin.Count(time.Microsecond) == nil && end.Count(time.Microsecond) == nil {
		return begin.int >= end.int
	}
	if low.IsText {
		return low.text >= high.text
	}
	// Whole numbers are compared as such, since float64 would round those beyond 2^53.
	if !low.isFloat && !high.isFloat {
		return low.int >= high.int
	}
	return low.float >= high.float
}

// Hash returns the seed and the shares of the split in the types of package shuffle.
func (s *Split) Hash() shuffle.Split {
	split := shuffle.Split{Seed: s.Seed}
	for _, p := range s.Shares {
		split.Shares = append(split.Shares, shuffle.Share{Name: p.Name, Parts: p.Parts})
	}
	return split
}

// normalizeSources is normalize for what sources change. Statistics have their numbers for the bands that the source
// reads, whether the field or the source picks them.
func (s *Spec) normalizeSources(sources []Source) error {
	for i := range sources {
		src := &sources[i]
		for place, field := range s.FieldsOf(src) {
			index := slices.IndexFunc(src.Fields, func(f Field) bool { return f.Name == field.Name })
			if index < 0 {
				continue
			}
			change := &src.Fields[index]
			picks := change.Bands != nil || change.BandNames != nil || change.ByPosition
			if change.Normalize == nil && !(picks && s.Fields[place].Normalize.byStats()) {
				continue
			}
			if err := field.normalize(); err != nil {
				return InSource(src.Named(i), within(fmt.Sprintf("field %q", field.Name), err))
			}
			change.Normalize = field.Normalize
		}
		if err := s.normalizeSources(src.Sources); err != nil {
			return InSource(src.Named(i), err)
		}
	}
	return nil
}

// inertMembers lists members of overrides that have no effect. The members in ofSpec are refused.
var inertMembers = []string{"name", "times", "columns", "patterns", "grid", "classes"}

// replaced lists members of a field that name one thing together, so that one of an override replaces all: a column of
// the spec must not meet a pattern of the source.
var replaced = [][]string{{"column", "pattern", "blob"}, {"bands", "band_names", "by_position"}}

// FieldsOf returns the fields of the spec with the overrides of a source.
func (s *Spec) FieldsOf(src *Source) []Field {
	out := slices.Clone(s.Fields)
	for i := range out {
		for _, o := range src.Fields {
			if o.Name == out[i].Name {
				out[i].override(&o)
			}
		}
	}
	return out
}

// override sets the members that an override has.
func (f *Field) override(o *Field) {
	members := maps.Collect(eachMember(f))
	for _, names := range replaced {
		if firstMember(o, func(name string) bool { return slices.Contains(names, name) }) == "" {
			continue
		}
		for _, name := range names {
			members[name].SetZero()
		}
	}
	for name, value := range eachMember(o) {
		if !value.IsZero() && !slices.Contains(inertMembers, name) && !slices.Contains(ofSpec, name) {
			members[name].Set(value)
		}
	}
	f.Physical = f.isPhysical()
}

// Queries reports whether a condition is more than a comparison. Columns does not list the columns
// that such a condition needs.
func (s *Subset) Queries() bool {
	return slices.ContainsFunc(s.Where, func(c Condition) bool { return !c.Compares() })
}

// Columns returns the columns of the table that the comparisons, the split, the strata and the
// sequences of the subset need. They need not all exist: of SplitColumns one is enough.
func (s *Subset) Columns() (names []string) {
	for _, table := range s.Tables {
		names = append(names, table.On)
	}
	if s.IDColumn != "" {
		names = append(names, s.IDColumn)
	}
	for _, c := range s.Where {
		if c.Compares() {
			names = append(names, c.Column)
		}
	}
	if s.Split != nil {
		if s.Split.Column != "" {
			names = append(names, s.Split.Column)
		} else if s.Split.By == "given" {
			names = append(names, SplitColumns...)
		}
		names = append(names, s.Split.Columns...)
	}
	if s.Strata != nil {
		names = append(names, s.Strata.Column)
	}
	if s.Time != nil {
		names = append(names, s.Time.Key, s.Time.Order)
	}
	return names
}

// Texts returns the columns that are compared with strings for being equal, or among them, and those of keys.
func (s *Subset) Texts() (names []string) {
	for _, table := range s.Tables {
		names = append(names, table.On)
	}
	if s.IDColumn != "" {
		names = append(names, s.IDColumn)
	}
	for i := range s.Where {
		c := &s.Where[i]
		if !c.Compares() || !slices.Contains([]string{"==", "!=", "in"}, c.Op) {
			continue
		}
		operands, err := c.Operands()
		number := func(o Operand) bool { return !o.IsText }
		if err == nil && len(operands) > 0 && !slices.ContainsFunc(operands, number) {
			names = append(names, c.Column)
		}
	}
	return names
}

// Codes returns the columns whose values are keys: of splits by their values, of strata and of sequences.
func (s *Subset) Codes() (names []string) {
	if s.Split != nil && (s.Split.By == "column" || s.Split.By == "given") {
		names = append(names, s.Split.Column)
	}
	if s.Strata != nil {
		names = append(names, s.Strata.Column)
	}
	if s.Time != nil {
		names = append(names, s.Time.Key)
	}
	return names
}

// PlaceColumns and TimeColumns list the columns that BBox and Datetime look at if a condition names
// none: the columns of containers, GeoParquet and STAC. The first one that the table has is used.
var (
	PlaceColumns = []string{"istac:geometry", "stac:geometry", "spatial:geometry", "stac:centroid", "istac:centroid",
		"spatial:centroid", "geometry"}
	TimeColumns = []string{"istac:time_start", "stac:time_start", "stac:datetime", "temporal:datetime", "datetime"}
	// BoundsColumns are the columns of a catalog with the bounds of each raster, in the CRS of its
	// column epsg.
	BoundsColumns = []string{"minx", "miny", "maxx", "maxy"}
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
