package raster

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/internal/each"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/internal/pages"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

// Selection picks indices of an axis: all of them, a half-open slice, or a list in its own order.
type Selection struct {
	Slice       bool
	Start, Stop int   // with Slice
	List        []int // if not nil, these indices
}

// ParseSelection reads "start:stop", "i,j,k" or "" (all). Any other text is an error without a
// kind.
func ParseSelection(s string) (Selection, error) {
	if s == "" {
		return Selection{}, nil
	}
	if a, b, ok := strings.Cut(s, ":"); ok {
		start, err1 := strconv.Atoi(a)
		stop, err2 := strconv.Atoi(b)
		if err1 != nil || err2 != nil {
			return Selection{}, fmt.Errorf("selection %q is not start:stop", s)
		}
		return Selection{Slice: true, Start: start, Stop: stop}, nil
	}
	sel := Selection{List: []int{}}
	for part := range strings.SplitSeq(s, ",") {
		i, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil {
			return Selection{}, fmt.Errorf("selection %q is not a list of indices", s)
		}
		sel.List = append(sel.List, i)
	}
	return sel, nil
}

// Indices returns the picked indices of an axis of length n. An index or slice outside of the axis
// is a fault of kind not found.
func (s Selection) Indices(axis string, n int) ([]int, error) {
	if s.List == nil {
		start, stop, err := s.bounds(axis, n)
		if err != nil {
			return nil, err
		}
		return num.Range[int](start, stop), nil
	}
	for _, i := range s.List {
		if i < 0 || i >= n {
			return nil, fault.New(fault.NotFound, "axis "+axis, "index %d: indices are 0 to %d", i, n-1)
		}
	}
	if len(s.List) == 0 {
		return nil, fault.New(fault.NotFound, "axis "+axis, "an empty list of indices")
	}
	return s.List, nil
}

// bounds returns the start and end of a slice of an axis of length n, or of all of it.
func (s Selection) bounds(axis string, n int) (start, stop int, err error) {
	if !s.Slice {
		s.Start, s.Stop = 0, n
	}
	if s.Start < 0 || s.Stop > n || s.Start >= s.Stop {
		return 0, 0, fault.New(fault.NotFound, "axis "+axis,
			"slice %d:%d: it must lie in 0:%d and not be empty", s.Start, s.Stop, n)
	}
	return s.Start, s.Stop, nil
}

// ReadOptions say what Read reads, and in which layout.
type ReadOptions struct {
	// Layout is an einops pattern. Default "b y x" for one path, "n b y x" for several; "t b y x" and
	// "n t b y x" for files with an axis of time, also of one step.
	Layout string
	Sizes  map[string]int
	// N picks paths, T steps of time, B bands, Y rows and X columns. Y and X accept no lists.
	N, T, B, Y, X Selection
	// Corners are the row and column of the window of each path, whose files may then differ in height and width. Y
	// and X then give the size of all windows.
	Corners [][2]int
	// Overview, if it is not nil, reads an overview of each path in place of the raster: 0 is the largest, as in
	// GDAL. Y, X and Corners count its pixels. A raster without overviews has the ones of the file PATH.ovr.
	Overview *int
	// Headers are header blobs (rumi or chunk index): one for each path, or none.
	Headers [][]byte
	// Threads is how many goroutines decode. Default 1.
	Threads int
	// MaxBytes bounds the result in bytes. Default DefaultMaxBytes. Otherwise a small file could
	// fill the memory: sparse chunks and equal samples take almost no bytes in a file.
	MaxBytes int64
	// Validity asks for Array.Valid. It does not change Array.Data.
	Validity bool
	// Alloc, if it is not nil, allocates the memory of Array.Data: n bytes or more with any content, or nil if Read is
	// to allocate it itself. Options.Budget is charged all the same. It is not used with Validity.
	Alloc func(n int) batch.Buffer
	// Options for opening files. Workers, MemoryBytes and Alloc are not used.
	Options resources.Options
}

// Array is a dense array in C order, little-endian.
type Array struct {
	DType chunk.DType
	Shape []int
	Axes  []string
	Data  []byte
	Valid []byte // with ReadOptions.Validity: one byte for each element, 0 for nodata and masked pixels, else 1

	account *budget.Account // of Data and Valid
	pages   *pages.Memory   // of Data and Valid, if it is not of the heap
	memory  batch.Buffer    // of Data, if ReadOptions.Alloc made it
}

// Memory returns the buffer that holds Data, or nil if ReadOptions.Alloc did not make it.
func (a *Array) Memory() batch.Buffer { return a.memory }

// Release gives the memory of the array back to ReadOptions.Options.Budget. Data and Valid, and slices of them that the
// caller has kept, must not be used afterwards: an access may end the process. Memory of the Go heap stays until it is
// collected. Release may be called more than once.
func (a *Array) Release() {
	if a.pages != nil {
		a.Data, a.Valid = nil, nil
		a.pages.Free() // before others may allocate as much
	}
	if a.memory != nil {
		a.Data = nil
		a.memory.Free()
		a.memory = nil
	}
	a.account.Close()
}

// Read decodes windows of one file, or of several files of equal shape and dtype stacked along n.
// Errors about files are fault errors; errors about the options have no kind.
func Read(ctx context.Context, paths []string, o ReadOptions) (*Array, error) {
	o.Options = o.Options.WithDefaults()
	defer o.Options.CloseOpener()
	plan, err := newReadPlan(ctx, paths, o)
	if err != nil {
		return nil, err
	}
	if plan.out.account, err = o.Options.Budget.Open(ctx, plan.bytes()); err != nil {
		return nil, fault.WithFile(err, plan.assets[0].URI)
	}
	// The charge must be given back even if run panics.
	done := false
	defer func() {
		if !done {
			plan.out.Release()
		}
	}()
	array, err := plan.run(ctx)
	if err != nil {
		return nil, err
	}
	array.account.Shrink(plan.working) // the array is all that stays
	done = true
	return array, nil
}

// bytes returns the memory that the read needs: the array, the indexes, and what each thread holds.
func (q *readPlan) bytes() int64 {
	array := int64(q.plan.Len()) * int64(q.out.DType.Size())
	if q.field.Validity != "" {
		array += int64(q.plan.Len())
	}
	largest := 0
	for _, a := range q.assets {
		largest = max(largest, min(a.Index.MaxDecodedBytes(), q.options.MaxChunkBytes))
	}
	// A thread holds the stored bytes of a run, or of a chunk if it is larger, and one decoded chunk.
	thread := int64(largest) + max(int64(largest), pixels.MaxRun)
	// A copy, because Readers changes it.
	o := q.options
	q.working = q.indexes + int64(o.Readers(q.threads, q.remote()))*thread
	return array + q.working
}

// remote reports whether an asset is of a store.
func (q *readPlan) remote() bool {
	return slices.ContainsFunc(q.assets, func(a catalog.Asset) bool { return a.Remote() })
}

// readPlan is a Read, resolved for the shape of the files.
type readPlan struct {
	options resources.Options
	threads int
	assets  []catalog.Asset // one for each picked path
	field   *pixels.Raster
	plan    *einops.Plan
	win     shuffle.Box
	corners [][2]int // of assets; nil where all have the window win
	out     *Array
	indexes int64 // bytes of the assets' chunk indexes
	working int64 // bytes of all that is not the array
	alloc   func(n int) batch.Buffer
}

// DefaultMaxBytes is the default of ReadOptions.MaxBytes: 2 GiB.
const DefaultMaxBytes = 2 << 30

// maxReadIndexes bounds the bytes of chunk indexes that one Read holds: 256 MiB are 16 million
// chunks of rangeBytes.
const maxReadIndexes = 256 << 20

// rangeBytes is the memory of one chunk in an index: an offset and a length of 8 bytes.
const rangeBytes = 16

// newReadPlan opens the files and resolves the selections. o.Options must have its defaults.
func newReadPlan(ctx context.Context, paths []string, o ReadOptions) (*readPlan, error) {
	made := &readPlan{options: o.Options, threads: max(o.Threads, 1), alloc: o.Alloc}
	if o.Y.List != nil || o.X.List != nil {
		return nil, fmt.Errorf("axes y and x take a slice start:stop, not a list")
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no path")
	}
	if o.Headers != nil && len(o.Headers) != len(paths) {
		return nil, fmt.Errorf("%d headers for %d paths", len(o.Headers), len(paths))
	}
	if o.Corners != nil && len(o.Corners) != len(paths) {
		return nil, fmt.Errorf("%d windows for %d paths", len(o.Corners), len(paths))
	}
	if o.Headers != nil && o.Overview != nil {
		return nil, fmt.Errorf("an overview of files whose headers are given: headers do not describe overviews")
	}
	picks, err := o.N.Indices("n", len(paths))
	if err != nil {
		return nil, err
	}
	for _, i := range picks {
		if o.Corners != nil {
			made.corners = append(made.corners, o.Corners[i])
		}
	}
	if err := made.open(ctx, paths, picks, &o); err != nil {
		return nil, err
	}
	if err := made.resolve(o, len(paths)); err != nil {
		return nil, fault.WithFile(err, made.assets[0].URI)
	}
	return made, nil
}

// open opens the picked paths, each once, and checks that they stack.
func (q *readPlan) open(ctx context.Context, paths []string, picks []int, o *ReadOptions) error {
	headers := o.Headers
	type name struct{ path, header string }
	opened := map[name]catalog.Asset{}
	held := 0
	for _, i := range picks {
		given := name{path: paths[i]}
		if headers != nil {
			given.header = string(headers[i])
		}
		asset, ok := opened[given]
		if !ok {
			var err error
			if headers != nil {
				asset, err = withHeader(ctx, q.options, given.path, given.header)
			} else {
				asset, err = One(ctx, q.options, given.path)
			}
			if err == nil && o.Overview != nil {
				asset, err = atOverview(ctx, q.options, asset, *o.Overview)
			}
			if err != nil {
				return fault.WithFile(err, given.path)
			}
			held += len(asset.Index.Ranges) * rangeBytes
			if asset.Index.Mask != nil {
				held += len(asset.Index.Mask.Ranges) * rangeBytes
			}
			if held > maxReadIndexes {
				return fault.WithFile(fault.New(fault.Limit, "chunk index",
					"the indexes of %d files are over %d bytes", len(opened), maxReadIndexes), given.path)
			}
			opened[given] = asset
		}
		first := asset
		if len(q.assets) > 0 {
			first = q.assets[0]
		}
		index, x := first.Index, asset.Index
		if index.DType != x.DType || index.Bands != x.Bands || index.Times != x.Times ||
			q.corners == nil && (index.Height != x.Height || index.Width != x.Width) {
			return fault.WithFile(fault.New(fault.Unsupported, "stack",
				"%s does not stack with the first asset's %s", shapeOf(x), shapeOf(index)), paths[i])
		}
		q.assets = append(q.assets, asset)
	}
	q.indexes = int64(held)
	return nil
}

// shapeOf returns the shape and the dtype of an image, for errors.
func shapeOf(x *chunk.Index) string {
	if x.Times > 0 {
		return fmt.Sprintf("(%d, %d, %d, %d) %s", x.Times, x.StepBands(), x.Height, x.Width, x.DType)
	}
	return fmt.Sprintf("(%d, %d, %d) %s", x.Bands, x.Height, x.Width, x.DType)
}

// withHeader returns a raster file whose header the caller has, so it is not read.
func withHeader(ctx context.Context, o resources.Options, path, header string) (catalog.Asset, error) {
	path, err := o.Resolve(path)
	if err != nil {
		return catalog.Asset{}, err
	}
	index, err := catalog.ParseIndex([]byte(header), o.MaxChunkBytes)
	if err == nil {
		err = catalog.CheckRaster(ctx, o.Opener, path, 0)
	}
	return catalog.Asset{URI: path, Index: index}, err
}

// resolve resolves the selections and the layout. It fails with kind limit if the result is over
// MaxBytes.
func (q *readPlan) resolve(o ReadOptions, paths int) error {
	bands, err := o.B.Indices("b", q.assets[0].Index.StepBands())
	if err != nil {
		return err
	}
	if o.B.Slice || o.B.List != nil {
		for i, asset := range q.assets {
			q.assets[i] = rows.PickedAsData(bands, asset)
		}
	}
	index := q.assets[0].Index
	times, err := o.T.Indices("t", index.Steps())
	if err != nil {
		return err
	}
	if err := q.windows(o); err != nil {
		return err
	}
	layout := o.Layout
	if layout == "" {
		layout = "b y x"
		if index.Times > 0 {
			layout = "t b y x"
		}
		if paths > 1 {
			layout = "n " + layout
		}
	}
	field := spec.Field{Name: "read", Bands: bands, Times: times, DType: "native", Layout: layout, Sizes: o.Sizes}
	limit := o.MaxBytes
	if limit == 0 {
		limit = DefaultMaxBytes
	}
	size := index.DType.Size()
	if o.Validity {
		field.Validity, size = "valid", size+1
	}
	if q.field, err = pixels.NewRaster(field, 0, index); err != nil {
		return err
	}
	q.field.H, q.field.W = q.win.H, q.win.W
	if pixels.BoundedBytes(limit, len(q.assets), len(times), len(bands), q.win.H, q.win.W, size) < 0 {
		return fault.New(fault.Limit, "array", "(%d, %d, %d, %d, %d) %s is over %d bytes",
			len(q.assets), len(times), len(bands), q.win.H, q.win.W, index.DType, limit)
	}
	if q.plan, err = q.field.LayoutPattern.Plan(q.field.Axes(len(q.assets)), o.Sizes); err != nil {
		return err
	}
	q.out = &Array{DType: index.DType, Shape: q.plan.Shape, Axes: q.plan.Axes}
	return nil
}

// windows resolves the selections of rows and columns.
func (q *readPlan) windows(o ReadOptions) error {
	assets := q.assets
	if q.corners == nil {
		assets = assets[:1]
	}
	for i, asset := range assets {
		rows, columns := o.Y, o.X
		if q.corners != nil {
			// No overflow, because a corner is a uint32 on the wire, and in Go a caller's own number.
			rows.Start, rows.Stop = rows.Start+q.corners[i][0], rows.Stop+q.corners[i][0]
			columns.Start, columns.Stop = columns.Start+q.corners[i][1], columns.Stop+q.corners[i][1]
			if !rows.Slice || !columns.Slice {
				return fmt.Errorf("windows need y and x, which are their size")
			}
		}
		top, bottom, err := rows.bounds("y", asset.Index.Height)
		if err != nil {
			return fault.WithFile(err, asset.URI)
		}
		left, right, err := columns.bounds("x", asset.Index.Width)
		if err != nil {
			return fault.WithFile(err, asset.URI)
		}
		if i == 0 {
			q.win = shuffle.Box{Y: top, X: left, H: bottom - top, W: right - left}
		}
	}
	return nil
}

// window returns the window of asset n.
func (q *readPlan) window(n int) shuffle.Box {
	window := q.win
	if q.corners != nil {
		window.Y += q.corners[n][0] - q.corners[0][0]
		window.X += q.corners[n][1] - q.corners[0][1]
	}
	return window
}

// piece is the unit of work of a thread: one row of chunks of an asset, or its whole window if there is only one
// thread.
type piece struct {
	n   int
	box chunk.Box
}

// run decodes the pieces into the result.
func (q *readPlan) run(ctx context.Context) (*Array, error) {
	for _, a := range q.assets {
		if err := q.present(ctx, a); err != nil {
			return nil, a.Fault(err)
		}
	}
	// The result's memory is allocated only after every byte range was found inside of its file,
	// otherwise a small file with invented ranges would claim it.
	if err := q.allocate(); err != nil {
		return nil, q.assets[0].Fault(err)
	}
	if readers := q.options.Readers(q.threads, q.remote()); readers > 1 {
		return q.out, each.Share(ctx, q.pieces(), readers, q.decode)
	}
	// A chip is decoded in less time than it takes to hand it to another goroutine and to wait for that.
	return q.out, q.decode(ctx, 0, q.pieces())
}

// decode decodes pieces with one reader, as each.Share calls it.
func (q *readPlan) decode(ctx context.Context, _ int, pieces iter.Seq[piece]) error {
	reader := pixels.BorrowReader(q.options)
	reader.Client = resources.CallerOf(ctx).Client
	err := crash.Call(func() error {
		reader.Work()
		defer reader.Rest()
		for p := range pieces {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := q.read(ctx, reader, p); err != nil {
				return err
			}
		}
		return nil
	})
	if !crash.Is(err) { // a panic may have left the reader half changed
		reader.GiveBack()
	}
	return err
}

// allocate makes the memory of the result. With a budget, large memory is outside of the heap, so that Release frees it
// at once instead of the next garbage collection.
func (q *readPlan) allocate() error {
	size, valid := q.plan.Len()*q.out.DType.Size(), 0
	if q.field.Validity != "" {
		valid = q.plan.Len()
	}
	if q.alloc != nil && valid == 0 {
		if m := q.alloc(size); m != nil {
			q.out.memory, q.out.Data = m, m.Bytes()[:size:size]
			return nil
		}
	}
	if q.options.Budget == nil || size+valid < pages.Worth {
		q.out.Data = cast.Aligned(size)
		if valid > 0 {
			q.out.Valid = make([]byte, valid)
		}
		return nil
	}
	memory, err := pages.New(size + valid)
	if err != nil {
		return fault.New(fault.Limit, "memory", "no %d bytes for the array: %v", size+valid, err)
	}
	data := memory.Bytes()
	q.out.pages, q.out.Data = memory, data[:size:size]
	if valid > 0 {
		q.out.Valid = data[size:]
	}
	return nil
}

// present checks the byte ranges of an asset against the size of its file.
func (q *readPlan) present(ctx context.Context, a catalog.Asset) error {
	if a.Index.OfArray() { // its chunks are in objects of their own, and are checked when they are read
		return a.Index.Validate(-1, q.options.MaxChunkBytes)
	}
	if a.Bytes != nil {
		return a.Index.Validate(a.Offset+int64(len(a.Bytes)), q.options.MaxChunkBytes)
	}
	file, err := source.OpenKnown(ctx, q.options.Opener, a.URI, a.Known())
	if err != nil {
		return err
	}
	defer file.Close()
	index := *a.Index
	if a.MaskFile != nil {
		index.Mask = nil // its ranges are checked when they are read
	}
	return index.Validate(file.Size(), q.options.MaxChunkBytes)
}

// pieces returns the pieces of all assets, in their order.
func (q *readPlan) pieces() iter.Seq[piece] {
	return func(yield func(piece) bool) {
		for place, asset := range q.assets {
			box := pixels.Inside(q.window(place), asset.Index.Height, asset.Index.Width)
			for line := box.Y0; line < box.Y1; {
				part := box
				part.Y0 = line
				// A piece ends with a row of chunks, so no two threads decode the same chunk.
				if q.threads > 1 {
					part.Y1 = min((line/asset.Index.ChunkH+1)*asset.Index.ChunkH, box.Y1)
				}
				if !yield(piece{place, part}) {
					return
				}
				line = part.Y1
			}
		}
	}
}

// read decodes a piece into the result.
func (q *readPlan) read(ctx context.Context, r *pixels.Reader, p piece) error {
	asset := q.assets[p.n]
	cv, err := q.field.Final.Get(asset.Index, &q.field.PickedBands)
	if err != nil {
		return err
	}
	row := &pixels.Row{Field: q.field, Plan: q.plan, Dst: einops.Target{Data: q.out.Data, Mask: q.out.Valid}, Cv: cv,
		N: p.n, Win: q.window(p.n)}
	return r.Read(ctx, asset, p.box, q.field.Picked, row, row.Masked(q.field.Final, p.box))
}
