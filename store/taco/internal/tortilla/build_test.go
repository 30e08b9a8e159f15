package tortilla

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// sample is what the builders put into a container: bytes, or samples.
type sample struct {
	id     string
	format string
	data   []byte
	kids   []sample
}

func folder(id string, kids ...sample) sample { return sample{id: id, format: nested, kids: kids} }

func blobOf(id string, n int) sample {
	return sample{id: id, format: "BYTES", data: bytes.Repeat([]byte{id[len(id)-1]}, n)}
}

// row is a row of a footer. Root is left out of Tortillas.
type row struct {
	ID     string `parquet:"tortilla:id"`
	Format string `parquet:"tortilla:file_format"`
	Offset int64  `parquet:"tortilla:offset"`
	Length int64  `parquet:"tortilla:length"`
}

type rootedRow struct {
	row
	Root string `parquet:"tortilla:root,dict"`
}

// smallRow takes few bytes where many are equal.
type smallRow struct {
	ID     string `parquet:"tortilla:id,dict"`
	Format string `parquet:"tortilla:file_format,dict"`
	Offset int64  `parquet:"tortilla:offset,dict"`
	Length int64  `parquet:"tortilla:length,dict"`
}

func writeTable[R any](t testing.TB, rows []R, pointer string) []byte {
	t.Helper()
	var o []parquet.WriterOption
	if pointer != "" {
		o = append(o, parquet.KeyValueMetadata(pointerKey, pointer))
	}
	var b bytes.Buffer
	w := parquet.NewGenericWriter[R](&b, o...)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// head returns a header.
func head(magic string, fo, fl, dp, co, cl uint64) []byte {
	b := make([]byte, HeaderSize)
	copy(b, magic)
	for i, v := range [...]uint64{fo, fl, dp, co, cl} {
		binary.LittleEndian.PutUint64(b[2+8*i:], v)
	}
	return b
}

// buildTortilla writes a Tortilla with nested ones.
func buildTortilla(t testing.TB, samples []sample) []byte {
	t.Helper()
	var data []byte
	var rows []row
	for _, s := range samples {
		b := s.data
		if s.format == nested && s.kids != nil {
			b = buildTortilla(t, s.kids)
		}
		rows = append(rows, row{s.id, s.format, int64(HeaderSize + len(data)), int64(len(b))})
		data = append(data, b...)
	}
	footer := writeTable(t, rows, "")
	return append(append(head(MagicTortilla, uint64(HeaderSize+len(data)), uint64(len(footer)), 1, 0, 0),
		data...), footer...)
}

// levelsOf flattens a tree by levels, with offsets in the file and roots by a convention: byTop, or by the
// path.
func levelsOf(samples []sample, byTop bool) (levels [][]rootedRow, data []byte) {
	var walk func(k int, list []sample, above []string)
	walk = func(k int, list []sample, above []string) {
		for len(levels) <= k {
			levels = append(levels, nil)
		}
		for _, s := range list {
			root := strings.Join(above, "/")
			switch {
			case k == 0:
				root = s.id
			case byTop:
				root = above[0]
			}
			at := len(levels[k])
			start := int64(HeaderSize + len(data))
			levels[k] = append(levels[k], rootedRow{row{s.id, s.format, start, 0}, root})
			if s.kids != nil {
				data = append(data, "head"...)
				walk(k+1, s.kids, append(append([]string{}, above...), s.id))
				data = append(data, "foot"...)
			} else {
				data = append(data, s.data...)
			}
			levels[k][at].Length = int64(HeaderSize+len(data)) - start
		}
	}
	walk(0, samples, nil)
	return levels, data
}

// chunksOf cuts every file of the levels in two chunks.
func chunksOf(levels [][]rootedRow) []rootedRow {
	var chunks []rootedRow
	for _, level := range levels {
		for _, r := range level {
			if r.Format == nested {
				continue
			}
			half := r.Length / 2
			chunks = append(chunks, rootedRow{row{r.ID + "::0", "BYTES", r.Offset, half}, r.Root},
				rootedRow{row{r.ID + "::1", "BYTES", r.Offset + half, r.Length - half}, r.Root})
		}
	}
	return chunks
}

// buildStream writes a streaming TACO of tables: levels of samples, and chunks last. form makes a
// pointer.
func buildStream(t testing.TB, tables [][]rootedRow, data []byte, form func(off, size int) string) []byte {
	t.Helper()
	if form == nil {
		form = func(off, size int) string { return fmt.Sprintf("OFFSETLENGTH(%d, %d)", off, size) }
	}
	const end = "NULL"
	b := append(make([]byte, HeaderSize), data...)
	pointer, off, size := end, 0, 0
	for i := len(tables) - 1; i >= 0; i-- { // the last table comes first
		obj := writeTable(t, tables[i], pointer)
		off, size = len(b), len(obj)
		pointer = form(off, size)
		b = append(b, obj...)
	}
	coll := `{"id":"x","taco_version":"0.2.0"}`
	copy(b, head(MagicTACO, uint64(off), uint64(size), 1, uint64(len(b)), uint64(len(coll))))
	return append(b, coll...)
}
