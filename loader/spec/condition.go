package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/internal/crs"
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

// operators lists the values of Condition.Op.
var operators = []string{"==", "!=", "<", "<=", ">", ">=", "in"}

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

// Group is a number of consecutive containers of a source, with conditions for their samples.
type Group struct {
	// Paths is the number of containers of the group, at least 1. A group begins after the
	// containers of the group before it; Source comes first, then Parts.
	Paths int `json:"paths"`
	// Where lists conditions that see only the containers of the group.
	Where []Condition `json:"where,omitempty"`
	// Columns says what happens to columns that some containers of the group lack: "intersection"
	// (default) drops them, "fill_missing" fills them with nulls, "strict" is an error. For a group
	// of all containers it applies to fields, too.
	Columns string `json:"columns,omitempty"`
}

// maxNested is the depth of groups in groups. A spec is user input and groups are visited
// recursively, so the depth must have a bound.
const maxNested = 8

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

// Place returns the bounding box or the range of time of the condition. Errors are faults of the user's input, not of a
// file.
func (c *Condition) Place() (*crs.Box, *column.Times, error) {
	if c.Level < 0 {
		return nil, nil, fmt.Errorf("level %d", c.Level)
	}
	if c.BBox != nil {
		box, err := crs.NewBox(*c.BBox, int(c.BBoxCRS))
		return &box, nil, err
	}
	times, err := column.ParseTimes(c.Datetime)
	if err != nil {
		return nil, nil, within("datetime", err)
	}
	return nil, &times, nil
}

// Operands returns the operands that the column is compared with: one, or with "in" at least one.
func (c *Condition) Operands() ([]Operand, error) {
	if c.Op != "in" {
		o, err := OperandOf(c.Value)
		return []Operand{o}, err
	}
	var list []json.RawMessage
	if err := json.Unmarshal(c.Value, &list); err != nil || len(list) == 0 {
		return nil, errors.New("\"in\" needs a list of values")
	}
	out := make([]Operand, len(list))
	for i, m := range list {
		var err error
		if out[i], err = OperandOf(m); err != nil {
			return nil, err
		}
	}
	return out, nil
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

// Meets reports whether a value of a column of kind k meets the comparison with the operands. A
// null meets none.
func (c *Condition) Meets(k column.Kind, v column.Value, with []Operand) bool {
	if v.Null {
		return false
	}
	for i := range with {
		order, ordered := with[i].Compare(k, v)
		if ordered && holds(c.Op, order) || !ordered && c.Op == "!=" { // NaN differs from every number
			return true
		}
	}
	return false
}

// holds reports whether an operator holds for two values in an order.
func holds(op string, order int) bool {
	switch op {
	case "!=":
		return order != 0
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	case ">=":
		return order >= 0
	}
	return order == 0 // "==" and "in"
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

// compacted returns JSON without white space, which therefore leaves the spec hash alone. Tables hold 1 and 0
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

// Joins reports whether the conditions begin with groups of containers. Groups can only come first.
func Joins(where []Condition) bool { return len(where) > 0 && where[0].Concat != nil }

// validateGroups checks the groups of a condition. at is the index of the condition, depth the
// number of groups around it.
func validateGroups(groups []Group, at, depth int) error {
	switch {
	case at > 0:
		return errors.New("concat stands before all other conditions")
	case depth > maxNested || len(groups) == 0:
		return fmt.Errorf("concat of %d groups, in %d others", len(groups), depth)
	}
	for i, group := range groups {
		if group.Paths < 1 {
			return fmt.Errorf("concat: group %d has %d paths", i, group.Paths)
		}
		if _, err := column.ParseMode(group.Columns); err != nil && group.Columns != "" {
			return within("concat", err)
		}
		if err := validateWhere(group.Where, depth+1); err != nil {
			return within(fmt.Sprintf("concat: group %d", i), err)
		}
	}
	return nil
}

// Mode returns how the columns of the group are joined: Columns, or column.Intersection by default.
func (g *Group) Mode() column.Mode {
	mode, _ := column.ParseMode(g.Columns) // Validate checks it
	return mode
}

// conditions counts conditions, groups and the conditions in groups.
func conditions(where []Condition) int {
	count := len(where)
	for i := range where {
		for k := range where[i].Concat {
			count += 1 + conditions(where[i].Concat[k].Where)
		}
	}
	return count
}
