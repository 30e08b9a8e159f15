package suggest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables/texts"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/internal/textguard"
)

const (
	maxTable = 64 << 20 // bytes of a table or a file of labels: a JSON of 64 MiB has about 200,000 boxes
	maxRows  = 200_000
	maxText  = 1 << 12 // bytes of a value that are kept
	// Values that are kept of one JSON, and of all tables. One takes about 100 bytes while a JSON is read, and 32 in a
	// table.
	maxJSONValues = 1 << 19
	maxValuesKept = 1 << 21
	maxDepth      = 1000 // of JSON
	maxColumns    = 1000 // of a table in JSON, as format/tables/text has them
)

var (
	labelWord = regexp.MustCompile(`(?i)(label|class|category|^y$|species_id|target|_type$|^has_|^is_|^num_|damage|` +
		`crop|wealth|count|score|probs|tags?$|correlation|flag|answer$|question$|caption|text|` +
		`sentence|raw$|code|value\.0|conversation)`)
	textWord   = regexp.MustCompile(`(?i)(caption|text|sentence|raw$|question|answer|conversation)`)
	restOfLine = regexp.MustCompile(textWord.String() + `.*\+$`)
	splitCol   = regexp.MustCompile(`(?i)^(split|subset|fold|partition|set|phase|test|train|val)$`)
	wkt        = regexp.MustCompile(`(?i)^\s*(multi)?(polygon|point|linestring)\s*[zm]*\s*\(`)
	idWord     = regexp.MustCompile(`(?i)(^id|_id$|idx|index|^$|path|file|name|polygon|geometry|^lat|^lon|date|time)`)
)

// table is a table in texts, with values as they are written; of splits, the one of all.
type table struct {
	path   string   // with splitMark or *, and with ::MEMBER
	files  []string // that it is of
	splits []string
	cols   []string
	rows   [][]string
	of     []string        // the split of each row
	lists  map[string]bool // columns of lists
}

// values returns the values of a column.
func (t *table) values(c int) []string {
	out := make([]string, len(t.rows))
	for i, row := range t.rows {
		out[i] = row[c]
	}
	return out
}

// counted returns how often each value is there.
func counted(values []string) map[string]int {
	out := map[string]int{}
	for _, v := range values {
		out[v]++
	}
	return out
}

// sorted returns the keys of a map in order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func numeric(values []string) bool {
	other := func(c rune) bool { return !unicode.IsDigit(c) && !strings.ContainsRune("+-.eE", c) }
	return !slices.ContainsFunc(values, func(v string) bool { return strings.ContainsFunc(v, other) })
}

// readTable reads the tables of a file that have values: of JSON each member that is one.
func (p *prober) readTable(rel string) []*table {
	as := rel
	switch magic.Named(rel).Class {
	case magic.Items:
		file, err := os.Open(p.name(rel))
		if err != nil {
			return nil
		}
		defer file.Close()
		begun := beginning{Decoder: json.NewDecoder(file), quota: min(maxJSONValues, p.room(1))}
		value, err := begun.value(0)
		if _, after := begun.Token(); err != nil || after != io.EOF {
			return nil
		}
		return slices.DeleteFunc(p.jsonTables(rel, value), (*table).empty)
	case magic.CSV:
	default:
		as = "list.txt"
	}
	file, err := p.o.Opener.Open(p.ctx, p.name(rel))
	if err != nil {
		return nil
	}
	defer file.Close() //nolint:errcheck // it was only read
	read, err := texts.Read(p.ctx, file, as, func(string) texts.Want { return texts.Written })
	if fault.KindOf(err) == fault.Corrupt { // texts with commas and without quotes in the last column
		read, err = texts.Read(p.ctx, file, as, func(name string) texts.Want {
			if restOfLine.MatchString(name) {
				return texts.Words
			}
			return texts.Written
		})
	}
	if err != nil {
		return nil
	}
	rows := min(read.Len(), maxRows, p.room(len(read.Columns())))
	t := &table{path: rel, lists: map[string]bool{}, rows: make([][]string, rows)}
	p.values += rows * len(read.Columns())
	for i, c := range read.Columns() {
		values, err := read.At(p.ctx, i)
		if err != nil {
			return nil
		}
		t.cols = append(t.cols, c.Name)
		for k := range t.rows {
			var text string
			_ = json.Unmarshal(values.AppendJSON(nil, k), &text) // null is ""
			t.rows[k] = append(t.rows[k], short(text))
		}
	}
	return slices.DeleteFunc([]*table{t}, (*table).empty)
}

// empty reports whether a table lacks columns or rows.
func (t *table) empty() bool { return len(t.cols) == 0 || len(t.rows) == 0 }

// room returns how many rows of so many columns are kept yet.
func (p *prober) room(columns int) int { return max(maxValuesKept-p.values, 0) / max(columns, 1) }

// beginning reads the first values of JSON.
type beginning struct {
	*json.Decoder
	quota int // values that are kept
}

// value returns the next value as json.Unmarshal has it, without the members and elements that come when enough are
// kept, and with the beginnings of texts.
func (b *beginning) value(depth int) (any, error) {
	token, err := b.Token()
	b.quota--
	switch v := token.(type) {
	case string:
		return short(v), nil
	case json.Delim:
		if depth == maxDepth {
			return nil, fault.New(fault.Limit, "JSON", "values nest over %d deep", maxDepth)
		}
		next := func(keep func(any)) error {
			enough := b.quota <= 0
			value, err := b.value(depth + 1)
			if err == nil && !enough {
				keep(value)
			}
			return err
		}
		if v == '{' {
			object := map[string]any{}
			err = textguard.EachMember(b.Decoder, func(name string) error {
				return next(func(value any) { object[short(name)] = value })
			})
			return object, err
		}
		list := []any{}
		err = textguard.EachElement(b.Decoder, func() error {
			return next(func(value any) { list = append(list, value) })
		})
		return list, err
	}
	return token, err
}

// short returns the beginning of a text.
func short(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.Clone(text[:maxText])
}

// jsonTables returns the tables of JSON: lists of objects, lists by class, and objects by key.
func (p *prober) jsonTables(rel string, value any) (out []*table) {
	object, _ := value.(map[string]any)
	list, _ := value.([]any)
	if features, ok := object["features"].([]any); ok {
		for _, f := range features {
			f, _ := f.(map[string]any)
			list = append(list, f["properties"])
		}
	}
	if list != nil {
		return []*table{p.newTable(rel, nil, list)}
	}
	var keys, classes, names []string
	var rows, ids []any
	for _, name := range sorted(object) {
		list, ok := object[name].([]any)
		if _, below := append(list, nil)[0].(map[string]any); below {
			out, names = append(out, p.newTable(rel+"::"+name, nil, list)), append(names, name)
			continue
		}
		for _, id := range list {
			if id, ok := id.(string); ok {
				classes, ids = append(classes, name), append(ids, id)
			}
		}
		if _, is := object[name].(map[string]any); ok || is {
			keys, rows = append(keys, name), append(rows, object[name])
		}
	}
	other := func(t *table) bool { return !slices.Equal(t.cols, out[0].cols) }
	switch uniform := len(keys) == len(object) && len(object) > 1; {
	case len(out) == len(object) && len(out) > 1 && !slices.ContainsFunc(out, other): // rows by class, split or image
		return []*table{together(rel, names, out)}
	case out != nil || len(object) == 0:
	case uniform && len(ids) > 0:
		t := p.newTable(rel+"::{class}", nil, ids)
		t.cols = append(t.cols, "class")
		for i := range t.rows {
			t.rows[i] = append(t.rows[i], classes[i])
		}
		out = append(out, t)
	case uniform:
		out = append(out, p.newTable(rel, keys, rows))
	default:
		out = append(out, p.newTable(rel, nil, []any{value}))
	}
	return out
}

// together makes one table of tables with the same columns, with the column of their names.
func together(rel string, names []string, of []*table) *table {
	column := "class"
	if isSplit := func(name string) bool { _, word := marked(name); return word == name }; !slices.ContainsFunc(names,
		func(name string) bool { return !isSplit(name) }) {
		column = "split"
	} else if path.Ext(names[0]) != "" {
		column = "file"
	}
	t := &table{path: rel + "::{" + column + "}", cols: append(slices.Clone(of[0].cols), column), lists: of[0].lists}
	for i, part := range of {
		for _, row := range part.rows {
			t.rows = append(t.rows, append(row, names[i]))
		}
	}
	return t
}

// newTable makes a table of values of JSON, with the column key of keys. Of the texts in the objects of a list
// (sentences.raw), and of the first values of the lists in one, only the column counts here.
func (p *prober) newTable(name string, keys []string, values []any) *table {
	t := &table{path: name, lists: map[string]bool{}}
	var rows []map[string]string
	for i, value := range values[:min(len(values), maxRows)] {
		row := map[string]string{}
		put := func(name string, v any) {
			if text, ok := v.(string); ok {
				row[name] = text
			} else if v != nil {
				text, _ := json.Marshal(v)
				row[name] = string(text)
			}
		}
		object, ok := value.(map[string]any)
		if !ok {
			object = map[string]any{"value": value}
		}
		for name, v := range object {
			put(name, v)
			list, ok := v.([]any)
			t.lists[name] = t.lists[name] || ok
			switch first := append(list, nil)[0].(type) {
			case map[string]any:
				for key, v := range first {
					if _, ok := v.(string); ok {
						row[name+"."+key], t.lists[name+"."+key] = "[]", true
					}
				}
			case []any:
				if text, ok := append(first, nil)[0].(string); ok {
					put(name+".0", []string{text})
					t.lists[name+".0"] = true
				}
			}
		}
		if keys != nil {
			row["key"] = keys[i]
		}
		for _, name := range sorted(row) {
			if !slices.Contains(t.cols, name) && len(t.cols) < maxColumns {
				t.cols = append(t.cols, name)
			}
		}
		rows = append(rows, row)
	}
	rows = rows[:min(len(rows), p.room(len(t.cols)))] // objects may have no names in common
	p.values += len(rows) * len(t.cols)
	for _, row := range rows {
		t.rows = append(t.rows, each(t.cols, func(name string) string { return row[name] }))
	}
	return t
}

// inside returns a path with a text, where that stands between delimiters, as a name; "" if it is not there.
func inside(in, text, name string) string {
	word := func(i int) bool {
		if i < 0 || i >= len(in) {
			return false
		}
		c := in[i]
		return c|32 >= 'a' && c|32 <= 'z' || c >= '0' && c <= '9'
	}
	var out strings.Builder
	start, found := 0, false
	for {
		i := strings.Index(in[start:], text)
		if i < 0 {
			out.WriteString(in[start:])
			break
		}
		out.WriteString(in[start : start+i])
		i += start
		if start = i + len(text); word(i-1) || word(start) || strings.Count(in[:i], "{") > strings.Count(in[:i], "}") {
			out.WriteString(text)
			continue
		}
		out.WriteString(name)
		found = true
	}
	if !found {
		return ""
	}
	return out.String()
}

// fill returns the path that a template has for a row.
func (t *table) fill(template string, row int) string {
	return named.ReplaceAllStringFunc(template, func(name string) string {
		if name == splitMark {
			return t.of[row]
		}
		return t.rows[row][slices.Index(t.cols, name[1:len(name)-1])]
	})
}

// templates finds paths made of the columns of a table: for each the files of the rows that have one.
func (t *table) templates(paths []string, all map[string]bool) map[string][]string {
	probes := slices.Compact([]int{0, (len(t.rows) - 1) / 2, len(t.rows) - 1})
	works := func(template string) bool {
		n := 0
		for _, row := range probes {
			n += number(all[t.fill(template, row)])
		}
		return n*2 > len(probes)
	}
	out := map[string][]string{}
	for _, row := range probes {
		for c, name := range t.cols {
			value := t.rows[row][c]
			if value == "" || max(len(value), len(name)) > 200 || t.lists[name] {
				continue
			}
			for _, file := range paths {
				template := ""
				if len(out) < 200 && strings.Contains(file, value) {
					template = inside(file, value, "{"+name+"}")
				}
				if template == "" {
					continue
				}
				if works(template) {
					out[template] = nil
				}
				for k := -1; k < len(t.cols); k++ { // with the split, and with other columns
					other, name := t.of[row], splitMark
					if k >= 0 {
						other, name = t.rows[row][k], "{"+t.cols[k]+"}"
					}
					if refined := inside(template, cmp.Or(other, "/"), name); other != "" && refined != "" {
						if template = refined; works(template) {
							out[template] = nil
						}
					}
				}
			}
		}
	}
	rank := map[string][]int{}
	for template := range out {
		different := map[string]bool{}
		for row := range t.rows {
			file := t.fill(template, row)
			if !all[file] {
				file = ""
			}
			out[template] = append(out[template], file)
			different[file] = true
		}
		have := len(t.rows) - counted(out[template])[""]
		rank[template] = []int{have, len(different), -len(named.FindAllString(template, -1)),
			-number(idWord.MatchString(template))}
		if len(different)-number(different[""]) < 2 && len(t.rows) > 1 {
			delete(out, template)
		}
	}
	// Of templates of some of the same files, the one of most rows and files, and with the fewest names, stays.
	taken := map[string]bool{}
	for _, template := range slices.SortedFunc(maps.Keys(out), func(a, b string) int {
		return cmp.Or(slices.Compare(rank[b], rank[a]), cmp.Compare(a, b))
	}) {
		if slices.ContainsFunc(out[template], func(file string) bool { return file != "" && taken[file] }) {
			delete(out, template)
			continue
		}
		for _, file := range out[template] {
			taken[file] = true
		}
	}
	return out
}

// labels adds the columns of a table that look like labels, without some, and returns the column of splits.
func (r *reading) labels(t *table, used map[string]bool) (split string) {
	var flags []string
	defer func(before int) {
		for i := range r.members[before:] {
			r.members[before+i].of = t
		}
	}(len(r.members))
	for c, name := range t.cols {
		values := t.values(c)
		different := counted(values)
		bits := len(different) == number(different["0"] > 0)+number(different["1"] > 0)
		label := labelWord.MatchString(name)
		text := "column=" + quoted(name)
		isObject := strings.HasPrefix(values[0], "[{") || values[0] == "{}"
		switch {
		case wkt.MatchString(values[0]):
			r.note("the column %s of %s has shapes as WKT: Vector(%s, box={\"wkt\": %s}, image=…) reads them", name,
				t.path, quoted(t.path), quoted(name))
		case splitCol.MatchString(name) && len(different) <= 12:
			split = name
		case used[name] || name == "" || len(name) > 60 || isObject:
		case bits && len(t.rows) > 2 && !idWord.MatchString(name) && !label:
			flags = append(flags, name)
		case !label || strings.HasPrefix(values[0], "{"):
		case t.lists[name] && strings.HasSuffix(name, ".0"):
			r.add(identifier(name), fieldOf(text, `kind="class"`))
		case t.lists[name] && strings.HasPrefix(values[0], `["`) && !textWord.MatchString(name):
			r.add(identifier(name), fieldOf(text, `kind="class"`))
		case textWord.MatchString(name):
			r.add(identifier(name), fieldOf(text, `kind="text"`))
		case t.lists[name] && lengths(values) > 1:
			r.add(identifier(name), fieldOf(text, "classes="+numbersIn(values)))
			r.note("the classes of %s are the numbers that a part of its lists has: more may be missing", name)
		case t.lists[name] && !strings.ContainsAny(values[0], ".\""):
			r.add(identifier(name), quoted(name))
			r.note("the lists %s are numbers as they are: with classes=[…] they are 1 for each class", name)
		case numeric(values) || t.lists[name] || different["True"]+different["true"]+different["False"] > 0:
			r.add(identifier(name), quoted(name))
		case len(different) <= max(2, len(t.rows)/2) || len(t.rows) < 10:
			delete(different, "")
			r.add(identifier(name), fieldOf(text, "classes="+listed(sorted(different))))
		}
	}
	if len(flags) > 2 {
		r.add("labels", "Field(columns="+listed(flags)+")")
		return split
	}
	for _, name := range flags {
		r.add(identifier(name), quoted(name))
	}
	return split
}

// below returns a path below the folder of a table.
func below(to, table string) string {
	dir := path.Dir(table)
	if dir == "." {
		return to
	}
	if rest, ok := strings.CutPrefix(to, dir+"/"); ok {
		return rest
	}
	return "../" + below(to, dir)
}

// reading returns the reading whose samples are the rows of a table, nil without images.
func (t *table) reading(s *search) *reading {
	templates := t.templates(s.index, s.all)
	r := &reading{source: t.path, table: t, uses: map[string]bool{}, splits: t.splits}
	var groups []*group
	var beside []string
	for _, template := range sorted(templates) {
		if path.Ext(template) == ".json" {
			beside = append(beside, template)
			continue
		}
		g := &group{pattern: below(template, t.path), keys: map[string]bool{}}
		for row, name := range templates[template] {
			if f := s.prober.paths[name]; f != nil {
				g.files = append(g.files, f)
				g.keys[fmt.Sprint(row)] = true
			}
		}
		if g.head = s.header(g.files[0].path); g.head.readable() && len(g.head.Arrays) == 0 {
			s.count(g)
			groups = append(groups, g)
		}
	}
	if len(groups) == 0 {
		return nil
	}
	slices.SortStableFunc(groups, func(a, b *group) int { return cmp.Compare(b.score(), a.score()) })
	r.lead = groups[0]
	var pairs []pair
	used := map[string]bool{}
	for _, g := range groups {
		if g != r.lead {
			pairs = append(pairs, pair{g, float64(len(g.files)) / float64(len(r.lead.keys))})
		}
		for _, name := range named.FindAllString(g.pattern, -1) {
			used[name[1:len(name)-1]] = !labelWord.MatchString(name)
		}
	}
	r.pixels(s, pairs)
	for _, template := range beside {
		r.tableOfSample(s, t, template, templates[template], used)
	}
	split := r.labels(t, used)
	r.count("%d rows of %s, %d with an image", len(t.rows), t.path, len(r.lead.files))
	if n := len(t.rows) - len(r.lead.files); n > 0 {
		r.note("%d rows of %s have no file %s: they are left out", n, t.path, r.lead.pattern)
		r.rows = append(r.rows, `missing="drop"`)
	}
	r.splitColumn(t, split)
	return r
}

// tableOfSample adds JSON files, one for each row of a table.
func (r *reading) tableOfSample(s *search, t *table, template string, files []string, used map[string]bool) {
	names := named.FindAllString(template, -1)
	read := s.readTable(slices.Max(files))
	if len(names) != 1 || len(read) != 1 {
		return
	}
	glob := strings.Replace(template, names[0], "*", 1)
	r.tables = append(r.tables, quoted("\x00"+glob)+`: {"name": `+quoted(names[0][1:len(names[0])-1])+"}")
	for _, file := range files {
		r.uses[file] = true
	}
	both := map[string]bool{}
	for c, name := range read[0].cols {
		if both[name] = slices.Contains(t.cols, name); both[name] && numeric(read[0].values(c)) {
			r.members = slices.DeleteFunc(r.members, func(m member) bool { return m.text == quoted(name) })
			r.add(identifier(name), fieldOf("column="+quoted(glob+"::"+name)))
			used[name] = true
		}
	}
	r.labels(read[0], both)
}

// splitColumn has a call for each value of a column.
func (r *reading) splitColumn(t *table, split string) {
	if split == "" || len(r.splits) > 0 {
		return
	}
	r.splits = sorted(counted(t.values(slices.Index(t.cols, split))))
	switch {
	case split == "split":
		r.rows = append(r.rows, `split="`+splitMark+`"`)
	case numeric(r.splits):
		r.rows = append(r.rows, "where=[["+quoted(split)+`, "==", `+splitMark+"]]")
	default:
		r.rows = append(r.rows, "where=[["+quoted(split)+`, "==", `+quoted(splitMark)+"]]")
	}
}

// reads reports whether a member has the column of a name.
func (m member) reads(column string) bool {
	return m.text == quoted(column) || strings.Contains(m.text, "column="+quoted(column))
}

// qualified returns the text of a member whose columns have the name of their table in front.
func (m member) qualified() string {
	text := m.text
	for _, column := range m.of.cols {
		if m.reads(column) {
			text = strings.Replace(text, quoted(column), quoted(path.Base(m.of.path)+"::"+column), 1)
		}
	}
	return text
}

// lengths returns how many lengths lists of JSON have.
func lengths(values []string) int {
	out := map[int]bool{}
	for _, v := range values {
		var list []any
		if json.Unmarshal([]byte(v), &list) == nil {
			out[len(list)] = true
		}
	}
	return len(out)
}

// numbersIn returns the list of the different elements of lists of JSON, in the order of numbers.
func numbersIn(values []string) string {
	different := map[string]bool{}
	for _, v := range values {
		var list []json.RawMessage
		_ = json.Unmarshal([]byte(v), &list) // another value has none
		for _, element := range list {
			different[string(element)] = true
		}
	}
	out := sorted(different)
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	return "[" + strings.Join(out, ", ") + "]"
}
