package spec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/chaski-eo/chaski/format/column"
)

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

// Compare compares a value of a column of kind k with an operand of that kind, as cmp.Compare does.
// ordered is false if the value is NaN, for which every comparison is false.
func (o *Operand) Compare(k column.Kind, v column.Value) (c int, ordered bool) {
	switch {
	case o.IsText:
		return bytes.Compare(v.Text, []byte(o.text)), true
	case k == column.Int && !o.isFloat:
		return cmp.Or(cmp.Compare(v.Int, o.int), -o.beyond), true
	}
	f := v.Number(k)
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
	for _, layout := range clocks {
		when, err := time.Parse(layout, o.text)
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

// date begins a date or timestamp whose letters are in the order of time.
var date = regexp.MustCompile(`^\d{4}(-\d{2})?($|[^\d/.])`)

// Dated checks that a text that is compared with a date is a date itself, in the form whose letters are in the order of
// time. name is the column.
func (c *Condition) Dated(name string, v column.Value, with []Operand) error {
	orders := c.Op != "" && (c.Op[0] == '<' || c.Op[0] == '>')
	isDate := func(o Operand) bool {
		return o.IsText && len(o.text) >= len("2006-01") && date.MatchString(o.text)
	}
	isText := !v.Null && len(v.Text) > 0
	if !orders || !isText || date.Match(v.Text) || !slices.ContainsFunc(with, isDate) {
		return nil
	}
	return fmt.Errorf("column %q holds the text %q, and %q compares the letters of texts: write dates as 2006-01-02",
		name, brief(string(v.Text)), c.Op)
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
