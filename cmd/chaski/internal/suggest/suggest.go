// Package suggest has the command suggest, which finds the call of chaski.load for a folder.
package suggest

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/loader"
)

const (
	maxFiles  = 200_000 // that are listed
	maxTables = 200     // that are read
	maxLeads  = 60      // groups of files that are tried as the images
)

// Found is what suggest says of a folder.
type Found struct {
	Calls   []Call   `json:"calls"`
	Found   []string `json:"found"`
	Check   []string `json:"check"`
	Unused  []string `json:"unused"`
	Another []Call   `json:"another"` // another reading, which explains as many files
}

// Call is a call of chaski.load, of a split if there are several.
type Call struct {
	Split string `json:"split"`
	Call  string `json:"call"`
}

// NewSuggest returns the command suggest.
func NewSuggest(env console.Env) *cobra.Command {
	var asJSON bool
	cmd := console.Command("suggest [--json] DIR", console.ExactlyOne("DIR"),
		func(cmd *cobra.Command, args []string) error {
			found, err := Suggest(cmd.Context(), args[0], loader.Options{Opener: env.Files})
			switch {
			case err != nil:
				return err
			case asJSON:
				return console.PrintJSON(env.Out, found)
			}
			_, err = fmt.Fprint(env.Out, found)
			return err
		})
	console.Var(cmd.Flags(), &asJSON, "json", false)
	return cmd
}

// String is the text of the command.
func (f *Found) String() string {
	var out strings.Builder
	for _, c := range f.Calls {
		if c.Split != "" {
			fmt.Fprintf(&out, "# %s\n", c.Split)
		}
		fmt.Fprintln(&out, c.Call)
	}
	list := func(title string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintf(&out, "\n%s:\n  %s\n", title, strings.Join(lines, "\n  "))
		}
	}
	list("Found", f.Found)
	list("Check", f.Check)
	list("Not used", f.Unused)
	for _, c := range f.Another[:min(1, len(f.Another))] {
		list("Another reading", []string{c.Call})
	}
	return out.String()
}

// search looks at the files of a folder.
type search struct {
	prober
	list       []string
	index      []string // files that tables may name
	all        map[string]bool
	groups     []*group // of images
	textGroups []*group // of labels and other texts
	tables     []*table
	doubts     []string
	large      []string // files that are too large to look at
}

// Suggest looks at a local folder.
func Suggest(ctx context.Context, root string, o loader.Options) (*Found, error) {
	s := &search{all: map[string]bool{}, prober: prober{ctx: ctx, root: root, heads: map[string]*head{},
		paths: map[string]*file{}, o: o}}
	if err := s.walk(); err != nil {
		return nil, console.FileError(root, err)
	}
	s.part()
	s.readTables()
	best := s.patterns()
	var other *reading
	for _, t := range s.tables {
		if len(t.cols) < 2 {
			continue
		}
		r := t.reading(s)
		if r == nil {
			continue
		}
		if _, shapes := s.shapes(t.files[0], r.lead.files); shapes > 0 {
			continue
		}
		if best == nil || len(r.uses) > len(best.uses) || r.better(best) {
			best, other = r, best
		}
	}
	if best == nil {
		if r := s.cells(); r != nil {
			return &Found{Calls: s.calls(r), Found: r.counts, Check: r.notes, Unused: s.unused(r)}, nil
		}
		return nil, fault.WithFile(fault.New(fault.Unsupported, "folder", "no images that chaski reads are in its %d "+
			"files%s", len(s.list), s.refusal()), root)
	}
	s.labels(best)
	s.join(best)
	found := &Found{Calls: s.calls(best), Found: best.counts, Check: append(best.notes, s.large...),
		Unused: s.unused(best)}
	if other != nil && len(other.uses) == len(best.uses) {
		found.Another = s.calls(other)
		found.Check = append(found.Check, "another reading uses as many files")
	}
	return found, nil
}

// better reports whether a table is the better reading than patterns: most rows have an image, and it tells splits,
// where patterns explain at most twice as many files, or as many and not all are samples.
func (r *reading) better(than *reading) bool {
	return len(r.lead.files)*10 >= len(r.table.rows)*9 && (len(r.splits) > 0 && len(than.splits) == 0 &&
		len(r.uses)*2 > len(than.uses) || len(r.uses) == len(than.uses) && (len(r.table.splits) > 0 ||
		len(than.splits) == 0 && len(r.lead.files) != len(than.lead.files)))
}

// refusal says why chaski cannot read the first file of an unsupported format.
func (s *search) refusal() string {
	for _, p := range s.list {
		if refusal := magic.Refusal(p); refusal != "" {
			return ": " + p + ": " + refusal
		}
	}
	return ""
}

// walk lists the files below the folder, and Zarr stores as one.
func (s *search) walk() error {
	return filepath.WalkDir(s.root, func(name string, entry fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(s.root, name)
		store := entry != nil && entry.IsDir() && strings.HasSuffix(name, ".zarr")
		switch {
		case err != nil:
			return err
		case len(s.list) >= maxFiles:
			return fs.SkipAll
		case rel != "." && strings.HasPrefix(entry.Name(), ".") && entry.IsDir():
			return fs.SkipDir
		case strings.HasPrefix(entry.Name(), ".") || entry.IsDir() && !store:
			return nil
		}
		s.list = append(s.list, filepath.ToSlash(rel))
		if store {
			return fs.SkipDir
		}
		return nil
	})
}

// place sets the split and the folder of a file.
func (s *search) place() {
	folders, whole := map[string]bool{}, map[string][]string{}
	for _, p := range s.list {
		for dir := path.Dir(p); dir != "." && !folders[dir]; dir = path.Dir(dir) {
			folders[dir] = true
			if _, word := marked(path.Base(dir)); word != "" { // train and iid_test_split
				whole[path.Dir(dir)] = append(whole[path.Dir(dir)], path.Base(dir))
			}
		}
	}
	divided := splits(sorted(folders))
	for _, p := range s.list {
		f := &file{path: p, folder: path.Dir(p), base: path.Base(p)}
		pattern, word := marked(f.folder)
		for dir := pattern; dir != "."; dir = path.Dir(dir) {
			if divided[dir] != nil {
				f.folder, f.split = pattern, word
			}
		}
		for up := f.folder; f.split == "" && up != "."; up = path.Dir(up) {
			siblings := whole[path.Dir(up)]
			differ := slices.ContainsFunc(siblings, func(dir string) bool {
				_, a := marked(dir)
				_, b := marked(path.Base(up))
				return a != b
			})
			if differ && slices.Contains(siblings, path.Base(up)) {
				f.folder, f.split = path.Join(path.Dir(up), splitMark, strings.TrimPrefix(f.folder, up)), path.Base(up)
			}
		}
		s.prober.paths[p] = f
	}
}

// part parts the files into groups.
func (s *search) part() {
	s.place()
	var pixels, texts []*file
	for _, p := range s.list {
		class := magic.Named(p).Class
		image := class.Pixels() || class == magic.Store
		if image {
			pixels = append(pixels, s.prober.paths[p])
		} else if slices.Contains([]string{".txt", ".xml", ".json", ".geojson", ".csv"}, path.Ext(p)) {
			texts = append(texts, s.prober.paths[p])
		}
		if image || path.Ext(p) == ".json" && strings.Contains(p, "/") {
			s.index, s.all[p] = append(s.index, p), true
		}
	}
	groups := func(files []*file) (out []*group) {
		t := &tree{files: map[string][]*file{}, below: map[string]map[string]bool{}, look: s.look}
		t.emit = func(places []place, pattern string, names []string) {
			var all []*file
			for _, p := range places {
				for _, f := range t.files[p.folder] {
					f.vals = p.vals
					all = append(all, f)
				}
			}
			out = append(out, groupsOf(all, pattern, names, s.look)...)
		}
		t.grow(files)
		t.walk([]place{{".", nil}}, ".", nil)
		s.doubts = t.doubts
		return out
	}
	// Labels lie in the folders of images: all files together tell which folders differ by a name.
	s.textGroups = slices.DeleteFunc(groups(append(slices.Clone(pixels), texts...)), func(g *group) bool {
		class := magic.Named(g.files[0].path).Class
		return class.Pixels() || class == magic.Store
	})
	for _, g := range groups(pixels) {
		if g.head = s.header(g.files[0].path); !g.head.readable() {
			continue
		}
		s.count(g)
		for _, other := range s.groups[:min(len(s.groups), 20)] {
			if c := *other; !other.fixed() && join(g, &c) < .3 {
				middles(g, other)
			}
		}
		s.groups = append(s.groups, g)
	}
}

// patterns returns the reading of patterns that explains most files.
func (s *search) patterns() *reading {
	r := &reading{uses: map[string]bool{}, notes: s.doubts}
	var pairs []pair
	mostFiles, bestScore := 0, 0.
	for _, g := range s.groups[:min(len(s.groups), maxLeads)] {
		c := *g
		found, n := joined(&c, s.groups)
		n += len(c.files)
		if score := c.score(); r.lead == nil || n > mostFiles || n == mostFiles && score > bestScore {
			r.lead, pairs, mostFiles, bestScore = &c, found, n, score
		}
	}
	if r.lead == nil {
		return nil
	}
	for _, f := range r.lead.files {
		if f.split != "" && !slices.Contains(r.splits, f.split) {
			r.splits = append(r.splits, f.split)
		}
	}
	slices.Sort(r.splits)
	r.pixels(s, pairs)
	r.columnsOfNames()
	for _, p := range append(pairs, pair{r.lead, 1}) {
		r.leftOut(s, p.group)
		r.windows(s, p.group)
	}
	return r
}

// readTables reads the tables of the folder. It joins tables with the same columns if they are the splits of one table,
// or lie in one subfolder.
func (s *search) readTables() {
	var names []string
	for _, p := range s.list {
		class := magic.Named(p).Class
		isTable := class == magic.CSV || class == magic.Items && path.Ext(p) != ".xml"
		st, err := os.Stat(s.name(p))
		switch {
		case err == nil && isTable && st.Size() > maxTable:
			s.large = append(s.large, fmt.Sprintf("%s is not looked at: it has %d MiB, over %d", p, st.Size()>>20,
				maxTable>>20))
		case err == nil && (isTable || s.text(p, st.Size())):
			names = append(names, p)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return strings.Count(a, "/") - strings.Count(b, "/") })
	names = names[:min(len(names), maxTables)]
	divided, done := splits(names), map[string]*table{}
	for _, name := range names {
		pattern, word := marked(name)
		if divided[pattern] == nil {
			word = ""
		}
		for _, t := range s.readTable(name) {
			alike := path.Dir(name) + "/*" + path.Ext(name)
			if word != "" {
				t.path, _ = marked(t.path)
				t.splits, alike = divided[pattern], t.path
			}
			t.files, t.of = []string{name}, slices.Repeat([]string{word}, len(t.rows))
			single := word == "" && (alike[0] == '.' || len(t.cols) == 1)
			if have := done[alike]; have == nil || single || !slices.Equal(have.cols, t.cols) {
				done[alike] = t
				s.tables = append(s.tables, t)
			} else if len(t.rows) > 1 || word != "" {
				have.path, have.files = alike, append(have.files, name)
				have.rows, have.of = append(have.rows, t.rows...), append(have.of, t.of...)
			}
		}
	}
}

// text reports whether a file of an unknown format has lines of text.
func (s *search) text(p string, size int64) bool {
	if size > 1<<22 || magic.OfName(p) != "" {
		return false
	}
	data, err := os.ReadFile(s.name(p))
	return err == nil && utf8.Valid(data)
}

// useTable notes that the files of a table are used.
func (r *reading) useTable(t *table) {
	for _, file := range t.files {
		r.uses[file] = true
	}
}

// labels adds files of labels: one for each image, or of all images.
func (s *search) labels(r *reading) {
	for _, g := range s.textGroups {
		share := join(r.lead, g)
		if len(g.files) < 2 || share < .2 || r.source != "" {
			continue
		}
		shapes := 0
		for _, f := range g.files[:min(len(g.files), 8)] {
			_, n := s.shapes(f.path, nil)
			shapes += n
		}
		switch ext := path.Ext(g.pattern); {
		case shapes > 0:
			options := []string{quoted(g.pattern), `kind="boxes"`}
			if names := s.classes(ext); names != nil {
				options = append(options, "classes="+listed(names))
			}
			if share < .999 {
				options = append(options, `missing="empty"`)
				r.note("%.0f %% of images have no labels %s: they are images without objects", 100*(1-share), g.pattern)
			}
			r.add("boxes", "Vector("+strings.Join(options, ", ")+")")
			r.count("boxes: %d files %s", len(g.files), g.pattern)
		case ext == ".json" && (!g.fixed() || len(g.names) == 1):
			key := `{"name": "id"}`
			if g.fixed() {
				key = `{"folder": ` + quoted(g.names[0]) + "}"
			}
			read, before := s.readTable(g.files[0].path), len(r.members)
			if len(read) == 1 {
				r.labels(read[0], map[string]bool{})
			}
			if len(r.members) == before {
				r.note("%d files %s go with the images, and what they say is not read: docs/labels.md", len(g.files),
					g.pattern)
				break
			}
			r.tables = append(r.tables, quoted("\x00"+named.ReplaceAllString(g.pattern, "*"))+": "+key)
		default:
			r.note("%d files %s go with the images, and their form is unknown: Vector(box=…) says where a box lies",
				len(g.files), g.pattern)
		}
		r.use(g.files)
	}
	for _, t := range s.tables {
		if t == r.table || r.uses[t.files[0]] {
			continue
		}
		images, name := r.lead.files, strings.Split(t.path, "::")[0]
		if len(t.splits) > 0 && len(r.splits) > 0 {
			images = slices.DeleteFunc(slices.Clone(images), func(f *file) bool { return f.split != t.of[0] })
		}
		named, shapes := s.shapes(t.files[0], images)
		if named == 0 || shapes == 0 {
			continue
		}
		if slices.ContainsFunc(t.cols, regexp.MustCompile(`(?i)pixels|rle`).MatchString) {
			r.add("mask", "Vector("+quoted("\x00"+name)+")")
		} else {
			if len(t.splits) > 0 && len(r.splits) == 0 && path.Ext(name) == ".json" {
				r.splits, r.rows = t.splits, append(r.rows, "ids="+quoted("\x00"+name+"::images.file_name"))
			} else if named < len(images) {
				r.note("%s names %d of %d images", name, named, len(images))
			}
			r.add("boxes", "Vector("+quoted("\x00"+name)+`, kind="boxes")`)
		}
		r.useTable(t)
		r.count("%d shapes on %d images in %s", shapes, named, t.files[0])
	}
}

var yamlNames = regexp.MustCompile(`(?m)^names:\s*\[(.*)\]`)

// classes returns the names of classes of YOLO labels that a file has.
func (s *search) classes(ext string) []string {
	for _, p := range s.list {
		end := path.Ext(p)
		plain, yaml := end == ".names" || path.Base(p) == "classes.txt", end == ".yaml" || end == ".yml"
		if ext != ".txt" || !plain && !yaml {
			continue
		}
		if st, err := os.Stat(s.name(p)); err != nil || st.Size() > 1<<16 {
			continue
		}
		data, err := os.ReadFile(s.name(p))
		switch {
		case err != nil:
		case plain:
			return strings.Fields(string(data))
		default:
			if m := yamlNames.FindSubmatch(data); m != nil {
				return each(strings.Split(string(m[1]), ","), func(n string) string { return strings.Trim(n, ` '"`) })
			}
		}
	}
	return nil
}

// ids is a list of ids.
type ids struct {
	path    string
	splits  []string
	matched int
	column  string
}

// join joins the tables of a folder to the samples of a reading.
func (s *search) join(r *reading) {
	var lists []ids
	for _, t := range s.tables {
		if t == r.table || r.uses[t.files[0]] {
			continue
		}
		ok := false
		if r.table != nil {
			ok = r.joinSource(t)
		} else if ok = s.isList(r, t, &lists); !ok {
			ok = r.joinTable(t) || r.rowNumbers(t)
		}
		if ok {
			r.useTable(t)
		}
	}
	for i, m := range r.members { // a column of several tables
		if m.of != nil && slices.ContainsFunc(r.members, func(o member) bool {
			return o.of != nil && o.of != m.of && slices.ContainsFunc(o.of.cols, m.reads)
		}) {
			r.members[i].text = m.qualified()
		}
	}
	if r.choose(lists); r.table == nil {
		r.nameLabel()
	} else {
		r.useTable(r.table)
	}
}

// samples returns the texts that name samples, by the columns that have them.
func (r *reading) samples() map[string]map[string]bool {
	g, out := r.lead, map[string]map[string]bool{"path": {}, "name": {}}
	for _, name := range g.names {
		out[name] = map[string]bool{}
		for _, v := range g.column(name) {
			out[name][v] = true
		}
	}
	for _, f := range g.files {
		out["name"][f.stem()] = true
		for suffix, found := f.path, true; found; _, suffix, found = strings.Cut(suffix, "/") {
			out["path"][suffix] = true
		}
	}
	return out
}

// isList reports whether a table is a list of ids, or has one for each split, and adds it.
func (s *search) isList(r *reading, t *table, lists *[]ids) bool {
	values, name, splits := t.values(0), t.path, t.splits
	switch file, _, _ := strings.Cut(t.path, "::"); {
	case strings.HasSuffix(t.path, "::{class}"): // of JSON {"train": [...]}
		words := sorted(counted(t.values(1)))
		if slices.ContainsFunc(words, func(w string) bool { _, word := marked(w); return word == "" }) {
			return false
		}
		name, splits = file+"::"+splitMark, words
	case len(t.cols) != 1:
		return false
	default:
		if values = append([]string{t.cols[0]}, values...); !numeric(values[:1]) || t.cols[0] == "" {
			name += "::" + t.cols[0]
		}
	}
	samples := r.samples()
	matched := func(key string) (n int) {
		for _, v := range values {
			n += number(samples[key][v])
		}
		return n
	}
	best, column := 0, ""
	for _, key := range append([]string{"id", "path", "name"}, r.lead.names...) {
		if n := matched(key); n > best && (key != "path" || len(r.lead.head.Arrays) == 0) {
			best, column = n, key
		}
	}
	if slices.Contains([]string{"id", "path", "name"}, column) {
		column = ""
	}
	if best == 0 && !r.lead.fixed() { // constant text may stand around ids: data/obj/{id}.jpg
		last := values[len(values)-1]
		for _, id := range r.lead.column("id") {
			before, after, ok := strings.Cut(last, id)
			if n := 0; ok && (column == "" || len(before)+len(after) < len(column)) {
				for _, v := range values {
					v, start := strings.CutPrefix(v, before)
					v, end := strings.CutSuffix(v, after)
					n += number(start && end && samples["id"][v])
				}
				if n > best {
					best, column = n, before+"{id}"+after
				}
			}
		}
	}
	if best*2 <= len(values) {
		return false
	}
	if head := values[0]; len(values) > len(t.rows) && (samples["id"][head] || samples["path"][head] ||
		samples["name"][head] || column != "") {
		name = t.path // its first line is an id, and no header
	}
	*lists = append(*lists, ids{name, splits, best, column})
	return true
}

// choose sets the ids of a reading: of the list of a split, or of one that has some of the samples only.
func (r *reading) choose(lists []ids) {
	if len(lists) == 0 {
		return
	}
	complete := func(l ids) int { return number(l.matched == len(r.lead.files) && len(l.splits) == 0) }
	slices.SortStableFunc(lists, func(a, b ids) int {
		return cmp.Or(number(len(b.splits) > 0)-number(len(a.splits) > 0), complete(a)-complete(b), b.matched-a.matched)
	})
	l := lists[0]
	switch file, member, ok := strings.Cut(l.path, "::"); {
	case len(l.splits) > 0 && len(r.splits) == 0:
		r.splits = l.splits
	case len(l.splits) > 0:
	case len(lists) > 1 && len(r.splits) == 0 && complete(l) == 0:
		l.path = splitMark + path.Ext(file)
		if ok {
			l.path += "::" + member
		}
		for _, o := range lists {
			r.splits = append(r.splits, strings.TrimSuffix(strings.Split(o.path, "::")[0], path.Ext(file)))
		}
		r.note("%d lists of ids: a call for each", len(lists))
	default:
		r.note("the list %s has %d of %d samples: without ids= all count", l.path, l.matched, len(r.lead.files))
	}
	args := "ids=" + quoted("\x00"+l.path)
	if l.column != "" {
		args += ", id_column=" + quoted(l.column)
	}
	r.rows = append(r.rows, args)
	r.count("%d ids in %s", l.matched, l.path)
}

// joinTable joins a table by the column that names most samples, each once.
func (r *reading) joinTable(t *table) bool {
	samples := r.samples()
	best, column, key := 0, -1, ""
	for c := range t.cols {
		different := counted(t.values(c))
		for _, k := range append([]string{"id", "path", "name"}, r.lead.names...) {
			n, rows := 0, 0
			for v, count := range different {
				n, rows = n+number(samples[k][v]), rows+count*number(samples[k][v])
			}
			enough := n*2 > min(len(t.rows), len(samples[k])) && (n > 1 || len(t.rows) == 1)
			if n == rows && n > best && enough {
				best, column, key = n, c, k
			}
		}
	}
	if column < 0 || len(t.cols) == 1 {
		return false
	}
	if head := t.cols[column]; samples[key][head] { // the first line has values
		first := slices.Clone(t.cols)
		for c := range t.cols {
			t.cols[c] = strconv.Itoa(c)
		}
		t.rows, t.lists = append([][]string{first}, t.rows...), map[string]bool{}
		for c, name := range t.cols {
			if different := len(counted(t.values(c))); c != column && len(t.cols) < 4 && different*2 <= len(t.rows) {
				r.add("label", fieldOf("column="+quoted(name), `kind="class"`))
			}
		}
	}
	name := t.cols[column]
	r.tables = append(r.tables, fmt.Sprintf("%s: {%s: %s}", quoted("\x00"+t.path), quoted(name), quoted(key)))
	if len(r.splits) == 0 {
		r.splits = t.splits
	}
	r.splitColumn(t, r.labels(t, map[string]bool{name: true}))
	r.count("%d of %d rows of %s are of samples", best, len(t.rows), t.path)
	if best < len(samples[key]) && key != "path" {
		r.note("%s has no row for some samples: they are left out", t.path)
		r.rows = append(r.rows, `missing="drop"`)
	}
	return true
}

// rowNumbers joins a table whose row numbers are the ids.
func (r *reading) rowNumbers(t *table) bool {
	if len(r.lead.names) != 1 || r.lead.fixed() || len(t.splits) > 0 || len(t.cols) < 2 {
		return false
	}
	ids := r.lead.column("id")
	prefix := strings.TrimRight(commonPrefix(ids), "0123456789")
	few := len(t.rows) > 10 && len(ids)*3 < len(t.rows)*2
	if len(ids) < 2 || len(ids) > len(t.rows) || few ||
		slices.ContainsFunc(ids, func(id string) bool {
			n, err := strconv.Atoi(strings.TrimPrefix(id, prefix))
			return err != nil || n >= len(t.rows)
		}) {
		return false
	}
	for i := range r.members {
		r.members[i].text = strings.Replace(r.members[i].text, "{id}", prefix+"{id}", 1)
	}
	r.tables = append(r.tables, quoted("\x00"+t.path)+`: {"row": "id"}`)
	r.splitColumn(t, r.labels(t, map[string]bool{}))
	r.note("no column of %s names the samples: the numbers of its rows are taken for the ids", t.path)
	return true
}

// joinSource joins a table to the table of the samples, by columns with the same values.
func (r *reading) joinSource(t *table) bool {
	best, text, key := 0., "", ""
	for c, name := range t.cols {
		different := counted(t.values(c))
		if len(different) != len(t.rows) || len(t.rows) < 2 || t.lists[name] {
			continue
		}
		for k, column := range r.table.cols {
			n := number(strings.HasSuffix(name, "_id")) // of several, the one that says more
			for _, v := range r.table.values(k) {
				n += 100 * different[v]
			}
			if share := float64(n) / float64(100*len(r.table.rows)); share > best {
				best, text, key = share, fmt.Sprintf("{%s: %s}", quoted(name), quoted(column)), name
			}
		}
	}
	if best < .99 || !slices.Equal(t.splits, r.table.splits) {
		return false
	}
	used := map[string]bool{key: true}
	for _, name := range r.table.cols {
		used[name] = true
	}
	if before := len(r.members); true {
		if r.labels(t, used); len(r.members) > before {
			r.tables = append(r.tables, quoted("\x00"+t.path)+": "+text)
		}
	}
	return true
}

// unused lists the images, tables and labels that a reading does not use.
func (s *search) unused(r *reading) (out []string) {
	count := map[string]int{}
	for _, p := range s.list {
		class := magic.Named(p).Class
		if !r.uses[p] && (class != 0 || magic.OfName(p) != "") {
			count[path.Dir(p)+"/*"+path.Ext(p)]++
		}
	}
	for _, key := range sorted(count)[:min(len(count), 20)] {
		out = append(out, fmt.Sprintf("%d files %s", count[key], key))
	}
	return out
}

var typeName = regexp.MustCompile(`\b(Field|Vector|Rows|Grid)\(`)

// calls returns the calls of a reading, one for each split.
func (s *search) calls(r *reading) (out []Call) {
	prefix := strings.TrimSuffix(filepath.ToSlash(s.root), "/") + "/"
	if s.root == "." {
		prefix = ""
	}
	source := cmp.Or(strings.TrimSuffix(prefix+r.source, "/"), ".")
	fields := make([]string, len(r.members))
	for i, m := range r.members {
		fields[i] = quoted(m.name) + ": " + m.text
	}
	args := []string{quoted(source), "fields={" + strings.Join(fields, ", ") + "}"}
	if len(r.tables) > 0 {
		args = append(args, "tables={"+strings.Join(r.tables, ", ")+"}")
	}
	if len(r.rows) > 0 {
		args = append(args, "rows=Rows("+strings.Join(slices.Compact(r.rows), ", ")+")")
	}
	if r.window != "" {
		args = append(args, "window="+r.window)
	}
	text := strings.ReplaceAll(strings.Join(append(args, "batch_size=16"), ", "), `\x00`, prefix)
	text = "chaski.load(" + typeName.ReplaceAllString(text, "chaski.$1(") + ")"
	for _, split := range append(r.splits, "")[:max(1, len(r.splits))] {
		out = append(out, Call{split, strings.ReplaceAll(text, splitMark, split)})
	}
	return out
}
