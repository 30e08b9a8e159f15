package rows

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/internal/pace"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

// maxIDs bounds a list of ids in bytes: 10 million names of 100 bytes.
const maxIDs = 1 << 30

// maxID bounds an id in bytes: paths of Linux have at most 4 KiB.
const maxID = 64 << 10

// readIDs reads a list of ids: the lines of a text file or, as PATH::COLUMN, a column of a table. Of a CSV of one
// column that is not named, head is the first line: a header, or an id.
func readIDs(ctx context.Context, list string, o resources.Options) (ids []string, head string, err error) {
	file, column, named := strings.Cut(list, source.Separator)
	lines := !named && strings.EqualFold(path.Ext(source.Name(file)), ".txt")
	if magic.Named(source.Name(file)).Class == magic.Items {
		if ids, err = membersOf(ctx, file, column, o); ids != nil || err != nil {
			return ids, "", fault.WithFile(err, file)
		}
	}
	if !lines && magic.Named(source.Name(file)).Class.Table() {
		if ids, head, err = columnOf(ctx, file, column, o); err != nil {
			return nil, "", fault.WithFile(err, file)
		}
		if column != "" || head == "0" || magic.Named(source.Name(file)).Class != magic.CSV {
			head = "" // pandas calls a column without a name "0"
		}
		return ids, head, nil
	}
	if named {
		return nil, "", fmt.Errorf("%q is no table (.csv, .tsv, .parquet, .json), which a column needs", file)
	}
	opened, err := o.Opener.Open(ctx, file)
	if err != nil {
		return nil, "", fault.WithFile(err, file)
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	if opened.Size() > maxIDs {
		return nil, "", fault.WithFile(fault.New(fault.Limit, "ids", "%d bytes, at most %d",
			opened.Size(), maxIDs), file)
	}
	text := bufio.NewScanner(io.LimitReader(source.Sequential(ctx, opened), maxIDs))
	text.Buffer(nil, maxID)
	for number := 1; text.Scan(); number++ {
		if err := pace.Tick(ctx); err != nil {
			return nil, "", err
		}
		id := strings.TrimSpace(strings.TrimPrefix(text.Text(), "\ufeff"))
		if !utf8.ValidString(id) || strings.Contains(id, "\x00") {
			return nil, "", fault.WithFile(fault.New(fault.Unsupported, "ids", "line %d is no text in "+
				"UTF-8: save the list as lines of UTF-8, .csv, .parquet or .json", number), file)
		}
		if id != "" {
			ids = append(ids, id)
		}
	}
	if errors.Is(text.Err(), bufio.ErrTooLong) {
		return nil, "", fault.WithFile(fault.New(fault.Limit, "ids", "a line of over %d bytes", maxID),
			file)
	}
	return ids, "", fault.WithFile(text.Err(), file)
}

// membersOf reads the list of strings or integers that a JSON file is or, with a name, that the member of its first
// object is: "a.b" is the member b of the object a, or of each object of the list a, as "images.file_name" of COCO. It
// returns nil if there is no such list.
func membersOf(ctx context.Context, file, name string, o resources.Options) (ids []string, err error) {
	opened, err := o.Opener.Open(ctx, file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	d := json.NewDecoder(bufio.NewReader(io.LimitReader(source.Sequential(ctx, opened), maxIDs)))
	d.UseNumber()
	// An error of the parser ends the search: reading the file as a table says what is wrong.
	first, _ := d.Token()
	if name == "" && first == json.Delim('[') {
		return idsOf(ctx, d)
	}
	for first == json.Delim('{') && d.More() {
		key, _ := d.Token()
		value, err := d.Token()
		outer, inner, _ := strings.Cut(name, ".")
		switch within := key == outer && inner != ""; {
		case key == name && value == json.Delim('['):
			return idsOf(ctx, d)
		case within && value == json.Delim('{'):
			name = inner
			continue
		case within && value == json.Delim('['):
			return idsIn(ctx, d, inner)
		}
		if err = cmp.Or(err, skip(ctx, d, value)); err != nil {
			break
		}
	}
	return nil, nil
}

// idsIn reads the member of each object up to the end of a list. It returns nil if one lacks it, or has another value
// there than a string or an integer.
func idsIn(ctx context.Context, d *json.Decoder, name string) ([]string, error) {
	ids := []string{}
	for d.More() {
		count := len(ids)
		if token, _ := d.Token(); token != json.Delim('{') {
			return nil, nil
		}
		for d.More() {
			key, _ := d.Token()
			value, err := d.Token()
			switch id := value.(type) {
			case string:
				if key == name {
					ids = append(ids, id)
				}
			case json.Number:
				if key == name {
					ids = append(ids, id.String())
				}
			}
			if cmp.Or(err, skip(ctx, d, value)) != nil {
				return nil, ctx.Err()
			}
		}
		if _, err := d.Token(); err != nil || len(ids) != count+1 {
			return nil, nil //nolint:nilerr // reading the file as a table says what is wrong
		}
	}
	return ids, nil
}

// skip reads the rest of a value that begins with a token.
func skip(ctx context.Context, d *json.Decoder, value json.Token) (err error) {
	for depth := opens(value); depth > 0 && err == nil; depth += opens(value) {
		value, err = d.Token()
		err = cmp.Or(err, pace.Tick(ctx))
	}
	return err
}

// opens returns by how much a token changes the depth of lists and objects.
func opens(token json.Token) int {
	switch token {
	case json.Delim('['), json.Delim('{'):
		return 1
	case json.Delim(']'), json.Delim('}'):
		return -1
	}
	return 0
}

// idsOf reads strings and integers up to the end of a list. It returns nil if there is something else.
func idsOf(ctx context.Context, d *json.Decoder) ([]string, error) {
	ids := []string{}
	for d.More() {
		token, err := d.Token()
		if err := pace.Tick(ctx); err != nil {
			return nil, err
		}
		switch id := token.(type) {
		case string:
			ids = append(ids, id)
		case json.Number:
			ids = append(ids, id.String())
		default:
			return nil, nil
		}
		if err != nil {
			return nil, nil
		}
	}
	return ids, nil
}

// columnOf reads a column of a table as strings, and returns its name; "" is the only one.
func columnOf(ctx context.Context, file, name string, o resources.Options) (ids []string, column string, err error) {
	table, closer, err := catalog.ReadTable(ctx, o.Opener, file, name)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	if cols := table.Columns(); name == "" && len(cols) == 1 {
		name = cols[0].Name
	} else if name == "" {
		var names []string
		for _, c := range cols {
			names = append(names, c.Name)
		}
		return nil, "", fault.New(fault.NotFound, "ids", "name the column with the ids, as in %s::%s; "+
			"there are %s", path.Base(file), names[0], fault.Names(names))
	}
	values, err := table.Column(ctx, name)
	if err != nil {
		return nil, "", err
	}
	for row := range values.Len() {
		var text string
		switch values.Kind() {
		case tables.String:
			text = string(values.Bytes(row))
		case tables.Int64:
			text = strconv.FormatInt(values.Int(row), 10)
		case tables.Float64: // pandas makes floats of integers in a column with a gap
			number := values.Float(row)
			if number == number && number != math.Trunc(number) {
				return nil, "", fault.New(fault.Unsupported, "column "+name,
					"holds %v, which is no id: ids are strings or whole numbers", number)
			} else if number == number {
				text = strconv.FormatFloat(number+0, 'f', -1, 64)
			}
		default:
			return nil, "", fault.New(fault.Unsupported, "column "+name,
				"holds values of type %v, not ids", values.Type())
		}
		if !values.Null(row) && text != "" {
			ids = append(ids, text)
		}
	}
	return ids, name, nil
}

// How an id names a sample. Lower ones go first: an id that is the key of a sample names no other sample whose path
// ends in it.
const (
	isKey      = iota // it is the key of the sample
	endsPath          // a path of the sample, or its key, ends in it
	endsStem          // the same without endings of images
	endsNumber        // the same for a whole number without the zeros in front that the sample's name has
	noSample
)

// idList finds the samples that a list of ids names.
type idList struct {
	ids     []string
	exact   map[string]int32 // the number of an id
	stems   map[string]int32 // of one that has the ending of an image, without it
	twins   map[int32]int32  // another id of the same stem
	best    []uint8          // how each id names its samples
	first   []string         // the key of the first of these
	hits    []idHit
	other   map[int32]string // the key of another sample that an id names as well as its first
	example string           // the key of the first sample, for errors
}

// idHit is a sample that an id names in one way.
type idHit struct {
	row int64
	id  int32
	how uint8
}

// newIDList returns a list of up to n ids.
func newIDList(n int) *idList {
	return &idList{ids: make([]string, 0, n), exact: make(map[string]int32, n), stems: map[string]int32{},
		twins: map[int32]int32{}, best: slices.Repeat([]uint8{noSample}, n), first: make([]string, n),
		other: map[int32]string{}}
}

// indexed returns a list of ids, each once.
func indexed(ids []string) *idList {
	list := newIDList(len(ids))
	for _, id := range ids {
		if list.ids = append(list.ids, id); !list.index(int32(len(list.ids) - 1)) {
			list.ids = list.ids[:len(list.ids)-1]
		}
	}
	return list
}

// index makes an id of the list one that samples are named by, unless another one is the same.
func (l *idList) index(i int32) bool {
	id := l.ids[i]
	if _, twice := l.exact[id]; twice {
		return false
	}
	l.exact[id] = i
	if stem := magic.WithoutEnding(id); stem != id {
		if twin, twice := l.stems[stem]; twice {
			l.twins[i] = twin
		}
		l.stems[stem] = i
	}
	return true
}

// stem returns the id that is the same as a text but for the endings of images.
func (l *idList) stem(text string) (int32, bool) {
	text = magic.WithoutEnding(text)
	if i, ok := l.exact[text]; ok {
		return i, true
	}
	i, ok := l.stems[text]
	return i, ok
}

// number returns the id that is a whole number without the zeros in front that a text has: "7" of "007.tif".
func (l *idList) number(text string) (int32, bool) {
	text = magic.WithoutEnding(text)
	short := strings.TrimLeft(text, "0")
	if short == text || strings.Trim(short, "0123456789") != "" {
		return 0, false
	}
	i, ok := l.exact[cmp.Or(short, "0")]
	return i, ok
}

// named yields the ids that a text of a sample ends in, from a slash on, the longest first, and how each names the
// sample whose key is given.
func (l *idList) named(text, key string) iter.Seq2[int32, uint8] {
	return func(yield func(int32, uint8) bool) {
		for end, more := text, true; more; _, end, more = strings.Cut(end, "/") {
			how := uint8(endsPath)
			if end == key {
				how = isKey
			}
			i, ok := l.exact[end]
			if !ok {
				how = endsStem
				i, ok = l.stem(end)
			}
			if !ok {
				how = endsNumber
				i, ok = l.number(end)
			}
			if ok && !yield(i, how) {
				return
			}
		}
	}
}

// find returns the id that names a text best, and how.
func (l *idList) find(text string) (int32, uint8) {
	for i, how := range l.named(text, text) {
		return i, how
	}
	return 0, noSample
}

// see notes the ids that a text of a sample, its key or the path of a raster, ends in.
func (l *idList) see(row int64, key, text string) {
	if row == 0 {
		l.example = key
	}
	for i, how := range l.named(text, key) {
		l.hit(row, key, i, how)
	}
}

func (l *idList) hit(row int64, key string, id int32, how uint8) {
	switch {
	case how < l.best[id]:
		l.best[id], l.first[id] = how, key
		delete(l.other, id)
	case how == l.best[id] && key != l.first[id]:
		l.other[id] = key
	}
	l.hits = append(l.hits, idHit{row, id, how})
}

// check returns an error about ids that name no sample, unless they are dropped, or several.
func (l *idList) check(list, column string, dropped bool, o resources.Options) error {
	const inColumn = `name the column that holds it (id_column), or several, such as "{scene}_{id}"`
	way := "write more of the path, or " + inColumn
	if column != "" {
		way = fmt.Sprintf("write it as the column %q has it", column)
	}
	if err := l.checkNames(way); err != nil {
		return err
	}
	var missing []string
	for id := range l.ids {
		if l.best[id] == noSample {
			missing = append(missing, l.ids[id])
		}
	}
	if len(missing) == 0 {
		return nil
	}
	some := fmt.Sprintf("%q", missing[:min(3, len(missing))])
	if dropped {
		o.Logger.Warn("ids that name no sample are left out", "ids", list, "missing", len(missing), "of", len(l.ids),
			"such as", some)
		return nil
	}
	if len(missing) == len(l.ids) {
		columns := ""
		if strings.EqualFold(path.Ext(list), ".txt") && strings.ContainsAny(missing[0], ",;\t ") {
			columns = fmt.Sprintf("; if its lines have columns, name one, as in %s::0", list)
		} else if column == "" && strings.Contains(l.example, "/") {
			columns = ": " + inColumn
		}
		return fault.New(fault.NotFound, "ids", "no id of %s names a sample, such as %s: samples are "+
			"called like %q%s", list, some, l.example, columns)
	}
	return fault.New(fault.NotFound, "ids", "%d of %d ids of %s name no sample, such as %s: missing "+
		"\"drop\" leaves them out", len(missing), len(l.ids), list, some)
}

// checkNames returns an error about an id that names several samples. way says what to do.
func (l *idList) checkNames(way string) error {
	if len(l.other) == 0 {
		return nil
	}
	id := slices.Min(slices.Collect(maps.Keys(l.other)))
	return fault.New(fault.Corrupt, "ids", "%q names several samples, such as %q and %q: %s", l.ids[id],
		l.first[id], l.other[id], way)
}

// listed keeps the samples that the list of a subset names.
func (s *Selector) listed(ctx context.Context, subset *spec.Subset) error {
	ids, head, err := readIDs(ctx, subset.IDList, s.options)
	if err == nil && head != "" {
		var list *idList
		if list, err = s.find(ctx, []string{head}, subset.IDColumn); err == nil && list.namesOne() {
			ids = append([]string{head}, ids...)
		}
	}
	if err != nil {
		return err
	}
	if len(ids) > math.MaxInt32 || s.table.N > math.MaxInt32 {
		return fault.New(fault.Limit, "ids", "%d ids of %d samples", len(ids), s.table.N)
	}
	list, err := s.find(ctx, ids, subset.IDColumn)
	if err == nil {
		err = list.check(path.Base(subset.IDList), subset.IDColumn, subset.Missing == spec.MissingDrop, s.options)
	}
	if err != nil {
		return err
	}
	samples := make([]int32, 0, len(list.hits))
	for _, hit := range list.hits {
		if hit.how == list.best[hit.id] {
			samples = append(samples, int32(hit.row))
		}
	}
	s.Meet(slices.Values(samples))
	return nil
}

// find returns the ids with the samples that they name, by a column or, without one, by their keys and paths.
func (s *Selector) find(ctx context.Context, ids []string, column string) (*idList, error) {
	if column != "" {
		return s.inColumn(ctx, ids, column)
	}
	return s.ofSamples(ctx, ids)
}

// namesOne reports whether a list of one id names a sample, and no other one as well.
func (l *idList) namesOne() bool { return len(l.hits) > 0 && len(l.other) == 0 }

// inColumn returns the ids with the samples that have them in a column.
func (s *Selector) inColumn(ctx context.Context, ids []string, name string) (*idList, error) {
	column, err := s.table.named(ctx, name)
	if err != nil {
		return nil, err
	}
	if numeric(column.Kind) {
		for i := range ids {
			ids[i] = wholeNumber(ids[i])
		}
	}
	list := indexed(ids)
	return list, scan(ctx, s.table, name, func(row int64, c *Column, v catalog.Value) error {
		text := textOf(c.Kind, v)
		if row == 0 {
			list.example = text
		}
		i, found := list.exact[text]
		how := uint8(isKey)
		if !found {
			how = endsNumber
			i, found = list.number(text)
		}
		if found && !v.Null {
			list.hit(row, text, i, how)
		}
		return nil
	})
}

// ofSamples returns the ids with the samples that they name by their keys and the paths of their rasters. If no id
// names one, the ids may have been written on another machine: they are looked for as moved returns them, also in the
// folders above the dataset.
func (s *Selector) ofSamples(ctx context.Context, ids []string) (*idList, error) {
	list, err := s.see(ctx, ids, false)
	for cut := 0; err == nil && len(ids) > 0 && len(list.hits) == 0; cut++ {
		elsewhere := moved(ids, cut)
		if elsewhere == nil {
			break
		}
		var other *idList
		if other, err = s.see(ctx, elsewhere, true); err == nil && len(other.hits) > 0 {
			list = other
		}
	}
	return list, err
}

// moved returns ids with slashes in place of the separators of Windows, and without the first folders, which all of
// them must share. Of those that are shared one remains, so that val/1 does not become train/1. It returns nil if there
// are not so many.
func moved(ids []string, cut int) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = path.Clean(strings.ReplaceAll(id, `\`, "/"))
	}
	for range cut {
		folder, _, _ := strings.Cut(out[0], "/")
		for i, id := range out {
			first, rest, within := strings.Cut(id, "/")
			if !within || first != folder || !strings.Contains(rest, "/") {
				return nil
			}
			out[i] = rest
		}
	}
	return out
}

// moved returns a list with the ids that the function moved makes of these. Empty ids stay. It returns nil if all are
// empty, or if two become the same.
func (l *idList) moved(cut int) *idList {
	var some []string
	for _, id := range l.ids {
		if id != "" {
			some = append(some, id)
		}
	}
	if len(some) == 0 {
		return nil
	}
	if some = moved(some, cut); some == nil {
		return nil
	}
	out := newIDList(len(l.ids))
	for i, id := range l.ids {
		if id == "" {
			out.ids = append(out.ids, "")
			continue
		}
		out.ids, some = append(out.ids, some[0]), some[1:]
		if !out.index(int32(i)) {
			return nil
		}
	}
	return out
}

// see returns the ids with the samples that they name by their keys, by the paths that the dataset has for their
// rasters and, with whole, by the whole paths of these.
func (s *Selector) see(ctx context.Context, ids []string, whole bool) (*idList, error) {
	list := indexed(ids)
	return list, s.table.Keys(ctx, func(row int64, key string) error {
		list.see(row, key, key)
		for i := range s.table.Fields {
			field := &s.table.Fields[i]
			if field.Kind != catalog.Raster || field.Value == nil || s.table.Array {
				continue
			}
			file, err := field.Value(ctx, row)
			if err != nil {
				return err
			}
			if file.Text != "" && file.Text != key {
				list.see(row, key, file.Text)
			}
			if !whole || file.Text == "" {
				continue
			}
			if asset, err := field.Asset(ctx, row); err == nil {
				list.see(row, key, cmp.Or(asset.Member, asset.URI))
			}
		}
		return ctx.Err()
	})
}
