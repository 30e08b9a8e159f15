package spec

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/format/column"
)

// Subset selects rows of a dataset and groups them.
type Subset struct {
	// IDList is the path of a list of the samples that count: a text file with an id on each line, or PATH::COLUMN, a
	// column of a table (.csv, .tsv, .parquet, .json). A column by its number, from 0, is of a CSV file without a
	// header. An id is what the sample is called, or the end of the path of one of its rasters from a slash on, with or
	// without the ending. Samples keep the dataset's order. An id that names no sample is an error: see Missing.
	IDList string `json:"id_list,omitempty" hash:"place"`
	// IDColumn is the column of the dataset that holds the ids, or a text with columns in braces, such as
	// "{scene}_{tile}". Each id then names all rows that have it. Default: what the samples are called.
	IDColumn string `json:"id_column,omitempty"`
	// Tables are other tables whose columns the dataset has, too: a sample gets the columns of the row with its key.
	// JSON may have an object here, of a column of the dataset by the path of each table, or of an object that has
	// the dataset's column by the table's: {"labels.csv": "id"} or {"labels.csv": {"Image ID": "id"}}.
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
	// for ids of IDList without a sample, and for samples that one of Tables lacks.
	Missing string `json:"missing,omitempty" hash:"rule"`
}

// SideTable is a table that is joined to the samples of a dataset.
type SideTable struct {
	// Path is the path of a table (.csv, .tsv, .parquet, .json). No two of its rows may have the same key, unless
	// SeveralRows is behind Column: its columns are lists of the values of all rows with the key then.
	Path string `json:"path" hash:"place"`
	// On is the column of the dataset that has the key of each sample, also where a table has a column of this name.
	On string `json:"on"`
	// Column is the column of the table that has the keys. A key is the value of On, or the end of it from a slash
	// on, with or without the ending of an image. A column by its number, from 0, is of a CSV file without a header.
	// Default: the name of On.
	Column string `json:"column,omitempty"`
}

// SeveralRows is behind the name of a column of keys that several rows may have.
const SeveralRows = "[]"

// Values of Subset.Missing.
const (
	MissingError = "error" // the dataset is not opened
	MissingDrop  = "drop"  // incomplete samples are left out, and the engine logs how many
)

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

// Time groups rows into sequences: the rows with one value of Key, ordered by Order.
type Time struct {
	// Key is the column whose value is the same for all rows of a series, or several, such as "{tile}_{x}_{y}".
	// Default: all rows are one series.
	Key string `json:"key,omitempty"`
	// Order is the column that orders the rows of a series: numbers, times, or strings that say a
	// time, such as ISO 8601 dates. Other strings are refused. Default: "row", the numbers of the rows.
	Order string `json:"order,omitempty"`
	// Length is the number of steps of a sample, from 1 to 65,536.
	Length int `json:"length"`
	// Stride is the number of steps from the start of one sample of a series to the start of the
	// next. Default: Length, so samples do not overlap.
	Stride int `json:"stride,omitempty"`
	// Cut leaves out the end of a series if it does not fill a sample. Without it the end is
	// padded.
	Cut bool `json:"cut,omitempty"`
	// Validity names a second tensor, uint8 (n t): 1 for a step that exists, 0 for padding. Default
	// "steps".
	Validity string `json:"validity,omitempty"`
}

// DefaultValidity is the default of Time.Validity, and the name that sequences of windows on the ground have.
const DefaultValidity = "steps"

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
		filled.Order = cmp.Or(filled.Order, column.RowColumn)
		filled.Stride = cmp.Or(filled.Stride, filled.Length)
		filled.Validity = cmp.Or(filled.Validity, DefaultValidity)
		s.Time = &filled
	}
	return s
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
		case time.Length < 1 || time.Length > maxSteps || time.Stride < 1 || time.Stride > maxSteps:
			return fmt.Errorf("time: length is %d and stride is %d: both must be from 1 to %d",
				time.Length, time.Stride, maxSteps)
		case s.Strata != nil:
			return errors.New("time: sequences cannot be drawn by strata")
		}
	}
	return nil
}

// Queries reports whether a condition is more than a comparison. Columns does not list the columns
// that such a condition needs.
func (s *Subset) Queries() bool {
	return slices.ContainsFunc(s.Where, func(c Condition) bool { return !c.Compares() })
}

// Joins reports whether the conditions join groups of containers with conditions of their own.
// Their dataset must then be opened with taco.Options.Chosen, because the groups join columns
// themselves.
func (s *Subset) Joins() bool { return Joins(s.Where) }

// Columns returns the columns of the table that the comparisons, the split, the strata and the
// sequences of the subset need. They need not all exist: of SplitColumns one is enough.
func (s *Subset) Columns() (names []string) {
	names = s.IDs()
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
		names = append(names, s.Time.keys()...)
		names = append(names, s.Time.Order)
	}
	return names
}

// IDs returns the columns with the keys of tables and with ids.
func (s *Subset) IDs() (names []string) {
	for _, table := range s.Tables {
		names = append(names, table.On)
	}
	if s.IDColumn != "" {
		names = append(names, s.IDColumn)
	}
	return names
}

// Texts returns the columns that are compared with strings for being equal, or among them, and the columns of
// keys.
func (s *Subset) Texts() (names []string) {
	names = s.IDs()
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
		names = append(names, s.Time.keys()...)
	}
	return names
}

// keys returns the column of Key, none for one series of all rows.
func (t *Time) keys() []string {
	if t.Key == "" {
		return nil
	}
	return []string{t.Key}
}
