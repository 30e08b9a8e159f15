package loader

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/zeebo/xxh3"
	"golang.org/x/sync/errgroup"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
)

// A file of weights is, little-endian: the 8 bytes of weightsMagic; the length of the header, 4 bytes; the
// header, JSON; for each row of the dataset the height and width of its first asset in pixels, 4 bytes
// each; and for each row the weights of its cells, row by row, 4 bytes each.
const weightsMagic = "CHSKWGT1"

// WeightsHeader says what a file of weights counts.
type WeightsHeader struct {
	Version int `json:"version"`
	// Rows of the dataset.
	Rows int64 `json:"rows"`
	// CellHeight and CellWidth are the size of a cell in pixels of the first raster field.
	CellHeight int `json:"cell_height"`
	CellWidth  int `json:"cell_width"`
	// Field is what was counted; Classes are the values, none for all that are valid.
	Field   string    `json:"field"`
	Classes []float64 `json:"classes,omitempty"`
	// Samples names the rows that were counted: a digest of the paths of their first raster field, without
	// the folder that all share, or of their ids. Files without it are taken for rows of any name.
	Samples string `json:"samples,omitempty"`
}

// weights is a file of weights in memory.
type weights struct {
	WeightsHeader
	sizes []byte
	cells []byte
	ends  []int64 // of the cells of each row; nil where all have as many
	hash  [16]byte
}

// maxWeights bounds a file of weights, which is held in memory, in bytes.
const maxWeights = 2 << 30

// openWeights reads a file of weights for a dataset.
func openWeights(ctx context.Context, path string, o Options, t table) (*weights, error) {
	w, err := readWeights(ctx, path, o)
	if err != nil {
		return nil, fault.WithFile(err, path)
	}
	if w.Rows != t.Len() {
		return nil, fault.WithFile(fault.New(fault.Unsupported, "weights", fault.NoOffset, "of %d rows; the dataset has %d", w.Rows, t.Len()), path)
	}
	if w.Samples == "" {
		return w, nil
	}
	switch samples, err := samplesOf(ctx, t); {
	case err != nil:
		return nil, err
	case samples != "" && samples != w.Samples:
		return nil, fault.WithFile(fault.New(fault.Unsupported, "weights", fault.NoOffset,
			"of other samples, or in another order: count them again, with this run's first raster field first"), path)
	}
	return w, nil
}

// samplesOf returns a digest of the ids of a dataset, in their order and without the folder that all share, or
// nothing where it cannot tell them.
func samplesOf(ctx context.Context, t table) (string, error) {
	c, ok := t.(columns)
	if !ok {
		return "", nil
	}
	folder, first := "", true
	err := c.ScanIDs(ctx, func(_ int64, id string) error {
		if first {
			folder, first = id[:strings.LastIndexByte(id, '/')+1], false
		}
		for !strings.HasPrefix(id, folder) {
			folder = folder[:strings.LastIndexByte(folder[:len(folder)-1], '/')+1]
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	var h xxh3.Hasher
	var b []byte
	err = c.ScanIDs(ctx, func(_ int64, id string) error {
		id = strings.TrimPrefix(id, folder)
		b = append(binary.LittleEndian.AppendUint64(b[:0], uint64(len(id))), id...)
		_, _ = h.Write(b)
		return nil
	})
	sum := h.Sum128()
	return fmt.Sprintf("%016x%016x", sum.Hi, sum.Lo), err
}

func readWeights(ctx context.Context, path string, o Options) (*weights, error) {
	if o.Roots != nil {
		var err error
		if path, err = catalog.Resolve(path, o.Roots); err != nil {
			return nil, err
		}
	}
	f, err := o.Opener.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if f.Size() > maxWeights {
		return nil, fault.New(fault.Limit, "weights", fault.NoOffset, "%d bytes, at most %d", f.Size(), maxWeights)
	}
	b := make([]byte, f.Size())
	if err := f.ReadAt(ctx, b, 0); err != nil {
		return nil, err
	}
	return parseWeights(b)
}

// parseWeights checks all of a file.
func parseWeights(b []byte) (*weights, error) {
	bad := func(off int64, format string, args ...any) error {
		return fault.New(fault.Corrupt, "weights", off, format, args...)
	}
	if len(b) < 12 || string(b[:8]) != weightsMagic {
		return nil, bad(0, "not a file of 'chaski stats --sampling'")
	}
	n := int64(binary.LittleEndian.Uint32(b[8:]))
	rest := b[12:]
	if n > int64(len(rest)) {
		return nil, bad(8, "a header of %d bytes in %d", n, len(rest))
	}
	w := &weights{hash: xxh3.Hash128(b).Bytes()}
	if err := json.Unmarshal(rest[:n], &w.WeightsHeader); err != nil {
		return nil, bad(12, "header: %v", err)
	}
	rest = rest[n:]
	switch {
	case w.Version != 1:
		return nil, fault.New(fault.Unsupported, "weights", 12, "version %d; this is version 1", w.Version)
	case w.CellHeight < 1 || w.CellWidth < 1 || w.CellHeight > spec.MaxWindow || w.CellWidth > spec.MaxWindow:
		return nil, bad(12, "cells of %d by %d pixels", w.CellHeight, w.CellWidth)
	case w.Rows < 0 || w.Rows > int64(len(rest))/8:
		return nil, bad(12, "%d rows in %d bytes", w.Rows, len(rest))
	}
	w.sizes, w.cells = rest[:8*w.Rows], rest[8*w.Rows:]
	end := int64(0)
	w.ends = make([]int64, w.Rows)
	for i := range w.ends {
		h, x := w.size(int64(i))
		if h > math.MaxInt32 || x > math.MaxInt32 {
			return nil, bad(12+n+8*int64(i), "row %d has %d by %d pixels", i, h, x)
		}
		cells := int64(up(h, w.CellHeight)/w.CellHeight) * int64(up(x, w.CellWidth)/w.CellWidth)
		if cells > int64(len(w.cells))/4-end {
			return nil, bad(12+n+8*int64(i), "row %d has cells past the end of the file", i)
		}
		end += cells
		w.ends[i] = end
	}
	if 4*end != int64(len(w.cells)) {
		return nil, bad(fault.NoOffset, "%d bytes of cells, where there should be %d", len(w.cells), 4*end)
	}
	return w, nil
}

func (w *weights) size(row int64) (height, width int) {
	return int(binary.LittleEndian.Uint32(w.sizes[8*row:])), int(binary.LittleEndian.Uint32(w.sizes[8*row+4:]))
}

// of returns the weights of a row's asset, which has height by width pixels.
func (w *weights) of(row int64, height, width int) (*shuffle.Weights, error) {
	switch h, x := w.size(row); {
	case h == 0 || x == 0:
		return nil, nil // it could not be read then
	case h != height || x != width:
		return nil, fault.New(fault.Corrupt, "window", fault.NoOffset, "the asset has %d by %d pixels, and its weights are of one of %d by %d", height, width, h, x)
	}
	first := int64(0)
	if row > 0 {
		first = w.ends[row-1]
	}
	cells := make([]uint32, w.ends[row]-first)
	for i := range cells {
		cells[i] = binary.LittleEndian.Uint32(w.cells[4*(first+int64(i)):])
	}
	out, err := shuffle.NewWeights(cells, w.CellHeight, w.CellWidth, height, width, nil)
	return &out, err
}

// WeightOptions say what Weights counts.
type WeightOptions struct {
	// Field is the raster field that is looked at. Default: the last.
	Field string
	// Classes are the values of the field's first band that count. None: all that are valid.
	Classes []float64
	// Cell is the side of a cell in pixels of the first raster field, at most 65536; it becomes a multiple of
	// what other fields' grids need. Default 64.
	Cell int
}

// Weights counts the valid pixels, or those of some classes, in the cells of every asset, and writes the
// file that the sampler WeightedWindow takes. Samples that cannot be read end it or, with another
// bad-sample policy than "error", have no weight.
func Weights(ctx context.Context, w io.Writer, spec Spec, o Options, c WeightOptions, progress func(done, total int64)) error {
	spec.BatchSize = max(spec.BatchSize, 1)
	spec = spec.WithDefaults()
	if err := spec.Validate(); err != nil {
		return err
	}
	if len(spec.Sources) > 0 {
		return errors.New("spec: the weights of a mixture are those of its sources, one by one")
	}
	o = o.WithDefaults()
	if err := o.Validate(); err != nil {
		return err
	}
	defer o.CloseOpener()
	src := spec.Root()
	t, err := openTable(ctx, src, spec.Fields, o)
	if err != nil {
		return err
	}
	p := &weighing{options: o, spec: spec, table: t, progress: progress}
	err = p.run(ctx, c)
	if err == nil {
		err = p.write(w)
	}
	return errors.Join(err, t.Close())
}

// weighing is one pass of Weights, shared by its workers.
type weighing struct {
	options  Options
	spec     Spec
	table    table
	data     *dataset
	field    *pixels.Raster
	lead     int // column of the first raster field
	head     WeightsHeader
	next     atomic.Int64
	mu       sync.Mutex // guards what follows
	rows     []weighed
	done     int64
	progress func(done, total int64)
}

type weighed struct {
	height, width uint32
	cells         []uint32
}

func (p *weighing) run(ctx context.Context, c WeightOptions) error {
	d := &dataset{fields: spec.RowFields(p.spec.Fields), table: p.table, source: p.spec.Root(), sampler: Sampler{Kind: WholeChip}}
	if p.table.Len() == 0 {
		return fault.WithFile(fault.New(fault.NotFound, "dataset", fault.NoOffset, "no samples"), p.spec.Source)
	}
	for i := range d.fields { // casts do not matter here
		f := &d.fields[i]
		*f = Field{Name: f.Name, Column: f.Column, Blob: f.Blob, Pattern: f.Pattern, DType: "native", Layout: "n b y x"}
	}
	if err := d.compileFields(ctx, p.spec.BadSamples, nil); err != nil {
		return err
	}
	for _, r := range d.rasters {
		if c.Field == "" || r.Name == c.Field {
			p.field = r
		}
	}
	if p.field == nil {
		return fmt.Errorf("spec: no raster field is called %q", c.Field)
	}
	cell := cmp.Or(c.Cell, 64)
	if cell < 1 || cell > spec.MaxWindow {
		return fmt.Errorf("spec: cells of %d pixels, not in 1..%d", cell, spec.MaxWindow)
	}
	p.data, p.lead = d, d.rasters[0].TableColumn
	p.head = WeightsHeader{Version: 1, Rows: p.table.Len(), CellHeight: up(cell, d.alignY), CellWidth: up(cell, d.alignX), Field: p.field.Name, Classes: c.Classes}
	var err error
	if p.head.Samples, err = samplesOf(ctx, p.table); err != nil {
		return err
	}
	p.rows = make([]weighed, p.head.Rows)
	g, ctx := errgroup.WithContext(ctx)
	for range p.options.Workers {
		g.Go(func() error { return p.work(ctx) })
	}
	return g.Wait()
}

func (p *weighing) work(ctx context.Context) error {
	r := pixels.NewReader(p.options)
	for {
		row := p.next.Add(1) - 1
		if row >= p.head.Rows {
			return nil
		}
		w, err := p.weigh(ctx, r, row)
		if err != nil {
			if p.spec.BadSamples == BadError || fault.KindOf(err) == 0 {
				return fmt.Errorf("sample %d: %w", row, err)
			}
			p.options.Logger.Warn("no weights", "sample", row, "error", fault.Line(err))
			w = weighed{}
		}
		p.mu.Lock()
		p.rows[row] = w
		p.done++
		if p.progress != nil {
			p.progress(p.done, p.head.Rows)
		}
		p.mu.Unlock()
	}
}

// weigh counts one asset, some rows of it at a time.
func (p *weighing) weigh(ctx context.Context, r *pixels.Reader, at int64) (w weighed, err error) {
	f := p.field
	lead, err := p.table.Asset(ctx, p.lead, at)
	if err != nil {
		return w, err
	}
	a, err := p.table.Asset(ctx, f.TableColumn, at)
	if err != nil {
		return w, err
	}
	x := a.Index
	if err := f.Fits(x); err != nil {
		return w, a.Fault(err)
	}
	if !f.Ratio.Holds(lead.Index, x) {
		return w, a.Fault(fault.New(fault.Unsupported, "asset", fault.NoOffset, "%d by %d pixels do not share a grid with the first field's", x.Height, x.Width))
	}
	h, wd := lead.Index.Height, lead.Index.Width
	across := up(wd, p.head.CellWidth) / p.head.CellWidth
	w = weighed{uint32(h), uint32(wd), make([]uint32, across*(up(h, p.head.CellHeight)/p.head.CellHeight))}
	cell := f.Ratio.Scale(shuffle.Box{H: p.head.CellHeight, W: p.head.CellWidth})
	rows := max(1, min(x.Height, x.ChunkH, p.options.MaxChunkBytes/(5*x.Width)))
	sub := &pixels.Raster{PickedBands: pixels.PickedBands{Picked: []int{0}}, H: rows, W: x.Width}
	sub.PlaceBands()
	plan, err := pixels.Planes.Plan(sub.Axes(1), nil)
	if err != nil {
		return w, err
	}
	convs := &pixels.Converters{Base: einops.Convert{From: f.Native, To: chunk.Float32}, Nodata: true}
	cv, err := convs.Get(x)
	if err != nil {
		return w, a.Fault(err)
	}
	s := &r.Resample
	s.In, s.InValid = pixels.Grown(s.In, 4*plan.Len()), pixels.Grown(s.InValid, plan.Len())
	for y := 0; y < x.Height; y += rows {
		to := &pixels.Row{Field: sub, Plan: plan, Dst: einops.Target{Data: s.In, Mask: s.InValid}, Cv: cv, Win: shuffle.Box{Y: y, H: rows, W: x.Width}}
		box := pixels.Inside(to.Win, x.Height, x.Width)
		if err := r.Read(ctx, a, box, sub.Picked, to, to.Masked(convs, box)); err != nil {
			return w, err
		}
		for i := range (box.Y1 - y) * x.Width {
			if s.InValid[i] != 0 && p.counts(s.Float(i)) {
				w.cells[(y+i/x.Width)/cell.H*across+i%x.Width/cell.W]++
			}
		}
	}
	return w, nil
}

func (p *weighing) counts(v float32) bool {
	return len(p.head.Classes) == 0 || slices.Contains(p.head.Classes, float64(v))
}

func (p *weighing) write(w io.Writer) error {
	head, err := json.Marshal(p.head)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.WriteString(weightsMagic)
	b.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(head))))
	b.Write(head)
	for _, r := range p.rows {
		b.Write(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, r.height), r.width))
	}
	for _, r := range p.rows {
		for _, c := range r.cells {
			b.Write(binary.LittleEndian.AppendUint32(nil, c))
		}
		if b.Len() > 1<<16 {
			if _, err := b.WriteTo(w); err != nil {
				return err
			}
		}
	}
	_, err = b.WriteTo(w)
	return err
}
