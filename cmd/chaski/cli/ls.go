package cli

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/crs"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query"
)

// containerFlags open containers.
type containerFlags struct {
	base string
	mode string

	chosen   bool // taco.Options.Chosen
	warnings []string
}

func (f *containerFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.base, "base-path", "", "`FOLDER` of the source files of a catalog (default: where the catalog is)")
	fl.StringVar(&f.mode, "columns-mode", "intersection", "columns that not all containers have: intersection, fill_missing or strict")
}

// open opens containers. What they warn of is kept for told.
func (f *containerFlags) open(ctx context.Context, files source.Opener, paths []string, only ...taco.Filter) (*taco.Dataset, error) {
	mode, err := tables.ParseMode(f.mode)
	if err != nil {
		return nil, wrongUsage(err)
	}
	return taco.Open(ctx, files, paths, taco.Options{BasePath: f.base, Mode: mode, Chosen: f.chosen, Only: only, Warn: func(m string) {
		if !slices.Contains(f.warnings, m) { // conditions that join groups say theirs with each question
			f.warnings = append(f.warnings, m)
		}
	}})
}

// told prints the warnings of a command that succeeded: one that fails prints its error alone.
func (f *containerFlags) told(s streams, err error) error {
	if err == nil {
		for _, m := range f.warnings {
			fmt.Fprintln(s.err, "chaski: warning: "+clean(m))
		}
	}
	return err
}

// inContainers returns an opener that follows paths into containers too. A file whose own name has the
// separator in it is a file.
func inContainers(files source.Opener) source.Opener {
	return &pathOpener{files: files, in: taco.Opener{Base: files}}
}

type pathOpener struct {
	files source.Opener
	in    taco.Opener
}

func (o *pathOpener) Open(ctx context.Context, uri string) (source.Reader, error) {
	_, _, ok := taco.Split(uri)
	switch {
	case !ok:
		return o.files.Open(ctx, uri)
	case source.IsRemote(uri):
		return o.remote(ctx, uri)
	}
	r, err := o.files.Open(ctx, uri)
	if fault.KindOf(err) == fault.NotFound {
		return o.in.Open(ctx, uri)
	}
	return r, err
}

// remote opens a URI with the separator in it. Objects are hardly ever called so: the container is asked for first.
// And where the URI has a query, a server would take the path for a part of that.
func (o *pathOpener) remote(ctx context.Context, uri string) (source.Reader, error) {
	r, err := o.in.Open(ctx, uri)
	if k := fault.KindOf(err); k != fault.NotFound && k != fault.Unsupported || strings.Contains(uri, "?") {
		return r, err
	}
	if file, ferr := o.files.Open(ctx, uri); ferr == nil {
		return file, nil
	}
	return nil, err
}

// OpenKnown implements source.KnownOpener. What lies in a container is opened by its path.
func (o *pathOpener) OpenKnown(ctx context.Context, uri string, k source.Known) (source.Reader, error) {
	if _, _, ok := taco.Split(uri); ok {
		return o.Open(ctx, uri)
	}
	return source.OpenKnown(ctx, o.files, uri, k)
}

// List implements source.Lister.
func (o *pathOpener) List(ctx context.Context, folder string, each func(source.Entry) error) error {
	return source.List(ctx, o.files, folder, each)
}

// filterFlags choose samples.
type filterFlags struct {
	where, orderBy             string
	bbox, bboxCRS              string
	rule, geometry             string
	datetime, timeCol          string
	atLevel, limit, offsetRows int
}

func (f *filterFlags) add(fl *pflag.FlagSet) {
	f.addFilters(fl)
	fl.StringVar(&f.orderBy, "order-by", "", "`COLUMN [desc]` to sort by; equal rows stay in storage order")
	fl.IntVar(&f.limit, "limit", -1, "most rows (default: all)")
	fl.IntVar(&f.offsetRows, "offset", 0, "rows passed over")
}

// addFilters adds the flags that say which samples there are, not in which order or number.
func (f *filterFlags) addFilters(fl *pflag.FlagSet) {
	givenVar(fl, &f.where, "where", "`CONDITION` on the columns, in SQL")
	givenVar(fl, &f.bbox, "bbox", "`W,S,E,N`: samples whose geometry, or whose raster in a catalog, intersects the box, in degrees of longitude and latitude; W greater than E crosses the antimeridian")
	givenVar(fl, &f.bboxCRS, "bbox-crs", "`EPSG` code of the CRS of --bbox (default: 4326, longitude and latitude)")
	fl.StringVar(&f.rule, "bbox-rule", "intersects", "intersects, or within: the geometry does not leave the box")
	fl.StringVar(&f.geometry, "geometry-col", "", "column of geometries (default: istac:geometry, stac:centroid or istac:centroid)")
	givenVar(fl, &f.datetime, "datetime", "`A/B`: samples that begin in a range of dates (whole days, UTC) or times")
	fl.StringVar(&f.timeCol, "time-col", "", "column of times (default: istac:time_start or stac:time_start)")
	fl.IntVar(&f.atLevel, "at-level", 0, "level whose rows --bbox and --datetime look at: the samples of level 0 above those that match are chosen; ls lists below them only what matches")
}

// filter returns the filter that the flags describe, nil if none does.
func (f *filterFlags) filter() (*taco.Filter, error) {
	if err := oneOf("bbox-rule", f.rule, "intersects", "within"); err != nil {
		return nil, err
	}
	if f.atLevel < 0 || f.limit < -1 || f.offsetRows < 0 {
		return nil, usagef("--at-level, --limit and --offset are at least 0")
	}
	switch {
	case f.bbox == "" && (f.rule != "intersects" || f.geometry != "" || f.bboxCRS != ""):
		return nil, usagef("--bbox-crs, --bbox-rule and --geometry-col go with --bbox")
	case f.datetime == "" && f.timeCol != "":
		return nil, usagef("--time-col goes with --datetime")
	case f.bbox == "" && f.datetime == "":
		if f.atLevel != 0 {
			return nil, usagef("--at-level goes with --bbox and --datetime")
		}
		return nil, nil
	}
	out := &taco.Filter{Geometry: f.geometry, Time: f.timeCol, Level: f.atLevel}
	if f.rule == "within" {
		out.Rule = taco.Within
	}
	if f.bbox != "" {
		var err error
		if out.Box, err = f.box(); err != nil {
			return nil, err
		}
	}
	if f.datetime != "" {
		times, err := taco.ParseTimes(f.datetime)
		if err != nil {
			return nil, usagef("--datetime: %w", err)
		}
		out.Times = &times
	}
	return out, nil
}

// sides returns the numbers of --bbox.
func (f *filterFlags) sides() (v [4]float64, err error) {
	parts := strings.Split(f.bbox, ",")
	for i := range v {
		if len(parts) == len(v) {
			v[i], err = strconv.ParseFloat(strings.TrimSpace(parts[i]), 64)
		}
		if len(parts) != len(v) || err != nil {
			return v, usagef("--bbox %q is not W,S,E,N", f.bbox)
		}
	}
	return v, nil
}

// epsg returns the code of --bbox-crs, 0 if it is not given.
func (f *filterFlags) epsg() (int, error) {
	digits := f.bboxCRS
	if p, rest, ok := strings.Cut(digits, ":"); ok && (strings.EqualFold(p, "EPSG") || strings.EqualFold(p, "ESRI")) {
		digits = rest
	}
	n, err := strconv.Atoi(digits)
	if f.bboxCRS != "" && (err != nil || n <= 0) {
		return 0, usagef("--bbox-crs %q is no EPSG code, such as EPSG:32633 or 32633", f.bboxCRS)
	}
	return n, nil
}

// box returns the box of --bbox and --bbox-crs.
func (f *filterFlags) box() (*crs.Box, error) {
	v, err := f.sides()
	if err != nil {
		return nil, err
	}
	epsg, err := f.epsg()
	if err != nil {
		return nil, err
	}
	box, err := crs.NewBox(v, epsg)
	if err != nil {
		return nil, usagef("--%w", err)
	}
	return &box, nil
}

type lsFlags struct {
	containerFlags
	filterFlags
	leaves, sha256, padding bool
	level                   int
	format                  string
}

func newLs(s streams) *cobra.Command {
	var f lsFlags
	cmd := &cobra.Command{
		Use:   "ls [flags] CONTAINER...",
		Short: "List the samples of containers",
		Long: `List the rows of a level of TACO containers (ZIP, folder, __TACOCAT__, .tacocat,
TACOLLECTION.json, .taco) and Tortillas, or with --leaves every sample that has bytes, with
its path and byte range. Several containers are listed one after the other. Of a Tortilla in
parts, all parts are named, or one, or the whole as data.tortilla for data.0000.part.tortilla
and so on.

With --format json: one line of JSON a row, with all columns that are stored, or a leaf:
{"path","offset","size"} and with --sha256 "sha256"; the offset is null where a sample is a file.`,
		Example: `  chaski ls data.tacozip
  chaski ls --leaves --sha256 --format json data.tacozip
  chaski ls --bbox=-180,-60,-60,0 --datetime 2015-01-01/2015-03-31 data.tacozip`,
		Args: atLeastOne("CONTAINER"),
		RunE: func(cmd *cobra.Command, paths []string) error { return f.told(s, f.run(cmd.Context(), s, paths)) },
	}
	fl := cmd.Flags()
	f.containerFlags.add(fl)
	f.filterFlags.add(fl)
	fl.BoolVar(&f.leaves, "leaves", false, "samples that have bytes, of all levels")
	fl.BoolVar(&f.sha256, "sha256", false, "with --leaves: read the bytes and tell their hash")
	fl.BoolVar(&f.padding, "padding", false, "show placeholders too, and the histograms that a streaming TACO holds among its samples")
	fl.IntVar(&f.level, "level", 0, "level to list")
	fl.StringVar(&f.format, "format", "text", "text or json")
	return cmd
}

func (f *lsFlags) run(ctx context.Context, s streams, paths []string) error {
	if err := oneOf("format", f.format, "text", "json"); err != nil {
		return err
	}
	if f.level < 0 || f.offsetRows < 0 || f.sha256 && !f.leaves {
		return usagef("--level and --offset are at least 0, and --sha256 goes with --leaves")
	}
	if f.leaves && f.level != 0 {
		return usagef("--leaves lists samples of all levels: --level does not go with it")
	}
	only, err := f.filter()
	if err != nil {
		return err
	}
	files := newOpener(true)
	defer files.Close()
	var prune []taco.Filter
	if only != nil && query.RowWise(f.where) { // another --where needs the rows of all files
		prune = append(prune, *only)
	}
	d, err := f.open(ctx, files, paths, prune...)
	if err != nil {
		return err
	}
	defer d.Close()
	var left taco.Left // by --bbox and --datetime; nil: all
	if only != nil {
		if left, err = d.Narrow(ctx, *only); err != nil {
			return err
		}
	}
	w := bufio.NewWriterSize(s.out, 1<<16)
	if f.leaves {
		err = f.listLeaves(ctx, w, files, d, left)
	} else {
		err = f.listRows(ctx, w, d, left)
	}
	return firstError(err, w.Flush())
}

// leafRoots applies --where and --order-by to the samples of level 0, whose leaves are listed.
func (f *lsFlags) leafRoots(ctx context.Context, d *taco.Dataset, roots []int) ([]int, error) {
	if f.where == "" && f.orderBy == "" || d.Levels() == 0 {
		return roots, nil
	}
	t, err := d.Level(ctx, 0)
	if err == nil && roots == nil {
		roots, err = d.Visible(ctx, 0)
	}
	if err != nil {
		return nil, err
	}
	roots, err = chooseRows(ctx, t, roots, f.where, f.orderBy)
	return roots, fault.WithFile(err, d.Parts()[0])
}

// listRows lists a level.
func (f *lsFlags) listRows(ctx context.Context, w io.Writer, d *taco.Dataset, left taco.Left) error {
	if d.Levels() == 0 { // no file of a TACOLLECTION.json can match
		return nil
	}
	t, err := d.Level(ctx, f.level)
	if err != nil {
		return err
	}
	rows, err := f.rows(ctx, d, left, t.Len())
	if err != nil {
		return err
	}
	if rows, err = f.choose(ctx, t, rows); err != nil {
		return fault.WithFile(err, d.Parts()[0])
	}
	if f.format == "text" {
		return f.listText(ctx, w, d, t, rows)
	}
	return writeRows(ctx, w, t, rows)
}

// rows returns the rows of the listed level that --padding, --bbox and --datetime leave. n is how many it has.
func (f *lsFlags) rows(ctx context.Context, d *taco.Dataset, left taco.Left, n int) ([]int, error) {
	var rows []int
	var err error
	if f.padding {
		rows = make([]int, n)
		for i := range rows {
			rows[i] = i
		}
	} else if rows, err = d.Visible(ctx, f.level); err != nil {
		return nil, err
	}
	if left == nil {
		return rows, nil
	}
	below, err := d.RowsBelow(ctx, left, f.level)
	return slices.DeleteFunc(rows, func(row int) bool { return !contains(below, row) }), err
}

// contains reports whether a row is among rows, which ascend.
func contains(rows []int, row int) bool {
	_, ok := slices.BinarySearch(rows, row)
	return ok
}

// choose applies --where, --order-by, --offset and --limit.
func (f *lsFlags) choose(ctx context.Context, t *tables.Table, rows []int) ([]int, error) {
	rows, err := chooseRows(ctx, t, rows, f.where, f.orderBy)
	if err != nil {
		return nil, err
	}
	rows = rows[min(f.offsetRows, len(rows)):]
	if f.limit >= 0 {
		rows = rows[:min(f.limit, len(rows))]
	}
	return rows, nil
}

// writeRows writes rows as JSON, with all columns.
func writeRows(ctx context.Context, w io.Writer, t *tables.Table, rows []int) error {
	cols := make([]*tables.Vector, len(t.Columns()))
	names := make([][]byte, len(cols))
	few := len(rows) < t.Len()/4 && slices.IsSorted(rows)
	for i, c := range t.Columns() {
		var err error
		if few {
			cols[i], err = t.Pick(ctx, i, rows)
		} else {
			cols[i], err = t.At(ctx, i)
		}
		if err != nil {
			return err
		}
		if names[i], err = json.Marshal(c.Name); err != nil {
			return err
		}
	}
	var line []byte
	for k, row := range rows {
		if few {
			row = k
		}
		line = append(line[:0], '{')
		for i, c := range cols {
			if i > 0 {
				line = append(line, ',')
			}
			line = append(append(line, names[i]...), ':')
			line = c.AppendJSON(line, row)
		}
		line = append(line, '}', '\n')
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	return nil
}

// listText prints a path, what it is, and where a file is.
func (f *lsFlags) listText(ctx context.Context, w io.Writer, d *taco.Dataset, _ *tables.Table, rows []int) error {
	for _, row := range rows {
		e, err := d.Entry(ctx, f.level, row)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s\t%v\t%s\n", clean(e.Path), e.Kind, clean(taco.VSI(e))); err != nil {
			return err
		}
	}
	return nil
}

// leaf is what --leaves prints.
type leaf struct {
	Path   string `json:"path"`
	Offset *int64 `json:"offset"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256,omitempty"`
}

func (f *lsFlags) listLeaves(ctx context.Context, w io.Writer, files source.Opener, d *taco.Dataset, left taco.Left) error {
	var roots []int // nil: all
	if left != nil {
		roots = left[0]
	}
	roots, err := f.leafRoots(ctx, d, roots)
	if err != nil {
		return err
	}
	buf := make([]byte, 1<<18)
	below := map[int][]int{} // by level, what --bbox and --datetime leave of a level below 0
	count := 0
	print := func(e taco.Entry, err error) error {
		if err == nil && e.Level > 0 && len(left) > 1 {
			var in bool
			if in, err = isLeft(ctx, d, left, below, e); err == nil && !in {
				return nil
			}
		}
		if err != nil {
			return err
		}
		if count++; count <= f.offsetRows || f.limit >= 0 && count > f.offsetRows+f.limit {
			return nil
		}
		return f.listLeaf(ctx, w, files, e, buf)
	}
	if roots == nil {
		for e, err := range d.Leaves(ctx, f.padding) {
			if err := print(e, err); err != nil {
				return err
			}
		}
		return nil
	}
	for _, row := range roots {
		e, err := d.Entry(ctx, 0, row)
		if err != nil {
			return err
		}
		for e, err := range d.LeavesOf(ctx, e, f.padding) {
			if err := print(e, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// isLeft reports whether conditions left a sample below level 0. known has what was found of levels before.
func isLeft(ctx context.Context, d *taco.Dataset, left taco.Left, known map[int][]int, e taco.Entry) (bool, error) {
	rows, ok := known[e.Level]
	if !ok {
		var err error
		if rows, err = d.RowsBelow(ctx, left, e.Level); err != nil {
			return false, err
		}
		known[e.Level] = rows
	}
	row, err := d.Row(ctx, e)
	return contains(rows, row), err
}

func (f *lsFlags) listLeaf(ctx context.Context, w io.Writer, files source.Opener, e taco.Entry, buf []byte) error {
	l := leaf{Path: e.Path, Size: e.Size}
	if e.Offset != taco.Whole {
		l.Offset = &e.Offset
	}
	if f.sha256 || e.Size == taco.Whole {
		r, err := taco.Section(ctx, files, e)
		if err != nil {
			return err
		}
		l.Size = r.Size()
		if f.sha256 {
			l.SHA256, err = hashReader(ctx, r, buf)
		}
		if err = firstError(err, r.Close()); err != nil {
			return err
		}
	}
	if f.format == "json" {
		return printJSON(w, l)
	}
	_, err := fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", clean(l.Path), l.Size, l.SHA256, clean(taco.VSI(e)))
	return err
}

func hashReader(ctx context.Context, r source.Reader, buf []byte) (string, error) {
	h := sha256.New()
	for off := int64(0); off < r.Size(); {
		b := buf[:min(int64(len(buf)), r.Size()-off)]
		if err := r.ReadAt(ctx, b, off); err != nil {
			return "", err
		}
		h.Write(b)
		off += int64(len(b))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
