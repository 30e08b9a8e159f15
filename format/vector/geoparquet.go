package vector

import (
	"context"
	"encoding/json"
	"math"
	"runtime"
	"strconv"
	"strings"

	"github.com/paulmach/orb"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables/paged"
	"github.com/chaski-eo/chaski/format/tables/parquet"
	"github.com/chaski-eo/chaski/format/tables/wkb"
	"github.com/chaski-eo/chaski/internal/boxtree"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/internal/each"
	"github.com/chaski-eo/chaski/source"
)

func init() { readers.parquet = openParquet }

// geoMeta is the metadata "geo" of a GeoParquet file, as far as it is used.
type geoMeta struct {
	Primary string               `json:"primary_column"`
	Columns map[string]geoColumn `json:"columns"`
}

type geoColumn struct {
	Encoding string          `json:"encoding"`
	CRS      json.RawMessage `json:"crs"` // PROJJSON; null: unknown; absent: OGC:CRS84
	Edges    string          `json:"edges"`
	Covering struct {
		BBox map[string][]string `json:"bbox"`
	} `json:"covering"`
}

func geoFault(k fault.Kind, format string, args ...any) error {
	return fault.New(k, `metadata "geo"`, format, args...)
}

// parquetShapes reads the shapes of a GeoParquet file. It is safe for concurrent use.
type parquetShapes struct {
	r      source.Reader
	f      *paged.File
	column int // of the geometries
}

// Close implements shapes.
func (p *parquetShapes) Close() error { return p.r.Close() }

// openParquet opens a GeoParquet file.
func openParquet(ctx context.Context, r source.Reader, o *Options) (*Layer, error) {
	file, err := parquet.Open(ctx, r)
	if err != nil {
		return nil, err
	}
	name, col, err := geometryColumn(file)
	if err != nil {
		return nil, err
	}
	layer := &Layer{}
	if layer.CRS, err = col.crs(); err != nil {
		return nil, err
	}
	// A shape takes some bytes of its file, so a file cannot claim more of them than it has bytes.
	if file.Rows > min(o.MaxShapes, r.Size()) {
		return nil, fault.New(fault.Limit, "shapes", "%d shapes in a file of %d bytes, at most %d",
			file.Rows, r.Size(), min(o.MaxShapes, r.Size()))
	}
	// Compressed, coordinates take a fifth to a half of their bytes; more than 16 times the file is not needed.
	cache := min(o.CacheBytes, 16*r.Size())
	p := &parquetShapes{r, paged.New(file, paged.NewCache(cache), 0, 0), file.Column(name)}
	if p.column < 0 {
		return nil, file.NoColumn(name)
	}
	if c := &file.Columns[p.column]; c.Type != parquet.ByteArray || c.Repeated {
		return nil, fault.New(fault.Corrupt, "column "+name, "holds no WKB")
	}
	// Boxes stand twice in memory while the tree is made, with 8 bytes of a key; values take 8 bytes and a flag.
	const each = 2*16 + 8 + 4 + 9
	if err := o.Grow(ctx, file.Rows*each+cache); err != nil {
		return nil, err
	}
	boxes, err := p.boxes(ctx, col)
	if err != nil {
		return nil, err
	}
	if layer.Values, err = p.values(ctx, o.Column); err != nil {
		return nil, err
	}
	paths, err := p.values(ctx, o.Image)
	if err != nil {
		return nil, err
	}
	if layer.images, err = imagesIn(o, paths); err != nil {
		return nil, err
	}
	layer.shapes = p
	layer.index(boxes, r.Size())
	return layer, nil
}

// geometryColumn returns the name and the description of the column with the geometries.
func geometryColumn(f *parquet.File) (string, *geoColumn, error) {
	text, ok := f.Meta["geo"]
	if !ok {
		return "", nil, geoFault(fault.Unsupported, "the file has none: it is a Parquet file, but not GeoParquet")
	}
	var meta geoMeta
	if err := json.Unmarshal([]byte(text), &meta); err != nil {
		return "", nil, geoFault(fault.Corrupt, "%v", err)
	}
	column, ok := meta.Columns[meta.Primary]
	if !ok {
		return "", nil, geoFault(fault.Corrupt, "the primary column %q is not described", meta.Primary)
	}
	if column.Encoding != "WKB" {
		return "", nil, geoFault(fault.Unsupported, "column %q has the encoding %q: only WKB is read", meta.Primary,
			column.Encoding)
	}
	if column.Edges != "" && column.Edges != "planar" {
		return "", nil, geoFault(fault.Unsupported, "column %q has %s edges: only planar ones are read", meta.Primary,
			column.Edges)
	}
	return meta.Primary, &column, nil
}

// crs returns the CRS of the column, nil if the file says that it is unknown.
func (c *geoColumn) crs() (*crs.CRS, error) {
	switch text := string(c.CRS); text {
	case "":
		return crs.Lookup(4326)
	case "null":
		return nil, nil
	}
	var described struct {
		Name string `json:"name"`
		ID   struct {
			Authority string          `json:"authority"`
			Code      json.RawMessage `json:"code"` // a number or a string
		} `json:"id"`
	}
	if err := json.Unmarshal(c.CRS, &described); err != nil {
		return nil, geoFault(fault.Corrupt, "crs: %v", err)
	}
	name := strings.Trim(described.ID.Authority+":"+strings.Trim(string(described.ID.Code), `"`), ":")
	found, ok := crs.ByName(name)
	if !ok {
		return nil, geoFault(fault.Unsupported, "its CRS, %q with the code %q, is not known: in geopandas, "+
			"to_crs(4326) converts the shapes", fault.Short(described.Name), fault.Short(name))
	}
	return found, nil
}

// scan calls visit with all pages of a column, several at a time, and with the first row of each.
func (p *parquetShapes) scan(ctx context.Context, column int, visit func(first int, v *parquet.Values) error) error {
	var pages []func(ctx context.Context) error
	err := p.f.Each(ctx, column, paged.Scan{}, func(first int64, decode paged.Decode) error {
		pages = append(pages, func(ctx context.Context) error {
			values, err := decode(ctx)
			if err != nil {
				return err
			}
			return visit(int(first), values)
		})
		return nil
	})
	if err != nil {
		return err
	}
	return each.Of(ctx, int64(len(pages)), runtime.GOMAXPROCS(0), func(ctx context.Context, i int64) error {
		return pages[i](ctx)
	})
}

// boxes returns the boxes of all shapes: the covering if the file has one, which saves reading the shapes.
func (p *parquetShapes) boxes(ctx context.Context, col *geoColumn) ([]boxtree.Box, error) {
	boxes := make([]boxtree.Box, p.f.Rows)
	sides, ok := p.covering(col)
	if !ok {
		return boxes, p.scan(ctx, p.column, func(first int, v *parquet.Values) error {
			for i := range v.Len() {
				box := &boxes[first+i]
				if *box = boxtree.Nothing; v.Null(i) {
					continue
				}
				bounds, ok, err := wkb.Bounds(v.Raw(i))
				if err != nil {
					return fault.WithPart(err, "shape "+strconv.Itoa(first+i), fault.NoOffset)
				}
				if ok {
					*box = boxtree.Around(bounds.MinX, bounds.MinY, bounds.MaxX, bounds.MaxY)
				}
			}
			return nil
		})
	}
	for side, column := range sides {
		err := p.scan(ctx, column, func(first int, v *parquet.Values) error {
			for i := range v.Len() {
				x := math.NaN() // no box
				if !v.Null(i) {
					x = v.Float(i)
				}
				boxes[first+i][side] = outwards(x, side)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for i := range boxes {
		// A box across the antimeridian is taken for one around the Earth, because the tree needs its west before its
		// east.
		if b := &boxes[i]; b[0] > b[2] {
			b[0], b[2] = -540, 540
		}
	}
	return boxes, nil
}

// outwards rounds side 0 to 3 of a box. A covering in float32 may have been rounded to either side, so it is
// moved by one number more.
func outwards(v float64, side int) float32 {
	sign := 1.0
	if side >= 2 {
		sign = -1
	}
	f := boxtree.Below(v * sign)
	if float64(f) == v*sign {
		f = math.Nextafter32(f, float32(math.Inf(-1)))
	}
	return f * float32(sign)
}

// covering returns the columns with the sides of the boxes.
func (p *parquetShapes) covering(col *geoColumn) (sides [4]int, ok bool) {
	for i, side := range []string{"xmin", "ymin", "xmax", "ymax"} {
		sides[i] = p.f.Column(strings.Join(col.Covering.BBox[side], "."))
		if sides[i] < 0 {
			return sides, false
		}
		column := &p.f.Columns[sides[i]]
		if column.Repeated || column.Type != parquet.Float && column.Type != parquet.Double {
			return sides, false
		}
	}
	return sides, true
}

// shape implements shapes.
func (p *parquetShapes) shape(ctx context.Context, row int) (orb.Geometry, error) {
	if row < 0 || int64(row) >= p.f.Rows {
		return nil, fault.New(fault.NotFound, "shape", "%d of %d", row, p.f.Rows)
	}
	values, i, err := p.f.Value(ctx, p.column, int64(row))
	if err != nil || values.Null(i) {
		return nil, err
	}
	shape, err := wkb.Geometry(values.Raw(i))
	return shape, fault.WithPart(err, "shape "+strconv.Itoa(row), fault.NoOffset)
}
