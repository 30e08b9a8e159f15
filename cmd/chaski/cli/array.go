package cli

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/tiledb"
)

type arrayFlags struct {
	sub, format string
	attrs       []string
	at          timestampFlag
	maxTile     int64
	maxResult   int64
}

func newArray(s streams) *cobra.Command {
	var f arrayFlags
	cmd := &cobra.Command{
		Use:   "array --sub LO..HI,... [flags] ARRAY",
		Short: "Read a box of cells of a TileDB array",
		Long: `Read the cells of a box of a TileDB array (format version 3, dense or sparse). --sub names it: one
interval a dimension, both ends included. The array lies in a folder, in an object store, in a
dataset of Hugging Face or on a web server whose page about a folder links to what lies in it.

One line of JSON has, of a dense array, its shape, and of a sparse one the number of cells and the
hash of their coordinates, cell by cell, sorted by them; then the hash of the values of each
attribute in that order (row-major for dense arrays), of a var-length attribute those of its offsets
(uint64) and its values. Cells that were never written have the fill value of their type.

Encrypted arrays want their key, 32 bytes, in ` + tiledb.KeyVar + `, or in a file that
` + tiledb.KeyFileVar + ` names.`,
		Example: `  chaski array --sub 0..1,4..19,8..23 cube
  chaski array --timestamp 2026-11-20T12:00:00Z cube
  chaski array --sub=-50..73 --attr v profile`,
		Args: exactlyOne("ARRAY"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), s, args[0]) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.sub, "sub", "", "the box: LO..HI,LO..HI, one interval a dimension (default: all of the domain)")
	fl.StringVar(&f.format, "format", "sha256", "sha256")
	f.at.add(fl)
	fl.StringSliceVar(&f.attrs, "attr", nil, "attributes to read (default: all)")
	fl.Int64Var(&f.maxTile, "max-tile", tiledb.DefaultMaxTile, "largest decoded tile, in bytes")
	fl.Int64Var(&f.maxResult, "max-result", tiledb.DefaultMaxResult, "largest result of an attribute, in bytes")
	return cmd
}

// arrayValues are the hashes of one attribute's values.
type arrayValues struct {
	SHA256  string `json:"sha256,omitempty"`
	Offsets string `json:"offsets_sha256,omitempty"`
	Data    string `json:"data_sha256,omitempty"`
}

// arrayRead is what --format sha256 prints.
type arrayRead struct {
	Kind   string                 `json:"kind"`
	Shape  []int                  `json:"shape,omitempty"`
	Cells  *int                   `json:"cells,omitempty"`
	Coords *arrayValues           `json:"coords,omitempty"`
	Attrs  map[string]arrayValues `json:"attrs"`
}

func openArray(ctx context.Context, st tiledb.Store, path string, o tiledb.Options) (*tiledb.Array, error) {
	var err error
	if o.Key, err = tiledb.KeyFromEnv(); err != nil {
		return nil, err
	}
	a, err := tiledb.Open(ctx, st, path, o)
	return a, fault.WithFile(err, path)
}

func (f *arrayFlags) run(ctx context.Context, s streams, path string) error {
	if err := oneOf("format", f.format, "sha256"); err != nil {
		return err
	}
	if f.maxTile < 1 || f.maxResult < 1 {
		return usagef("--max-tile and --max-result are at least 1")
	}
	files := newOpener(true)
	defer files.Close()
	a, err := openArray(ctx, tiledb.Over{Opener: files}, path, f.at.options(tiledb.Options{MaxTile: f.maxTile, MaxResult: f.maxResult}))
	if err != nil {
		return err
	}
	out, err := f.read(ctx, a)
	if err != nil {
		return fault.WithFile(err, path)
	}
	return printJSON(s.out, out)
}

func (f *arrayFlags) read(ctx context.Context, a *tiledb.Array) (*arrayRead, error) {
	box := a.Schema.Domain()
	if f.sub != "" {
		var err error
		if box, err = a.Schema.ParseBox(f.sub); err != nil {
			return nil, usage(err)
		}
	}
	attrs, err := f.attributes(a.Schema)
	if err != nil {
		return nil, err
	}
	r := a.NewReader()
	out := &arrayRead{Kind: "dense", Attrs: map[string]arrayValues{}}
	if a.Schema.Dense {
		if out.Shape, _, err = a.Shape(box); err != nil {
			return nil, err
		}
		for _, i := range attrs {
			v, err := r.Dense(ctx, i, box)
			if err != nil {
				return nil, err
			}
			out.Attrs[a.Schema.Attrs[i].Name] = hashes(v, a.Schema.Attrs[i].Var())
		}
		return out, nil
	}
	cells, err := r.Sparse(ctx, attrs, box)
	if err != nil {
		return nil, err
	}
	out.Kind, out.Cells, out.Coords = "sparse", &cells.N, &arrayValues{SHA256: sha256Hex(cells.Coords)}
	for k, i := range attrs {
		out.Attrs[a.Schema.Attrs[i].Name] = hashes(cells.Values[k], a.Schema.Attrs[i].Var())
	}
	return out, nil
}

// attributes returns the numbers of the attributes to read.
func (f *arrayFlags) attributes(s *tiledb.Schema) ([]int, error) {
	var list []int
	if f.attrs != nil && len(f.attrs) == 0 {
		return nil, usagef("--attr names no attribute")
	}
	for _, name := range f.attrs {
		i := s.Attr(name)
		if i < 0 {
			return nil, fault.New(fault.NotFound, "array schema", fault.NoOffset, "no attribute is called %q", name)
		}
		list = append(list, i)
	}
	if f.attrs == nil {
		for i := range s.Attrs {
			list = append(list, i)
		}
	}
	return list, nil
}

func hashes(v tiledb.Values, variable bool) arrayValues {
	if !variable {
		return arrayValues{SHA256: sha256Hex(v.Data)}
	}
	b := make([]byte, 0, 8*len(v.Offsets))
	for _, o := range v.Offsets {
		b = binary.LittleEndian.AppendUint64(b, o)
	}
	return arrayValues{Offsets: sha256Hex(b), Data: sha256Hex(v.Data)}
}

func infoArray(ctx context.Context, s streams, files source.Opener, path string, at *timestampFlag, asJSON bool) error {
	i, err := loader.InspectArray(ctx, path, at.t, loader.Options{Opener: files})
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(s.out, i)
	}
	_, err = fmt.Fprint(s.out, arrayText(i))
	return err
}

// arrayText describes an array to people.
func arrayText(i *loader.ArrayInfo) string {
	var s sheet
	kind := "sparse"
	if i.Dense {
		kind = "dense"
	}
	fmt.Fprintf(&s.b, "%s: TileDB array, format version %d, %s\n", clean(i.Path), i.FormatVersion, kind)
	if i.Encrypted {
		s.line("encrypted", "AES-256-GCM")
	}
	for k, d := range i.Dims {
		written := ""
		if i.NonEmpty != nil {
			written = fmt.Sprintf(", written %s to %s", i.NonEmpty[k][0], i.NonEmpty[k][1])
		}
		s.line("dimension", "%s: %s, %s to %s, tiles of %s%s", clean(d.Name), i.DimType, d.Domain[0], d.Domain[1], d.Extent, written)
	}
	s.line("orders", "tiles %s-major, cells %s-major, capacity %d", i.TileOrder, i.CellOrder, i.Capacity)
	for _, a := range i.Attrs {
		values := fmt.Sprintf(" × %d", a.Values)
		switch a.Values {
		case 1:
			values = ""
		case -1:
			values = " × any number"
		}
		s.line("attribute", "%s: %s%s, filters %s", clean(a.Name), a.Type, values, orNone(a.Filters))
	}
	s.line("coordinates", "filters %s; offsets: filters %s", orNone(i.Coords), orNone(i.Offsets))
	s.line("fragments", "%d, %d hidden, %d tiles an attribute", i.Fragments, i.Hidden, i.Tiles)
	if i.Times != nil {
		s.line("written", "%s to %s", timeText(i.Times[0]), timeText(i.Times[1]))
	}
	return s.b.String()
}

// timeText is a time as --timestamp takes it.
func timeText(ms uint64) string {
	if ms > maxMilli {
		return strconv.FormatUint(ms, 10)
	}
	return time.UnixMilli(int64(ms)).UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// maxMilli is the end of the year 9999.
const maxMilli = 253402300799999

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
