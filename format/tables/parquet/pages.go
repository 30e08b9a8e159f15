package parquet

import (
	"context"
	"hash/crc32"
	"math"
	"sort"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// Page locates one data page.
type Page struct {
	Off   int64 // in the file, of the page's header
	Len   int32 // bytes with the header; 0 if it is not known
	First int64 // its first row, counted from the start of the row group
}

// Pages are the data pages of one column in one row group, in the order of their rows.
type Pages struct {
	Pages []Page
	// Dict locates the dictionary page. Its Off is 0 if the column has none.
	Dict Page
	rows int64
}

// Find returns the number of the page that holds a row of the row group.
func (p *Pages) Find(row int64) int {
	return sort.Search(len(p.Pages), func(i int) bool { return p.Pages[i].First > row }) - 1
}

// Rows returns the number of rows of page i.
func (p *Pages) Rows(i int) int {
	end := p.rows
	if i+1 < len(p.Pages) {
		end = p.Pages[i+1].First
	}
	return int(end - p.Pages[i].First)
}

// Pages locates the pages of a column in a row group: by the offset index, or by reading the headers of all its pages.
// Of a column of lists, Page.First is the first row that begins in a page, or the next row if none does: writers of
// files without an offset index end pages within lists, and only the repetition levels say where rows begin.
func (f *File) Pages(ctx context.Context, group, column int) (*Pages, error) {
	rowGroup, part, col := &f.Groups[group], &f.Groups[group].chunks[column], &f.Columns[column]
	if err := f.readable(part, col); err != nil {
		return nil, err
	}
	pages := &Pages{rows: rowGroup.Rows}
	if part.start < part.dataOff {
		pages.Dict = Page{Off: part.start, Len: clampLen(part.dataOff - part.start)}
	}
	var err error
	switch {
	case rowGroup.Rows == 0:
	case part.indexOff > 0:
		err = f.indexedPages(ctx, pages, part)
	default:
		err = f.walkPages(ctx, pages, part, col)
	}
	if err != nil {
		return nil, fault.WithPart(err, "column "+col.Name, 0)
	}
	for i := range pages.Pages {
		if rows := pages.Rows(i); rows > maxPageValues && !col.Repeated {
			return nil, fault.At(fault.Limit, "column "+col.Name, pages.Pages[i].Off,
				"a page of %d values, at most %d", rows, maxPageValues)
		}
	}
	return pages, nil
}

func clampLen(n int64) int32 {
	if n > math.MaxInt32 {
		return 0
	}
	return int32(n)
}

// readLocation reads a PageLocation. Missing fields are -1.
func readLocation(t *thrift) Page {
	page := Page{Off: -1, Len: -1, First: -1}
	t.fields(&page.Off, &page.Len, &page.First)
	return page
}

// indexedPages reads the offset index.
func (f *File) indexedPages(ctx context.Context, p *Pages, c *columnChunk) error {
	data, err := source.Read(ctx, f.r, c.indexOff, int64(c.indexLen)) // lies within the file, see columnChunk
	if err != nil {
		return err
	}
	index := thrift{b: data, base: c.indexOff, part: "offset index"}
	index.structure(func(id int, typ byte) {
		if id != 1 || typ != tList {
			index.skip(typ)
			return
		}
		index.list(tStruct, func() {
			page := readLocation(&index)
			prev, end := int64(-1), c.start
			if n := len(p.Pages); n > 0 {
				prev, end = p.Pages[n-1].First, p.Pages[n-1].Off+int64(p.Pages[n-1].Len)
			}
			switch {
			case page.Len < 1 || page.Off < end || page.Off > c.end-int64(page.Len):
				index.fail(fault.Corrupt, "a page of %d bytes at %d", page.Len, page.Off)
			case page.First <= prev || prev < 0 && page.First != 0 || page.First >= p.rows:
				index.fail(fault.Corrupt, "page %d starts at row %d", len(p.Pages), page.First)
			default:
				p.Pages = append(p.Pages, page)
			}
		})
	})
	if index.err == nil && len(p.Pages) == 0 {
		index.fail(fault.Corrupt, "no pages for %d rows", p.rows)
	}
	if index.err != nil {
		return index.err
	}
	// Some writers put a dictionary before the data pages and do not record its offset.
	if p.Dict.Off == 0 && p.Pages[0].Off > c.start {
		h, err := f.pageHeader(ctx, c.start, p.Pages[0].Off)
		if err == nil && h.kind == dictionaryPage {
			p.Dict = Page{Off: c.start, Len: clampLen(p.Pages[0].Off - c.start)}
		}
	}
	return nil
}

// walkPages reads every page's header: of lists to the end of the chunk, and of other columns to the last row.
func (f *File) walkPages(ctx context.Context, p *Pages, c *columnChunk, col *Column) error {
	row := int64(0)
	// Of lists all pages are read, because the last list may go on in pages in which no row begins.
	for pos := c.start; row < p.rows || col.Repeated && pos < c.end; {
		if err := ctx.Err(); err != nil {
			return err
		}
		header, err := f.pageHeader(ctx, pos, c.end)
		if err != nil {
			return err
		}
		size := int64(header.head) + int64(header.stored)
		switch header.kind {
		case dictionaryPage:
			if p.Dict.Off != 0 && p.Dict.Off != pos || len(p.Pages) > 0 {
				return fault.At(fault.Corrupt, "page header", pos, "a dictionary that is not at the start")
			}
			p.Dict = Page{Off: pos, Len: clampLen(size)}
		case dataPage, dataPageV2:
			rows := int64(header.values)
			if col.Repeated {
				if rows, err = f.rowsOf(ctx, header, pos, c, col); err != nil {
					return err
				}
			}
			if rows > p.rows-row {
				return fault.At(fault.Corrupt, "page header", pos, "%d rows, but only %d are left", rows, p.rows-row)
			}
			// A page without values would make a second page start at the same row.
			if rows > 0 || col.Repeated {
				p.Pages = append(p.Pages, Page{Off: pos, Len: clampLen(size), First: row})
			}
			row += rows
		}
		pos += size
	}
	return nil
}

// rowsOf returns how many rows begin in a page of lists, by its levels.
func (f *File) rowsOf(ctx context.Context, h pageHeader, pos int64, c *columnChunk, col *Column) (int64, error) {
	stored, err := f.body(ctx, &h, pos)
	if err != nil {
		return 0, err
	}
	levels, _, err := h.readLevels(stored, c, col)
	return levels.rows(int(h.values)), fault.WithPart(err, "", pos)
}

// Kinds of pages. The values are Parquet's.
const (
	dataPage       = 0
	dictionaryPage = 2
	dataPageV2     = 3
)

type pageHeader struct {
	kind           int32
	head           int // bytes of the header itself
	stored, size   int32
	values         int32
	encoding       int32
	defEncoding    int32
	repEncoding    int32
	repLen, defLen int32 // version 2
	plain          bool  // version 2: the values are not compressed
	crc            uint32
	hasCRC         bool
}

// pageHeader reads the header at off. The page must end at or before end. Headers are usually below 256 bytes; one with
// long statistics is read again with eight times as many.
func (f *File) pageHeader(ctx context.Context, off, end int64) (pageHeader, error) {
	for size := int64(256); ; size *= 8 {
		if size > end-off {
			size = end - off
		}
		if size <= 0 {
			return pageHeader{}, fault.At(fault.Corrupt, "page header", off, "the column chunk ends early")
		}
		data, err := source.Read(ctx, f.r, off, size)
		if err != nil {
			return pageHeader{}, err
		}
		header, short, err := parsePageHeader(data, off)
		switch {
		case err == nil:
			return header, header.check(off, end)
		case !short || size == end-off:
			return pageHeader{}, err
		case size >= maxPageHeader:
			return pageHeader{}, fault.At(fault.Limit, "page header", off, "over %d bytes", maxPageHeader)
		}
	}
}

func parsePageHeader(b []byte, off int64) (h pageHeader, short bool, err error) {
	parser := thrift{b: b, base: off, part: "page header"}
	h = pageHeader{kind: -1, stored: -1, size: -1, values: -1}
	crc := func(typ byte) {
		if parser.want(typ, tI32) {
			h.crc, h.hasCRC = uint32(parser.i32()), true
		}
	}
	isCompressed := true
	parser.fields(&h.kind, &h.size, &h.stored, crc,
		parser.inside(&h.values, &h.encoding, &h.defEncoding, &h.repEncoding), nil,
		parser.inside(&h.values, &h.encoding),
		func(typ byte) {
			h.defEncoding, h.repEncoding = encRLE, encRLE
			parser.inside(&h.values, nil, nil, &h.encoding, &h.defLen, &h.repLen, &isCompressed)(typ)
		})
	h.head, h.plain = parser.at, !isCompressed
	return h, parser.short, parser.err
}

func (h *pageHeader) check(off, end int64) error {
	bad := func(k fault.Kind, format string, args ...any) error {
		return fault.At(k, "page header", off, format, args...)
	}
	data := h.kind == dataPage || h.kind == dataPageV2 || h.kind == dictionaryPage
	switch {
	case h.stored < 0 || h.size < 0 || int64(h.stored) > end-off-int64(h.head):
		return bad(fault.Corrupt, "a page of %d bytes, %d stored, in %d", h.size, h.stored, end-off)
	case data && int64(h.size) > max(maxPage, min(maxStoredPage, maxExpansion*int64(h.stored))):
		return bad(fault.Limit, "a page of %d bytes, %d stored: at most %d, or %d times those stored up to %d", h.size,
			h.stored, maxPage, maxExpansion, maxStoredPage)
	case data && h.stored > 2*maxPage && h.stored > h.size+h.size/8: // no codec makes bytes so much longer
		return bad(fault.Limit, "a page of %d stored bytes", h.stored)
	case data && h.values < 0:
		return bad(fault.Corrupt, "%d values", h.values)
	case data && h.values > maxPageValues:
		return bad(fault.Limit, "%d values, at most %d", h.values, maxPageValues)
	case h.kind == dataPageV2 &&
		(h.repLen < 0 || h.defLen < 0 || int64(h.repLen)+int64(h.defLen) > int64(min(h.stored, h.size))):
		return bad(fault.Corrupt, "levels of %d and %d bytes", h.repLen, h.defLen)
	}
	return nil
}

// load reads a page's header and its stored bytes.
func (f *File) load(ctx context.Context, pg Page, end int64) (pageHeader, []byte, error) {
	if pg.Len > 0 {
		end = min(end, pg.Off+int64(pg.Len))
	}
	// Pages of up to 1 MiB, the size that writers aim at, are read in one request, header and body together.
	if n := end - pg.Off; pg.Len > 0 && n <= 1<<20 {
		data, err := f.bytes(ctx, pg.Off, n)
		if err != nil {
			return pageHeader{}, nil, err
		}
		header, _, err := parsePageHeader(data, pg.Off)
		if err == nil {
			err = header.check(pg.Off, end)
		}
		if err != nil {
			return header, nil, err
		}
		stored := data[header.head : header.head+int(header.stored)]
		return header, stored, header.checksum(stored, pg.Off)
	}
	header, err := f.pageHeader(ctx, pg.Off, end)
	if err != nil {
		return header, nil, err
	}
	b, err := f.body(ctx, &header, pg.Off)
	return header, b, err
}

// body reads the stored bytes of the page at an offset.
func (f *File) body(ctx context.Context, h *pageHeader, off int64) ([]byte, error) {
	stored, err := f.bytes(ctx, off+int64(h.head), int64(h.stored))
	if err != nil {
		return nil, err
	}
	return stored, h.checksum(stored, off)
}

func (h *pageHeader) checksum(b []byte, off int64) error {
	if h.hasCRC && crc32.ChecksumIEEE(b) != h.crc {
		return fault.At(fault.Corrupt, "page", off, "its checksum is wrong")
	}
	return nil
}

// Dictionary reads the column's dictionary in a row group, or returns nil if it has none.
func (f *File) Dictionary(ctx context.Context, group, column int, p *Pages) (*Values, error) {
	if p.Dict.Off == 0 {
		return nil, nil
	}
	c, col := &f.Groups[group].chunks[column], &f.Columns[column]
	values, err := f.dictionary(ctx, p.Dict, c, col)
	if err != nil {
		return nil, fault.WithPart(err, "column "+col.Name+" dictionary", 0)
	}
	return values, nil
}

func (f *File) dictionary(ctx context.Context, pg Page, c *columnChunk, col *Column) (*Values, error) {
	header, data, err := f.load(ctx, pg, c.end)
	if err != nil {
		return nil, err
	}
	if header.kind != dictionaryPage || header.encoding != encPlain &&
		header.encoding != encPlainDictionary {
		return nil, fault.At(fault.Corrupt, "page header", pg.Off, "page of kind %d, encoding %d", header.kind,
			header.encoding)
	}
	if data, err = decompress(c.codec, data, int(header.size)); err != nil {
		return nil, fault.WithPart(err, "", pg.Off)
	}
	values := newValues(col, int(header.values))
	if err := values.plain(data, values.n); err != nil {
		return nil, fault.WithPart(err, "", pg.Off)
	}
	return values, nil
}

// Read decodes page i of a column without lists. dict is the dictionary, where the column has one.
func (f *File) Read(ctx context.Context, group, column int, p *Pages, i int, dict *Values) (*Values, error) {
	few, err := f.page(ctx, group, column, p, i, func(few *Few, b []byte, n int, encoding int32) error {
		return few.values.decode(b, n, encoding, dict)
	})
	if err != nil {
		return nil, err
	}
	return few.values, nil
}

// ReadFew decodes page i of a column, also of lists, when few of its rows will be asked for. It calls dict, which
// returns the column's dictionary, or nil if it has none, if the page has indexes of one.
func (f *File) ReadFew(ctx context.Context, group, column int, p *Pages, i int,
	dict func() (*Values, error)) (*Few, error) {
	return f.page(ctx, group, column, p, i, func(few *Few, b []byte, n int, encoding int32) error {
		return few.decode(b, n, encoding, dict)
	})
}

// page reads page i of a column. decode reads its n values that exist.
func (f *File) page(ctx context.Context, group, column int, p *Pages, i int,
	decode func(few *Few, b []byte, n int, encoding int32) error) (*Few, error) {
	chunk, col := &f.Groups[group].chunks[column], &f.Columns[column]
	few := &Few{values: newValues(col, p.Rows(i)), column: col.Name, off: p.Pages[i].Off}
	header, stored, err := f.load(ctx, p.Pages[i], chunk.end)
	if err == nil && header.kind != dataPage && header.kind != dataPageV2 {
		return nil, fault.At(fault.Corrupt, "column "+col.Name+" page header", few.off, "page of kind %d", header.kind)
	}
	if err == nil {
		err = fault.WithPart(few.read(&header, stored, chunk, col, decode), "", few.off)
	}
	if err != nil {
		return nil, fault.WithPart(err, "column "+col.Name, 0)
	}
	return few, nil
}

// read decodes the bytes of a page. values has the number of its rows.
func (f *Few) read(h *pageHeader, stored []byte, c *columnChunk, col *Column,
	decode func(few *Few, b []byte, n int, encoding int32) error) error {
	if !col.Repeated && int(h.values) != f.values.n {
		return fault.At(fault.Corrupt, "page header", 0, "%d values for %d rows", h.values, f.values.n)
	}
	rep, def, data, err := h.splitLevels(stored, c.codec, col.Repeated, col.defLevel > 0)
	if err != nil {
		return err
	}
	var count int
	if col.Repeated {
		count, err = f.begin(h, rep, def, col)
	} else {
		count, err = f.values.nulls(def, col.defLevel, h.defEncoding)
	}
	if err != nil {
		return err
	}
	return decode(f, data, count, h.encoding)
}
