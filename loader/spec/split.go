package spec

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/chaski-eo/chaski/shuffle"
)

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
	// Seed is the seed of the hash. It is apart from the seed of the spec, so a split stays
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
		return fmt.Errorf("by is %q, and column is %q: \"column\" and \"date\" need one, and others have none",
			s.By, s.Column)
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
		return fmt.Errorf("by is %q, size is %v, and there are %d columns of bounds: \"cell\" needs a size and 4 "+
			"columns, \"place\" a size, and others have none", s.By, s.Size, len(s.Columns))
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

// checkFractions refuses fractions that do not sum to 1. Weights are fractions of the rows if all are at most 1 and
// some are not whole numbers: 0.8 and 0.3 are a mistake, rather than 8 to 3.
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
