package suggest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/store/catalog"
)

// maxCells bounds the rows of a Parquet file whose labels are looked at.
const maxCells = 1000

// shard is the number of a Parquet file among others, as the Hub has them.
var shard = regexp.MustCompile(`\d+(-of-\d+)?\.parquet$`)

// cells returns the reading of images in the cells of Parquet files, nil without one. Its labels are those that the
// first rows of the first file show.
func (s *search) cells() *reading {
	sets := map[string][]string{}
	for _, p := range s.list {
		if magic.Named(p).Class == magic.Parquet {
			pattern, _ := marked(shard.ReplaceAllString(p, "*.parquet"))
			sets[pattern] = append(sets[pattern], p)
		}
	}
	for _, pattern := range sorted(sets) {
		files := sets[pattern]
		r := &reading{source: pattern, uses: map[string]bool{}}
		for _, p := range files {
			if _, word := marked(p); word != "" && !slices.Contains(r.splits, word) {
				r.splits = append(r.splits, word)
			}
		}
		if rows := s.cellsOf(r, files[0]); rows > 0 {
			r.count("%d files %s, the first of %d rows", len(files), pattern, rows)
			for _, p := range files {
				r.uses[p] = true
			}
			return r
		}
	}
	return nil
}

// cellsOf adds the images and labels of a Parquet file, and returns how many rows it has, 0 without images.
func (s *search) cellsOf(r *reading, name string) int {
	read, closer, err := catalog.ReadTable(s.ctx, s.o.Opener, s.name(name))
	if err != nil {
		return 0
	}
	defer closer.Close() //nolint:errcheck // it was only read
	rows := make([]any, min(read.Len(), maxCells))
	for i := range rows {
		rows[i] = map[string]any{}
	}
	for _, c := range read.Columns() {
		isBytes := func(m tables.Column) bool { return m.Type.String() == "binary" }
		if isBytes(c) || slices.ContainsFunc(c.Type.Fields, isBytes) {
			name := "image"
			if len(r.members) > 0 {
				name = identifier(c.Name)
			}
			r.add(name, fieldOf("column="+quoted(c.Name)))
			continue
		}
		values, err := read.Column(s.ctx, c.Name)
		if err != nil {
			continue
		}
		for _, m := range c.Type.Fields {
			if strings.HasPrefix(m.Name, "bbox") && m.Type.Elem != nil {
				r.boxes(c)
				r.note("the boxes %s.%s are taken for x, y, width and height, as of COCO", c.Name, m.Name)
			}
		}
		for i, row := range rows {
			var value any
			if json.Unmarshal(values.AppendJSON(nil, i), &value) == nil {
				row.(map[string]any)[c.Name] = value
			}
			text, _ := value.(string)
			if i == 0 && (strings.HasPrefix(text, "[{") || strings.HasPrefix(text, `{"`)) {
				r.note("the texts of %s hold JSON, which is not read", c.Name)
			}
		}
	}
	if len(r.members) == 0 {
		return 0
	}
	r.labels(s.newTable(r.source, nil, rows), map[string]bool{})
	return read.Len()
}

// boxes adds the boxes that a struct of lists has.
func (r *reading) boxes(c tables.Column) {
	place, class := "", ""
	for _, m := range c.Type.Fields {
		switch {
		case strings.HasPrefix(m.Name, "bbox"):
			place = c.Name + "." + m.Name
		case class == "" && labelWord.MatchString(m.Name):
			class = ", column=" + quoted(c.Name+"."+m.Name)
		}
	}
	r.add("boxes", fmt.Sprintf(`Vector(box={"x y w h": %s}%s, kind="boxes")`, quoted(place), class))
}
