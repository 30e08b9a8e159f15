package spec

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/stats"
)

// longForm is an object of JSON that a short form stands for.
type longForm map[string]any

// long returns the long form of a value of the type that a pointer leads to. A value that is not a short form stays as
// it is.
func (p specPlace) long(b json.RawMessage, pointer any) (json.RawMessage, error) {
	word := b[0] == '"'
	switch target := pointer.(type) {
	case *Sampler:
		if b[0] != '{' {
			return p.window(b)
		}
	case *[]Condition:
		if !word && b[0] != '[' {
			return nil, p.wrong(b, "SQL or a list of conditions")
		}
		return listOf(b), nil
	case *Condition:
		if b[0] != '{' {
			return p.condition(b)
		}
	case *[]Share:
		return p.byName(b, func(p specPlace, name string, b json.RawMessage) (any, error) {
			return longForm{"name": name, "weight": b}, nil
		})
	case *[]Range:
		return p.byName(b, specPlace.dates)
	case *[]SideTable:
		return p.byName(b, specPlace.sideTable)
	case *[]Field:
		if string(b) == "{}" {
			return nil, errors.New("fields is empty: it must have at least one field")
		}
		return p.byName(b, specPlace.field)
	case *Split:
		if b[0] != '{' {
			return p.part(b, target)
		}
	case *Strata:
		if word {
			return textOf(longForm{"column": b}), nil
		}
	case *Values:
		if _, err := strconv.ParseFloat(string(b), 64); err != nil && b[0] != '[' {
			return nil, p.wrong(b, "a number, or a list with one for each band")
		}
		return listOf(b), nil
	case *Names:
		if !word && b[0] != '[' {
			return nil, p.wrong(b, "the name of a column, or a list with one for each band")
		}
		return listOf(b), nil
	case *[][]Float:
		return p.noData(listOf(b))
	case *LUT:
		return p.table(b)
	case *Normalize:
		methods := []string{stats.MeanStd, stats.MinMax, stats.Percentile}
		if b[0] != '{' && !slices.Contains(methods, unquoted(b)) {
			return nil, p.wrong(b, `"`+strings.Join(methods, `", "`)+`" (of stats), false, or an object with mean and `+
				`std, such as those of ImageNet for pixels from 0 to 255: {"mean": [123.675, 116.28, 103.53], `+
				`"std": [58.395, 57.12, 57.375]}`)
		}
		if word {
			return textOf(longForm{"method": b}), nil
		}
	}
	return b, nil
}

// listOf returns a list, or a list of one value.
func listOf(b json.RawMessage) json.RawMessage {
	if b[0] == '[' {
		return b
	}
	return slices.Concat(json.RawMessage("["), b, json.RawMessage("]"))
}

// window returns the sampler that the sides of random windows stand for, or a list of windows: the first is the
// sampler, the others are its views.
func (p specPlace) window(b json.RawMessage) (json.RawMessage, error) {
	list, _ := elements(b)
	if len(list) == 0 || list[0][0] != '{' && list[0][0] != '[' {
		var sides Pair
		if sides.UnmarshalJSON(b) != nil {
			return nil, p.wrong(b, pairRule)
		}
		if min(sides[0], sides[1]) < 1 {
			// As a size, it would get the name of a member that is not there.
			return nil, p.wrong(b, "at least 1 pixel")
		}
		return textOf(longForm{"kind": RandomWindow, "size": b}), nil
	}
	first := object{"kind": textOf(RandomWindow), "size": list[0]}
	if list[0][0] == '{' {
		first = nil
		if err := json.Unmarshal(list[0], &first); err != nil {
			return nil, err
		}
	} else if sides := (Pair{}); sides.UnmarshalJSON(list[0]) != nil || min(sides[0], sides[1]) < 1 {
		return nil, p.wrong(list[0], "a window") // nor a list of windows, which would be read at each level again
	}
	if first["views"] != nil {
		return nil, errors.New("a window of a list has views: they are windows of the list, too")
	}
	if len(list) > 1 {
		first["views"] = textOf(list[1:])
	}
	return textOf(first), nil
}

// noData returns a list of lists. Its integers must be numbers of float64, as which nodata is compared.
func (p specPlace) noData(b json.RawMessage) (json.RawMessage, error) {
	lists, _ := elements(b)
	if len(lists) == 0 || lists[0][0] != '[' {
		lists = []json.RawMessage{b}
	}
	for _, list := range lists {
		values, _ := elements(list)
		for _, value := range values {
			n, whole := new(big.Int).SetString(string(value), 10)
			if whole && new(big.Float).SetInt(n).MinPrec() > 53 {
				return nil, p.wrong(value, "a number that float64 has exactly")
			}
		}
	}
	return textOf(lists), nil
}

// table returns the long form of a list of values, of an object of values by number or colour, "255,0,0", or of
// "masks".
func (p specPlace) table(b json.RawMessage) (json.RawMessage, error) {
	if b[0] == '[' {
		return textOf(longForm{"to": b}), nil
	}
	if unquoted(b) == "masks" {
		return textOf(longForm{"masks": true}), nil
	}
	if b[0] != '{' {
		return nil, p.wrong(b, `a list of values, an object of values by number or colour, or "masks"`)
	}
	names, values, err := p.members(b)
	if err != nil || values["to"] != nil || values["masks"] != nil {
		return b, err
	}
	numbers, colours, keysName := make([]int, len(names)), make([][]int, len(names)), "from"
	targets := []json.RawMessage{}
	for i, name := range names {
		for text := range strings.SplitSeq(name, ",") {
			if numbers[i], err = strconv.Atoi(text); err != nil {
				return nil, p.wrong(textOf(name), "a whole number, or a colour such as 255,0,0, because it is a key "+
					"of a look-up table")
			}
			colours[i] = append(colours[i], numbers[i])
		}
		if targets = append(targets, values[name]); len(colours[i]) > 1 {
			keysName = "colours"
		}
	}
	if keysName == "from" {
		return textOf(longForm{keysName: numbers, "to": targets}), nil
	}
	return textOf(longForm{keysName: colours, "to": targets}), nil
}

// condition returns the condition that SQL, or a list of column, operator and value, stands for.
func (p specPlace) condition(b json.RawMessage) (json.RawMessage, error) {
	triple, _ := elements(b)
	switch {
	case slices.Contains(operators, unquoted(b)):
		return nil, p.wrong(b, `SQL: a condition with an operator goes into a list, [["cloud", "<", 10]]`)
	case b[0] == '"':
		return textOf(longForm{"sql": b}), nil
	case len(triple) != 3:
		return nil, p.wrong(b, "SQL, or [column, operator, value]")
	}
	return textOf(longForm{"column": triple[0], "op": triple[1], "value": triple[2]}), nil
}

// part returns the split that the name of its part stands for, which it sets.
func (p specPlace) part(b json.RawMessage, of *Split) (json.RawMessage, error) {
	if b[0] != '"' {
		return nil, p.wrong(b, "the name of a part, or a split")
	}
	if of.part = unquoted(b); strings.TrimSpace(of.part) == "" {
		return nil, p.wrong(b, "the name of a part; leave it out for all samples")
	}
	return textOf(longForm{"by": "given"}), nil
}

// byName returns the list that an object of elements by name stands for.
func (p specPlace) byName(b json.RawMessage, long func(p specPlace, name string, b json.RawMessage) (any, error)) (
	json.RawMessage, error) {
	if b[0] != '{' {
		return b, nil
	}
	names, values, err := p.members(b)
	list := make([]any, len(names))
	for i, name := range names {
		if err == nil {
			list[i], err = long(p, name, values[name])
		}
	}
	return textOf(list), err
}

// dates returns the range that its two bounds stand for.
func (p specPlace) dates(name string, b json.RawMessage) (any, error) {
	bounds, _ := elements(b)
	if len(bounds) != 2 {
		return nil, p.member(name).wrong(b, "[from, to]")
	}
	part := object{"name": textOf(name), "from": bounds[0], "to": bounds[1]}
	maps.DeleteFunc(part, func(_ string, bound json.RawMessage) bool { return string(bound) == "null" })
	return part, nil
}

// sideTable returns the table that a column stands for, or an object of the dataset's column by the table's.
func (p specPlace) sideTable(path string, b json.RawMessage) (any, error) {
	inner, table := p.member(path), object{"path": textOf(path), "on": b}
	if b[0] == '{' {
		names, columns, err := inner.members(b)
		if err != nil || len(names) != 1 {
			return nil, inner.wrong(b, "the table's column with the keys and the dataset's, as one pair")
		}
		table["column"], table["on"] = textOf(names[0]), columns[names[0]]
	}
	if table["on"][0] != '"' {
		return nil, inner.wrong(b, "a column of the dataset, or {column of the table: column of the dataset}")
	}
	return table, nil
}

// field returns the field that an object without a name stands for, or a string for its place.
func (p specPlace) field(name string, b json.RawMessage) (any, error) {
	p.of, p.name = fmt.Sprintf("%sfield %q: ", p.of, brief(name)), ""
	switch b[0] {
	case '{':
		_, f, err := p.members(b)
		if err != nil {
			return nil, err
		}
		if f["name"] != nil {
			return nil, p.member("name").wrong(f["name"], "left out, because the field already has one")
		}
		f["name"] = textOf(name)
		return f, nil
	case '"':
		if len(column.Names(unquoted(b))) > 0 {
			return longForm{"name": name, "pattern": b}, nil
		}
		return longForm{"name": name, "column": b}, nil
	}
	return nil, p.wrong(b, "an object, the name of a column, or a pattern with a name such as {id}")
}

// picked puts band_names in place of bands if these are strings, by_position in place of "position", and strings in
// place of integers in classes. Whole floats count as integers: pandas has them in columns with gaps.
func (p specPlace) picked(field object) error {
	if value := field["physical"]; string(value) == "false" && (field.on("scale") || field.on("offset")) {
		return p.member("physical").wrong(value, "left out beside scale or offset, which make physical values")
	}
	if raw := field["classes"]; raw != nil && raw[0] == '[' {
		classes, _ := elements(raw)
		for i, class := range classes {
			number, err := strconv.ParseFloat(string(class), 64)
			if _, notInt := strconv.ParseInt(string(class), 10, 64); notInt == nil {
				classes[i] = textOf(string(class))
			} else if err == nil && number == math.Trunc(number) {
				classes[i] = textOf(strconv.FormatFloat(number+0, 'f', -1, 64))
			}
		}
		field["classes"] = textOf(classes)
	}
	var names []string
	switch bands := field["bands"]; {
	case string(bands) == `"position"`:
		field["by_position"] = json.RawMessage("true")
		delete(field, "bands")
	// An empty list goes the same way, because no bands at all is an error of band_names.
	case bands != nil && field["band_names"] == nil && json.Unmarshal(bands, &names) == nil && names != nil:
		field["band_names"] = bands
		delete(field, "bands")
	}
	return nil
}
