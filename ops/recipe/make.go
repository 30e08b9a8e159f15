package recipe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/inorder"
	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/internal/procs"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/ops/columns"
	"github.com/chaski-eo/chaski/ops/convert"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/taco/build"
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tiff"
)

// Options configure Make. The zero value selects the defaults.
type Options struct {
	// Base is the directory that relative paths of the recipe start from. Default: the working directory.
	Base string
	// Output is the form of the container. A container in parts is a folder of ZIPs with an index.
	Output
	// Loader has the options for reading. Loader.Workers is also the number of chips that are encoded at a time. The
	// container does not depend on it.
	Loader loader.Options
	// Progress is called after every window, from one goroutine at a time.
	Progress func(done, total int64)
}

// Output is the form of a container and, as in build.Options, the parts that it is divided into, and where it is.
type Output struct {
	Form      build.Form
	PartBytes int64
	// Store is where the container is written, whose path is then a URI. The default is the local disk. A ZIP and a
	// folder are written to it while the chips are made, and other forms are made in the directory for temporary files
	// first.
	Store build.Store
}

// whole returns the form that the container has or, in parts, that it would have without them.
func (o *Output) whole(path string) build.Form { return cmp.Or(o.Form, build.FormOf(path)) }

// Result has the counts of a run.
type Result struct {
	build.Result
	Windows    int64 // that the sampler gave: the samples, and those left out below
	Bad        int64 // that could not be read
	Misplaced  int64 // whose rasters do not lie together
	Empty      int64 // with too much nodata
	Unlabelled int64 // with too few pixels of the classes
	// Moved is how many valid samples had the nodata value of their chip and got the next value instead.
	Moved int64
	First error // the reason of the first bad or misplaced sample, or nil
}

// Make makes the container that a recipe describes. It appears at path when it is complete: an error or a kill leaves
// an old container unchanged. The same recipe on the same source gives the same bytes.
func Make(ctx context.Context, r *Recipe, path string, o Options) (*Result, error) {
	if err := r.writable(ctx, path, &o); err != nil {
		return nil, err
	}
	m, err := Open(ctx, r, o)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	return m.write(ctx, path, m.samples)
}

// write writes a container of the chips that samples hands to put.
func (m *Maker) write(ctx context.Context, path string,
	samples func(ctx context.Context, put func(*build.Sample) error) (*Result, error)) (left *Result, err error) {
	options := build.Options{Form: m.options.whole(path), PartBytes: m.options.PartBytes, Workers: m.workers,
		Opener: m.options.Loader.Opener, Store: m.options.Store, Bytes: m.engine.Len() * m.engine.BatchBytes()}
	if options.Form == build.StreamingTaco {
		// Files of its own, because the opener of the options may see other folders only.
		files := &source.Files{}
		defer func() { err = errors.Join(err, files.Close()) }()
		c := &columns.Compute{Workers: m.workers}
		c.Stream(&options, files)
		options.Inspect = c.Inspect
	}
	run := func(sink *build.Sink) (build.Collection, []*tables.Table, error) {
		collection, err := m.recipe.collection()
		if err != nil {
			return build.Collection{}, nil, err
		}
		if left, err = samples(ctx, sink.Put); err != nil {
			return build.Collection{}, nil, err
		}
		levels, err := m.columns(ctx)
		return *collection, levels, err
	}
	written, err := build.Stream(ctx, path, options, run)
	if err != nil {
		return nil, err
	}
	left.Result = *written
	return left, nil
}

// Writable returns an error, before the work, if the container cannot be written to a path.
func (m *Maker) Writable(ctx context.Context, path string) error {
	return m.recipe.writable(ctx, path, &m.options)
}

// writable returns an error, before the work, if the recipe cannot be written to a path.
func (r *Recipe) writable(ctx context.Context, path string, o *Options) error {
	form := o.whole(path)
	target := build.Options{Form: form, PartBytes: o.PartBytes, Store: o.Store}
	if err := build.Writable(ctx, path, target); err != nil {
		return err
	}
	collection, err := r.collection()
	if err == nil {
		err = collection.CheckFor(form)
	}
	if err != nil || form != build.StreamingTaco {
		return fault.WithFile(err, path)
	}
	for i := range r.Fields {
		if f := &r.Fields[i]; f.Codec.Format != convert.TOG {
			return fault.WithFile(fault.New(fault.Unsupported, "field "+f.Name, fault.NoOffset,
				"its codec is %s: a streaming TACO has TOGs", f.Codec.Format), path)
		}
	}
	return nil
}

// Maker makes the chips of one recipe.
type Maker struct {
	recipe  *Recipe
	options Options
	files   *source.Files // that Options.Loader did not have
	engine  *loader.Engine
	workers int
	data    *tables.Table // the columns of the source; nil if the recipe needs none
	names   []carried     // of data, the columns that the container gets
	groups  *tables.Vector
	split   shuffle.Split
	metas   *lru.Cache[string, *tiff.Meta]
	spaces  sync.Pool // of a *columns.Summarizer, to measure a chip in
	table   table     // of the chips that were written
	ids     ids
}

// metaBytes bounds the headers that are kept: windows of a scene follow each other, so that few are needed at a time.
// A header takes less than 4 KiB without its index, so that these are 1,000.
const (
	metaBytes = 4 << 20
	metaCost  = 4 << 10
)

// Open opens the source of a recipe.
func Open(ctx context.Context, r *Recipe, o Options) (_ *Maker, err error) {
	run, err := r.spec(o.Base)
	if err != nil {
		return nil, fmt.Errorf("recipe: %w", err)
	}
	maker := &Maker{recipe: r, options: o, workers: cmp.Or(o.Loader.Workers, procs.Workers()),
		metas: lru.New[string, *tiff.Meta](metaBytes), ids: ids{map[string]int{}}}
	if o.Loader.Opener == nil {
		maker.files = &source.Files{}
		maker.options.Loader.Opener = maker.files
	}
	maker.options.Loader.AllColumns = len(r.Columns) > 0 || r.Split != nil && r.Split.By == "column"
	defer func() {
		if err != nil {
			maker.Close()
		}
	}()
	if maker.engine, err = loader.Open(ctx, run, maker.options.Loader); err != nil {
		return nil, err
	}
	if err := maker.openColumns(ctx); err != nil {
		return nil, err
	}
	maker.spaces.New = func() any { return &columns.Summarizer{} }
	return maker, nil
}

// Close ends the use of the source. Its files were only read, so that there is no error to tell.
func (m *Maker) Close() {
	if m.engine != nil {
		_ = m.engine.Close()
	}
	if m.files != nil {
		_ = m.files.Close()
	}
}

// samples makes all chips and hands them to put.
func (m *Maker) samples(ctx context.Context, put func(*build.Sample) error) (*Result, error) {
	windows := m.engine.Len()
	res := &Result{Windows: windows}
	err := m.windows(ctx, 0, windows, func(i int64, c *chip) error {
		if err := m.take(c, put, res); err != nil {
			return err
		}
		m.progress(i+1, windows)
		return nil
	})
	if err == nil {
		err = m.finish(res)
	}
	return res, err
}

func (m *Maker) progress(done, total int64) {
	if m.options.Progress != nil {
		m.options.Progress(done, total)
	}
}

// openColumns reads the columns of the source that the recipe needs.
func (m *Maker) openColumns(ctx context.Context) (err error) {
	recipe := m.recipe
	byColumn := recipe.Split != nil && recipe.Split.By == "column"
	if len(recipe.Columns) > 0 || byColumn {
		if m.data, err = m.engine.Data(ctx); err != nil {
			return err
		}
		source := m.engine.Spec().Source
		container := len(recipe.Parts) > 0 || store.Is(ctx, m.options.Loader.Opener, source, store.Container)
		if err := m.choose(container); err != nil {
			return err
		}
	}
	if recipe.Split == nil {
		return nil
	}
	if m.split, err = recipe.Split.hash(); err == nil && byColumn {
		m.groups, err = m.data.Column(ctx, recipe.Split.Column)
	}
	return err
}

// windows makes the chips of the windows from begin to end, and hands them to use in their order.
func (m *Maker) windows(ctx context.Context, begin, end int64, use func(i int64, c *chip) error) error {
	return inorder.Do(ctx, int(end-begin), m.workers,
		func(ctx context.Context, i int) (*chip, error) { return m.chip(ctx, begin+int64(i)) },
		func(i int, c *chip) error { return use(begin+int64(i), c) }, func(*chip) {})
}

// count returns the number of windows that are left out for a reason.
func (r *Result) count(left int) *int64 {
	return [...]*int64{bad: &r.Bad, misplaced: &r.Misplaced, empty: &r.Empty, unlabelled: &r.Unlabelled}[left]
}

// LeftOut says for people how many windows have no chip, and why the first has none. It is "" if all have one.
func (r *Result) LeftOut() string {
	left := r.Bad + r.Misplaced + r.Empty + r.Unlabelled
	if left == 0 {
		return ""
	}
	why := ""
	if r.First != nil {
		why = "; the first: " + fault.Line(r.First)
	}
	return fmt.Sprintf("%d of %d windows are left out: %s%s", left, r.Windows, r.reasons(), why)
}

// Remarks says for people what a run left out or changed.
func (r *Result) Remarks() (out []string) {
	if line := r.LeftOut(); line != "" {
		out = append(out, line)
	}
	if r.Moved > 0 {
		out = append(out, fmt.Sprintf("%d valid samples had the nodata value of their chip: they got the next value",
			r.Moved))
	}
	return out
}

// reasons says for people how many windows have no chip for which reason.
func (r *Result) reasons() string {
	s := fmt.Sprintf("%d cannot be read, %d do not lie together, %d have too much nodata", r.Bad, r.Misplaced, r.Empty)
	if r.Unlabelled > 0 {
		s += fmt.Sprintf(", %d have too few pixels of the classes", r.Unlabelled)
	}
	return s
}

// finish returns an error if the run kept no chip, and completes the result.
func (m *Maker) finish(res *Result) error {
	if m.table.len() == 0 {
		err := fault.New(fault.NotFound, "chips", fault.NoOffset, "none is left of %d windows: %s", res.Windows,
			res.reasons())
		err.Err = res.First
		return err
	}
	for _, files := range m.table.files {
		for i := range files {
			res.Moved += files[i].Moved
		}
	}
	return nil
}

// take writes a chip, or counts why it is left out.
func (m *Maker) take(c *chip, put func(*build.Sample) error, res *Result) error {
	if c.Left != kept {
		*res.count(c.Left)++
		res.First = cmp.Or(res.First, c.why)
		return nil
	}
	sample := &build.Sample{ID: m.ids.of(c, m.recipe)}
	if len(c.Files) == 1 {
		sample.Bytes = c.Files[0].Bytes
	} else {
		sample.Children = &build.Tortilla{}
		for i := range c.Files {
			below := build.Sample{ID: m.recipe.Fields[i].Name, Bytes: c.Files[i].Bytes}
			sample.Children.Samples = append(sample.Children.Samples, below)
		}
	}
	if err := put(sample); err != nil {
		return err
	}
	m.table.add(c)
	return nil
}

// ids makes the ids of samples.
type ids struct{ taken map[string]int }

// noSecrets removes what fault.WithoutSecrets leaves of a user and a query.
var noSecrets = strings.NewReplacer("…@", "", "?…", "")

// of returns the id of a chip: the id of its source without the extension and without what ids must not hold, then the
// window, and a number if it was drawn before.
func (s *ids) of(c *chip, r *Recipe) string {
	id := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || strings.ContainsRune(`/\:`, r) {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(noSecrets.Replace(c.Source), "_"))
	for _, ext := range []string{".tif", ".tiff", ".rumi"} {
		id = strings.TrimSuffix(id, ext)
	}
	switch file := &c.Files[0]; {
	case r.Windows.inPixels():
		id = fmt.Sprintf("%s_y%d_x%d", id, file.Window[0], file.Window[1])
	case r.Windows.Kind == Ground:
		// By its map and its upper left corner, in millimetres at most, because pixels have at least 1 mm.
		mm := func(v float64) string { return strconv.FormatFloat(math.Round(v*1000)/1000, 'f', -1, 64) }
		id = fmt.Sprintf("%s_%d_%s_%s", id, file.EPSG, mm(file.Transform[0]), mm(file.Transform[3]))
	}
	// Ids must not begin with "__", and not be "." or "..".
	if id == "" || id == "." || id == ".." || strings.HasPrefix(id, "__") {
		id = "chip" + id
	}
	unique := id
	for n := s.taken[id]; ; n++ {
		if n > 0 {
			unique = fmt.Sprintf("%s-%d", id, n+1)
		}
		if _, is := s.taken[unique]; !is || unique == id && n == 0 {
			s.taken[id] = n + 1
			s.taken[unique] = max(s.taken[unique], 1)
			return unique
		}
	}
}

// errBad returns the error about a sample that ends the run.
func errBad(b *loader.Bad) error {
	if b.Sample == nil || b.Sample.ID == "" {
		return b.Err
	}
	return fault.WithPart(b.Err, "sample "+b.Sample.ID, fault.NoOffset)
}
