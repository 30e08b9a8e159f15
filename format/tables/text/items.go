package text

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/texts"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/internal/textguard"
	"github.com/chaski-eo/chaski/source"
)

// Limits of a file of STAC items. An item of a Sentinel-2 scene has about 60 properties and 35 assets, and 30 KB.
const (
	maxItems       = 4 << 30   // bytes of the file
	maxItemColumns = 1000      // a catalog can join so many
	maxItemCells   = 128 << 20 // rows times columns: a cell takes 8 bytes or more, also where an item has no value
)

// cellBytes is the memory of a value beside its text, also for items without the value: an offset of 8 bytes and a
// null flag, twice, because a slice that grows is copied.
const cellBytes = 2 * 9

// readItems reads STAC items: an ItemCollection or FeatureCollection, one item, or several of them one after the other
// (JSON lines), all of it or the values at the path of a member (see at). Other objects, of a list, of lines, or by
// name in an object, are rows whose members are columns, with the name in KeyColumn, and so are the values of an
// object, where KeyColumn is wanted. It keeps the columns that want accepts. Items have the columns of STAC-GeoParquet,
// as far as they are numbers, strings, booleans or lists of these: id, collection, bbox.xmin, bbox.ymin, bbox.xmax and
// bbox.ymax, the properties by their names, and assets.NAME.href. Columns in which all strings are timestamps
// (RFC 3339) are timestamps. A property that an item lacks is null.
func readItems(ctx context.Context, r source.Reader, member string, want func(name string) texts.Want) (
	*texts.Table, error) {
	if r.Size() > maxItems {
		return nil, fault.New(fault.Limit, "items", "%d bytes, at most %d", r.Size(), int64(maxItems))
	}
	read := newItems(ctx, want)
	if err := read.all(r, member); err != nil {
		return nil, err
	}
	return read.table()
}

// ReadFiles is Read of several files names, of one format, as one table. CSV files must have the same columns. Rows
// have the columns name and path of their file, too, of the path that paths has of it, and folder, if files lie in
// folders.
func ReadFiles(ctx context.Context, o source.Opener, names, paths []string, want func(name string) texts.Want) (
	*texts.Table, error) {
	made := []string{"name", "path"}
	if slices.ContainsFunc(paths, func(name string) bool { return strings.Contains(name, "/") }) {
		made = append(made, "folder")
	}
	objects, lines := newItems(ctx, want), csvTable{ctx: ctx, want: want, paths: made}
	isCSV := len(names) > 0 && magic.Named(source.Name(names[0])).Class == magic.CSV
	remaining := int64(maxItems) // bytes that further files may have
	for i, name := range names {
		file := path.Base(paths[i])
		from := map[string]string{"path": paths[i], "folder": string(texts.FolderOf([]byte(paths[i]))),
			"name": strings.TrimSuffix(file, path.Ext(file))}
		lines.from, objects.from = from, map[string]json.RawMessage{}
		for _, column := range made {
			objects.from[column], _ = json.Marshal(from[column]) // strings have JSON
		}
		r, err := o.Open(ctx, name)
		if err == nil {
			switch remaining -= r.Size(); {
			case remaining < 0:
				err = fault.New(fault.Limit, "table", "files of over %d bytes", int64(maxItems))
			case isCSV:
				err = lines.all(r, separator(source.Name(name)))
			default:
				_, member, _ := source.SplitJSON(name)
				err = objects.all(r, member)
				if last := i+1 == len(names); fault.KindOf(err) == fault.NotFound && (objects.n > 0 || !last) {
					err = nil // a file may have no rows, but not all of them
				}
			}
			err = errors.Join(err, r.Close())
		}
		if err != nil {
			return nil, fault.WithFile(err, name)
		}
	}
	if isCSV {
		return lines.table()
	}
	return objects.table()
}

func newItems(ctx context.Context, want func(name string) texts.Want) *items {
	return &items{ctx: ctx, want: want, columns: map[string]*itemColumn{}}
}

// all adds the rows of a file, or those at the path of a member in it, at least one.
func (in *items) all(r source.Reader, member string) error {
	in.member = member
	file, size, err := asJSON(in.ctx, r, member)
	if err != nil {
		return err
	}
	in.file = textguard.NewParts(in.ctx, file, "table", "an item", maxRecord)
	in.file.Byte = ':'
	text, before := bufio.NewReaderSize(in.file, int(min(max(size, 16), 1<<16))), in.n
	if err := utf8Start(text); err != nil {
		return err
	}
	decoder := json.NewDecoder(text)
	decoder.UseNumber()
	for {
		err := in.at(decoder, member, nil, false)
		if errors.Is(err, io.EOF) && in.n > before {
			return nil
		}
		if errors.Is(err, io.EOF) && member != "" {
			return in.noMember(member)
		}
		if err != nil {
			return itemsError(decoder, err)
		}
	}
}

// itemsError makes an error of the parser one of the file.
func itemsError(d *json.Decoder, err error) error {
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF):
		return fault.At(fault.Corrupt, "items", d.InputOffset(), "no item")
	case errors.As(err, &syntax), errors.As(err, &typ), errors.Is(err, io.ErrUnexpectedEOF):
		return fault.WrapAt(fault.Corrupt, "items", d.InputOffset(), err)
	}
	return err
}

// items are the columns of the items that were read.
type items struct {
	ctx     context.Context
	file    *textguard.Parts
	want    func(name string) texts.Want
	n       int64
	columns map[string]*itemColumn
	from    map[string]json.RawMessage // columns of the file among several
	member  string                     // the path of the rows
	seen    []string                   // members of an object that lacks one of the path
	depth   int                        // of the walk along the path
	form    rowForm                    // of the rows before
	values  map[string]json.RawMessage // of the last row that is no object
}

// rowForm says what rows are.
type rowForm byte

const (
	noRows     rowForm = iota // none was read
	objectRows                // objects, whose members are columns
	valueRows                 // lists, texts or numbers
)

// itemColumn holds the values of a column as texts.
type itemColumn struct {
	tables.Appender       // of strings
	strings, numbers bool // it has some

	list   *itemColumn // the elements of its lists; nil: it has none
	ends   []listEnd
	nested bool // it has objects, or lists of lists or objects
}

func newItemColumn() *itemColumn { return &itemColumn{Appender: *tables.NewAppender(stringType)} }

func (c *itemColumn) len() int { return c.Vector().Len() }

// listEnd is a row that has a list, and how many elements there are up to its end.
type listEnd struct {
	row  int64
	elem uint32
}

// object reads an item, or a collection of items, from behind its brace on.
func (in *items) object(d *json.Decoder) error {
	properties := map[string]json.RawMessage{}
	collection, byKey := false, false
	err := textguard.EachMember(d, func(name string) error {
		if name == "features" {
			token, err := d.Token()
			switch {
			case err != nil:
				return err
			case token != json.Delim('['):
				return fault.At(fault.Corrupt, "items", d.InputOffset(), "features is not a list")
			}
			in.form, collection = objectRows, true
			return in.list(d, nil)
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		if len(properties) == 0 && !collection && (raw[0] == '{' || isLists(raw)) &&
			!slices.Contains(itemMembers, name) {
			byKey = true
		}
		if !byKey {
			properties[name] = raw
			return nil
		}
		var members map[string]json.RawMessage
		if raw[0] == '[' {
			members = map[string]json.RawMessage{texts.ValueColumn: raw}
		} else if err := json.Unmarshal(raw, &members); err != nil || members == nil {
			return fault.At(fault.Corrupt, "member "+name, d.InputOffset(),
				"is neither an object nor a list, as the first member is")
		}
		return in.named(name, members, d.InputOffset())
	})
	if err != nil || collection || byKey {
		return err
	}
	if !in.isMap(properties) {
		return in.row(properties, nil, d.InputOffset())
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		members := map[string]json.RawMessage{texts.ValueColumn: properties[name]}
		if err := in.named(name, members, d.InputOffset()); err != nil {
			return err
		}
	}
	return nil
}

// named adds a row of members, and of the name that it has in an object.
func (in *items) named(name string, members map[string]json.RawMessage, at int64) error {
	if members[KeyColumn] == nil {
		members[KeyColumn], _ = json.Marshal(name) // strings have JSON
	}
	return in.put(nil, members, nil, "member "+name, at)
}

// isMap reports whether an object has values by name, such as a class for the name of each image, which a table gives
// as KeyColumn. It is false for a feature, and if a member is called KeyColumn.
func (in *items) isMap(members map[string]json.RawMessage) bool {
	kind := members["type"]
	return len(members) > 0 && members[KeyColumn] == nil && in.want(KeyColumn) > in.want(noColumn) &&
		members["assets"] == nil && !bytes.HasPrefix(kind, []byte(`"Feature`))
}

// isLists reports whether a value is a list that begins with a list.
func isLists(raw json.RawMessage) bool {
	return len(raw) > 1 && raw[0] == '[' && bytes.HasPrefix(bytes.TrimSpace(raw[1:]), []byte{'['})
}

// maxTuple bounds the elements of the lists in a list, because each is a column, and maxTupleCommas the commas in such
// a list, which may be in strings.
const (
	maxTuple       = 16
	maxTupleCommas = 1 << 10
)

func isList(raw json.RawMessage) bool { return raw[0] == '[' }

// tuples adds a list of lists of equal lengths to the last row: their first elements are the list of the column NAME.0,
// and so on. It adds nothing for other lists, such as lists of lists.
func (in *items) tuples(name string, raw json.RawMessage, part string, at int64) error {
	var columns [][]byte
	decoder := json.NewDecoder(bytes.NewReader(raw))
	_, err := decoder.Token()
	for n := 0; err == nil && decoder.More(); n++ {
		var tuple json.RawMessage
		var elements []json.RawMessage
		err = decoder.Decode(&tuple)
		if err != nil || n == texts.MaxList || bytes.Count(tuple, []byte{','}) > maxTupleCommas ||
			json.Unmarshal(tuple, &elements) != nil || len(elements) > maxTuple ||
			n > 0 && len(elements) != len(columns) || slices.ContainsFunc(elements, isList) {
			return nil
		}
		if n == 0 {
			columns = make([][]byte, len(elements))
		}
		for k, element := range elements {
			columns[k] = append(append(columns[k], ','), element...)
		}
	}
	for k, list := range columns {
		list[0] = '['
		if err := in.cell(fmt.Sprintf("%s.%d", name, k), append(list, ']'), part, at); err != nil {
			return err
		}
	}
	return nil
}

// KeyColumn is the column of the names of objects that an object has by name.
const KeyColumn = "key"

// itemMembers are the members of a STAC item, or of a collection of them, that are objects.
var itemMembers = []string{"properties", "assets", "geometry", "crs"}

// element adds a value as a row: an object, a list whose elements are the columns "0", "1" and so on, or another value
// as the column texts.ValueColumn. The members of outer are columns, too. at is the offset of its end.
func (in *items) element(data json.RawMessage, outer map[string]json.RawMessage, at int64) error {
	if data[0] != '{' {
		return in.value(data, outer, at)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return fault.WrapAt(fault.Corrupt, fmt.Sprintf("row %d", in.n), at, err)
	}
	return in.row(members, outer, at)
}

// begins begins a row.
func (in *items) begins(form rowForm, at int64) error {
	if in.form == noRows {
		in.form = form
	}
	if form != in.form && in.member == "" { // the path of a member says what the rows are
		return fault.At(fault.Corrupt, fmt.Sprintf("row %d", in.n), at, "it is an object, or the rows before it are, "+
			"and not both")
	}
	return nil
}

// row adds an object as a row: a STAC item, or one whose members are columns.
func (in *items) row(members, outer map[string]json.RawMessage, at int64) error {
	if err := in.begins(objectRows, at); err != nil {
		return err
	}
	if len(members) > 0 && members["assets"] == nil && !bytes.HasPrefix(members["type"], []byte(`"Feature`)) {
		return in.put(nil, members, outer, fmt.Sprintf("row %d", in.n), at)
	}
	// The members of a STAC item (STAC 1.0 and 1.1, Item Specification).
	var kind string
	var box []float64
	var properties map[string]json.RawMessage
	var assets map[string]struct {
		Href json.RawMessage `json:"href"`
	}
	part := fmt.Sprintf("item %d", in.n)
	for _, m := range []struct {
		name string
		to   any
	}{{"type", &kind}, {"bbox", &box}, {"properties", &properties}, {"assets", &assets}} {
		if raw := members[m.name]; raw != nil {
			if err := json.Unmarshal(raw, m.to); err != nil {
				return fault.WrapAt(fault.Corrupt, part+" "+m.name, at, err)
			}
		}
	}
	if kind != "Feature" {
		return fault.At(fault.Unsupported, part, at, "neither a STAC item nor a feature of GeoJSON: it has type %.32q",
			kind)
	}
	values := map[string]json.RawMessage{"id": members["id"], "collection": members["collection"]}
	for name, v := range properties {
		if _, taken := values[name]; !taken {
			values[name] = v
		}
	}
	for name, a := range assets {
		values[texts.AssetColumn(name)] = a.Href
	}
	return in.put(box, values, nil, part, at)
}

// value adds a value that is no object as a row.
func (in *items) value(data json.RawMessage, outer map[string]json.RawMessage, at int64) error {
	if err := in.begins(valueRows, at); err != nil {
		return err
	}
	if in.values == nil {
		in.values = map[string]json.RawMessage{}
	}
	clear(in.values)
	var elements []json.RawMessage
	if data[0] == '[' && !isLists(data) && bytes.Count(data, []byte{','}) <= maxTupleCommas &&
		json.Unmarshal(data, &elements) == nil && len(elements) <= maxTuple {
		for i, element := range elements {
			in.values[strconv.Itoa(i)] = element
		}
	} else {
		in.values[texts.ValueColumn] = data
	}
	return in.put(nil, in.values, outer, "row", at)
}

// list reads the items of a list to its end, in an object with the members of outer.
func (in *items) list(d *json.Decoder, outer map[string]json.RawMessage) error {
	return textguard.EachElement(d, func() error {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		return in.element(raw, outer, d.InputOffset())
	})
}

// put adds a row of values, with the values of a bounding box. Values that the row lacks come from outer or from the
// file.
func (in *items) put(box []float64, values, outer map[string]json.RawMessage, part string, at int64) error {
	in.n++
	in.file.Next()
	for _, more := range []map[string]json.RawMessage{outer, in.from} {
		for name, v := range more {
			if values[name] == nil {
				values[name] = v
			}
		}
	}
	switch len(box) {
	case 6: // with heights
		box = []float64{box[0], box[1], box[3], box[4]}
	case 0, 4:
	default:
		return fault.At(fault.Corrupt, part, at, "bbox has %d numbers", len(box))
	}
	for i, v := range box {
		values["bbox."+[]string{"xmin", "ymin", "xmax", "ymax"}[i]] = strconv.AppendFloat(nil, v, 'g', -1, 64)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if err := in.cell(name, values[name], part, at); err != nil {
			return err
		}
	}
	if int64(len(in.columns))*in.n > maxItemCells {
		return fault.At(fault.Limit, part, at, "%d columns: with the items before it these are over %d values",
			len(in.columns), maxItemCells)
	}
	for _, c := range in.columns {
		c.fill(in.n)
	}
	return budget.Grow(in.ctx, cellBytes*int64(len(in.columns)))
}

// cell adds a value to the last row.
func (in *items) cell(name string, raw json.RawMessage, part string, at int64) error {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] == 'n' {
		return nil
	}
	if err := in.nested(name, raw, part, at); err != nil {
		return err
	}
	c := in.columns[name]
	if c == nil {
		switch {
		case in.want(name) == texts.Skipped:
			return nil
		case len(in.columns) == maxItemColumns:
			return fault.At(fault.Limit, part, at, "over %d properties and assets", maxItemColumns)
		}
		if err := budget.Grow(in.ctx, cellBytes*(in.n-1)); err != nil {
			return err
		}
		c = newItemColumn()
		in.columns[name] = c
	}
	c.fill(in.n - 1)
	if n := len(c.ends); int64(c.len()) == in.n || n > 0 && c.ends[n-1].row == in.n-1 {
		return fault.At(fault.Corrupt, part, at, "it has two values of the column %.80q", name)
	}
	if raw[0] == '[' {
		return fault.WithPart(c.addList(in.ctx, in.n-1, raw), part, at)
	}
	return fault.WithPart(c.add(in.ctx, raw), part, at)
}

// addList adds the list of a row, which is null beside values that are no lists.
func (c *itemColumn) addList(ctx context.Context, row int64, raw json.RawMessage) error {
	if c.list == nil {
		c.list = newItemColumn()
	}
	before, decoder := c.list.len(), json.NewDecoder(bytes.NewReader(raw))
	_, err := decoder.Token()
	for n := 0; err == nil && decoder.More(); n++ {
		var element json.RawMessage
		if err = decoder.Decode(&element); err != nil || element[0] == '[' || n == texts.MaxList {
			c.nested = true
			break
		}
		if element[0] == 'n' {
			c.list.fill(int64(c.list.len() + 1))
			continue
		}
		err = c.list.add(ctx, element)
	}
	if err != nil {
		return err
	}
	c.nested = c.nested || c.list.nested
	c.ends = append(c.ends, listEnd{row, uint32(c.list.len())})
	return budget.Grow(ctx, cellBytes*int64(c.list.len()-before))
}

// add adds a value that is no list as the next row.
func (c *itemColumn) add(ctx context.Context, raw json.RawMessage) error {
	text := raw
	switch raw[0] {
	case '{':
		c.nested = true
		return nil
	case '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return fault.WrapAt(fault.Corrupt, "", 0, err)
		}
		text, c.strings = []byte(s), true
	case 't', 'f':
		text, c.numbers = []byte{'0'}, true // a boolean is 1 or 0, as in a Parquet file
		if raw[0] == 't' {
			text[0] = '1'
		}
	default:
		c.numbers = true
	}
	c.AddValue(&column.Value{Text: text})
	return budget.Grow(ctx, 2*int64(len(text)))
}

// fill adds nulls up to row n.
func (c *itemColumn) fill(n int64) {
	for int64(c.len()) < n {
		c.AddValue(&column.Value{Null: true})
	}
}

// table makes the columns.
func (in *items) table() (*texts.Table, error) {
	columns := map[string]held{}
	for name, c := range in.columns {
		if c.nested && !c.strings && !c.numbers {
			continue
		}
		var err error
		if columns[name], err = c.column(in.ctx); err != nil {
			return nil, err
		}
	}
	return heldTable(in.n, slices.Sorted(maps.Keys(in.columns)), columns, "items"), nil
}

// column returns the values as numbers, timestamps or strings, or lists of these.
func (c *itemColumn) column(ctx context.Context) (held, error) {
	switch {
	case c.strings:
	case c.numbers || c.list == nil:
		return infer(ctx, c.Vector(), texts.Values, false)
	default:
		return c.lists(ctx)
	}
	if !c.numbers {
		times, err := timesOf(ctx, c.Vector())
		if times != nil || err != nil {
			return held{values: times}, err
		}
	}
	return held{values: c.Vector()}, nil
}

// lists returns the column of the lists.
func (c *itemColumn) lists(ctx context.Context) (held, error) {
	elements, err := c.list.column(ctx)
	if elements.wrong != nil || err != nil {
		return elements, err
	}
	offs, nulls, next := make([]uint32, c.len()+1), make([]bool, c.len()), 0
	for row := range nulls {
		offs[row+1] = offs[row]
		if nulls[row] = next == len(c.ends) || c.ends[next].row != int64(row); !nulls[row] {
			offs[row+1] = c.ends[next].elem
			next++
		}
	}
	return held{values: tables.NewList(elements.values, offs, nulls)}, nil
}

// timesOf makes a column of timestamps of their strings, nil if a string is not a timestamp.
func timesOf(ctx context.Context, texts *tables.Vector) (*tables.Vector, error) {
	times := make([]int64, texts.Len())
	for row := range times {
		if row%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if texts.Null(row) {
			continue
		}
		when, err := time.Parse(time.RFC3339Nano, texts.Str(row))
		if err != nil {
			return nil, nil //nolint:nilerr,nilnil // a string that is no timestamp is an answer
		}
		times[row] = when.UnixMicro()
	}
	return tables.NewInts(tables.Type{Kind: tables.Timestamp, UTC: true}, times, texts.Nulls()), nil
}
