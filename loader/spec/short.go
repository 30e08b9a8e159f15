package spec

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/chaski-eo/chaski/internal/num"
)

// The types of this file read more than one form. WithDefaults moves short forms to the members that they stand for,
// so the JSON of a spec with defaults has long forms only. If these members are set too, the short form stays,
// and Validate refuses it. An error of UnmarshalJSON is the rule for the value.

// Text is a string, which JSON may write as a whole number, true or false.
type Text string

// UnmarshalJSON reads a string, or takes the text of a number, true or false for one.
func (t *Text) UnmarshalJSON(b []byte) error {
	_, err := strconv.ParseInt(string(b), 10, 64)
	switch text := string(b); {
	case err == nil || text == "true" || text == "false":
		*t = Text(b)
	case json.Unmarshal(b, (*string)(t)) != nil:
		return errors.New("a string or a whole number")
	}
	return nil
}

const pairRule = "the side of a square, or [height, width] in pixels; several sides are the `sizes` of a sampler"

// Pair is a height and a width in pixels, which JSON may write as one number for both.
type Pair [2]int

// UnmarshalJSON reads one number for both sides, or a list of two.
func (p *Pair) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &p[0]) == nil {
		p[1] = p[0]
		return nil
	}
	var list []*int // null is no 0
	if json.Unmarshal(b, &list) != nil || len(list) != 2 || list[0] == nil || list[1] == nil {
		return errors.New(pairRule)
	}
	*p = Pair{*list[0], *list[1]}
	return nil
}

// String returns the form in JSON: one number for equal sides.
func (p Pair) String() string {
	if p[0] == p[1] {
		return strconv.Itoa(p[0])
	}
	return fmt.Sprintf("[%d,%d]", p[0], p[1])
}

// GeoJSON is the path of a file of shapes, or GeoJSON text, which JSON may write as the object that it is. A geometry
// or a feature alone becomes a collection.
type GeoJSON string

// UnmarshalJSON reads a string or an object.
func (g *GeoJSON) UnmarshalJSON(b []byte) error {
	var object struct {
		Type string `json:"type"`
	}
	if b[0] != '{' || json.Unmarshal(b, &object) != nil {
		if json.Unmarshal(b, (*string)(g)) != nil {
			return errors.New("a path or GeoJSON")
		}
		return nil
	}
	text := string(b)
	if object.Type != "Feature" && object.Type != "FeatureCollection" {
		text = `{"type":"Feature","properties":null,"geometry":` + text + "}"
	}
	if object.Type != "FeatureCollection" {
		text = `{"type":"FeatureCollection","features":[` + text + "]}"
	}
	*g = GeoJSON(text)
	return nil
}

// EPSG is the EPSG code of a CRS, or ESRI's, which JSON may write as "EPSG:32633".
type EPSG int

// UnmarshalJSON reads a number, or a string of the authority and the code.
func (e *EPSG) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	text := strings.ToUpper(strings.Trim(string(b), `"`))
	if authority, code, ok := strings.Cut(text, ":"); ok && (authority == "EPSG" || authority == "ESRI") {
		text = code
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n == 0 {
		return errors.New(`an EPSG code, such as 32633 or "EPSG:32633"`)
	}
	*e = EPSG(n)
	return nil
}

// Timestamp is a range of time: the first and the last instant in milliseconds since 1970, both
// included. JSON may write an instant as a time of RFC 3339, and the last one alone.
type Timestamp [2]uint64

// UnmarshalJSON reads the first and the last instant, or the last one alone. An instant is a number of milliseconds or
// a time of RFC 3339.
func (t *Timestamp) UnmarshalJSON(b []byte) error {
	var list []json.RawMessage
	if b[0] != '[' {
		list = []json.RawMessage{json.RawMessage("0"), b}
	} else if json.Unmarshal(b, &list) != nil || len(list) != len(t) {
		return errors.New("one time, or the first and the last one")
	}
	for i := range t {
		var err error
		if t[i], err = ParseInstant(strings.Trim(string(list[i]), `"`)); err != nil {
			return err
		}
	}
	return nil
}

func (t *Timestamp) validate() error {
	if t != nil && (t[0] > t[1] || t[1] == 0) {
		return fmt.Errorf("timestamp is from %d to %d milliseconds since 1970: "+
			"the second must be above 0 and not before the first", t[0], t[1])
	}
	return nil
}

// ParseInstant reads milliseconds since 1970 or a time of RFC 3339, and returns milliseconds. The error is the rule.
func ParseInstant(text string) (uint64, error) {
	if ms, err := strconv.ParseUint(text, 10, 64); err == nil {
		return ms, nil
	}
	when, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || when.UnixMilli() < 0 {
		return 0, errors.New("milliseconds since 1970, or a time with a time zone such as 2026-11-20T12:00:00Z")
	}
	return uint64(when.UnixMilli()), nil
}

// Float is a number in JSON, which may be NaN or infinite.
type Float = num.Float
