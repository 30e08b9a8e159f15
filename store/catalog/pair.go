package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
	"github.com/chaski-eo/chaski/store/catalog/internal/layout"
	"github.com/chaski-eo/chaski/store/catalog/internal/listing"
)

// matched are the files that the pattern of a field matches.
type matched struct {
	pattern *listing.Pattern
	keys    []string         // of each file, in the order of rows: the values of its names, joined by keySeparator
	rows    []int64          // of the files
	byKey   map[string]int64 // the rows, once index has made it
	order   []int            // of the values of the pattern, as they stand in keys: as the names of the leading pattern
	names   []int            // of the names of the leading pattern, those that this one has; nil: all
	beside  bool             // the files are not rasters of the dataset, and have rows of their own
}

// keySeparator joins the values of several names: no value has a slash.
const keySeparator = "/"

// keyOf returns the key of the values of the pattern's names.
func (m *matched) keyOf(values []string) string {
	if len(values) == 1 {
		return values[0]
	}
	size := len(values) - 1
	for _, value := range values {
		size += len(value)
	}
	var key strings.Builder
	key.Grow(size)
	for i, k := range m.order {
		if i > 0 {
			key.WriteString(keySeparator)
		}
		key.WriteString(values[k])
	}
	return key.String()
}

// row returns the row of the file of a sample, whose key is of the leading pattern.
func (m *matched) row(sample string) (row int64, key string, ok bool) {
	if key = sample; m.names != nil {
		values, own := strings.Split(sample, keySeparator), make([]string, len(m.names))
		for i, k := range m.names {
			own[i] = values[k]
		}
		key = strings.Join(own, keySeparator)
	}
	row, ok = m.byKey[key]
	return row, key, ok
}

// parsePatterns parses the patterns of fields. It returns one for each field, nil of those without, and the number of
// the first that has all names: each of its files is a sample. Without patterns that is -1.
func parsePatterns(fields []Source) (files []*matched, first int, err error) {
	var texts []string
	for _, s := range fields {
		if s.Pattern != "" {
			texts = append(texts, s.Pattern)
		}
	}
	patterns, err := listing.ParsePatterns(texts)
	if len(texts) == 0 || err != nil {
		return make([]*matched, len(fields)), -1, err
	}
	var all []string
	for _, p := range patterns {
		for _, name := range p.Names() {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	files, first = make([]*matched, len(fields)), -1
	lacking := -1 // a field that has all names, but may lack
	for i, s := range fields {
		if s.Pattern == "" {
			continue
		}
		files[i], patterns = &matched{pattern: patterns[0], beside: s.Beside}, patterns[1:]
		switch full := !s.Beside && len(files[i].pattern.Names()) == len(all); {
		case full && s.Optional:
			lacking = i
		case full && first < 0:
			first = i
		}
	}
	switch {
	case len(all) == 0:
		return nil, 0, fault.New(fault.NotFound, "pattern",
			"%q has no name such as {id}, which stands for any text", texts[0])
	case !slices.ContainsFunc(fields, func(s Source) bool { return s.Pattern != "" && !s.Beside }):
		i := slices.IndexFunc(fields, func(s Source) bool { return s.Beside })
		return nil, 0, noField(fields[i], fault.NotFound, "{%s} of its pattern %q is from a raster field's pattern, "+
			"and there is none: give the image one, such as \"{%[1]s}.tif\"", all[0], fields[i].Pattern)
	case first < 0 && lacking >= 0:
		return nil, 0, noField(fields[lacking], fault.Unsupported, "the files of one field are the samples, and "+
			"all fields that have the names {%s} may lack: give one that each sample has", strings.Join(all, "}, {"))
	case first < 0:
		return nil, 0, fault.New(fault.NotFound, "patterns", "no field of files has all of the names {%s}: each file "+
			"of such a field is a sample, and * stands for text that need not agree", strings.Join(all, "}, {"))
	}
	leading := files[first].pattern.Names()
	for _, m := range files {
		if m == nil {
			continue
		}
		var names []int
		for k, name := range leading {
			if i := slices.Index(m.pattern.Names(), name); i >= 0 {
				m.order, names = append(m.order, i), append(names, k)
			}
		}
		if len(names) < len(leading) {
			m.names = append([]int{}, names...)
		}
	}
	return files, first, nil
}

// pair makes samples of the files whose paths match the fields' patterns. Without patterns it does nothing. uris are
// the paths of all rasters.
func (t *Table) pair(ctx context.Context, fields []Source, uris *columns.Column, o Options) error {
	files, first, err := parsePatterns(fields)
	if err != nil {
		return err
	}
	// The path of an absolute URI below the dataset is the part after the directory that all share.
	shared, err := sharedFolder(ctx, uris)
	if err != nil {
		return err
	}
	t.nameColumns(uris, files, first, len(shared))
	if first < 0 {
		if err := t.nameAsListed(uris); err != nil {
			return err
		}
		return t.nameFields(ctx, fields, o)
	}
	var patterns int64
	for _, m := range files {
		if m != nil {
			patterns++
		}
	}
	for i, source := range fields {
		switch {
		case files[i] == nil:
			continue
		case source.Beside:
			err = t.listBeside(ctx, i, source, files[i], string(shared))
		default:
			err = t.matches(ctx, source, files[i], uris, len(shared), uris.Rows()/patterns)
		}
		// The paths of a listing differ, and so do the keys that a pattern without stars makes of them: the keys of
		// the leading files need no index, unless another field lacks one. Folders outside may overlap.
		once := i == first && t.table == nil && !files[i].pattern.Stars() && !listing.Outside(source.Pattern)
		if err == nil && !once {
			err = files[i].index(source)
		}
		if err != nil {
			return err
		}
	}
	lead := files[first]
	otherwise := func(name string) (string, error) { return t.otherEnding(ctx, name, uris, len(shared)) }
	if err := t.leaveOutIncomplete(fields, files, first, otherwise, o); err != nil {
		return err
	}
	if t.table != nil { // the files of a listing are in the order of their paths
		if err := lead.sort(ctx, uris); err != nil {
			return err
		}
	}
	t.n = int64(len(lead.keys))
	if t.table != nil || t.n < uris.Rows() { // or all files are samples, in order
		t.order = lead.rows
	}
	for i, source := range fields {
		switch {
		case i == first:
			t.fields[i].rows = t.order
		case files[i] != nil:
			var found int
			if t.fields[i].rows, found = pickRows(lead.keys, files[i], source.Beside); found == 0 {
				return noField(source, fault.NotFound, "none of %d samples has a file %q", t.n, source.Pattern)
			}
		case t.fields[i].labels != "": // see expand
		case t.table != nil || t.pathed[source.Column] != nil: // a column has the value of the first field's row
			t.fields[i].rows = t.order
		default:
			return noField(source, fault.NotFound, "needs a pattern, because another field of this directory has one")
		}
	}
	if err := t.findDoubled(ctx, fields, files, lead, uris); err != nil {
		return err
	}
	forget(files)
	return t.nameFields(ctx, fields, o)
}

// forget frees the memory of files. Columns keep their patterns.
func forget(files []*matched) {
	for _, m := range rasters(files) {
		m.keys, m.rows, m.byKey = nil, nil, nil
	}
}

// findDoubled looks for a leading file that its own sample has in a field of fewer names, too: {scene}/{id}.tif matches
// a/label.tif, the {scene}/label.tif of all files of a. Nothing tells it from a scene of one date that others refer to.
func (t *Table) findDoubled(ctx context.Context, fields []Source, files []*matched, lead *matched,
	uris *columns.Column) error {
	for i, m := range files {
		if m == nil || m.names == nil || m.beside {
			continue
		}
		for k, row := range t.fields[i].rows {
			if row == lead.rows[k] {
				cell, err := uris.Cell(ctx, row)
				t.doubled = [2]string{fields[i].Field, string(cell.Text)}
				return err
			}
		}
	}
	return nil
}

// leaveOutIncomplete removes the leading files whose samples lack a file in some field, or fails because of them:
// otherwise returns a file that has the name of one that lacks, but for its ending.
func (t *Table) leaveOutIncomplete(fields []Source, files []*matched, first int,
	otherwise func(name string) (string, error), o Options) error {
	found := partners{fields: fields, files: files, first: first, incomplete: map[string]bool{}}
	others := found.ofLead()
	lead := files[first]
	if len(found.lacking) > 0 {
		lead.leaveOutTaken(files, found.lacking)
		found = partners{fields: fields, files: files, first: first, incomplete: map[string]bool{}}
		others = found.ofLead()
	}
	if found.missing == 0 && len(others) == 0 {
		return nil
	}
	lead.lookUp()
	if found.ofOthers(others); found.missing == 0 {
		return nil
	}
	if !o.DropIncomplete {
		other, err := otherwise(found.example())
		return cmp.Or(err, found.fault(t.noun(), other))
	}
	t.dropped, t.example = len(found.incomplete), found.example()
	if lead.leaveOut(found.incomplete); len(lead.keys) == 0 {
		return fault.New(fault.NotFound, "dataset",
			"no id has a file or array for every field: %d lack one, such as %s", t.dropped, t.example)
	}
	return nil
}

// lookUp makes byKey.
func (m *matched) lookUp() {
	if m.byKey != nil {
		return
	}
	m.byKey = make(map[string]int64, len(m.keys))
	for i, key := range m.keys {
		m.byKey[key] = m.rows[i]
	}
}

// index makes byKey. Two files with one key are fault.Corrupt.
func (m *matched) index(s Source) error {
	m.lookUp()
	if len(m.byKey) == len(m.keys) {
		return nil
	}
	seen := make(map[string]bool, len(m.keys))
	for _, key := range m.keys {
		if seen[key] {
			way := ""
			if m.pattern.Stars() {
				way = ": a name in place of *, such as {part}, tells them apart"
			}
			return noField(s, fault.Corrupt, "two files of the pattern %q have the id %q%s", s.Pattern, key, way)
		}
		seen[key] = true
	}
	return nil
}

// leaveOutTaken removes the leading files that are files of other samples, and whose own samples lack a file: with
// {id}.tif and {id}_mask.tif, a_mask.tif is the mask of a, not an image whose mask would be a_mask_mask.tif. lacking
// are the files whose samples lack one.
func (m *matched) leaveOutTaken(files []*matched, lacking []int) {
	others := rasters(files)
	owned, taken := map[int64]bool{}, map[string]bool{}
	for _, row := range m.partnered(others) {
		owned[row] = true
	}
	for _, i := range lacking {
		// A file that is also the file of its own sample is a sample: a scene of one date that others refer to.
		isOwn := func(other *matched) bool {
			row, _, ok := other.row(m.keys[i])
			return ok && other.names != nil && row == m.rows[i]
		}
		if owned[m.rows[i]] && !slices.ContainsFunc(others, isOwn) {
			taken[m.keys[i]] = true
		}
	}
	m.leaveOut(taken)
}

// rasters returns the files of all fields that have patterns of rasters.
func rasters(files []*matched) []*matched {
	return slices.DeleteFunc(slices.Clone(files), func(m *matched) bool { return m == nil || m.beside })
}

// partnered yields the leading files, by number, and the rows of the other rasters that their samples have.
func (m *matched) partnered(others []*matched) iter.Seq2[int, int64] {
	return func(yield func(int, int64) bool) {
		for _, other := range others {
			for i, key := range m.keys {
				if row, _, ok := other.row(key); ok && row != m.rows[i] && !yield(i, row) {
					return
				}
			}
		}
	}
}

// leaveOut removes the files of some keys.
func (m *matched) leaveOut(keys map[string]bool) {
	n := 0
	for key := range keys {
		delete(m.byKey, key)
	}
	for i, key := range m.keys {
		if !keys[key] {
			m.keys[n], m.rows[n] = key, m.rows[i]
			n++
		}
	}
	m.keys, m.rows = m.keys[:n], m.rows[:n]
}

// sort puts the files in the order of their paths uris.
func (m *matched) sort(ctx context.Context, uris *columns.Column) error {
	paths, order := make([]string, len(m.keys)), make([]int, len(m.keys))
	for i, row := range m.rows {
		cell, err := uris.Cell(ctx, row)
		if err != nil {
			return err
		}
		paths[i], order[i] = string(cell.Text), i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(paths[a], paths[b]) })
	m.keys, m.rows = num.Pick(m.keys, order), num.Pick(m.rows, order)
	return nil
}

// withOutside returns a listing that has the files of other folders, too, to which patterns lead, by the names that
// these give them, and the fields.
func (t *Table) withOutside(ctx context.Context, l *listing.Listing, fields []Source) (*listing.Listing, []Source,
	error) {
	fields, added := slices.Clone(fields), map[string]bool{}
	for i := range fields {
		pattern := &fields[i].Pattern
		if fields[i].Beside || !listing.Outside(*pattern) {
			continue
		}
		var folder string
		*pattern, folder = folderOfPattern(l.Base, *pattern)
		if added[folder] {
			continue
		}
		added[folder] = true
		other, err := listing.List(ctx, listing.Resolve(t.roots, l.Base, folder), t.roots, t.opener, filesOf(*pattern),
			strings.TrimPrefix(*pattern, folder))
		if err != nil {
			return nil, nil, inPart(err, fmt.Sprintf("field %q", fields[i].Field))
		}
		l = l.With(folder, other)
	}
	return l, fields, nil
}

// folderOfPattern returns the folder of the files of a pattern, "" for base, and the pattern: relative to a remote base
// with "../", it becomes a URI.
func folderOfPattern(base, pattern string) (_, folder string) {
	if source.IsRemote(base) {
		pattern = listing.Absolute(base, pattern)
	}
	before, _, _, _ := column.CutName(pattern)
	before, _, _ = strings.Cut(before, "*")
	return pattern, before[:strings.LastIndexByte(before, '/')+1]
}

// listBeside makes field i of the files beside rasters that its pattern matches, and adds their rows. The last row,
// with which samples without a file end, is null. shared is the directory that all absolute paths of rasters share.
func (t *Table) listBeside(ctx context.Context, i int, s Source, m *matched, shared string) error {
	base := t.base
	if t.table != nil && (source.Scheme(shared) != "" || filepath.IsAbs(shared)) {
		base = strings.TrimSuffix(shared, "/")
	}
	text, folder := folderOfPattern(base, s.Pattern) // of a remote folder above, text is a URI
	_, prefix := folderOfPattern("", s.Pattern)
	found, err := listing.List(ctx, listing.Resolve(t.roots, base, folder), t.roots, t.opener,
		listing.AllFiles|filesOf(text)&listing.Members, strings.TrimPrefix(text, folder))
	if err != nil {
		return inPart(err, fmt.Sprintf("field %q", s.Field))
	}
	var paths []string
	var sizes []int64
	var values []string
	for k, name := range found.Paths {
		var ok bool
		if values, ok, err = m.pattern.Match(prefix+name, values[:0]); err != nil {
			return inPart(err, fmt.Sprintf("field %q", s.Field))
		}
		if !ok {
			continue
		}
		m.add(values, int64(len(paths)))
		paths, sizes = append(paths, arrayOf(found.Path(k), s.array)), append(sizes, found.Sizes[k])
	}
	if len(paths) == 0 {
		all := columns.Paths(found.Paths)
		if other, err := t.otherCase(ctx, strings.TrimPrefix(text, folder), all, 0); err != nil || other != "" {
			return cmp.Or(err, endsOtherwise(s, folder+other))
		}
		return noField(s, fault.NotFound, "no file matches the pattern %q", s.Pattern)
	}
	t.fields[i].main = columns.Map(columns.Paths(append(paths, "")), func(_ int64, c columns.Cell) columns.Cell {
		c.Null = len(c.Text) == 0
		return c
	})
	t.fields[i].columns = map[string]*columns.Column{layout.Size: columns.InMemory(
		tables.NewInts(tables.Type{Kind: tables.Int64, Bits: 64}, append(sizes, 0), nil))}
	return nil
}

// pickRows returns the rows of samples, and how many have one. If a sample has none, it is -1, or of files beside
// rasters the one behind all rows.
func pickRows(ids []string, m *matched, beside bool) (out []int64, found int) {
	none := int64(-1)
	if beside {
		none = int64(len(m.keys))
	}
	out = make([]int64, len(ids))
	for k, id := range ids {
		row, _, ok := m.row(id)
		if out[k] = row; ok {
			found++
		} else {
			out[k] = none
		}
	}
	return out, found
}

// add adds the row of a file by what its names stand for.
func (m *matched) add(values []string, row int64) {
	m.keys, m.rows = append(m.keys, m.keyOf(values)), append(m.rows, row)
}

// matches adds the rows of the paths that a field's pattern matches. shared is the length of the directory that all
// absolute paths share. About so many rows are expected.
func (t *Table) matches(ctx context.Context, s Source, m *matched, uris *columns.Column, shared int,
	expected int64) error {
	var values []string
	m.keys, m.rows = make([]string, 0, expected), make([]int64, 0, expected)
	err := uris.Scan(ctx, func(row int64, v columns.Cell) error {
		path := t.below(string(v.Text), shared)
		if t.table == nil && listing.Outside(path) != listing.Outside(s.Pattern) {
			return nil
		}
		var ok bool
		var err error
		if values, ok, err = m.pattern.Match(path, values[:0]); err != nil || !ok {
			return inPart(err, fmt.Sprintf("field %q", s.Field))
		}
		m.add(values, row)
		return nil
	})
	if err != nil {
		return err
	}
	if len(m.keys) == 0 {
		if magic.Way(s.Pattern) != "" {
			return listing.NotRead(s.Pattern)
		}
		way := ""
		if other, err := t.otherCase(ctx, s.Pattern, uris, shared); err != nil || other != "" {
			return cmp.Or(err, endsOtherwise(s, other))
		}
		if len(m.pattern.Names()) > 1 || m.pattern.Stars() {
			way = ": names and * stand for text without slashes here, and **/ for folders"
		}
		return noField(s, fault.NotFound, "no %s matches the pattern %q%s", t.noun(), s.Pattern, way)
	}
	return nil
}

// endsOtherwise returns the error for a pattern that matches a file but for capitals of its ending.
func endsOtherwise(s Source, file string) error {
	return noField(s, fault.NotFound, "no file matches the pattern %q, but %q does: write its ending", s.Pattern, file)
}

// otherCase returns a file that a pattern matches but for capitals of its ending, or "".
func (t *Table) otherCase(ctx context.Context, pattern string, uris *columns.Column, shared int) (found string,
	err error) {
	patterns, err := listing.ParsePatterns([]string{listing.OtherCase(pattern)})
	if err == nil {
		err = uris.Scan(ctx, func(_ int64, c columns.Cell) error {
			path := t.below(string(c.Text), shared)
			_, ok, err := patterns[0].Match(path, nil)
			if ok && found == "" {
				found = path
			}
			return err
		})
	}
	return found, err
}

// otherEnding returns a file of pixels with the name of another one, but for the ending, or "".
func (t *Table) otherEnding(ctx context.Context, name string, uris *columns.Column, shared int) (found string,
	err error) {
	stem, _ := strings.CutSuffix(name, path.Ext(name))
	err = uris.Scan(ctx, func(_ int64, c columns.Cell) error {
		other := t.below(string(c.Text), shared)
		if strings.TrimSuffix(other, path.Ext(other)) == stem && magic.Named(other).Class.Pixels() {
			found = other
		}
		return nil
	})
	return found, err
}

// noun is what patterns match, for errors.
func (t *Table) noun() string {
	if t.inside {
		return "array"
	}
	return "file"
}

// below returns the part of a path that patterns match: of an absolute one in a table without the directory that all
// of these share, whose length is shared.
func (t *Table) below(path string, shared int) string {
	if t.table != nil && (source.Scheme(path) != "" || filepath.IsAbs(path)) {
		return path[min(shared, len(path)):]
	}
	return path
}

// partners finds the samples that have no file in some field with a pattern. Of these it names the first field that
// lacks one, and there the first sample.
type partners struct {
	fields []Source
	files  []*matched // by field
	first  int        // the field whose files are samples

	used       []map[string]bool // keys of the files that samples have, of fields with fewer names than the first
	incomplete map[string]bool
	lacking    []int // leading files whose samples lack a file, also of an optional field; once for each such field
	missing    int   // files
	// The first one: the field that lacks it, the key of the sample, and the names whose values the key has.
	where int
	which string
	names []string
}

// note counts a missing file: of a sample in a field. from has the key of the sample.
func (p *partners) note(field int, key string, from *matched) {
	before := cmp.Or(cmp.Compare(field, p.where), cmp.Compare(key, p.which)) < 0
	if p.missing++; p.missing == 1 || before {
		p.where, p.which, p.names = field, key, from.keyNames()
	}
	p.incomplete[key] = true
}

// ofLead looks for the partners of the leading files. It returns the fields that have further files. Files beside
// rasters make no samples of their own.
func (p *partners) ofLead() (others []int) {
	p.used = make([]map[string]bool, len(p.files))
	for i, m := range p.files {
		if m == nil || i == p.first {
			continue
		}
		if m.names != nil {
			p.used[i] = map[string]bool{}
		}
		found := 0
		for k, key := range p.files[p.first].keys {
			if p.visit(i, key) {
				found++
			} else {
				p.lacking = append(p.lacking, k)
			}
		}
		if m.names != nil {
			found = len(p.used[i])
		}
		if !p.fields[i].Beside && found < len(m.keys) {
			others = append(others, i)
		}
	}
	return others
}

// visit looks for the file of a sample in a field.
func (p *partners) visit(field int, sample string) bool {
	_, key, ok := p.files[field].row(sample)
	switch {
	case !ok && !p.fields[field].Optional:
		p.note(field, sample, p.files[p.first])
	case ok && p.used[field] != nil:
		p.used[field][key] = true
	}
	return ok
}

// ofOthers looks for the partners of further files of some fields, unless a sample of several files has them. The
// leading field has an index.
func (p *partners) ofOthers(others []int) {
	if len(others) == 0 {
		return
	}
	lead := p.files[p.first]
	owned := map[int64]bool{}
	for i, row := range lead.partnered(rasters(p.files)) {
		owned[row], owned[lead.rows[i]] = true, true
	}
	for _, i := range others {
		for k, key := range p.files[i].keys {
			switch {
			case owned[p.files[i].rows[k]]:
			case p.used[i] != nil && !p.used[i][key]:
				p.note(p.first, key, p.files[i])
			case p.used[i] == nil && !p.incomplete[key]:
				for j, m := range p.files {
					if m != nil {
						p.visit(j, key)
					}
				}
			}
		}
	}
}

// example returns the path of the missing file.
func (p *partners) example() string { return p.files[p.where].path(p.which, p.names) }

// fault returns the error for the missing file. other is a file with another ending, or "".
func (p *partners) fault(noun, other string) error {
	field := p.fields[p.where]
	if ending := path.Ext(field.Pattern); other != "" && ending != "" {
		return noField(field, fault.NotFound, "no %s %s for the id %q, but %s is there: %q takes any ending", noun,
			p.example(), p.which, other, strings.TrimSuffix(field.Pattern, ending)+".*")
	}
	way := `: missing "drop" (of commands: --drop-missing) leaves out the samples that lack one`
	switch {
	case field.Beside:
		way = `: missing "empty" takes samples without a file as samples without shapes`
	case p.where != p.first:
		way += `, and missing "fill" of the field keeps them`
	}
	return noField(field, fault.NotFound, "no %s %s for the id %q; %d %[1]ss are missing in all%[5]s", noun,
		p.example(), p.which, p.missing, way)
}

// keyNames returns the names whose values keys have.
func (m *matched) keyNames() (names []string) {
	for _, k := range m.order {
		names = append(names, m.pattern.Names()[k])
	}
	return names
}

// path returns the path of the file of a sample by the key of some names.
func (m *matched) path(key string, names []string) string {
	values := []string{key}
	if len(names) > 1 {
		values = strings.Split(key, keySeparator)
	}
	return m.pattern.Path(func(name string) (string, bool) {
		k := slices.Index(names, name)
		if k < 0 {
			return "", false
		}
		return values[k], true
	})
}

// Fields returns the names of the fields of a catalog of pairs, nil for any other dataset.
func Fields(ctx context.Context, src string, o Options) (names []string, err error) {
	if !IsParquet(src) {
		return nil, nil
	}
	o = o.withDefaults()
	table, err := columns.Open(ctx, o.Opener, src, o.CacheBytes/2)
	if err == nil {
		names, err = pairedFields(table)
		err = errors.Join(err, table.Close())
	}
	return names, fault.WithFile(err, src)
}
