package build

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/wkb"
)

// Containers of generation 1 (Tortilla 0.5, TACO 0.2) and of generation 2 have some columns and members of the
// description under other names or in other types:
//
//	generation 1                                 generation 2
//	tortilla:data_split                          split
//	stac:time_start, stac:time_end in seconds    timestamps
//	stac:centroid as WKT                         as WKB
//	stac:raster_shape                            stac:tensor_shape
//	task: "Semantic Segmentation"                tasks: ["semantic-segmentation"]
//	extent.temporal in milliseconds              ISO 8601

// Columns that differ between generations.
const (
	newSplit, oldSplit = "split", "tortilla:data_split"
	newShape, oldShape = "stac:tensor_shape", "stac:raster_shape"
	centroid           = "stac:centroid"
)

// timeColumns are the columns of STAC with times.
var timeColumns = []string{"stac:time_start", "stac:time_end"}

// allTime is the extent of time, in milliseconds, where no times are known: the text wants two numbers. It is 1970 to
// 9999-12-31T23:59:59Z, the last second with a year of four digits.
var allTime = [2]int64{0, 253_402_300_799_000}

// taskName returns the name of a task in generation 2.
func taskName(task string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimSpace(task)), " ", "-")
}

// older returns columns as generation 1 has them.
func older(ctx context.Context, t *tables.Table) (*tables.Table, error) {
	return changed(ctx, t, func(name string, v *tables.Vector) (string, *tables.Vector) {
		switch {
		case name == newSplit && t.Index(oldSplit) < 0 && isOldSplit(v):
			return oldSplit, v
		case name == centroid && v.Kind() == tables.Binary:
			return name, asWKT(v)
		case slices.Contains(timeColumns, name) && v.Kind() == tables.Timestamp:
			return name, mapped(v, int64Type, func(us int64) (int64, bool) {
				// The second in which the time lies: before 1970, a plain division would round to the next one.
				return (us - (us%1e6+1e6)%1e6) / 1e6, true
			})
		}
		return name, v
	})
}

// newer returns columns as generation 2 has them.
func newer(ctx context.Context, t *tables.Table) (*tables.Table, error) {
	return changed(ctx, t, func(name string, v *tables.Vector) (string, *tables.Vector) {
		switch {
		case name == oldSplit && t.Index(newSplit) < 0:
			return newSplit, v
		case name == oldShape && t.Index(newShape) < 0:
			return newShape, v
		case name == centroid && v.Kind() == tables.String:
			return name, asWKB(v)
		case slices.Contains(timeColumns, name) && (v.Kind() == tables.Int64 || v.Kind() == tables.Uint64):
			return name, mapped(v, tables.Type{Kind: tables.Timestamp}, func(s int64) (int64, bool) {
				return s * 1e6, s <= math.MaxInt64/1_000_000 && s >= math.MinInt64/1_000_000
			})
		}
		return name, v
	})
}

// changed returns a table whose columns each have another name and values.
func changed(ctx context.Context, t *tables.Table,
	to func(name string, v *tables.Vector) (string, *tables.Vector)) (*tables.Table, error) {
	names, vectors := make([]string, len(t.Columns())), make([]*tables.Vector, len(t.Columns()))
	for i, column := range t.Columns() {
		values, err := t.At(ctx, i)
		if err != nil {
			return nil, err
		}
		if names[i], vectors[i] = to(column.Name, values); vectors[i] == nil {
			names[i], vectors[i] = column.Name, values
		}
	}
	if len(names) == 0 {
		return t, nil
	}
	return tables.FromVectors(names, vectors), nil
}

// isOldSplit reports whether all values of a column are those that tortilla:data_split may have.
func isOldSplit(v *tables.Vector) bool {
	if v.Kind() != tables.String {
		return false
	}
	for i := range v.Len() {
		if !v.Null(i) && !slices.Contains([]string{"train", "test", "validation"}, v.Str(i)) {
			return false
		}
	}
	return true
}

// converted returns a column of the values of another one in another type, or nil if one of them cannot have it.
func converted[T any](v *tables.Vector, value func(row int) (T, bool), vector func([]T) *tables.Vector) *tables.Vector {
	out := make([]T, v.Len())
	for row := range out {
		if v.Null(row) {
			continue
		}
		var ok bool
		if out[row], ok = value(row); !ok {
			return nil
		}
	}
	return vector(out)
}

// mapped returns a column of integers of another type, or nil if a value does not fit.
func mapped(v *tables.Vector, to tables.Type, value func(int64) (int64, bool)) *tables.Vector {
	return converted(v, func(row int) (int64, bool) { return value(v.Int(row)) },
		func(out []int64) *tables.Vector { return tables.NewInts(to, out, v.Nulls()) })
}

// asWKT returns a column of points in WKB as text, or nil if a value is not a point.
func asWKT(v *tables.Vector) *tables.Vector {
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	return converted(v, func(row int) (string, bool) {
		x, y, err := wkb.Point(v.Bytes(row))
		return "POINT (" + number(x) + " " + number(y) + ")", err == nil
	}, func(out []string) *tables.Vector { return tables.NewStrings(out, v.Nulls()) })
}

// asWKB returns a column of points in WKT as WKB, or nil if a value is not a point.
func asWKB(v *tables.Vector) *tables.Vector {
	return converted(v, func(row int) ([]byte, bool) {
		point, err := wkb.AppendText(nil, v.Str(row))
		if err == nil {
			_, _, err = wkb.Point(point)
		}
		return point, err == nil
	}, func(out [][]byte) *tables.Vector { return Bytes(len(out), func(row int) []byte { return out[row] }) })
}

// upgrade turns the members of a COLLECTION of generation 1 into members of generation 2. A member of a form that is
// not known stays as it is.
func upgrade(members map[string]json.RawMessage) {
	for name, value := range members {
		if b := withoutNulls(value); b != nil {
			members[name] = b
		} else {
			delete(members, name)
		}
	}
	var id, task string
	if json.Unmarshal(members["id"], &id) == nil {
		members["id"] = quoted(idOf(id))
	}
	if json.Unmarshal(members["task"], &task) == nil && members["tasks"] == nil {
		members["tasks"] = json.RawMessage("[" + string(quoted(taskName(task))) + "]")
	}
	if members["tasks"] != nil {
		delete(members, "task")
	}
	if e := newExtent(members["extent"]); e != nil {
		members["extent"] = e
	}
	newExtensions(members)
}

// idOf returns an id as generation 2 wants it: a-z, 0-9, "_" and "-".
func idOf(id string) string {
	return strings.Map(func(r rune) rune {
		letter, digit := r >= 'a' && r <= 'z', r >= '0' && r <= '9'
		if letter || digit || r == '_' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(id))
}

// withoutNulls removes null members of objects, which writers of generation 1 write for unknown values. It returns nil
// if the whole value is null.
func withoutNulls(value json.RawMessage) json.RawMessage {
	decoder := json.NewDecoder(bytes.NewReader(value))
	// As float64, long integers would lose digits.
	decoder.UseNumber()
	var v any
	// The whole value is decoded once: again at each depth would take minutes for 1 MB of deep lists.
	if decoder.Decode(&v) != nil {
		return value
	}
	if v == nil {
		return nil
	}
	data, err := plainJSON(pruned(v))
	if err != nil {
		return value
	}
	return data
}

// pruned removes the members of objects that are null from a value.
func pruned(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if member == nil {
				delete(v, name)
			} else {
				v[name] = pruned(member)
			}
		}
	case []any:
		for i := range v {
			v[i] = pruned(v[i])
		}
	}
	return v
}

// newExtent returns an extent of generation 1: a box and two times, or as writers have it lists of one of each, with
// times as milliseconds or in ISO 8601. Times that are not two known ones are left out. It is nil if the box has
// another form.
func newExtent(value json.RawMessage) json.RawMessage {
	var doc struct {
		Spatial, Temporal json.RawMessage
	}
	var out struct {
		Spatial  []float64 `json:"spatial"`
		Temporal []string  `json:"temporal"`
	}
	if json.Unmarshal(value, &doc) != nil || json.Unmarshal(first(doc.Spatial), &out.Spatial) != nil {
		return nil
	}
	out.Temporal = newTimes(first(doc.Temporal))
	data, err := json.Marshal(out)
	if err != nil {
		return nil // a box of NaN, which JSON does not have
	}
	return data
}

// newTimes returns two times in ISO 8601, nil if value is not two known times: an end may be open, which is null.
func newTimes(value json.RawMessage) (out []string) {
	var ms []*float64
	var texts []*string
	switch {
	case json.Unmarshal(value, &ms) == nil && len(ms) == 2:
		for _, t := range ms {
			// ISO 8601 has four digits for a year: these are the first millisecond of year 0 and the last of 9999.
			const least, most = -62_167_219_200_000, 253_402_300_799_999
			if t == nil || !(*t >= least && *t <= most) {
				return nil
			}
			out = append(out, time.UnixMilli(int64(*t)).UTC().Format("2006-01-02T15:04:05.999Z07:00"))
		}
		// Writers have this range where no times are known, because generation 1 wants two numbers.
		if *ms[0] == float64(allTime[0]) && *ms[1] == float64(allTime[1]) {
			return nil
		}
	case json.Unmarshal(value, &texts) == nil && len(texts) == 2:
		for _, t := range texts {
			if t == nil {
				return nil
			}
			out = append(out, *t)
		}
	}
	return out
}

// first returns the first element of a list of lists, or the value itself.
func first(value json.RawMessage) json.RawMessage {
	var lists [][]json.RawMessage
	if json.Unmarshal(value, &lists) != nil || len(lists) == 0 {
		return value
	}
	data, err := json.Marshal(lists[0])
	if err != nil {
		return value
	}
	return data
}
