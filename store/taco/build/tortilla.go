package build

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/store/taco/internal/tortilla"
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/arrow"
	"github.com/chaski-eo/chaski/tables/encode"
	"github.com/chaski-eo/chaski/tiff"
)

// tortilla writes the container as a Tortilla 0.5 or a TACO 0.2. A folder is a Tortilla within it, whose offsets count
// from its own first byte: a header, the samples below it, and its table.
func (w *writer) tortilla(ctx context.Context, f archiveFile) error {
	if err := w.settle(ctx); err != nil {
		return err
	}
	t := &tortillaWriter{w: w, patched: newPatched(f)}
	for k, level := range w.levels {
		level.spans = make([]span, len(level.Rows))
		t.formats = append(t.formats, make([]string, len(level.Rows)))
		// One schema serves the tables of all folders of the level.
		table, err := t.table(ctx, k, model.UpTo[int](len(level.Rows)), level.spans)
		if err != nil {
			return err
		}
		encoder, err := encode.NewWriter(arrow.Fitted(ctx, table), nil)
		if err != nil {
			return err
		}
		t.encoders = append(t.encoders, encoder)
		for i := range level.Rows {
			if level.Rows[i].Padding {
				return unsupported(fmt.Sprintf("sample %q", path(w.levels, k, i)),
					"is padding, which a Tortilla has none of")
			}
		}
	}
	if err := t.enter(-1, 0); err != nil {
		return err
	}
	err := w.files(ctx, func(p place, l *loaded) error { return t.put(ctx, p, l) })
	for err == nil && len(t.open) > 0 {
		err = t.leave(ctx)
	}
	if err == nil {
		err = t.finish()
	}
	return err
}

// tortillaWriter is the state of writing a Tortilla.
type tortillaWriter struct {
	patched
	w        *writer
	open     []blob // from the whole file down to the folder that is being written
	formats  [][]string
	encoders []*encode.Writer
	chunks   chunkRows // of a streaming TACO
}

// blob is a Tortilla whose table is not written yet: the whole file (level -1), or a row that is a folder.
type blob struct {
	level, row int
	at         int64
}

// enter begins a Tortilla.
func (t *tortillaWriter) enter(level, row int) error {
	t.open = append(t.open, blob{level, row, t.at()})
	t.hold(t.at(), t.headBytes(level))
	_, err := t.out.Write(make([]byte, tortilla.HeaderSize))
	return err
}

// headBytes returns how much of the header of a Tortilla is set: its magic, and the numbers of leave.
func (t *tortillaWriter) headBytes(level int) int64 {
	if level < 0 && t.w.o.Form.Old() {
		return 2 + 5*8
	}
	return 2 + 3*8
}

// put writes a file. Files come in the order of the tree, so that folders are entered and left as they differ.
func (t *tortillaWriter) put(ctx context.Context, p place, l *loaded) error {
	above := make([]int, p.level+1) // the row at each level that the file lies below
	above[p.level] = p.row
	for k := p.level; k > 0; k-- {
		above[k-1] = int(t.w.levels[k].Rows[above[k]].Parent)
	}
	same := 1
	for same < len(t.open) && same <= p.level && t.open[same].row == above[same-1] {
		same++
	}
	for len(t.open) > same {
		if err := t.leave(ctx); err != nil {
			return err
		}
	}
	for k := len(t.open) - 1; k < p.level; k++ {
		if err := t.enter(k, above[k]); err != nil {
			return err
		}
	}
	s := span{Off: t.at(), Size: l.size}
	var src io.Reader = bytes.NewReader(l.bytes)
	if l.r != nil {
		src = source.Sequential(ctx, l.r, 0)
	}
	head := make([]byte, min(l.size, headBytes))
	if _, err := io.ReadFull(src, head); err != nil {
		return err
	}
	t.formats[p.level][p.row] = formatOf(head)
	if t.w.o.Form == StreamingTaco {
		if err := t.chunks.add(ctx, t.w.levels, p, l, s.Off); err != nil {
			return err
		}
	}
	if _, err := t.out.Write(head); err != nil {
		return err
	}
	n, err := io.Copy(t.out, src)
	if err == nil && n != s.Size-int64(len(head)) {
		err = io.ErrUnexpectedEOF
	}
	t.w.levels[p.level].spans[p.row] = s
	return err
}

// headBytes at the start of a file identify its format.
const headBytes = 16

// formatOf returns GDAL's name of the format of a file that begins with these bytes, or BYTES.
func formatOf(head []byte) string {
	switch magic.Of(head) {
	case magic.TIFF:
		return "GTiff"
	case magic.PNG:
		return "PNG"
	case magic.JPEG:
		return "JPEG"
	}
	return "BYTES"
}

// leave ends the innermost Tortilla with its table, and keeps its header to be written later.
func (t *tortillaWriter) leave(ctx context.Context) error {
	blob := t.open[len(t.open)-1]
	t.open = t.open[:len(t.open)-1]
	k := blob.level + 1
	l := t.w.levels[k]
	lo, hi := 0, len(l.Rows)
	if blob.level >= 0 {
		lo, hi = int(t.w.levels[blob.level].first[blob.row]), int(t.w.levels[blob.level].first[blob.row+1])
	}
	footer, err := t.footer(ctx, blob, lo, hi)
	if err != nil {
		return err
	}
	head := append(make([]byte, 0, t.headBytes(blob.level)), tortilla.MagicTortilla...)
	partitions := int64(1)
	if blob.level < 0 {
		partitions = max(1, int64(t.w.partitions))
	}
	numbers := []int64{footer.Off - blob.at, footer.Size, partitions}
	if blob.level < 0 && t.w.o.Form.Old() {
		copy(head[:2], tortilla.MagicTACO)
		place, err := t.describe()
		if err != nil {
			return err
		}
		numbers = append(numbers, place.Off, place.Size)
	}
	for _, n := range numbers {
		head = binary.LittleEndian.AppendUint64(head, uint64(n))
	}
	if err := t.patch(blob.at, head); err != nil {
		return err
	}
	if blob.level >= 0 {
		t.w.levels[blob.level].spans[blob.row] = span{Off: blob.at, Size: t.at() - blob.at}
		t.formats[blob.level][blob.row] = "TORTILLA"
	}
	return nil
}

// footer writes the table of a Tortilla, whose rows are lo to hi of the level below it, and returns its place. The
// table of a streaming TACO is the first of a chain.
func (t *tortillaWriter) footer(ctx context.Context, b blob, lo, hi int) (span, error) {
	if b.level < 0 && t.w.o.Form == StreamingTaco {
		return t.chain(ctx)
	}
	k := b.level + 1
	rows, spans := make([]int, 0, hi-lo), make([]span, 0, hi-lo)
	for row := lo; row < hi; row++ {
		s := t.w.levels[k].spans[row]
		rows, spans = append(rows, row), append(spans, span{Off: s.Off - b.at, Size: s.Size})
	}
	table, err := t.table(ctx, k, rows, spans)
	if err != nil {
		return span{}, err
	}
	pos := t.at()
	err = t.encoders[k].Write(ctx, t.out, table)
	return span{Off: pos, Size: t.at() - pos}, err
}

// columns returns the columns of the samples of level k, except those with names that a Tortilla defines itself.
func (t *tortillaWriter) columns(k int) *tables.Table {
	names := []string{"id", "type", tortilla.ColID, tortilla.ColFormat, tortilla.ColOffset, tortilla.ColLength,
		tortilla.ColRoot}
	// Two columns of one name would make readers refuse the table.
	return only(t.w.levels[k].Table, func(name string) bool { return !slices.Contains(names, name) })
}

// table returns rows of level k with the columns of a Tortilla.
func (t *tortillaWriter) table(ctx context.Context, k int, rows []int, spans []span) (*tables.Table, error) {
	level := t.w.levels[k]
	var named *tables.Vector // the formats that the source declares
	if level.Table.Index(tortilla.ColFormat) >= 0 {
		var err error
		if named, err = level.Table.Column(ctx, tortilla.ColFormat); err != nil {
			return nil, err
		}
		if named.Kind() != tables.String {
			named = nil
		}
	}
	format := func(i int) string {
		row := rows[i]
		if named != nil && !level.Rows[row].Folder && !named.Null(row) && named.Str(row) != "TORTILLA" {
			return named.Str(row)
		}
		return t.formats[k][row]
	}
	id := func(i int) string { return level.Rows[rows[i]].ID }
	return tables.Join(ownColumns(spans, id, format), t.columns(k).Take(rows)), nil
}

// ownColumns returns the columns that a Tortilla defines itself.
func ownColumns(spans []span, id, format func(i int) string) *tables.Table {
	n := len(spans)
	c := new(columns).add(tortilla.ColID, Texts(n, id)).add(tortilla.ColFormat, Texts(n, format))
	c.add(tortilla.ColOffset, integers(int64Type, n, func(i int) int64 { return spans[i].Off }))
	return c.add(tortilla.ColLength, integers(int64Type, n, func(i int) int64 { return spans[i].Size })).table(n)
}

// rooted returns a table with the paths of folders, as a streaming TACO has them.
func rooted(t *tables.Table, root func(i int) string) *tables.Table {
	return tables.Join(t, new(columns).add(tortilla.ColRoot, Texts(t.Len(), root)).table(t.Len()))
}

// chain writes the tables of a streaming TACO, each with the place of the next, and returns the place of the first, the
// table of level 0.
func (t *tortillaWriter) chain(ctx context.Context) (span, error) {
	chunks := &t.chunks
	table := ownColumns(chunks.spans, func(i int) string { return chunks.ids[i] }, func(int) string { return "BYTES" })
	next, err := t.link(ctx, rooted(table, func(i int) string { return chunks.roots[i] }), span{})
	// From the last table to the first, because each has the place of the next.
	for k := len(t.w.levels) - 1; k >= 0 && err == nil; k-- {
		level := t.w.levels[k]
		if table, err = t.table(ctx, k, model.UpTo[int](len(level.Rows)), level.spans); err == nil {
			next, err = t.link(ctx, rooted(table, func(row int) string { return rootOf(t.w.levels, k, row) }), next)
		}
	}
	return next, err
}

// link writes a table of the chain that is followed by the one at next, if that is not empty, and returns its place.
func (t *tortillaWriter) link(ctx context.Context, table *tables.Table, next span) (span, error) {
	pointer := "NULL"
	if next.Size > 0 {
		pointer = fmt.Sprintf("OFFSETLENGTH(%d, %d)", next.Off, next.Size)
	}
	enc, err := encode.NewWriter(arrow.Fitted(ctx, table), map[string]string{"pointer": pointer})
	if err != nil {
		return span{}, err
	}
	pos := t.at()
	err = enc.Write(ctx, t.out, table)
	return span{Off: pos, Size: t.at() - pos}, err
}

// describe writes the COLLECTION of a TACO 0.2, and returns its place.
func (t *tortillaWriter) describe() (span, error) {
	doc, err := t.w.collection.oldDocument()
	if err != nil {
		return span{}, err
	}
	pos := t.at()
	_, err = t.out.Write(doc)
	return span{Off: pos, Size: t.at() - pos}, err
}

// chunkRows are the rows of the tiles of a streaming TACO, in the order of the files.
type chunkRows struct {
	ids, roots []string
	spans      []span
}

// add adds the tiles of a file whose bytes begin at an offset of the container.
func (c *chunkRows) add(ctx context.Context, levels []*Level, p place, l *loaded, at int64) error {
	index, err := tiles(ctx, l, inHistogram(p))
	if err != nil {
		return fault.WithPart(err, fmt.Sprintf("sample %q", p.path), fault.NoOffset)
	}
	id, root := levels[p.level].Rows[p.row].ID, rootOf(levels, p.level, p.row)
	for k, r := range taco.FileOrder(index) {
		c.ids, c.roots = append(c.ids, id+"::"+strconv.Itoa(k)), append(c.roots, root)
		c.spans = append(c.spans, span{Off: at + r.Off, Size: r.Len})
	}
	return nil
}

// inHistogram reports whether a file is one of the histograms, which have strips in place of tiles.
func inHistogram(p place) bool {
	top, _, below := strings.Cut(p.path, "/")
	return below && top == tortilla.HistogramID
}

// rootOf returns the value of tortilla:root of a row: the path of its folder, or at level 0 its own id.
func rootOf(levels []*Level, k, row int) string {
	if k > 0 {
		k, row = k-1, int(levels[k].Rows[row].Parent)
	}
	return path(levels, k, row)
}

// tiles returns the index of a file, which must be a TOG, or any TIFF if it is a histogram.
func tiles(ctx context.Context, l *loaded, histogram bool) (*chunk.Index, error) {
	im, err := tiff.Open(ctx, l.open(), tiff.Limits{})
	if err != nil {
		failed := unsupported("file",
			"is not a TOG, and a streaming TACO has no other files: "+
				"see 'chaski convert --to tog', or write a plain TACO")
		failed.Err = err
		return nil, failed
	}
	if x := im.Index; !histogram && (!im.Meta.Tiled || x.Codec != chunk.Zstd || x.ChunkB != 1 || x.BigEndian) {
		return nil, unsupported("file",
			"is a TIFF but not a TOG, which has zstd tiles of one band each: see 'chaski convert --to tog'")
	}
	return im.Index, nil
}
