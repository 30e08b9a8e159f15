package build

import (
	"cmp"
	"context"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/taco/internal/taco3"
)

// named is how TACO 3 has the samples of a writer: a table of the samples and one of the children of each folder below
// them, in the order of taco:structure. A sample that is a file becomes a folder with that file.
type named struct {
	paths  []string // taco:structure
	layout *taco3.Layout
	levels []*namedLevel
	file   string // the name of the file of samples that are files themselves, else ""
}

// namedLevel has the rows of a table.
type namedLevel struct {
	Name    string  // "sample", "children", "children/before"
	Folder  string  // whose children it has, "" for the root of a sample
	depth   int     // the level of the writer that has the rows
	rows    []int32 // of that level
	parents []int32 // rows of the level above
	samples []int32 // of each row, the number of its sample
}

// nameLevels returns how TACO 3 has the samples. paths are the taco:structure of their source, which they keep if all
// of them have it; else it is derived from them.
func (w *containerWriter) nameLevels(ctx context.Context, paths []string) (*named, error) {
	top := w.levels[0]
	samples := make([]int32, 0, len(top.Rows))
	for i := range top.Rows {
		row := &top.Rows[i]
		// Only TACO 2 needs to fill folders up with placeholders.
		if row.Padding {
			continue
		}
		samples = append(samples, int32(i))
		if first := &top.Rows[samples[0]]; row.Folder != first.Folder {
			return nil, unsupported("sample "+strconv.Quote(row.ID),
				"is a %s, and %q is a %s: the samples of TACO 3 have the same files", store.EntryType(row.Folder),
				first.ID, store.EntryType(first.Folder))
		}
	}
	if len(samples) == 0 {
		return nil, unsupported("dataset", "has no samples")
	}
	if !top.Rows[samples[0]].Folder {
		file, err := w.fileName(ctx, samples)
		if err != nil {
			return nil, err
		}
		return w.laidOut([]string{file}, file, samples)
	}
	if n, err := w.laidOut(paths, "", samples); err == nil {
		return n, nil
	}
	d := deriver{w: w}
	if err := d.folder("", 0, samples); err != nil {
		return nil, err
	}
	return w.laidOut(d.paths, "", samples)
}

// laidOut returns the tables of samples that have a structure.
func (w *containerWriter) laidOut(paths []string, file string, samples []int32) (*named, error) {
	layout, err := taco3.NewLayout(paths)
	if err != nil {
		return nil, unsupported("dataset", "cannot be TACO 3: %v", err)
	}
	n := &named{paths: paths, layout: layout, file: file}
	return n, n.fill(w, samples)
}

// fileName returns the name that all samples that are files get for their file: "image" with the extension that all
// share, or else the extension of the format; "file" with the extension that all share, if any, if the first one is not
// a raster.
func (w *containerWriter) fileName(ctx context.Context, samples []int32) (string, error) {
	level := w.levels[0]
	extension := func(row int32) string {
		r := &level.Rows[row]
		name := cmp.Or(filepath.Ext(r.file), filepath.Ext(r.ID))
		// The name of a container would say nothing of a range of it.
		if r.entry != nil && r.entry.Offset == store.Whole {
			name = cmp.Or(name, filepath.Ext(r.entry.URI))
		}
		return strings.ToLower(name)
	}
	ext := extension(samples[0])
	for _, row := range samples {
		if extension(row) != ext {
			ext = ""
		}
	}
	first, err := load(ctx, w.o.Opener, &level.Rows[samples[0]])
	if err != nil {
		return "", err
	}
	defer first.close() //nolint:errcheck // it was only read
	r := first.open()
	head, err := source.Read(ctx, r, 0, min(r.Size(), magic.Head))
	if err != nil {
		return "", err
	}
	known := magic.Of(head)
	if !known.Class.Pixels() {
		return "file" + ext, nil
	}
	return "image" + cmp.Or(ext, known.End()), nil
}

// deriver finds what files all samples have.
type deriver struct {
	w     *containerWriter
	paths []string
}

// folderChildren are the names of what is in a folder of each sample, without padding.
type folderChildren struct {
	rows  [][]int32
	names [][]string
	all   []string // in the order in which they first appear
	count map[string]int
	dirs  map[string]bool
}

// folder adds the paths of the files in a folder, whose rows are in level k.
func (d *deriver) folder(folder string, k int, rows []int32) error {
	children, err := d.children(folder, k, rows)
	if err != nil {
		return err
	}
	done := map[taco3.Item]bool{}
	for _, name := range children.all {
		path := join(folder, name)
		if sequence, ok := sequenceOf(folder, name, children); ok {
			if !done[sequence] {
				done[sequence] = true
				d.paths = append(d.paths, sequence.Entry())
			}
			continue
		}
		if children.count[name] != len(rows) {
			return unsupported("dataset", "%d of %d samples have %q: the samples of "+
				"TACO 3 have the same files, but for files whose names differ in a number that counts from 0",
				children.count[name], len(rows), path)
		}
		if !children.dirs[name] {
			d.paths = append(d.paths, path)
			continue
		}
		var below []int32
		for i, names := range children.names {
			below = append(below, children.rows[i][slices.Index(names, name)])
		}
		if err := d.folder(path, k+1, below); err != nil {
			return err
		}
	}
	return nil
}

func (d *deriver) children(folder string, k int, rows []int32) (*folderChildren, error) {
	level, below := d.w.levels[k], d.w.levels[k+1]
	c := &folderChildren{count: map[string]int{}, dirs: map[string]bool{}}
	for _, row := range rows {
		var in []int32
		var names []string
		for i := level.first[row]; i < level.first[row+1]; i++ {
			if below.Rows[int(i)].Padding {
				continue
			}
			name := below.Rows[i].ID
			if c.count[name] == 0 {
				c.all = append(c.all, name)
				c.dirs[name] = below.Rows[i].Folder
			} else if c.dirs[name] != below.Rows[i].Folder {
				return nil, unsupported("dataset",
					"%q is a file in some samples and a folder in others", join(folder, name))
			}
			c.count[name]++
			in, names = append(in, i), append(names, name)
		}
		c.rows, c.names = append(c.rows, in), append(c.names, names)
	}
	return c, nil
}

// sequenceOf returns the sequence that a file belongs to: one of files that some samples lack, whose names differ in a
// number that counts from 0 in each sample.
func sequenceOf(folder, name string, c *folderChildren) (sequence taco3.Item, ok bool) {
	if c.dirs[name] {
		return sequence, false
	}
	// The last number of a name is tried first, because the number of a step of time stands behind the number of a
	// band.
	for end := len(name); end > 0; {
		if !isDigit(name[end-1]) {
			end--
			continue
		}
		begin := end
		for begin > 0 && isDigit(name[begin-1]) {
			begin--
		}
		sequence = taco3.Item{Folder: folder, Name: name[:begin], Suffix: name[end:], Most: math.MaxInt}
		if least, largest, ok := counts(&sequence, c); ok && begin > 0 && least < largest && least > 0 {
			sequence.Least, sequence.Most = least, largest
			return sequence, true
		}
		end = begin
	}
	return sequence, false
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

// counts returns the least and the largest number of files that a sample has of a sequence, and whether they count from
// 0 in every sample.
func counts(s *taco3.Item, c *folderChildren) (least, most int, ok bool) {
	for i, names := range c.names {
		n, last := 0, -1
		for _, name := range names {
			if k := s.Number(name); k >= 0 && !c.dirs[name] {
				n, last = n+1, max(last, k)
			}
		}
		if last != n-1 {
			return 0, 0, false
		}
		if most = max(most, n); i == 0 || n < least {
			least = n
		}
	}
	return least, most, true
}

// fill lists the rows of the tables.
func (n *named) fill(w *containerWriter, samples []int32) error {
	byName := map[string]*namedLevel{}
	for i, level := range n.layout.Levels {
		l := &namedLevel{Name: level, Folder: taco3.FolderOf(level)}
		n.levels, byName[level] = append(n.levels, l), l
		switch {
		case i == 0:
			l.rows, l.samples = samples, num.Range[int32](0, len(samples))
		case n.file != "":
			l.rows, l.parents, l.samples = samples, num.Range[int32](0, len(samples)), num.Range[int32](0, len(samples))
		default:
			above := byName[taco3.Above(level)]
			l.depth = above.depth + 1
			if err := l.fill(w, n.layout, above, l.Folder[strings.LastIndexByte(l.Folder, '/')+1:]); err != nil {
				return err
			}
		}
	}
	return nil
}

// fill lists the children of the rows of the level above that have a name, "" for all of them.
func (l *namedLevel) fill(w *containerWriter, layout *taco3.Layout, above *namedLevel, name string) error {
	up, level := w.levels[above.depth], w.levels[l.depth]
	for i, row := range above.rows {
		if name != "" && up.Rows[row].ID != name {
			continue
		}
		var names []string
		var rows []int32
		for c := up.first[row]; c < up.first[row+1]; c++ {
			if !level.Rows[int(c)].Padding {
				names, rows = append(names, level.Rows[c].ID), append(rows, c)
			}
		}
		order, wrong := layout.Order(l.Folder, names)
		if wrong != "" {
			id := w.levels[0].Rows[w.topRow(above.depth, row)].ID
			return unsupported("sample "+strconv.Quote(id),
				"does not have the files of the others: %q", join(l.Folder, wrong))
		}
		for _, k := range order {
			l.rows, l.parents = append(l.rows, rows[k]), append(l.parents, int32(i))
			l.samples = append(l.samples, above.samples[i])
		}
	}
	return nil
}

// topRow returns the row of level 0 that a row of level k is below.
func (w *containerWriter) topRow(k int, row int32) int32 {
	for ; k > 0; k-- {
		row = w.levels[k].Rows[row].Parent
	}
	return row
}

// path returns the path of row i of a level in DATA: the number of the sample, and the path below it.
func (n *named) path(w *containerWriter, l *namedLevel, i int) string {
	number := strconv.Itoa(int(l.samples[i]))
	if l == n.levels[0] {
		return number
	}
	name := n.file
	if name == "" {
		name = w.levels[l.depth].Rows[l.rows[i]].ID
	}
	return number + "/" + join(l.Folder, name)
}

// order returns the files in the order in which they are written: sample by sample, and in a sample table by table.
func (n *named) order(w *containerWriter) (all []levelRow) {
	next := make([]int, len(n.levels))
	for s := range n.levels[0].rows {
		for k, level := range n.levels[1:] {
			for ; next[k] < len(level.rows) && int(level.samples[next[k]]) == s; next[k]++ {
				i := next[k]
				if !w.levels[level.depth].Rows[level.rows[i]].Folder {
					all = append(all, levelRow{level.depth, int(level.rows[i]), n.path(w, level, i)})
				}
			}
		}
	}
	return all
}
