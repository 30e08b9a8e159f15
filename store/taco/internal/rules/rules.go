// Package rules has what specifications want of the members of JSON documents, as data.
package rules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Decoded decodes a value. Numbers keep their digits.
func Decoded(b json.RawMessage) (v any) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil // the whole document was parsed before
	}
	return v
}

// Checker collects violations, one sentence each.
type Checker func(format string, args ...any)

// A Rule adds the violations of the value at a path.
type Rule func(c Checker, at string, v any)

// Field is a member of an object. A member that is null is taken to be missing, because tacotoolbox writes null for
// what its user did not give.
type Field struct {
	Name string
	// Need says that the member must be there and not be empty text; of a namespace it must be there if another is.
	Need bool
	Is   Rule
}

// Must returns a member that must be there, and May one that may be.
func Must(name string, is Rule) Field { return Field{name, true, is} }

// May is described at Must.
func May(name string, is Rule) Field { return Field{name, false, is} }

// Leaf is the rule of values that are in order, which must be what.
func Leaf(what string, ok func(v any) bool) Rule {
	return func(c Checker, at string, v any) {
		if !ok(v) {
			c("%s is %s: it must be %s", at, Shown(v), what)
		}
	}
}

// Rules of values.
var (
	Text   = Leaf("text", IsText)
	Number = Leaf("a number", func(v any) bool { _, ok := v.(json.Number); return ok })
	Whole  = Leaf("a whole number, at least 0", func(v any) bool { n, ok := isWhole(v); return ok && n >= 0 })
	Texts  = Leaf("a list of texts", func(v any) bool {
		list, ok := v.([]any)
		return ok && !slices.ContainsFunc(list, func(v any) bool { return !IsText(v) })
	})
	TextOrWhole = Leaf("text or a whole number", func(v any) bool { _, ok := isWhole(v); return ok || IsText(v) })
	// Globe is the rule of a box in degrees. West may be larger than east.
	Globe = Leaf("[west, south, east, north] in degrees", func(v any) bool {
		list, ok := v.([]any)
		box := make([]float64, len(list))
		for i := range list {
			n, isNumber := list[i].(json.Number)
			box[i], _ = n.Float64() // one out of range is an infinity, which is not on the globe
			ok = ok && isNumber
		}
		return ok && len(box) == 4 && min(box[0], box[2]) >= -180 && max(box[0], box[2]) <= 180 &&
			-90 <= box[1] && box[1] <= box[3] && box[3] <= 90
	})
	// Times is the rule of a range of times.
	Times = Leaf("[start, end], two texts", func(v any) bool {
		list, ok := v.([]any)
		return ok && len(list) == 2 && IsText(list[0]) && IsText(list[1])
	})
)

// Extent is the rule of a place and time.
func Extent(c Checker, at string, v any) {
	o, ok := v.(map[string]any)
	if !ok {
		c("%s is %s: it must be an object", at, Shown(v))
		return
	}
	Object(c, at, o, May("spatial", Globe), May("temporal", Times))
}

// IsText reports whether a value is text.
func IsText(v any) bool { _, ok := v.(string); return ok }

func isWhole(v any) (float64, bool) {
	n, ok := v.(json.Number)
	f, err := n.Float64()
	return f, ok && err == nil && f == math.Trunc(f)
}

// Empty reports whether a value is null or empty text.
func Empty(v any) bool { return v == nil || v == "" }

// OneOf is the rule of a text that has one of some values.
func OneOf(values ...string) Rule {
	return Leaf("one of "+strings.Join(values, ", "), func(v any) bool {
		s, ok := v.(string)
		return ok && slices.Contains(values, s)
	})
}

// List is the rule of a list whose elements have different values of the member unique, if that is not "".
func List(unique string, members ...Field) Rule {
	return func(c Checker, at string, v any) {
		list, ok := v.([]any)
		if !ok {
			c("%s is %s: it must be a list", at, Shown(v))
			return
		}
		first := map[any]int{}
		for i, v := range list {
			place := fmt.Sprintf("%s[%d]", at, i)
			o, ok := v.(map[string]any)
			if !ok {
				c("%s is %s: it must be an object", place, Shown(v))
				continue
			}
			Object(c, place, o, members...)
			key, ok := o[unique].(string)
			if before, again := first[key]; ok && again {
				c("%s.%s is %q, as of %s[%d]: they must differ", place, unique, key, at, before)
			} else if ok {
				first[key] = i
			}
		}
	}
}

// Object checks the members of an object. Others may be there.
func Object(c Checker, at string, o map[string]any, members ...Field) {
	for _, field := range members {
		v, name := o[field.Name], at+"."+field.Name
		switch {
		case field.Need && Empty(v):
			c("%s is missing or empty", name)
		case v != nil:
			field.Is(c, name, v)
		}
	}
}

// Shown returns the beginning of a value as JSON.
func Shown(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return "not JSON" // it was Decoded from JSON
	}
	return fmt.Sprintf("%.100s", data)
}
