package spec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"time"

	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/internal/crs"
)

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

// operators lists the values of Condition.Op.
var operators = []string{"==", "!=", "<", "<=", ">", ">=", "in"}

// Operand is a number or a string that the values of a column are compared with.
type Operand struct {
	text    string
	IsText  bool // the operand is a string
	isFloat bool // int is not set
	int     int64
	float   float64
	beyond  int // 1 if the operand is above int and below the next value, or above all; -1 if below all
}

// OperandOf returns the operand of a JSON number or string. Other JSON is an error.
func OperandOf(m json.RawMessage) (o Operand, err error) {
	// A list of 1 MiB has half a million of them, so no decoder is made for each.
	m = bytes.TrimSpace(m)
	switch {
	case !json.Valid(m):
		return o, errors.New("value is not JSON")
	case m[0] == '"':
		o.IsText = true
		return o, json.Unmarshal(m, &o.text)
	case m[0] != '-' && (m[0] < '0' || m[0] > '9'):
		return o, fmt.Errorf("value %s is neither a number nor a text", brief(string(m)))
	}
	// Whole numbers stay whole, since float64 would round those beyond 2^53.
	if i, err := strconv.ParseInt(string(m), 10, 64); err == nil {
		return Operand{int: i, float: float64(i)}, nil
	}
	f, err := strconv.ParseFloat(string(m), 64)
	if err != nil {
		return o, fmt.Errorf("value %s is not a number of float64", brief(string(m)))
	}
	return Operand{isFloat: true, float: f}, nil
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

// Compare compares a value of a column of kind k with an operand of that kind, as cmp.Compare does.
// ordered is false if the value is NaN, for which every comparison is false.
func (o *Operand) Compare(k column.Kind, v column.Value) (c int, ordered bool) {
	switch {
	case o.IsText:
		return cmp.Compare(v.Text, o.text), true
	case k == column.Int && !o.isFloat:
		return cmp.Or(cmp.Compare(v.Int, o.int), -o.beyond), true
	}
	f := v.Float
	if k == column.Int {
		f = float64(v.Int)
	}
	return cmp.Compare(f, o.float), !math.IsNaN(f)
}

// clocks lists the layouts of dates and timestamps. A timestamp without a zone is in UTC.
// time.Parse accepts a fraction after the seconds of every layout.
var clocks = []string{
	"2006", "2006-01", time.DateOnly,
	time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05",
	"2006-01-02T15:04Z07:00", "2006-01-02T15:04",
}

// Count turns a string operand into the number of units from 1970 to the time that it names. A
// year, month or day is its first moment. A string that is neither a date nor a timestamp is an
// error.
func (o *Operand) Count(unit time.Duration) error {
	for _, form := range clocks {
		when, err := time.Parse(form, o.text)
		if err != nil {
			continue
		}
		ns := new(big.Int).Mul(big.NewInt(when.Unix()), big.NewInt(int64(time.Second)))
		ns.Add(ns, big.NewInt(int64(when.Nanosecond())))
		// DivMod rounds down, also before 1970, so rest is never negative.
		count, rest := new(big.Int).DivMod(ns, big.NewInt(int64(unit)), new(big.Int))
		o.IsText, o.int, o.beyond = false, count.Int64(), rest.Sign()
		// A time before or after all times of the column stands beyond its first or last value.
		if !count.IsInt64() {
			o.int, o.beyond = math.MaxInt64, 1
			if count.Sign() < 0 {
				o.int, o.beyond = math.MinInt64, -1
			}
		}
		o.float = float64(o.int)
		return nil
	}
	return fmt.Errorf("it holds times, and %q is neither a date (2006-01-02) nor an instant (2006-01-02T15:04:05Z)",
		o.text)
}

// Suits checks that the operand can be compared with a column of kind k. The error names the
// column.
func (o *Operand) Suits(k column.Kind, name string) error {
	if o.IsText != (k == column.Text) {
		return fmt.Errorf("column %q holds %ss, which are not compared with %s",
			name, k, map[bool]string{true: "texts", false: "numbers"}[o.IsText])
	}
	return nil
}

// Meets reports whether a value of a column of kind k meets the comparison with the operands. A
// null meets none.
func (c *Condition) Meets(k column.Kind, v column.Value, with []Operand) bool {
	if v.Null {
		return false
	}
	for i := range with {
		order, ordered := with[i].Compare(k, v)
		if !ordered {
			if c.Op == "!=" { // NaN differs from every number
				return true
			}
			continue
		}
		ok := false
		switch c.Op {
		case "==", "in":
			ok = order == 0
		case "!=":
			ok = order != 0
		case "<":
			ok = order < 0
		case "<=":
			ok = order <= 0
		case ">":
			ok = order > 0
		case ">=":
			ok = order >= 0
		}
		if ok {
			return true
		}
	}
	return false
}

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
// recursively, so that the depth must have a bound.
const maxNested = 8

// Joins reports whether the conditions begin with groups of containers. Groups can only come first.
func Joins(where []Condition) bool { return len(where) > 0 && where[0].Concat != nil }

// Joins reports whether the conditions join groups of containers with conditions of their own.
// Their dataset must then be opened with taco.Options.Chosen, because the groups join columns
// themselves.
func (s *Subset) Joins() bool { return Joins(s.Where) }

// ColumnsMode returns how the columns of all containers are joined: as their group says if there is
// only one group, else by column.Intersection.
func (s *Subset) ColumnsMode() (column.Mode, error) {
	if s.Joins() && len(s.Where[0].Concat) == 1 {
		return s.Where[0].Concat[0].Mode()
	}
	return column.Intersection, nil
}

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
		if _, err := group.Mode(); err != nil {
			return within("concat", err)
		}
		if err := validateWhere(group.Where, depth+1); err != nil {
			return within(fmt.Sprintf("concat: group %d", i), err)
		}
	}
	return nil
}

// Mode returns how the columns of the group are joined: Columns, or column.Intersection by default.
func (g *Group) Mode() (column.Mode, error) {
	if g.Columns == "" {
		return column.Intersection, nil
	}
	return column.ParseMode(g.Columns)
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
