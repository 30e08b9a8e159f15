package build

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/geometries"
	"github.com/chaski-eo/chaski/internal/yamljson"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/store/taco/internal/taco2"
	"github.com/chaski-eo/chaski/store/taco/internal/taco3"
)

// Version is the version of the TACO specification of what this package writes.
const Version = "2.0.0"

// Collection describes a dataset as a whole ("TACO-level Fields" of the specification).
type Collection struct {
	// ID is the id of the dataset, of a-z, 0-9, "_" and "-" only.
	ID string `json:"id"`
	// DatasetVersion is the version of the dataset.
	DatasetVersion string `json:"dataset_version"`
	// Description is the description of the dataset.
	Description string `json:"description"`
	// Licenses are the licences of the dataset.
	Licenses []string `json:"licenses"`
	// Providers are those who made the dataset.
	Providers []map[string]any `json:"providers"`
	// Tasks are the tasks that the dataset is for.
	Tasks []string `json:"tasks"`
	// TacoVersion is the version of the specification. Default: Version.
	TacoVersion string `json:"taco_version"`
	// Title is the title of the dataset.
	Title string `json:"title,omitempty"`
	// Curators are those who made TACO of the dataset.
	Curators []map[string]any `json:"curators,omitempty"`
	// Keywords are the keywords of the dataset.
	Keywords []string `json:"keywords,omitempty"`
	// Extent is the place and time of all samples. Default: computed from the columns of STAC or ISTAC.
	Extent *Extent `json:"extent,omitempty"`
	// Columns declares types and meanings of columns, by name: "name" at level 0, "l1:name" below it. Values are
	// converted to the declared type. Declaring a column that does not exist is an error.
	Columns map[string]Declared `json:"-"`
	// More are further members, such as members of extensions.
	More map[string]json.RawMessage `json:"-"`

	descriptions map[string]string // descriptions of columns of the container that the description is of
	// structure is the taco:structure of that container, and declared its taco:metadata, by level and column.
	structure []string
	declared  map[string]map[string]taco3.Declared
	order     map[string][]string // the columns of each level in their order
}

// Extent is the place and time of all samples.
type Extent struct {
	// Spatial is [west, south, east, north] in degrees.
	Spatial []float64 `json:"spatial"`
	// Temporal is [start, end] in ISO 8601, or nil.
	Temporal []string `json:"temporal"`
}

// Members that Create computes.
const (
	pitMember    = "taco:pit_schema"
	fieldsMember = "taco:field_schema"
	// Of an index.
	sourcesMember = "taco:sources"
	tacocatMember = "_tacocat"
)

// computed are members that Create or an index computes: Set leaves them out.
var computed = []string{pitMember, fieldsMember, sourcesMember, tacocatMember}

// Set replaces members by the members of a JSON object. It ignores members that are computed.
func (c *Collection) Set(b []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(b, &members); err != nil {
		return fault.Wrap(fault.Corrupt, model.CollectionName, err)
	}
	rest := maps.Clone(c.More)
	for count, counted := range taco2.Counts {
		if members[counted] != nil {
			// The count is of the old list, and would contradict the new one.
			delete(rest, count)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		switch field, _ := c.member(name); {
		case field.IsValid():
			if err := decodeInto(field, name, members[name]); err != nil {
				return err
			}
		case !slices.Contains(computed, name):
			if rest == nil {
				rest = map[string]json.RawMessage{}
			}
			rest[name] = members[name]
		}
	}
	c.More = rest
	return nil
}

// member returns the field for a member of COLLECTION.json, and whether it is optional. The field of an unknown
// member is not valid.
func (c *Collection) member(name string) (field reflect.Value, optional bool) {
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		tag, option, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if tag == name && tag != "" && tag != "-" {
			return v.Field(i), option == "omitempty"
		}
	}
	return reflect.Value{}, false
}

// decodeInto replaces a member.
func decodeInto(field reflect.Value, name string, b []byte) error {
	// Into a new value, because encoding/json would merge lists and objects with the old ones.
	v := reflect.New(field.Type())
	err := json.Unmarshal(b, v.Interface())
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		return unsupported(model.CollectionName, "%s", wrongType(name, wrong))
	case err != nil:
		return fault.Wrap(fault.Corrupt, model.CollectionName, err)
	}
	field.Set(v.Elem())
	return nil
}

// wrongType says in the words of COLLECTION.json that a member has a value of another type.
func wrongType(name string, e *json.UnmarshalTypeError) string {
	if e.Field != "" {
		name += "." + e.Field
	}
	want := "an object"
	switch e.Type.Kind() {
	case reflect.String:
		want = "text"
	case reflect.Slice:
		want = "a list"
	case reflect.Float64:
		want = "a number"
	}
	return fmt.Sprintf("%s has a %s where %s is needed", name, e.Value, want)
}

// SetYAML is Set for a YAML document, which JSON is too. It also takes the members of an extension as one object, such
// as "optical: {sensor: sentinel2msi}", which replaces all that there were, and "columns", which sets Columns.
func (c *Collection) SetYAML(b []byte) error {
	members, err := yamljson.Object(b)
	if err != nil {
		return fault.Wrap(fault.Corrupt, model.CollectionName, err)
	}
	replaced, err := spread(members)
	if err != nil {
		return err
	}
	columns, err := declare(members, c.Columns)
	if err != nil {
		return err
	}
	c.Columns = columns
	for _, namespace := range replaced {
		c.unset(namespace)
	}
	if b, err = json.Marshal(members); err != nil {
		return fault.Wrap(fault.Corrupt, model.CollectionName, err)
	}
	return c.Set(b)
}

// unset removes an optional member, or all members of an extension such as "optical", and reports whether there was
// one.
func (c *Collection) unset(name string) bool {
	was := false
	for _, name := range append(taco2.ExtensionMembers(name), name) {
		was = was || c.More[name] != nil
		delete(c.More, name)
	}
	if field, optional := c.member(name); optional && !field.IsZero() {
		field.SetZero()
		return true
	}
	return was
}

// TextColumns returns the columns of level 0 that are declared to be text. A reader of CSV must not take the values of
// such a column for numbers: it would lose the zeros of "007".
func (c *Collection) TextColumns() (names []string) {
	for name, d := range c.Columns {
		if d.Type == "string" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// descriptionOf returns the description of a column of level k in taco:field_schema.
func (c *Collection) descriptionOf(k int, name string) string {
	if d := c.Columns[keyOf(k, name)].Description; d != "" {
		return d
	}
	if d := c.descriptions[keyOf(k, name)]; d != "" {
		return d
	}
	return descriptions[name]
}

// Check returns an error that names the first member which violates the specification.
func (c *Collection) Check() error {
	if c.ID == "" {
		return badMember("id is missing")
	}
	data, err := c.document()
	if err != nil {
		return err
	}
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(data, &doc); err != nil {
		return fault.Wrap(fault.Corrupt, model.CollectionName, err)
	}
	if err := firstOf(taco2.CoreViolations(doc)); err != nil {
		return err
	}
	if c.Extent != nil {
		if err := checkTimes(c.Extent.Temporal); err != nil {
			return err
		}
	}
	return checkExtensions(c.More)
}

// document returns COLLECTION.json with more members, in order.
func (c Collection) document(more ...jsonMember) ([]byte, error) {
	c.TacoVersion = cmp.Or(c.TacoVersion, Version)
	doc, err := plainJSON(c)
	if err != nil {
		return nil, err
	}
	extra, err := complete(c.More)
	if err != nil {
		return nil, err
	}
	members := make([]jsonMember, 0, len(extra)+len(more))
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		members = append(members, jsonMember{name, extra[name]})
	}
	if doc, err = appendMembers(bytes.TrimSuffix(doc, []byte("}")), append(members, more...)); err != nil {
		return nil, err
	}
	return indented(doc)
}

// CollectionOf returns the COLLECTION.json of a dataset, for Export. One without the members that TACO 2 requires is
// returned all the same: the caller may add them.
func CollectionOf(d *taco.Dataset) (*Collection, error) {
	collection := &Collection{}
	doc := d.Collection()
	if doc == nil {
		return collection, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(doc, &members); err != nil {
		return nil, fault.Wrap(fault.Corrupt, model.CollectionName, err)
	}
	if taco3.Version(doc) != "" {
		collection.modern(members)
	} else {
		collection.descriptions = saidOf(members[fieldsMember])
	}
	for name, value := range members {
		text, err := object{{name, value}}.MarshalJSON()
		if err != nil {
			return nil, err
		}
		if err := collection.Set(text); err != nil {
			return nil, err
		}
	}
	return collection, nil
}

// SubsetOf changes a description of a whole dataset into one of a subset of it, made on the given day.
func (c *Collection) SubsetOf(day time.Time) {
	if c.More == nil {
		c.More = map[string]json.RawMessage{}
	}
	c.More["taco:subset_of"] = quoted(c.ID)
	c.More["taco:subset_date"] = json.RawMessage(strconv.Quote(day.UTC().Format(time.RFC3339)))
}

// plainJSON encodes a value without escapes for HTML.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fault.Wrap(fault.Unsupported, model.CollectionName, err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// jsonMember is a member of a JSON object.
type jsonMember struct {
	name  string
	value any
}

// object is a JSON object whose members keep their order.
type object []jsonMember

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) { return appendMembers([]byte{'{'}, o) }

// appendMembers adds members to an object that has no end yet, and its end.
func appendMembers(b []byte, members []jsonMember) ([]byte, error) {
	for _, member := range members {
		name, err := plainJSON(member.name)
		if err != nil {
			return nil, err
		}
		value, err := plainJSON(member.value)
		if err != nil {
			return nil, err
		}
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = append(append(append(b, name...), ':'), value...)
	}
	return append(b, '}'), nil
}

// lines returns an object on a line for each member.
func (o object) lines() ([]byte, error) {
	doc, err := o.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return indented(doc)
}

// indented returns JSON with a line for each member.
func indented(doc []byte) ([]byte, error) {
	var out bytes.Buffer
	err := json.Indent(&out, doc, "", "  ")
	return append(out.Bytes(), '\n'), err
}

// quoted returns text as JSON.
func quoted(text string) json.RawMessage {
	data, err := json.Marshal(text)
	if err != nil {
		return nil // a string is always JSON
	}
	return data
}

// badMember returns an error about COLLECTION.json.
func badMember(format string, args ...any) error {
	return unsupported(model.CollectionName, format, args...)
}

// extentOf returns the extent of the first level that has points of STAC or ISTAC, or nil. Its times come from the
// first level that has times.
func extentOf(ctx context.Context, levels []*Level) (*Extent, error) {
	var e Extent
	for _, level := range levels {
		for _, prefix := range []string{"stac:", "istac:", "spatial:", "temporal:"} {
			var err error
			if e.Spatial == nil {
				if e.Spatial, err = boxOf(ctx, level.Table, prefix+"centroid"); err != nil {
					return nil, err
				}
			}
			// Times may have another prefix, because computed points of STAC may stand beside times of ISTAC.
			if e.Temporal == nil {
				e.Temporal, err = timesOf(ctx, level.Table, prefix+"time_start", prefix+"time_end",
					prefix+"datetime", prefix+"start_datetime", prefix+"end_datetime")
				if err != nil {
					return nil, err
				}
			}
		}
	}
	if e.Spatial == nil {
		return nil, nil
	}
	return &e, nil
}

// world is the extent of samples without known positions.
func world() *Extent { return &Extent{Spatial: []float64{-180, -90, 180, 90}} }

// cover extends an extent to another. A box whose west lies east of its east crosses the antimeridian; together with
// any other it is taken to go around the globe. It ignores times that are not in ISO 8601.
func (e *Extent) cover(o *Extent) {
	a, b := e.Spatial, o.Spatial
	box := []float64{min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])}
	if !slices.Equal(a, b) && (a[0] > a[2] || b[0] > b[2]) {
		box[0], box[2] = -180, 180
	}
	e.Spatial = box
	switch {
	case len(o.Temporal) != 2:
	case len(e.Temporal) != 2:
		e.Temporal = slices.Clone(o.Temporal)
	default:
		first, last := e.Temporal[0], e.Temporal[1]
		if before(o.Temporal[0], first) {
			first = o.Temporal[0]
		}
		if before(last, o.Temporal[1]) {
			last = o.Temporal[1]
		}
		e.Temporal = []string{first, last}
	}
}

// before compares two times in ISO 8601. It reports false if one of them is not a time.
func before(a, b string) bool {
	x, err := time.Parse(time.RFC3339, a)
	y, err2 := time.Parse(time.RFC3339, b)
	return err == nil && err2 == nil && x.Before(y)
}

// boxOf returns the bounding box of a column of points in degrees, WKB or structs of lon and lat, or nil.
func boxOf(ctx context.Context, t *tables.Table, name string) ([]float64, error) {
	i := t.Index(name)
	if i < 0 {
		return nil, nil
	}
	values, err := t.At(ctx, i)
	if err != nil {
		return nil, err
	}
	box := []float64{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}
	for i := range values.Len() {
		x, y, err := geometries.Centroid(values, i)
		if err != nil || !(math.Abs(x) <= 180 && math.Abs(y) <= 90) {
			// A point beyond the globe would stretch the box, and a null point gives the sample no location.
			continue
		}
		box[0], box[1] = min(box[0], x), min(box[1], y)
		box[2], box[3] = max(box[2], x), max(box[3], y)
	}
	if box[0] > box[2] {
		return nil, nil
	}
	return box, nil
}

// timesOf returns the first and the last time of two columns, or nil.
func timesOf(ctx context.Context, t *tables.Table, names ...string) ([]string, error) {
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	for _, name := range names {
		i := t.Index(name)
		if i < 0 || t.Columns()[i].Type.Kind != tables.Timestamp {
			continue
		}
		values, err := t.At(ctx, i)
		if err != nil {
			return nil, err
		}
		for i := range values.Len() {
			if !values.Null(i) {
				first, last = min(first, values.Int(i)), max(last, values.Int(i))
			}
		}
	}
	if first > last {
		return nil, nil
	}
	text := func(us int64) string { return time.UnixMicro(us).UTC().Format(time.RFC3339) }
	return []string{text(first), text(last)}, nil
}
