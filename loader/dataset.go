package loader

import (
	"slices"
	"sync/atomic"

	"github.com/chaski-eo/chaski/internal/digest"
	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/scenes"
	"github.com/chaski-eo/chaski/loader/shapes"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

// group is the sources whose samples may stand in one batch, so their tensors have one shape. A spec has one
// group; with batches of one source each of these is a group, a mixture among them with all of its sources. Where
// batches have windows of several sizes, each has a group for every size.
type group struct {
	sets    []*dataset  // at least one
	perRow  int         // units of one row of a batch
	native  []bool      // for each raster field: it may be sent in its native dtype
	mixed   atomic.Bool // files of a field have several dtypes: no tensor is native
	columns []columnKind
	infos   []batch.FieldInfo
}

// readsColumns reports whether each row has a unit with field -1, which reads the columns.
func (g *group) readsColumns() bool {
	return slices.ContainsFunc(g.columns, func(kind columnKind) bool { return kind.reads })
}

// dataset is one source of a spec that is not a mixture: an open table, and the fields compiled for
// it.
type dataset struct {
	name   string // empty if the spec has one source
	group  *group // the sources with which it shares batches
	number int    // index in Engine.sets
	source Source
	windowing
	timing
	blockShape
	viewing
	population
	sized     map[int]*dataset // the dataset for windows of the other sides of Sampler.Sizes
	fields    []Field
	table     *rows.Table
	rasters   []*pixels.Raster
	files     fileSteps
	remarks   remarks
	values    []valueField
	vectors   []*shapes.Field
	opener    source.Opener
	names     *bandNames
	remote    bool          // some of its files are not local
	perWorker int64         // about how many bytes a worker holds after it has read the first sample; -1: unknown
	ground    scenes.Finder // nil unless windows lie on the ground
	overviews *lru.Cache[overviewKey, pixels.Levels]
	badScenes leftOut // with ground
}

// population is the samples of a dataset, as the order knows them.
type population struct {
	rows    shuffle.Rows  // rows that the subset selects; nil for all
	leaves  int           // how many datasets of the plan it has: one, or one for each stratum
	limited limited       // by Sampler.MaxNoData
	digest  digest.Digest // of the selected rows and all other data that the order depends on
}

// viewing is a dataset's part in the windows of a sample.
type viewing struct {
	views  *views // with several windows of a sample
	tensor int    // of a view, the index in views.sizes of the one with its size
	place  int    // of a view, its place along the axis v of the tensor
}

// windowing says which windows the samples of a dataset have.
type windowing struct {
	sampler        Sampler            // the source's own or the spec's, with the size of the window
	kind           spec.SamplerTraits // of the sampler
	chip           [2]int             // height and width of the first asset of the first raster field
	alignY, alignX int
	sizes          assetSizes // known only if the sampler needs them
	weights        *rows.Weights
	boxes          [][4]float64 // left, top, width and height for each row; nil unless windows are boxes of rows
}

// timing is the times of the samples of a dataset.
type timing struct {
	steps    int      // of a sequence; 0 without time
	timeless bool     // its batches have its rows alone, which are no sequences, though other sources have some
	clock    rowTimes // for Spec.Geo
	timed    bool     // the arrays of the first raster may have times
	moments  int      // of time in the first raster, if it is of arrays that may have times
}

// blockShape is the blocks in whose order samples are drawn. Without blocks it is zero, but for together.
type blockShape struct {
	blockSpec *spec.Blocks // Spec.Blocks with their defaults, of the only source
	pool      int64        // decoded bytes of the samples of a pool
	variance  float64      // of a batch: see batchVariance
	together  int64        // samples that a chunk of its rasters holds at most; 0 where rasters are files
}

// views are the several windows that a sample may have. Each is a dataset of its own with another sampler, as windows
// of another size are. All views of a field are one unit of work, which decodes the chunks that several of them need
// once.
type views struct {
	all   []*dataset // for each window of a sample, in order
	sizes []*dataset // the first view of each size, which has tensors of its own
}

// remarks is what the log says of a source once it is open, by its first sample.
type remarks struct {
	of        [][]string // for each of remarkKinds, the raster fields that it holds for
	placeless []string   // raster fields that the first sample cannot place beside the first one
	partial   []string   // what partial says
	unplaced  error      // why the first raster of some field is not placed; see catalog.Asset.Unplaced
}

// limited counts the windows, or rows, that Sampler.MaxNoData leaves.
type limited struct {
	by           *rows.Weights // the counts of valid pixels, while the dataset is opened
	total, valid int64         // without MaxNoData and with it
}

// assetSizes holds the sizes of the assets in the first raster field: of all or of none.
type assetSizes struct {
	each []catalog.Size // one for each row; 0 by 0 for an asset that cannot be read
	one  *catalog.Size  // of every asset, if all have the same
}

// overviewKey names an asset.
type overviewKey struct{ uri, member string }

// leftOut counts scenes that cannot be read, or lie where the maps of windows show nothing, and are left out by the
// policy for bad samples.
type leftOut struct {
	n, of int64
	first error // of the texts of all errors the first one, so the order of reading does not matter
}

// lead returns the first source of the group. Its fields stand for the fields of the others.
func (g *group) lead() *dataset { return g.sets[0] }

// inOrder visits raster fields and metadata columns in the order of the spec.
func (g *group) inOrder(e *Engine, raster, value func(i int)) {
	only := len(e.spec.Only) > 0
	r, v, values := 0, 0, g.lead().values
	for i := range spec.RowFields(e.spec.Fields) {
		if v < len(values) && values[v].column == i {
			value(v)
			v++
			continue
		}
		if !only {
			raster(r)
		}
		r++
	}
}
