// Package array has the command array, which reads TileDB arrays.
package array

import (
	"context"
	"encoding/binary"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/tiledb"
)

type arrayFlags struct {
	sub, format string
	attrs       []string
	at          flags.Timestamp
	options     tiledb.Options
}

func NewArray(env console.Env) *cobra.Command {
	var f arrayFlags
	cmd := console.Command("array --sub LO..HI,... [flags] ARRAY", console.ExactlyOne("ARRAY"),
		func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), env, args[0]) })
	defined := cmd.Flags()
	console.Var(defined, &f.sub, "sub", "")
	console.ChoiceVar(defined, &f.format, "format", "sha256", "sha256")
	f.at.Add(defined)
	console.ListVar(defined, &f.attrs, "attr")
	console.CountVar(defined, &f.options.MaxTile, "max-tile", tiledb.DefaultMaxTile, 1)
	console.CountVar(defined, &f.options.MaxResult, "max-result", tiledb.DefaultMaxResult, 1)
	return cmd
}

// Values are the hashes of one attribute's values.
type Values struct {
	SHA256  string `json:"sha256,omitempty"`
	Offsets string `json:"offsets_sha256,omitempty"`
	Data    string `json:"data_sha256,omitempty"`
	Valid   string `json:"validity_sha256,omitempty"`
}

// Read is what --format sha256 prints.
type Read struct {
	Kind   string            `json:"kind"`
	Shape  []int             `json:"shape,omitempty"`
	Cells  *int              `json:"cells,omitempty"`
	Coords *Values           `json:"coords,omitempty"`
	Dims   map[string]Values `json:"dims,omitempty"`
	Attrs  map[string]Values `json:"attrs"`
}

func (f *arrayFlags) run(ctx context.Context, env console.Env, path string) error {
	var err error
	if f.options.Key, err = store.KeyFromEnv(); err != nil {
		return err
	}
	f.options.Since, f.options.Until = f.at.Range()
	array, err := tiledb.Open(ctx, env.Files, path, f.options)
	if err != nil {
		return fault.WithFile(err, path)
	}
	out, err := f.read(ctx, array)
	if err != nil {
		return fault.WithFile(err, path)
	}
	return console.PrintJSON(env.Out, out)
}

func (f *arrayFlags) read(ctx context.Context, a *tiledb.Array) (*Read, error) {
	box := a.Schema.Area()
	if f.sub != "" {
		var err error
		if box, err = a.Schema.ParseBox(f.sub); err != nil {
			return nil, console.UsageUnlessFault(err)
		}
	}
	attrs, err := f.attributes(a.Schema)
	if err != nil {
		return nil, err
	}
	reader := a.NewReader()
	out := &Read{Kind: "dense", Attrs: map[string]Values{}}
	if a.Schema.Dense {
		if out.Shape, _, err = a.Shape(box); err != nil {
			return nil, err
		}
		for _, i := range attrs {
			values, err := reader.Dense(ctx, i, box)
			if err != nil {
				return nil, err
			}
			out.Attrs[a.Schema.Attrs[i].Name] = hashes(values, a.Schema.Attrs[i].Var())
		}
		return out, nil
	}
	cells, err := reader.Sparse(ctx, attrs, box)
	if err != nil {
		return nil, err
	}
	out.Kind, out.Cells = "sparse", &cells.N
	if cells.Dims == nil {
		out.Coords = &Values{SHA256: console.Sha256Hex(cells.Coords)}
	} else {
		out.Dims = map[string]Values{}
	}
	for d, v := range cells.Dims {
		out.Dims[a.Schema.Dims[d].Name] = hashes(v, v.Offsets != nil)
	}
	for k, i := range attrs {
		out.Attrs[a.Schema.Attrs[i].Name] = hashes(cells.Values[k], a.Schema.Attrs[i].Var())
	}
	return out, nil
}

// attributes returns the numbers of the attributes to read.
func (f *arrayFlags) attributes(s *tiledb.Schema) ([]int, error) {
	var list []int
	if f.attrs != nil && len(f.attrs) == 0 {
		return nil, console.Usagef("--attr is empty: it must name an attribute")
	}
	for _, name := range f.attrs {
		i := s.Attr(name)
		if i < 0 {
			return nil, fault.New(fault.NotFound, "array schema", "there is no attribute %q", name)
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

func hashes(v tiledb.Values, variable bool) (h Values) {
	if v.Valid != nil {
		h.Valid = console.Sha256Hex(v.Valid)
	}
	if !variable {
		h.SHA256 = console.Sha256Hex(v.Data)
		return h
	}
	buf := make([]byte, 0, 8*len(v.Offsets))
	for _, o := range v.Offsets {
		buf = binary.LittleEndian.AppendUint64(buf, o)
	}
	h.Offsets, h.Data = console.Sha256Hex(buf), console.Sha256Hex(v.Data)
	return h
}
