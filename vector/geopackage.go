//go:build geopackage

package vector

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paulmach/orb"
	"modernc.org/sqlite"
	"modernc.org/sqlite/vfs"

	"github.com/chaski-eo/chaski/crs"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/boxtree"
	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tables/wkb"
)

const (
	// packageCache is the memory in KiB that SQLite keeps of a file's pages: 4 MiB hold the inner pages of 10^7 rows,
	// so that each shape costs one read of a leaf.
	packageCache = 4 << 10
	// packageHead is how much of a geometry is read for its box: a header of 8 bytes and the first four numbers of an
	// envelope. A point of 29 bytes has none.
	packageHead = 8 + 4*8
	// maxPackageShape bounds the bytes of a geometry: 64 MiB are 4 million points.
	maxPackageShape = 64 << 20
	// packageRows is how many shapes are read at a time: 512 buildings are some 64 KiB.
	packageRows = 512
)

// packageShapes reads the shapes of a layer of a GeoPackage. SQLite reads the file through a file system that has it
// alone, and only tables of values are selected from, so that no view, trigger or function of the file's schema runs.
type packageShapes struct {
	file  *packageFile
	fs    *vfs.FS
	db    *sql.DB
	conn  *sql.Conn
	query string // of the geometries between two rows
	rows  []int64
	pages *lru.Cache[int, [][]byte]

	mu sync.Mutex // for conn and file
}

// packageFile is the only file of a file system. SQLite reads it with one goroutine at a time.
type packageFile struct {
	r   source.Reader
	ctx context.Context // of the statement that runs
	err error           // of the last read that failed
	off int64
}

const packageName = "gpkg" // of the file in its file system

// Open implements fs.FS: a journal or log beside the file is not there.
func (f *packageFile) Open(name string) (fs.File, error) {
	if name != packageName {
		return nil, fs.ErrNotExist
	}
	return f, nil
}

// Read implements fs.File.
func (f *packageFile) Read(p []byte) (int, error) {
	n := int(max(min(int64(len(p)), f.r.Size()-f.off), 0))
	if n == 0 {
		return 0, io.EOF
	}
	if err := f.r.ReadAt(f.ctx, p[:n], f.off); err != nil {
		f.err = err
		return 0, err
	}
	f.off += int64(n)
	return n, nil
}

// Seek implements io.Seeker, from the start.
func (f *packageFile) Seek(off int64, _ int) (int64, error) {
	f.off = off
	return off, nil
}

// Stat implements fs.File.
func (f *packageFile) Stat() (fs.FileInfo, error) { return f, nil }

// Close implements fs.File. The reader is closed with the layer.
func (f *packageFile) Close() error { return nil }

// Name, Size, Mode, ModTime, IsDir and Sys implement fs.FileInfo.
func (f *packageFile) Name() string       { return packageName }
func (f *packageFile) Size() int64        { return f.r.Size() }
func (f *packageFile) Mode() fs.FileMode  { return 0o400 }
func (f *packageFile) ModTime() time.Time { return time.Time{} }
func (f *packageFile) IsDir() bool        { return false }
func (f *packageFile) Sys() any           { return nil }

// Close implements shapes.
func (s *packageShapes) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.file.ctx = context.Background()
	var errs []error
	if s.conn != nil {
		errs = append(errs, s.conn.Close())
	}
	if s.db != nil {
		errs = append(errs, s.db.Close())
	}
	return errors.Join(append(errs, s.fs.Close(), s.file.r.Close())...)
}

func init() { openPackage = openLayer }

// openLayer is openPackage. The caller closes r after an error.
func openLayer(ctx context.Context, r source.Reader, layer string, o *Options) (*Layer, error) {
	s := &packageShapes{file: &packageFile{r: r, ctx: ctx}}
	l, err := s.open(ctx, layer, o)
	if err != nil {
		if s.fs != nil {
			s.file.r = noClose{r}
			_ = s.Close() // it was only read
		}
		return nil, err
	}
	return l, nil
}

// noClose is a reader that its opener closes.
type noClose struct{ source.Reader }

func (noClose) Close() error { return nil }

func (s *packageShapes) open(ctx context.Context, layer string, o *Options) (*Layer, error) {
	cache := min(o.CacheBytes, s.file.r.Size())
	if err := o.Grow(ctx, cache+packageCache<<10); err != nil {
		return nil, err
	}
	s.pages = lru.New[int, [][]byte](cache)
	if err := s.connect(ctx); err != nil {
		return nil, s.fault(ctx, "GeoPackage", err)
	}
	t, err := s.table(ctx, layer)
	if err != nil {
		return nil, err
	}
	l := &Layer{shapes: s}
	if l.CRS, err = s.crs(ctx, t.srs); err != nil {
		return nil, err
	}
	s.query = fmt.Sprintf("SELECT rowid, %s FROM %s WHERE rowid BETWEEN ? AND ? ORDER BY rowid", sqlName(t.geometry),
		sqlName(t.name))
	boxes, values, err := s.scan(ctx, t, o)
	if err != nil {
		return nil, err
	}
	l.Values = values
	l.index(boxes, s.file.r.Size())
	return l, nil
}

// connect opens the connection.
func (s *packageShapes) connect(ctx context.Context) (err error) {
	var name string
	if name, s.fs, err = vfs.New(s.file); err != nil {
		return err
	}
	s.db, err = sql.Open("sqlite", fmt.Sprintf("file:%s?vfs=%s&mode=ro&immutable=1&_defensive=1&_dqs=0"+
		"&_pragma=trusted_schema(0)&_pragma=cell_size_check(1)&_pragma=mmap_size(0)&_pragma=temp_store(2)"+
		"&_pragma=cache_size(-%d)", packageName, name, packageCache))
	if err != nil {
		return err
	}
	s.db.SetMaxOpenConns(1)
	if s.conn, err = s.db.Conn(ctx); err != nil {
		return err
	}
	// Numbers of https://www.sqlite.org/c3ref/c_limit_attached.html: the bytes of a value and of a statement, columns,
	// depth of expressions, attached databases, threads.
	for id, most := range map[int]int{0: maxPackageShape, 1: 1 << 16, 2: 2000, 3: 50, 7: 0, 11: 0} {
		if _, err := sqlite.Limit(s.conn, id, most); err != nil {
			return err
		}
	}
	for _, table := range []string{"gpkg_geometry_columns", "gpkg_spatial_ref_sys"} {
		if err := s.plain(ctx, table); err != nil {
			return err
		}
	}
	return nil
}

// computed finds columns that are computed from others.
var computed = regexp.MustCompile(`(?i)generated|\bas\s*\(`)

// plain returns an error unless name is a table of stored values. Reading a view, a virtual table or a computed column
// would run expressions of the file.
func (s *packageShapes) plain(ctx context.Context, name string) error {
	const query = "SELECT type, sql FROM sqlite_schema WHERE name = ? COLLATE NOCASE AND type IN ('table', 'view')"
	var kind, text string
	switch err := s.conn.QueryRowContext(ctx, query, name).Scan(&kind, &text); {
	case errors.Is(err, sql.ErrNoRows):
		return fault.New(fault.NotFound, "table "+name, fault.NoOffset, "the file has none")
	case err != nil:
		return s.fault(ctx, "sqlite_schema", err)
	case kind != "table" || computed.MatchString(text) || !tableText.MatchString(text):
		return fault.New(fault.Unsupported, "table "+name, fault.NoOffset, "it is a view, or has computed columns")
	}
	return nil
}

// tableText is how the definition of a table begins that is not virtual.
var tableText = regexp.MustCompile(`(?i)^create\s+table\b`)

// sqlName returns a name in SQL.
func sqlName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// fault returns the error for a failed statement: the file's error if it could not be read.
func (s *packageShapes) fault(ctx context.Context, part string, err error) error {
	var f *fault.Error
	switch {
	case err == nil:
		return nil
	case s.file.err != nil:
		return s.file.err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &f):
		return err
	}
	const tooBig, notSQLite = 18, 26 // SQLITE_TOOBIG, SQLITE_NOTADB
	kind := fault.Corrupt
	var e *sqlite.Error
	if errors.As(err, &e) {
		switch e.Code() & 0xff {
		case tooBig:
			kind = fault.Limit
		case notSQLite: // also for an encrypted file
			kind = fault.Unsupported
		}
	}
	return fault.New(kind, part, fault.NoOffset, "%.200v", err)
}

// packageTable is a layer of a GeoPackage.
type packageTable struct {
	name, geometry string
	srs            int64
}

// table finds a layer.
func (s *packageShapes) table(ctx context.Context, name string) (*packageTable, error) {
	const query = "SELECT table_name, column_name, srs_id FROM gpkg_geometry_columns LIMIT 10000"
	rows, err := s.conn.QueryContext(ctx, query)
	if err != nil {
		return nil, s.fault(ctx, "gpkg_geometry_columns", err)
	}
	defer rows.Close()
	var found []packageTable
	var names []string
	for rows.Next() {
		var t packageTable
		if err := rows.Scan(&t.name, &t.geometry, &t.srs); err != nil {
			return nil, s.fault(ctx, "gpkg_geometry_columns", err)
		}
		if len(names) < 100 { // some are enough for an error
			names = append(names, t.name[:min(len(t.name), maxName)])
		}
		if name == "" || t.name == name {
			found = append(found, t)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, s.fault(ctx, "gpkg_geometry_columns", err)
	}
	if err := rows.Close(); err != nil {
		return nil, s.fault(ctx, "gpkg_geometry_columns", err)
	}
	switch {
	case len(found) == 0 && name == "":
		return nil, fault.New(fault.NotFound, "layers", fault.NoOffset, "the file has no shapes")
	case len(found) == 0:
		return nil, fault.New(fault.NotFound, "layer "+name, fault.NoOffset, "the file has none; it has %q", names)
	case len(found) > 1:
		return nil, fault.New(fault.Unsupported, "layers", fault.NoOffset,
			"the file has %d of them, %q: name one, as in FILE.gpkg::%s", len(found), names, found[0].name)
	}
	return &found[0], s.plain(ctx, found[0].name)
}

// crs returns the CRS of a layer, or nil where it is undefined.
func (s *packageShapes) crs(ctx context.Context, id int64) (*crs.CRS, error) {
	if id == 0 || id == -1 {
		return nil, nil
	}
	const part = "gpkg_spatial_ref_sys"
	var organization, definition string
	var code int64
	row := s.conn.QueryRowContext(ctx, "SELECT organization, organization_coordsys_id, definition FROM "+part+
		" WHERE srs_id = ? AND length(definition) <= 100000", id)
	switch err := row.Scan(&organization, &code, &definition); {
	case errors.Is(err, sql.ErrNoRows):
		return nil, fault.New(fault.Corrupt, part, fault.NoOffset, "there is no %d", id)
	case err != nil:
		return nil, s.fault(ctx, part, err)
	}
	if c, ok := crs.ByName(fmt.Sprintf("%s:%d", strings.ToUpper(organization), code)); ok {
		return c, nil
	}
	if c, ok := crs.ByWKT(definition); ok {
		return c, nil
	}
	return nil, fault.New(fault.Unsupported, part, fault.NoOffset, "%.100q:%d (%.100q) is not known", organization,
		code, definition)
}

// scan reads the boxes of all shapes, and the values of the column.
func (s *packageShapes) scan(ctx context.Context, t *packageTable, o *Options) (
	boxes []boxtree.Box, _ *Values, err error) {
	var c *packageCells
	column := ""
	if o.Column != "" {
		c = newPackageCells(o.Column)
		column = ", " + sqlName(o.Column)
	}
	const query = "SELECT rowid, length(%[1]s), substr(%[1]s, 1, %[2]d)%[3]s FROM %[4]s ORDER BY rowid"
	rows, err := s.conn.QueryContext(ctx, fmt.Sprintf(query, sqlName(t.geometry), packageHead, column, sqlName(t.name)))
	if err != nil {
		return nil, nil, s.missing(ctx, t, o.Column, err)
	}
	defer rows.Close()
	var later []int // shapes without an envelope
	var id int64
	var size sql.NullInt64
	var head sql.RawBytes
	var value any
	to := []any{&id, &size, &head, &value}[:3+len(column[:min(len(column), 1)])]
	most := min(o.MaxShapes, s.file.r.Size())
	for rows.Next() {
		row := len(boxes)
		if err := rows.Scan(to...); err != nil {
			return nil, nil, s.fault(ctx, "shapes", err)
		}
		if int64(row) >= most {
			return nil, nil, fault.New(fault.Limit, "shapes", fault.NoOffset, "over %d shapes in a file of %d bytes",
				most, s.file.r.Size())
		}
		const step, each = 1 << 14, 3*16 + 3*8 + 9 // a megabyte; lists double, and the tree has a copy of the boxes
		if row%step == 0 {
			if err := o.Grow(ctx, step*each); err != nil {
				return nil, nil, err
			}
		}
		box := boxtree.Nothing
		if size.Valid {
			b, known, err := envelope(head, size.Int64)
			if err != nil {
				return nil, nil, fault.WithPart(err, fmt.Sprint("shape ", row), fault.NoOffset)
			}
			if box = b; !known {
				later = append(later, row)
			}
		}
		boxes, s.rows = append(boxes, box), append(s.rows, id)
		if c != nil {
			if err := c.add(value); err != nil {
				return nil, nil, err
			}
		}
	}
	if err := rows.Err(); err != nil {
		return nil, nil, s.fault(ctx, "shapes", err)
	}
	if err := rows.Close(); err != nil {
		return nil, nil, s.fault(ctx, "shapes", err)
	}
	for _, row := range later {
		g, err := s.shape(ctx, row)
		if err != nil {
			return nil, nil, err
		}
		w := wkb.Box{MinX: math.Inf(1), MinY: math.Inf(1), MaxX: math.Inf(-1), MaxY: math.Inf(-1)}
		if growBox(&w, g); w.MinX <= w.MaxX && w.MinY <= w.MaxY {
			boxes[row] = boxtree.Around(w.MinX, w.MinY, w.MaxX, w.MaxY)
		}
	}
	if c == nil {
		return boxes, nil, nil
	}
	v, err := c.values()
	return boxes, v, err
}

// missing returns the error about a layer that cannot be selected: it may lack the column.
func (s *packageShapes) missing(ctx context.Context, t *packageTable, column string, err error) error {
	if !strings.Contains(err.Error(), "no such column") || column == "" {
		return s.fault(ctx, "layer "+t.name, err)
	}
	rows, err2 := s.conn.QueryContext(ctx, "SELECT * FROM "+sqlName(t.name)+" LIMIT 0")
	if err2 != nil {
		return s.fault(ctx, "layer "+t.name, err)
	}
	defer rows.Close()
	names, err2 := rows.Columns()
	if err2 != nil || slices.Contains(names, column) {
		return s.fault(ctx, "layer "+t.name, err)
	}
	return fault.New(fault.NotFound, "column "+column, fault.NoOffset, "the layer %s has none; it has %q", t.name,
		names[:min(len(names), 100)])
}

// shape implements shapes.
func (s *packageShapes) shape(ctx context.Context, row int) (orb.Geometry, error) {
	if row < 0 || row >= len(s.rows) {
		return nil, fault.New(fault.NotFound, "shape", fault.NoOffset, "%d of %d", row, len(s.rows))
	}
	page := row / packageRows
	b, ok := s.pages.Get(page)
	if !ok {
		var err error
		if b, err = s.page(ctx, page); err != nil {
			return nil, err
		}
		cost := int64(0)
		for i := range b {
			cost += int64(len(b[i])) + 24
		}
		s.pages.Add(page, b, cost)
	}
	g, err := packageGeometry(b[row%packageRows])
	return g, fault.WithPart(err, fmt.Sprint("shape ", row), fault.NoOffset)
}

// page reads the geometries of some rows.
func (s *packageShapes) page(ctx context.Context, page int) ([][]byte, error) {
	ids := s.rows[page*packageRows : min((page+1)*packageRows, len(s.rows))]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.file.ctx, s.file.err = ctx, nil
	rows, err := s.conn.QueryContext(ctx, s.query, ids[0], ids[len(ids)-1])
	if err != nil {
		return nil, s.fault(ctx, "shapes", err)
	}
	defer rows.Close()
	out := make([][]byte, len(ids))
	at, left := 0, s.file.r.Size()
	for rows.Next() {
		var id int64
		var b []byte
		if err := rows.Scan(&id, &b); err != nil {
			return nil, s.fault(ctx, "shapes", err)
		}
		for at < len(ids) && ids[at] < id {
			at++
		}
		if at == len(ids) || ids[at] != id {
			return nil, fault.New(fault.Corrupt, "shapes", fault.NoOffset, "the row %d was not there before", id)
		}
		// Values of a damaged file may share their pages, so that a few MB would give gigabytes of shapes.
		if left -= int64(len(b)); left < 0 {
			return nil, fault.New(fault.Corrupt, "shapes", fault.NoOffset,
				"%d of them have more bytes than the file", at+1)
		}
		out[at] = b
	}
	return out, s.fault(ctx, "shapes", rows.Err())
}

// packageOrder returns the byte order of a geometry and the size of its header with the envelope, of the first bytes.
func packageOrder(b []byte) (binary.ByteOrder, int, error) {
	if len(b) < 8 || b[0] != 'G' || b[1] != 'P' {
		return nil, 0, fault.New(fault.Corrupt, "geometry", fault.NoOffset, "it does not begin with GP")
	}
	flags := b[3]
	sizes := [...]int{0, 32, 48, 48, 64} // none, xy, xyz, xym, xyzm
	kind := int(flags >> 1 & 7)
	switch {
	case b[2] != 0:
		return nil, 0, fault.New(fault.Unsupported, "geometry", fault.NoOffset, "version %d of GeoPackage's form", b[2])
	case flags&0x20 != 0:
		return nil, 0, fault.New(fault.Unsupported, "geometry", fault.NoOffset, "an extended geometry")
	case kind >= len(sizes):
		return nil, 0, fault.New(fault.Corrupt, "geometry", fault.NoOffset, "an envelope of kind %d", kind)
	}
	if flags&1 == 0 {
		return binary.BigEndian, 8 + sizes[kind], nil
	}
	return binary.LittleEndian, 8 + sizes[kind], nil
}

// envelope returns the box of a geometry of so many bytes by its first ones, and whether they say it.
func envelope(head []byte, size int64) (box boxtree.Box, known bool, err error) {
	order, n, err := packageOrder(head)
	switch {
	case err != nil:
		return boxtree.Nothing, false, err
	case int64(n) > size:
		return boxtree.Nothing, false, fault.New(fault.Corrupt, "geometry", fault.NoOffset, "its envelope ends early")
	case head[3]&0x10 != 0: // it is empty
		return boxtree.Nothing, true, nil
	case n == 8:
		return boxtree.Nothing, false, nil
	}
	var v [4]float64 // minx, maxx, miny, maxy
	for i := range v {
		v[i] = math.Float64frombits(order.Uint64(head[8+8*i:]))
	}
	if !(v[0] <= v[1] && v[2] <= v[3]) || math.IsInf(v[0]-v[1]+v[2]-v[3], 0) {
		return boxtree.Nothing, false, nil // the coordinates themselves are looked at
	}
	return boxtree.Around(v[0], v[2], v[1], v[3]), true, nil
}

// packageGeometry returns the geometry of a value; nil without one.
func packageGeometry(b []byte) (orb.Geometry, error) {
	if b == nil {
		return nil, nil
	}
	_, n, err := packageOrder(b)
	if err != nil {
		return nil, err
	}
	if n > len(b) {
		return nil, fault.New(fault.Corrupt, "geometry", fault.NoOffset, "its envelope ends early")
	}
	if b[3]&0x10 != 0 {
		return nil, nil
	}
	return wkb.Geometry(b[n:])
}

// packageCells collects the values of a column. SQLite has a type for each value, not for a column.
type packageCells struct {
	name   string
	v      Values
	codes  codes
	floats []float64
	kind   string // of the values so far
}

func newPackageCells(name string) *packageCells {
	c := &packageCells{name: name}
	c.codes = codes{v: &c.v, of: map[string]uint32{}}
	return c
}

func (c *packageCells) add(value driver.Value) (err error) {
	null, kind := false, ""
	var whole int64
	var real float64
	var code uint32
	switch v := value.(type) {
	case nil:
		null = true
	case int64:
		kind, whole, real = "whole", v, float64(v)
	case bool: // of columns that are declared as such
		kind = "whole"
		if v {
			whole, real = 1, 1
		}
	case float64:
		kind, real = "real", v
	case string:
		kind = "string"
		code, err = c.codes.code([]byte(v))
	default:
		kind = "blob or time"
	}
	c.v.null = append(c.v.null, null)
	c.v.Ints, c.floats, c.v.Codes = append(c.v.Ints, whole), append(c.floats, real), append(c.v.Codes, code)
	switch {
	case null || kind == c.kind || kind == "whole" && c.kind == "real":
	case kind == "blob or time" || c.kind != "" && (kind == "string" || c.kind == "string"):
		return fault.New(fault.Unsupported, "column "+c.name, fault.NoOffset,
			"a %s: all shapes need numbers, or all strings", kind)
	default:
		c.kind = kind
	}
	return err
}

func (c *packageCells) values() (*Values, error) {
	switch c.kind {
	case "string":
		c.v.Ints = nil
		c.codes.sort()
	case "real":
		c.v.Ints, c.v.Codes, c.v.Floats = nil, nil, c.floats
	default:
		c.v.Codes = nil
	}
	return &c.v, nil
}
