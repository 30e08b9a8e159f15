package rows

import (
	"cmp"
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/internal/join"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

// idColumn is the column of patterns that tells samples apart. Datasets without it have the samples' keys there.
const idColumn = "id"

// keyColumn returns the column by which samples are named, and whether it has the keys of the samples: "" has, and
// idColumn if the dataset lacks it.
func (t *Table) keyColumn(ctx context.Context, name string) (c *Column, keys bool, err error) {
	if name != "" {
		c, err = t.named(ctx, name)
		if c, err = keyed(ctx, name, c, err, t.Data); name != idColumn || fault.KindOf(err) != fault.NotFound {
			return c, false, err
		}
	}
	return &Column{Kind: catalog.Text, Rows: t.N,
		Each: func(ctx context.Context, visit column.Visit) error {
			return t.Keys(ctx, func(row int64, key string) error {
				return visit(row, catalog.Value{Text: []byte(key)})
			})
		}}, true, nil
}

// called visits what each sample is called, until visit says that it is enough: its key, which is its value in a
// column, and, with paths, the paths of its rasters as the dataset has them. With whole it visits whole paths, too: of
// all rasters where the column has the keys of samples, and else of those whose path ends in the value.
func (t *Table) called(ctx context.Context, c *Column, paths, whole bool,
	visit func(row int64, key, text string) (enough bool)) error {
	noPaths := !paths && !whole
	return c.Scan(ctx, func(row int64, v catalog.Value) error {
		if v.Null {
			return nil
		}
		key := v.In(c.Kind)
		enough := visit(row, key, key) || noPaths
		for i := 0; i < len(t.Fields) && !enough; i++ {
			field := &t.Fields[i]
			if field.Kind != catalog.Raster {
				continue
			}
			value, err := field.Value(ctx, row)
			if t.Array && fault.KindOf(err) == fault.Unsupported { // images of one store have no paths
				noPaths = true
				return ctx.Err()
			}
			if err != nil {
				return err
			}
			file := string(value.Text)
			if paths && file != "" && file != key {
				enough = visit(row, key, file)
				if holder, _, ok := strings.Cut(file, source.Separator); ok && !enough { // of an array
					enough = visit(row, key, holder)
				}
			}
			if enough || !whole || file == "" {
				continue
			}
			if asset, err := field.Asset(ctx, row); err == nil {
				if path := cmp.Or(asset.Member, asset.URI); paths || strings.HasSuffix(path, "/"+key) {
					enough = visit(row, key, path)
				}
			}
		}
		return ctx.Err()
	})
}

// match joins names with the samples by a column. If no name means a sample, the names may have been written on another
// machine, and may have the folders above the dataset. With best each sample has one name.
func (t *Table) match(ctx context.Context, names []string, by string, best bool) (*join.Join, error) {
	if t.N > math.MaxInt32 || len(names) > math.MaxInt32 {
		return nil, fault.New(fault.Limit, "", "%d names of %d samples", len(names), t.N)
	}
	c, keys, err := t.keyColumn(ctx, by)
	if err != nil {
		return nil, err
	}
	if numeric(c.Kind) {
		for i, name := range names {
			names[i] = wholeNumber(name)
		}
	}
	scan := func(list *join.Names, whole bool) (*join.Join, error) {
		found := join.Of(list)
		return found, t.called(ctx, c, keys, whole, func(row int64, key, text string) (enough bool) {
			if best {
				return found.AddBest(row, key, text)
			}
			found.AddAll(row, key, text)
			return false
		})
	}
	found, err := scan(join.New(names), false)
	if err != nil || !found.None() {
		return found, err
	}
	if elsewhere := found.Elsewhere(); elsewhere != nil {
		if other, err := scan(elsewhere, true); err != nil || !other.None() {
			return other, err
		}
	}
	return found, nil
}

// numeric reports whether a column has numbers: pandas makes floats of integers in a column with a gap.
func numeric(kind catalog.Kind) bool { return kind == catalog.Int || kind == catalog.Float }

// wholeNumber returns an integer in its shortest form, and other text as it is.
func wholeNumber(text string) string {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return strconv.FormatInt(n, 10)
	}
	return text
}
