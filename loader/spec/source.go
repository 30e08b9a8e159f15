package spec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/shuffle"
)

// InSource says in which source of the spec an error came up.
func InSource(name string, err error) error { return fmt.Errorf("source %q: %w", name, err) }

// ErrPerBatch is the error of shares that cannot be exact in a batch.
var ErrPerBatch = errors.New("per_batch needs per_batch, and weights in place of a temperature, of the mixture around it")

var Untils = map[string]shuffle.Until{UntilShortest: shuffle.Shortest, UntilLongest: shuffle.Longest, UntilLength: shuffle.Given}

// SetCounts turns weights into whole counts of total, unless the spec has them.
func (s *Source) SetCounts(sources []shuffle.Source, total int64) error {
	weights := make([]float64, len(s.Sources))
	given := int64(0)
	for i := range s.Sources {
		weights[i] = cmp.Or(s.Sources[i].Weight, 1)
		given += s.Sources[i].Count
	}
	if given != 0 {
		return nil // package shuffle checks them
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

// Lengths returns the samples of sources.
func Lengths(sources []shuffle.Source) ([]int64, error) {
	out := make([]int64, len(sources))
	for i, s := range sources {
		p, err := shuffle.NewPlan(shuffle.Spec{Source: s})
		if err != nil {
			return nil, fmt.Errorf("source %d: %w", i, err)
		}
		out[i] = p.Len()
	}
	return out, nil
}

// Mixture draws samples from several sources in fixed proportions. See docs/order.md.
type Mixture struct {
	// Sources are what is mixed; empty where there is one source.
	Sources []Source `json:"sources,omitempty"`
	// Temperature weights the sources by their numbers of samples to the power of 1/Temperature: in
	// proportion at 1, more evenly above. 0: by their weights.
	Temperature float64 `json:"temperature,omitempty"`
	// Until says when an epoch ends: "shortest" (default), "longest" or "length".
	Until string `json:"until,omitempty"`
	// Length is the samples of an epoch, with "length".
	Length int64 `json:"length,omitempty"`
	// PerBatch makes the shares exact in every global batch, and epochs a whole number of batches. Otherwise they are exact in
	// 10,000 samples in a row. Of a mixture in a mixture both need it.
	PerBatch bool `json:"per_batch,omitempty"`
}

// Rules for the end of a mixture's epoch.
const (
	UntilShortest = "shortest" // when a source would begin again
	UntilLongest  = "longest"  // when every source has given every sample
	UntilLength   = "length"   // after Length samples
)

// Source is one of the sources of a mixture: a dataset, or a mixture again.
type Source struct {
	// Name names it in errors and reports. Default: its number.
	Name string `json:"name,omitempty"`
	// Source is what Spec.Source is.
	Source string `json:"source,omitempty"`
	Container
	// Dims is what Spec.Dims is.
	Dims string `json:"dims,omitempty"`
	// Timestamp is what Spec.Timestamp is.
	Timestamp *Timestamp `json:"timestamp,omitempty"`
	// Fields say in what this source's fields differ from the spec's of the same name: where they are found,
	// their bands, normalisation, fill and padding.
	Fields []Field `json:"fields,omitempty"`
	// Sampler takes the place of the spec's; windows must come out at the same size.
	Sampler *Sampler `json:"sampler,omitempty"`
	// Weight is the source's share, relative to that of the others. Default 1.
	Weight float64 `json:"weight,omitempty"`
	// Count is how often the source stands in 10,000 positions, or with PerBatch in a global batch. It is filled in.
	Count int64 `json:"count,omitempty"`
	Subset
	Mixture
}

// Subset says which rows of a dataset count, and how they are grouped.
type Subset struct {
	// Where are conditions that a row has to meet, all of them.
	Where []Condition `json:"where,omitempty"`
	// Split gives the rows to named parts, and Use says which of them counts.
	Split *Split `json:"split,omitempty"`
	Use   string `json:"use,omitempty"`
	// Strata draws from the rows of every value of a column in fixed proportions.
	Strata *Strata `json:"strata,omitempty"`
	// Time makes sequences of rows the samples.
	Time *Time `json:"time,omitempty"`
	// Missing is what becomes of ids for which a field with a pattern has no file: MissingError (default) or MissingDrop.
	Missing string `json:"missing,omitempty"`
}

// What becomes of incomplete samples.
const (
	MissingError = "error" // the dataset is not opened
	MissingDrop  = "drop"  // they are left out, and the engine logs how many
)

// Condition is one of: a comparison of a column with a value (Column, Op, Value), which a null does not
// meet; and of a container, a condition in SQL (SQL), the result of a query (Select), a place (BBox), a time
// (Datetime) or conditions of groups of containers (Concat).
type Condition struct {
	// Column is what Value is compared with. With BBox it is the column of geometries, with Datetime that of
	// times, where not the usual ones are meant.
	Column string `json:"column,omitempty"`
	// Op is "==", "!=", "<", "<=", ">", ">=" or "in".
	Op string `json:"op,omitempty"`
	// Value is a number or a text, as the column has; with "in" a list of them. Of a column of dates or
	// instants it may be a text in ISO 8601: a day is its first moment, in UTC.
	Value json.RawMessage `json:"value,omitempty"`

	// SQL is what stands behind WHERE, on the columns of level 0: see package tables/query.
	SQL string `json:"sql,omitempty"`
	// Select is a SELECT whose result has the column of ids: the samples with these ids count. In it the
	// table data has the rows that the conditions before it leave.
	Select string `json:"select,omitempty"`
	// BBox is the box (west, south, east, north) that the geometry of a sample or, in a catalog, the bounds of its raster
	// have a point in common with or, with Within, do not leave. It is in degrees of longitude and latitude, and crosses the
	// antimeridian if its west is greater than its east; see crs.NewBox. Geometries and bounds in another CRS are compared where
	// they lie on Earth; one that is not known is an error.
	BBox *[4]float64 `json:"bbox,omitempty"`
	// BBoxCRS is the EPSG code of the CRS of BBox. Default: 4326, longitude and latitude.
	BBoxCRS int  `json:"bbox_crs,omitempty"`
	Within  bool `json:"within,omitempty"`
	// Datetime is a range "A/B" that a sample begins in: dates, which are whole days in UTC, or instants.
	Datetime string `json:"datetime,omitempty"`
	// Level is the one whose geometry or time is meant: a sample counts if a row of it below the sample does.
	// Default: the first that has such a column.
	Level int `json:"level,omitempty"`

	// Concat takes the containers of a source in groups, each with conditions of its own: the samples that they
	// leave follow each other. It stands before all other conditions.
	Concat []Group `json:"concat,omitempty"`
}

// Container is what a source may have beside its path where it is a container (package taco).
type Container struct {
	// Parts are further containers: their samples follow in order. Like Source, they are not part of the spec
	// hash.
	Parts []string `json:"parts,omitempty"`
	// BasePath is the folder of the containers of a catalog (TACOCAT, TACOLLECTION.json), where they are not
	// beside it.
	BasePath string `json:"base_path,omitempty"`
}

// Split gives rows to named parts. Rows that are added or taken away later move no others.
type Split struct {
	// By is "hash" (of the row's id), "column" (of its value: equal values stay together), "date" (ranges of
	// a column), "cell" (of its place on the ground: neighbours stay together) or "given" (a column says of
	// each row which part it belongs to).
	By string `json:"by"`
	// Column with "column", "date" and "given"; of the last the default is SplitColumns.
	Column string `json:"column,omitempty"`
	// Seed of the hash. It is not the spec's: a split stays what it is from run to run.
	Seed uint64 `json:"seed,omitempty"`
	// Shares are the parts in order, but with "date".
	Shares []Share `json:"shares,omitempty"`
	// Ranges are the parts, with "date".
	Ranges []Range `json:"ranges,omitempty"`
	// Size of a cell in units of Columns, or in degrees with LonLat.
	Size float64 `json:"size,omitempty"`
	// LonLat has cells be of longitude and latitude: the middle of Columns is taken there from the row's own CRS, or, where
	// there are no such columns, the centroid of a container's sample (stac:centroid, istac:centroid).
	LonLat bool `json:"lonlat,omitempty"`
	// CRS is the column of EPSG codes of Columns, with LonLat. Default: epsg, which catalogs have. See lonlat.Known.
	CRS string `json:"crs,omitempty"`
	// Columns are the least x, least y, greatest x and greatest y of a row. Default: minx, miny, maxx,
	// maxy, which catalogs have.
	Columns []string `json:"columns,omitempty"`
}

// SplitColumns are the names of columns that say which part of the data a row belongs to; the first that is
// there counts.
var SplitColumns = []string{"split", "tortilla:data_split", "ml:split"}

// Share is a part of a split: its weight relative to the others, or, filled in, its parts of 2^32.
type Share struct {
	Name   string  `json:"name"`
	Weight float64 `json:"weight,omitempty"`
	Parts  int64   `json:"parts,omitempty"`
}

// Range is the rows of From <= value < To of a column: numbers, dates and instants (see Condition), or texts in
// the order of their bytes, as ISO 8601 dates are. Nothing stands for no bound.
type Range struct {
	Name string          `json:"name"`
	From json.RawMessage `json:"from,omitempty"`
	To   json.RawMessage `json:"to,omitempty"`
}

// Strata is a mixture of the rows of every value of a column.
type Strata struct {
	Column string `json:"column"`
	// Temperature as in Mixture; 0: every value as often as any other (class-balanced).
	Temperature float64 `json:"temperature,omitempty"`
	// Until as in Mixture. Default "length".
	Until string `json:"until,omitempty"`
	// Length of an epoch. Default: as many samples as all rows have, with PerBatch in whole batches.
	Length int64 `json:"length,omitempty"`
	// PerBatch as in Mixture. In a mixture that needs it, too.
	PerBatch bool `json:"per_batch,omitempty"`
}

// Time makes sequences of rows the samples: the rows of a key in order of their time.
type Time struct {
	// Key is the column whose value the rows of a series share, Order the column that orders them: numbers,
	// or texts such as ISO 8601 dates.
	Key   string `json:"key"`
	Order string `json:"order"`
	// Length is T, the steps of a sample. Stride is the steps between the first ones of two samples of
	// a series. Default: Length.
	Length int `json:"length"`
	Stride int `json:"stride,omitempty"`
	// Cut leaves out the end of a series that does not fill a sample; otherwise it is padded.
	Cut bool `json:"cut,omitempty"`
	// Validity names a further uint8 tensor (n t): 1 for a step that exists, 0 for padding. Default
	// "steps".
	Validity string `json:"validity,omitempty"`
}

// Limits of a spec's sources.
const (
	maxSources    = 1000
	maxMixed      = 8 // mixtures in mixtures
	maxConditions = 100
	maxShares     = 1000
	maxSteps      = 1 << 16
)

func (m Mixture) withDefaults() Mixture {
	if len(m.Sources) == 0 {
		return m
	}
	if m.Until == "" {
		m.Until = UntilShortest
	}
	m.Sources = slices.Clone(m.Sources)
	for i := range m.Sources {
		s := &m.Sources[i]
		if s.Sampler != nil {
			f := s.Sampler.withDefaults()
			s.Sampler = &f
		}
		s.Subset = s.Subset.WithDefaults()
		s.Mixture = s.Mixture.withDefaults()
	}
	return m
}

func (s Subset) WithDefaults() Subset {
	s.Where = compactedWhere(s.Where)
	if s.Split != nil {
		f := s.Split.withDefaults()
		s.Split = &f
	}
	if s.Strata != nil && s.Strata.Until == "" {
		f := *s.Strata
		f.Until = UntilLength
		s.Strata = &f
	}
	if s.Time != nil {
		f := *s.Time
		if f.Stride == 0 {
			f.Stride = f.Length
		}
		if f.Validity == "" {
			f.Validity = "steps"
		}
		s.Time = &f
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
	s.Ranges = slices.Clone(s.Ranges)
	for i := range s.Ranges {
		s.Ranges[i].From, s.Ranges[i].To = compacted(s.Ranges[i].From), compacted(s.Ranges[i].To)
	}
	weights := make([]float64, len(s.Shares))
	for i, h := range s.Shares {
		if h.Parts != 0 {
			return s
		}
		weights[i] = h.Weight
	}
	parts, err := shuffle.Apportion(shuffle.SplitTotal, weights)
	if err != nil {
		return s // validate says so
	}
	s.Shares = slices.Clone(s.Shares)
	for i := range s.Shares {
		s.Shares[i].Parts, s.Shares[i].Weight = parts[i], 0
	}
	return s
}

// compactedWhere returns conditions with compacted values.
func compactedWhere(where []Condition) []Condition {
	where = slices.Clone(where)
	for i := range where {
		c := &where[i]
		c.Value, c.Concat = compacted(c.Value), slices.Clone(c.Concat)
		for k := range c.Concat {
			c.Concat[k].Where = compactedWhere(c.Concat[k].Where)
		}
	}
	return where
}

// compacted returns JSON without its white space, so that it does not matter.
func compacted(m json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, m) != nil {
		return m
	}
	return b.Bytes()
}

// Places returns the places of all that a spec reads, and what its sources are called: what the spec hash does
// not cover and an engine needs. Of one source it is its path.
func (s Spec) Places() string {
	var b strings.Builder
	points := func(fields []Field) {
		for _, f := range fields {
			if f.Points != nil {
				b.WriteString("\x00" + f.Points.Array)
			}
		}
	}
	points(s.Fields)
	_ = s.walk(func(src Source, depth int) error {
		if depth > 0 {
			b.WriteString("\x00" + src.Name + "\x00")
		}
		b.WriteString(src.Source)
		for _, p := range src.Parts {
			b.WriteString("\x00" + p)
		}
		if src.BasePath != "" {
			b.WriteString("\x00at " + src.BasePath)
		}
		if src.Sampler != nil && src.Sampler.Weights != "" {
			b.WriteString("\x00" + src.Sampler.Weights)
		}
		points(src.Fields)
		return nil
	})
	if s.Sampler.Weights != "" {
		b.WriteString("\x00" + s.Sampler.Weights)
	}
	return b.String()
}

// Root is the outermost source of a spec.
func (s *Spec) Root() Source {
	return Source{Source: s.Source, Container: s.Container, Dims: s.Dims, Timestamp: s.Timestamp, Subset: s.Subset, Mixture: s.Mixture}
}

// inTime reports whether samples are sequences.
func (s *Spec) inTime() bool { return s.Sequence() != nil }

// Sequence returns how samples are sequences, the same in every source, or nil.
func (s *Spec) Sequence() *Time {
	src := s.Root()
	for len(src.Sources) > 0 {
		if src.Time != nil {
			return src.Time
		}
		src = src.Sources[0]
	}
	return src.Time
}

// SourceColumn is the tensor of a mixture's batch that says of which dataset a row is.
const SourceColumn = "source"

// WindowMember is the tensor of Spec.Windows, int64 (n, 4): y, x, height and width of the row's window in pixels of the
// first raster field, before it is resampled, flipped or turned; y + height and x + width may pass the edge where the
// field pads. It is -1 in rows without a sample. All steps of a sequence share the window.
const WindowMember = "window"

// extras are the names of tensors that are no fields.
func (s *Spec) extras() (names []string) {
	if len(s.Sources) > 0 {
		names = append(names, SourceColumn)
	}
	if s.Windows {
		names = append(names, WindowMember)
	}
	if t := s.Sequence(); t != nil {
		names = append(names, t.Validity)
	}
	return names
}

// walk visits all sources, the outermost first.
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

// Named returns the name of source number i.
func (s *Source) Named(i int) string {
	if s.Name != "" {
		return s.Name
	}
	return fmt.Sprint(i)
}

func (s *Spec) validateSources() error {
	fields := map[string]bool{}
	for _, f := range s.Fields {
		fields[f.Name] = true
	}
	n, steps := 0, s.Sequence()
	return s.walk(func(src Source, depth int) error {
		if n++; n > maxSources {
			return fmt.Errorf("over %d sources", maxSources)
		}
		if depth > maxMixed {
			return fmt.Errorf("mixtures in mixtures over %d deep", maxMixed)
		}
		if err := src.validate(depth, fields); err != nil {
			return err
		}
		for _, o := range src.Fields {
			for _, f := range s.Fields {
				if o.Name == f.Name && (o.Points != nil) != (f.Points != nil) {
					return fmt.Errorf("field %q is one of points in the spec or in the source, not in both", o.Name)
				}
			}
		}
		if len(src.Sources) > 0 {
			return nil
		}
		if (src.Time == nil) != (steps == nil) || steps != nil && (src.Time.Length != steps.Length || src.Time.Validity != steps.Validity) {
			return errors.New("time: all sources need sequences of the same length, with the same name for their validity")
		}
		return nil
	})
}

// validate checks what can be checked of a source without the data. It lies in so many mixtures; fields are the names of
// the spec's.
func (s *Source) validate(depth int, fields map[string]bool) error {
	mixed := len(s.Sources) > 0
	switch {
	case mixed && (s.Source != "" || s.Parts != nil || s.BasePath != ""):
		return errors.New("both source and sources are given")
	case !mixed && s.Source == "":
		return errors.New("source is empty")
	case !mixed && (s.Temperature != 0 || s.Until != "" || s.Length != 0 || s.PerBatch):
		return errors.New("temperature, until, length and per_batch are members of a mixture")
	case mixed && (s.Where != nil || s.Split != nil || s.Use != "" || s.Strata != nil || s.Time != nil || s.Missing != "" || depth > 0 && (s.Fields != nil || s.Sampler != nil)):
		return errors.New("rows, fields and samplers belong to the sources of a mixture, not to the mixture")
	case mixed && (s.Dims != "" || s.Timestamp != nil):
		return errors.New("dims and timestamp belong to the sources of a mixture")
	case s.Weight < 0 || s.Count < 0:
		return fmt.Errorf("weight %v", s.Weight)
	}
	if err := checkDims(s.Dims); err != nil {
		return err
	}
	if err := s.Timestamp.validate(); err != nil {
		return err
	}
	if err := s.validateFields(fields); err != nil {
		return err
	}
	if s.Sampler != nil {
		if err := s.Sampler.validate(); err != nil {
			return fmt.Errorf("sampler: %w", err)
		}
	}
	if mixed {
		return s.validateMixture()
	}
	return s.Subset.Validate()
}

// validateFields checks in what the fields of a source differ from the spec's, which have these names.
func (s *Source) validateFields(names map[string]bool) error {
	for _, f := range s.Fields {
		if !names[f.Name] {
			return fmt.Errorf("field %q: the spec has no field of this name", f.Name)
		}
		if f.Kind != "" || f.Layout != "" || f.DType != "" || f.Sizes != nil || f.Validity != "" {
			return fmt.Errorf("field %q: kind, layout, sizes, dtype and validity are the spec's", f.Name)
		}
		if f.Points == nil {
			f.DType = "float32" // of the spec's field, which is checked with this when it is compiled
		}
		if err := f.Validate(); err != nil {
			return fmt.Errorf("field %q: %w", f.Name, err)
		}
	}
	return nil
}

// validateMixture checks the weights of the sources of a mixture, and the end of its epochs.
func (s *Source) validateMixture() error {
	for i := range s.Sources {
		if c := &s.Sources[i]; s.Temperature != 0 && c.Weight != 0 && c.Weight != 1 {
			return fmt.Errorf("source %q has a weight, and the mixture a temperature, which weights sources by their sizes", c.Named(i))
		}
	}
	return validUntil(s.Until, s.Length, s.Temperature)
}

func validUntil(until string, length int64, temperature float64) error {
	switch {
	case until != UntilShortest && until != UntilLongest && until != UntilLength:
		return fmt.Errorf("until is %q: it must be %q, %q or %q", until, UntilShortest, UntilLongest, UntilLength)
	case length < 0 || length > maxSamples || until != UntilLength && length != 0:
		return fmt.Errorf("length is %d, but until is %q", length, until)
	case !(temperature >= 0):
		return fmt.Errorf("temperature %v", temperature)
	}
	return nil
}

func (s *Subset) Validate() error {
	if s.Missing != "" && s.Missing != MissingError && s.Missing != MissingDrop {
		return fmt.Errorf("missing %q is neither %q nor %q", s.Missing, MissingError, MissingDrop)
	}
	if n := conditions(s.Where); n > maxConditions {
		return fmt.Errorf("where: %d conditions", n)
	}
	if err := validateWhere(s.Where, 0); err != nil {
		return fmt.Errorf("where: %w", err)
	}
	if (s.Split == nil) != (s.Use == "") {
		return errors.New("split and use belong together: a split needs use, the part that counts, and use a split")
	}
	if s.Split != nil {
		if err := s.Split.validate(s.Use); err != nil {
			return fmt.Errorf("split: %w", err)
		}
	}
	if t := s.Strata; t != nil {
		if t.Column == "" {
			return errors.New("strata: no column")
		}
		if err := validUntil(t.Until, t.Length, t.Temperature); err != nil {
			return fmt.Errorf("strata: %w", err)
		}
	}
	if t := s.Time; t != nil {
		switch {
		case t.Key == "" || t.Order == "":
			return errors.New("time: needs key and order, two columns")
		case t.Length < 1 || t.Length > maxSteps || t.Stride < 1 || t.Stride > maxSteps:
			return fmt.Errorf("time: sequences of %d steps every %d, not in 1..%d", t.Length, t.Stride, maxSteps)
		case s.Strata != nil:
			return errors.New("time: sequences cannot be drawn by strata")
		}
	}
	return nil
}

// validateWhere checks conditions, which lie in so many groups.
func validateWhere(where []Condition, depth int) error {
	for i := range where {
		c := &where[i]
		err := c.validate()
		if err == nil && c.Concat != nil {
			err = validateGroups(c.Concat, i, depth)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// validate checks that a condition is of one kind, and what can be checked of it without the data.
func (c *Condition) validate() error {
	kinds := 0
	for _, is := range []bool{c.Op != "" || c.Value != nil, c.SQL != "", c.Select != "", c.BBox != nil, c.Datetime != "", c.Concat != nil} {
		if is {
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
		return fmt.Errorf("bbox_crs is %d: it is an EPSG code", c.BBoxCRS)
	case c.BBox != nil:
		_, err := c.Filter()
		return err
	case c.Datetime != "":
		if c.Within {
			return errors.New("within is for bbox")
		}
		_, err := c.Filter()
		return err
	case c.Column == "" || !slices.Contains(operators, c.Op):
		return fmt.Errorf("column %q: the operator is %q: it must be one of %q", c.Column, c.Op, operators)
	case c.Level != 0 || c.Within:
		return errors.New("level and within are for bbox and datetime")
	}
	if _, err := c.Operands(); err != nil {
		return fmt.Errorf("column %q: %w", c.Column, err)
	}
	return nil
}

// Called is what a user gave the condition as.
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

// Compares reports whether a condition is one on a column, which every table can answer.
func (c *Condition) Compares() bool { return c.Op != "" }

// validate checks a split, of which the part use counts.
func (s *Split) validate(use string) error {
	var names []string
	var err error
	switch s.By {
	case "given":
		if s.Shares != nil || s.Ranges != nil || s.Seed != 0 || s.Size != 0 || s.Columns != nil || s.LonLat || s.CRS != "" {
			return errors.New("by \"given\" takes a column, and nothing else")
		}
		return nil
	case "hash", "column", "cell":
		names, err = s.shareNames()
	case "date":
		names, err = s.rangeNames()
	default:
		return fmt.Errorf(`by is %q: it must be "hash", "column", "date", "cell" or "given"`, s.By)
	}
	switch {
	case err != nil:
		return err
	case (s.By == "column" || s.By == "date") != (s.Column != ""):
		return fmt.Errorf("by %q, and column %q", s.By, s.Column)
	case (s.By == "cell") != (s.Size != 0) || s.Size < 0 || s.By == "cell" && len(s.Columns) != 4:
		return fmt.Errorf("by %q, cells of size %v and %d columns of bounds", s.By, s.Size, len(s.Columns))
	case s.LonLat && s.By != "cell" || s.LonLat != (s.CRS != ""):
		return fmt.Errorf("by %q, in longitude and latitude %t, of a CRS in column %q", s.By, s.LonLat, s.CRS)
	case !slices.Contains(names, use):
		return fmt.Errorf("no part %q; there are %q", use, names)
	}
	return nil
}

// shareNames checks the shares and returns the names of their parts.
func (s *Split) shareNames() (names []string, err error) {
	if len(s.Shares) > maxShares || len(s.Shares) == 0 || s.Ranges != nil {
		return nil, fmt.Errorf("by %q takes shares, 1 to %d", s.By, maxShares)
	}
	h := s.Hash()
	if err := h.Check(); err != nil {
		return nil, err
	}
	for _, h := range s.Shares {
		if slices.Contains(names, h.Name) { // rows of the second one would be in no part
			return nil, fmt.Errorf("two shares are called %q", h.Name)
		}
		names = append(names, h.Name)
	}
	return names, nil
}

// rangeNames is shareNames for the ranges of a split by date.
func (s *Split) rangeNames() (names []string, err error) {
	if len(s.Ranges) > maxShares || len(s.Ranges) == 0 || s.Shares != nil {
		return nil, fmt.Errorf("by \"date\" takes ranges, 1 to %d", maxShares)
	}
	for _, r := range s.Ranges {
		for _, v := range []json.RawMessage{r.From, r.To} {
			if len(v) == 0 {
				continue
			}
			if _, err := OperandOf(v); err != nil {
				return nil, fmt.Errorf("range %q: %w", r.Name, err)
			}
		}
		names = append(names, r.Name)
	}
	return names, nil
}

// Hash returns the split as package shuffle has it.
func (s *Split) Hash() shuffle.Split {
	h := shuffle.Split{Seed: s.Seed}
	for _, p := range s.Shares {
		h.Shares = append(h.Shares, shuffle.Share{Name: p.Name, Parts: p.Parts})
	}
	return h
}

// FieldsOf returns the fields of a source of the spec.
func (s *Spec) FieldsOf(src *Source) []Field {
	out := slices.Clone(s.Fields)
	for i := range out {
		f := &out[i]
		for _, o := range src.Fields {
			if o.Name != f.Name {
				continue
			}
			if o.Column != "" || o.Pattern != "" || o.Blob != "" {
				f.Column, f.Pattern, f.Blob = o.Column, o.Pattern, o.Blob
			}
			if o.Bands != nil {
				f.Bands, f.BandNames = o.Bands, nil
			}
			if o.BandNames != nil {
				f.Bands, f.BandNames = nil, o.BandNames
			}
			if o.Normalize != nil {
				f.Normalize = o.Normalize
			}
			if o.Fill != nil {
				f.Fill = o.Fill
			}
			if o.Points != nil {
				f.Points = o.Points
			}
			f.Pad = f.Pad || o.Pad
			if o.Resample != "" {
				f.Resample = o.Resample
			}
		}
	}
	return out
}

// Queries reports whether a condition is more than a comparison: what columns it needs, its text says.
func (s *Subset) Queries() bool {
	return slices.ContainsFunc(s.Where, func(c Condition) bool { return !c.Compares() })
}

// Columns are the columns of its table that a subset is made by.
func (s *Subset) Columns() (names []string) {
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

// Columns of place and time of tables, where a condition names none: those of containers, GeoParquet's and STAC's.
var (
	PlaceColumns = []string{"istac:geometry", "stac:centroid", "istac:centroid", "geometry"}
	TimeColumns  = []string{"istac:time_start", "stac:time_start", "datetime"}
	// BoundsColumns are those that a catalog has of every raster, in the CRS of crsColumn.
	BoundsColumns = []string{"minx", "miny", "maxx", "maxy"}
)
