package cli

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/cmd/chaski/cli/internal/npy"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tables/query"
)

// givenFlags choose samples by the conditions that a spec has.
type givenFlags struct {
	text   string
	given  loader.Subset // of text, once it is read
	sql    query.Full
	read   bool
	stored bool // tables have the histograms of a streaming TACO too
}

func (f *givenFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.text, "given", "", "`JSON` list of conditions that samples of level 0 have to meet first, as the member where of a spec has them; @FILE: what the file holds")
}

// fromFile returns what the file holds that "@FILE" names, and any other argument as it is: no argument
// of a program is longer than 128 KiB, a list of ids may be.
func fromFile(arg string) (string, error) {
	name, ok := strings.CutPrefix(arg, "@")
	if !ok {
		return arg, nil
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return "", usagef("%w", err)
	}
	return string(b), nil
}

// subset returns the conditions. What they come from is read once: a pipe has them once.
func (f *givenFlags) subset() (s loader.Subset, err error) {
	if f.text == "" || f.read {
		return f.given, nil
	}
	text, err := fromFile(f.text)
	if err != nil {
		return s, err
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s.Where); err != nil {
		return s, usagef("--given: %w", err)
	}
	f.given, f.read = s, true
	return s, nil
}

// samples returns the samples that the conditions leave.
func (f *givenFlags) samples(ctx context.Context, d *taco.Dataset) (*loader.Samples, error) {
	s, err := f.subset()
	if err != nil {
		return nil, err
	}
	found, err := loader.SelectSamples(ctx, d, s, loader.Options{SQL: f.sql})
	return found, usage(err)
}

// tables returns the tables that a query sees.
func (f *givenFlags) tables(ctx context.Context, d *taco.Dataset) (query.Tables, error) {
	if f.stored {
		return d.StoredTable, nil
	}
	if f.text == "" {
		return d.SQLTable, nil
	}
	s, err := f.subset()
	if err != nil {
		return nil, err
	}
	if len(s.Where) == 0 && d.Levels() > 0 {
		if all, err := d.AllVisible(ctx, 0); err == nil && all { // data is level 0 as it is; an error comes again
			return d.SQLTable, nil
		}
	}
	found, err := f.samples(ctx, d)
	if err != nil {
		return nil, err
	}
	return found.SQLTable, nil
}

type entriesFlags struct {
	containerFlags
	givenFlags
	level  int
	format string
}

func newEntries(s streams) *cobra.Command {
	var f entriesFlags
	cmd := &cobra.Command{
		Use:   "entries [flags] CONTAINER...",
		Short: "List where all samples of a level are, for programs",
		Long: `List the samples of a level of containers by column, for programs: the Python package asks so.

With --format npy: NumPy arrays, one after the other. Of every sample that is no placeholder, or of
those that --given leaves (at level 0 in its order, below it without the rows that a condition on
place or time of that level drops): row (int64, in the table of its level), parent
(int64, the row of the level above, or -1), folder (uint8, 1 where it has children), file (int32,
number of the file that holds it), offset and size (int64, bytes; both -1 where the file is all of
it). Then the ids and the names of the files: of each the ends (int64) of the texts, and their bytes
(uint8, UTF-8).

With --format json: {"format", "levels", "id_column", "parts", "collection"} of the dataset.`,
		Example: `  chaski entries --format json data.tacozip
  chaski entries --level 1 data.tacozip > level1.npys`,
		Args: atLeastOne("CONTAINER"),
		RunE: func(cmd *cobra.Command, paths []string) error {
			if err := oneOf("format", f.format, "npy", "json"); err != nil {
				return err
			}
			if f.level < 0 {
				return usagef("--level is %d: it must be at least 0", f.level)
			}
			return f.told(s, f.run(cmd.Context(), s, paths))
		},
	}
	fl := cmd.Flags()
	f.containerFlags.add(fl)
	f.givenFlags.add(fl)
	f.sql = s.sql
	fl.IntVar(&f.level, "level", 0, "level to list")
	fl.StringVar(&f.format, "format", "npy", "npy or json")
	return cmd
}

// datasetInfo is what --format json tells.
type datasetInfo struct {
	Format     string          `json:"format"`
	Levels     int             `json:"levels"`
	IDColumn   string          `json:"id_column"`
	Parts      []string        `json:"parts"`
	Collection json.RawMessage `json:"collection"`
}

func (f *entriesFlags) run(ctx context.Context, s streams, paths []string) (err error) {
	given, err := f.subset()
	if err != nil {
		return err
	}
	f.chosen = given.Joins()
	d, done, err := f.dataset(ctx, paths)
	if err != nil {
		return err
	}
	defer func() { done(err) }()
	if f.format == "json" {
		return printJSON(s.out, datasetInfo{d.Format(), d.Levels(), d.IDColumn(), d.Parts(), d.Collection()})
	}
	rows, err := f.rows(ctx, d)
	if err != nil {
		return err
	}
	e := &entryArrays{files: map[string]int32{}}
	if err := e.fill(ctx, d, f.level, rows); err != nil {
		return err
	}
	w := bufio.NewWriterSize(s.out, 1<<16)
	return firstError(e.write(w), w.Flush())
}

// rows returns the rows of the level that are listed.
func (f *entriesFlags) rows(ctx context.Context, d *taco.Dataset) ([]int, error) {
	if f.level > 0 && f.text == "" {
		return d.Visible(ctx, f.level)
	}
	found, err := f.samples(ctx, d)
	if err != nil {
		return nil, err
	}
	if f.level > 0 {
		return found.Below(ctx, f.level)
	}
	rows := make([]int, len(found.Rows))
	for i, row := range found.Rows {
		rows[i] = int(row)
	}
	return rows, nil
}

// entryArrays are the columns of entries.
type entryArrays struct {
	row, parent, offset, size []int64
	folder                    []byte
	file                      []int32
	ids, names                packedTexts
	files                     map[string]int32
}

// packedTexts are texts one after the other.
type packedTexts struct {
	ends []int64
	data []byte
}

func (p *packedTexts) add(s string) {
	p.data = append(p.data, s...)
	p.ends = append(p.ends, int64(len(p.data)))
}

func (e *entryArrays) fill(ctx context.Context, d *taco.Dataset, level int, rows []int) error {
	parents, err := d.Parents(ctx, level)
	if err != nil {
		return err
	}
	for _, row := range rows {
		x, err := d.EntryAt(ctx, level, row)
		if err != nil {
			return err
		}
		up := int64(-1)
		if parents != nil {
			up = int64(parents[row])
		}
		at, ok := e.files[x.URI]
		if !ok {
			at = int32(len(e.files))
			e.files[x.URI] = at
			e.names.add(x.URI)
		}
		folder := byte(0)
		if x.Kind == taco.Folder {
			folder = 1
		}
		e.row, e.parent, e.folder = append(e.row, int64(row)), append(e.parent, up), append(e.folder, folder)
		e.file, e.offset, e.size = append(e.file, at), append(e.offset, x.Offset), append(e.size, x.Size)
		e.ids.add(x.ID)
	}
	return nil
}

func (e *entryArrays) write(w io.Writer) error {
	for _, a := range []any{e.row, e.parent, e.folder, e.file, e.offset, e.size, e.ids.ends, e.ids.data, e.names.ends, e.names.data} {
		if err := writeColumn(w, a); err != nil {
			return err
		}
	}
	return nil
}

// writeColumn writes an array of one axis.
func writeColumn(w io.Writer, a any) error {
	var d chunk.DType
	n := 0
	switch a := a.(type) {
	case []int64:
		d, n = chunk.Int64, len(a)
	case []int32:
		d, n = chunk.Int32, len(a)
	case []byte:
		d, n = chunk.Uint8, len(a)
	}
	head, err := npy.Header(d, []int{n})
	if err != nil {
		return err
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	return binary.Write(w, binary.LittleEndian, a)
}
