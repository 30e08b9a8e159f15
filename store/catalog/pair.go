package catalog

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/internal/join"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
	"github.com/chaski-eo/chaski/store/catalog/internal/layout"
	"github.com/chaski-eo/chaski/store/catalog/internal/listing"
)

// matched are the files that the pattern of a field matches. Their keys are the values of its names.
type matched struct {
	join.Field
	pattern *listing.Pattern
	order   []int    // of the values of the pattern, as they stand in keys: as the names of the leading pattern
	values  []string // of the last path
}

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
			key.WriteString(join.Separator)
		}
		key.WriteString(values[k])
	}
	return key.String()
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
		files[i], patterns = &matched{pattern: patterns[0]}, patterns[1:]
		files[i].Optional, files[i].Beside = s.Optional, s.Beside
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
			m.Names = append([]int{}, names...)
		}
	}
	return files, first, nil
}

// pair makes samples of the files whose paths match the fields' patterns, and the columns of their paths. Without
// patterns all files are samples.
func (t *Table) pair(ctx context.Context, fields []Source, o Options) error {
	files, first, err := parsePatterns(fields)
	if err != nil {
		return err
	}
	if first < 0 {
		if err := t.nameAsListed(); err != nil {
			return err
		}
		return t.nameFields(ctx, fields, o)
	}
	uris := t.paths
	t.nameColumns(uris, files[first])
	joined, patterns := join.Fields{All: make([]*join.Field, len(fields)), Lead: first}, int64(0)
	for i, m := range files {
		if m != nil {
			joined.All[i], patterns = &m.Field, patterns+1
		}
	}
	for i, source := range fields {
		switch {
		case files[i] == nil:
			continue
		case source.Beside:
			err = t.listBeside(ctx, i, source, files[i])
		default:
			err = t.matches(ctx, source, files[i], uris.Rows/patterns)
		}
		// The paths of a listing differ, and so do the keys that a pattern without stars makes of them: the keys of
		// the leading files need no index, unless another field lacks one. Folders outside may overlap.
		once := i == first && uris.listed && !files[i].pattern.Stars() && !listing.Outside(source.Pattern)
		if err == nil && !once {
			err = files[i].unique(source)
		}
		if err != nil {
			return err
		}
	}
	joined.Join()
	if err := t.leaveOutIncomplete(ctx, &joined, fields, files, o); err != nil {
		return err
	}
	if !uris.listed {
		if err := sortByPath(ctx, joined.Samples, files[first].Rows, uris); err != nil {
			return err
		}
	}
	t.n = int64(len(joined.Samples))
	if !uris.listed || t.n < uris.Rows { // or all files are samples, in order
		t.order = num.Pick(files[first].Rows, joined.Samples)
	}
	if err := t.giveRows(ctx, fields, files, &joined); err != nil {
		return err
	}
	return t.nameFields(ctx, fields, o)
}

// giveRows gives fields the rows of their samples.
func (t *Table) giveRows(ctx context.Context, fields []Source, files []*matched, joined *join.Fields) error {
	for i, source := range fields {
		m := files[i]
		switch {
		case i == joined.Lead:
			t.fields[i].rows = t.order
		case m != nil:
			t.fields[i].rows = m.SampleRows(joined.Samples)
			if !slices.ContainsFunc(joined.Samples, func(k int32) bool { return m.Of[k] >= 0 }) {
				return noField(source, fault.NotFound, "none of %d samples has a file %q", t.n, source.Pattern)
			}
			// {scene}/{id}.tif matches a/label.tif, the {scene}/label.tif of all files of a, too. Nothing tells it from
			// a scene of one date that others refer to.
			for k, row := range t.fields[i].rows {
				if m.Names == nil || m.Beside || row != files[joined.Lead].Rows[joined.Samples[k]] {
					continue
				}
				cell, err := t.paths.Cell(ctx, row)
				if err != nil {
					return err
				}
				t.Remarks.TwiceField, t.Remarks.Twice = source.Field, string(cell.Text)
				break
			}
		case t.fields[i].labels != "": // see expand
		case !t.paths.listed || t.pathColumns[source.Column] != nil: // a column has the value of the first field's row
			t.fields[i].rows = t.order
		default:
			return noField(source, fault.NotFound, "needs a pattern, because another field of this directory has one")
		}
	}
	return nil
}

// leaveOutIncomplete leaves out the samples that lack a file in some field, or fails because of them.
func (t *Table) leaveOutIncomplete(ctx context.Context, joined *join.Fields, fields []Source, files []*matched,
	o Options) error {
	if joined.Count(); joined.Missing == 0 {
		return nil
	}
	field := fields[joined.Where]
	example := files[joined.Where].path(joined.Key, files[joined.From].keyNames())
	if o.DropIncomplete {
		t.Remarks.Dropped, t.Remarks.Lacking = joined.Incomplete, example
		if joined.Drop(); len(joined.Samples) == 0 {
			return fault.New(fault.NotFound, "dataset",
				"no id has a file or array for every field: %d lack one, such as %s", joined.Incomplete, example)
		}
		return nil
	}
	other, err := t.paths.otherEnding(ctx, example)
	if err != nil {
		return err
	}
	if ending := path.Ext(field.Pattern); other != "" && ending != "" {
		return noField(field, fault.NotFound, "no %s %s for the id %q, but %s is there: %q takes any ending", t.noun,
			example, joined.Key, other, strings.TrimSuffix(field.Pattern, ending)+".*")
	}
	way := `: missing "drop" (of commands: --drop-missing) leaves out the samples that lack one`
	switch {
	case field.Beside:
		way = `: missing "empty" takes samples without a file as samples without shapes`
	case joined.Where != joined.Lead:
		way += `, and missing "fill" of the field keeps them`
	}
	return noField(field, fault.NotFound, "no %s %s for the id %q; %d %[1]ss are missing in all%[5]s", t.noun,
		example, joined.Key, joined.Missing, way)
}

// unique refuses two files with one key.
func (m *matched) unique(s Source) error {
	twice := m.Index()
	if twice == "" {
		return nil
	}
	way := ""
	if m.pattern.Stars() {
		way = ": a name in place of *, such as {part}, tells them apart"
	}
	return noField(s, fault.Corrupt, "two files of the pattern %q have the id %q%s", s.Pattern, twice, way)
}

// sortByPath puts samples, which are numbers of rows, in the order of their paths uris.
func sortByPath(ctx context.Context, samples []int32, rows []int64, uris *paths) error {
	texts := make([]string, len(rows))
	for _, k := range samples {
		cell, err := uris.Cell(ctx, rows[k])
		if err != nil {
			return err
		}
		texts[k] = string(cell.Text)
	}
	slices.SortFunc(samples, func(a, b int32) int { return strings.Compare(texts[a], texts[b]) })
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
			return nil, nil, fault.InPart(err, fmt.Sprintf("field %q", fields[i].Field))
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
// with which samples without a file end, is null.
func (t *Table) listBeside(ctx context.Context, i int, s Source, m *matched) error {
	base := cmp.Or(strings.TrimSuffix(t.paths.root, "/"), t.base)
	text, folder := folderOfPattern(base, s.Pattern) // of a remote folder above, text is a URI
	_, prefix := folderOfPattern("", s.Pattern)
	found, err := listing.List(ctx, listing.Resolve(t.roots, base, folder), t.roots, t.opener,
		listing.AllFiles|filesOf(text)&listing.Members, strings.TrimPrefix(text, folder))
	if err != nil {
		return fault.InPart(err, fmt.Sprintf("field %q", s.Field))
	}
	var names []string
	var sizes []int64
	for k, name := range found.Paths {
		if ok, err := m.take(s, prefix+name, int64(len(names))); err != nil {
			return err
		} else if ok {
			names, sizes = append(names, arrayOf(found.Path(k), s.array)), append(sizes, found.Sizes[k])
		}
	}
	if len(names) == 0 {
		listed := &paths{Column: column.Texts(found.Paths)}
		return t.noneMatches(ctx, s, folder, strings.TrimPrefix(text, folder), listed)
	}
	t.fields[i].main = column.Map(column.Texts(append(names, "")), func(_ int64, c Value) Value {
		c.Null = len(c.Text) == 0
		return c
	})
	t.fields[i].columns = map[string]*columns.Column{layout.Size: column.Ints(append(sizes, 0))}
	return nil
}

// take adds the row of a file if the pattern matches its path.
func (m *matched) take(s Source, path string, row int64) (ok bool, err error) {
	if m.values, ok, err = m.pattern.Match(path, m.values[:0]); err != nil || !ok {
		return false, fault.InPart(err, fmt.Sprintf("field %q", s.Field))
	}
	m.Keys, m.Rows = append(m.Keys, m.keyOf(m.values)), append(m.Rows, row)
	return true, nil
}

// matches adds the rows of the paths that a field's pattern matches. About so many rows are expected.
func (t *Table) matches(ctx context.Context, s Source, m *matched, expected int64) error {
	m.Keys, m.Rows = make([]string, 0, expected), make([]int64, 0, expected)
	err := t.paths.Scan(ctx, func(row int64, v Value) error {
		path := t.paths.below(string(v.Text))
		if t.paths.listed && listing.Outside(path) != listing.Outside(s.Pattern) {
			return nil
		}
		_, err := m.take(s, path, row)
		return err
	})
	switch {
	case err != nil || len(m.Keys) > 0:
		return err
	case magic.Way(s.Pattern) != "":
		return listing.NotRead(s.Pattern)
	}
	return t.noneMatches(ctx, s, "", s.Pattern, t.paths)
}

// noneMatches returns the error for a pattern, below a folder, that matches no path. It may match one but for capitals
// of its ending.
func (t *Table) noneMatches(ctx context.Context, s Source, folder, pattern string, uris *paths) error {
	patterns, err := listing.ParsePatterns([]string{listing.OtherCase(pattern)})
	if err != nil {
		return err
	}
	noun, way := t.noun, ""
	err = uris.Scan(ctx, func(_ int64, c Value) error {
		path := uris.below(string(c.Text))
		_, ok, err := patterns[0].Match(path, nil)
		if ok && way == "" {
			noun, way = "file", fmt.Sprintf(", but %q does: write its ending", folder+path)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case s.Beside:
		noun = "file"
	case way == "" && (len(column.Names(s.Pattern)) > 1 || strings.Contains(s.Pattern, "*")):
		way = ": names and * stand for text without slashes here, and **/ for folders"
	}
	return noField(s, fault.NotFound, "no %s matches the pattern %q%s", noun, s.Pattern, way)
}

// otherEnding returns a file of pixels with the name of another one, but for the ending, or "".
func (p *paths) otherEnding(ctx context.Context, name string) (found string, err error) {
	stem, _ := strings.CutSuffix(name, path.Ext(name))
	err = p.Scan(ctx, func(_ int64, c Value) error {
		other := p.below(string(c.Text))
		if strings.TrimSuffix(other, path.Ext(other)) == stem && magic.Named(other).Class.Pixels() {
			found = other
		}
		return nil
	})
	return found, err
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
		values = strings.Split(key, join.Separator)
	}
	return m.pattern.Path(func(name string) (string, bool) {
		k := slices.Index(names, name)
		if k < 0 {
			return "", false
		}
		return values[k], true
	})
}
