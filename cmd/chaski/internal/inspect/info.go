// Package inspect has the command info, which describes files, containers and arrays from their
// headers.
package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/open"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tiff"
)

func NewInfo(env console.Env) *cobra.Command {
	var asJSON bool
	var stamp flags.Timestamp
	cmd := &cobra.Command{
		Use:   "info [--json] [--timestamp TIME] PATH...",
		Short: "Describe files, directories, containers and arrays",
		Long: `Describe what each PATH is, from its headers alone (CSV files are read as a whole):

  TIFF, TOG        shape, tiles, compression, predictor, nodata, mask, bands, georeferencing, and which of
                   the eight rules of the TOG profile hold; the sizes of overviews, also of those in PATH.ovr
  rumi             shape, frames, georeferencing, and the codecs of its first frames
  OpenZL frame     format version, outputs and codecs
  table            rows and columns of catalogs, other Parquet files and CSV files
  directory        number of files, by type
  container        levels with their rows and columns, classes, sensor and bands of TACO and Tortilla; a
                   path CONTAINER::PATH describes a sample in it
  array            schema and fragments of a TileDB array; with --timestamp, the fragments open at that time
  Zarr             shape, chunks, shards, codecs and georeferencing of an array, or of the arrays of a group

A PATH may be remote, a name of GDAL, such as /vsicurl/URL or /vsizip/ARCHIVE.zip/MEMBER, or a pattern of
raster files in quotes, such as "chips/*.tif".

--json prints one line of JSON for each path.`,
		Example: `  chaski info chip.tif
  chaski info --json chip.tif chips/
  chaski info "chips/*.tif"`,
		Args: console.AtLeastOne("PATH"),
		RunE: func(cmd *cobra.Command, paths []string) error { return info(cmd.Context(), env, paths, &stamp, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one line of JSON for each path")
	stamp.Add(cmd.Flags())
	return cmd
}

func info(ctx context.Context, env console.Env, paths []string, at *flags.Timestamp, asJSON bool) error {
	files := open.NewOpener(true)
	defer files.Close()
	shown := 0
	for _, pattern := range paths {
		matches, err := catalog.Glob(ctx, files, pattern)
		if err != nil {
			return err
		}
		for _, p := range matches {
			if shown++; shown > 1 && !asJSON {
				fmt.Fprintln(env.Out)
			}
			if err := infoOf(ctx, env, files, p, at, asJSON); err != nil {
				return err
			}
		}
	}
	return nil
}

// infoOf describes one path.
func infoOf(ctx context.Context, env console.Env, files source.Opener, path string, at *flags.Timestamp,
	asJSON bool) error {
	info, err := survey.Describe(ctx, path, at.Value, loader.Options{Opener: files})
	switch {
	case errors.Is(err, survey.ErrNotArray):
		return console.Usagef("--timestamp opens arrays: %s is not an array", path)
	case err != nil:
		return err
	case asJSON:
		return console.PrintJSON(env.Out, info)
	}
	switch info := info.(type) {
	case *survey.ArrayInfo:
		_, err = io.WriteString(env.Out, arrayText(info))
		return err
	case *survey.ZarrInfo:
		_, err = io.WriteString(env.Out, zarrText(info))
		return err
	case *survey.ContainerInfo:
		return printContainer(env.Out, info)
	case *survey.FileInfo:
		return printInfo(env.Out, info)
	}
	return fmt.Errorf("%T is not printed", info)
}

func printInfo(w io.Writer, f *survey.FileInfo) error {
	var s sheet
	fmt.Fprintf(&s.b, "%s: %s, %s\n", console.OneLine(f.Path), f.Kind, console.BinarySize(f.Bytes))
	s.raster(f.Raster)
	s.rumi(f.Rumi)
	s.tiff(f.TIFF)
	s.frame(f.Frame)
	if f.Unreadable != "" {
		s.line("unreadable", "%s", console.Printable(f.Unreadable))
	}
	if t := f.Table; t != nil {
		s.line("rows", "%d", t.Rows)
		for _, c := range t.Columns {
			s.line("column", "%s: %s", console.Printable(c.Name), c.Type)
		}
	}
	s.folder(f.Folder)
	_, err := io.WriteString(w, s.b.String())
	return err
}

func (s *sheet) raster(r *survey.RasterInfo) {
	if r == nil {
		return
	}
	if r.Times > 0 {
		s.line("shape (t b y x)", "%d × %d × %d × %d %s", r.Times, r.Shape[0], r.Shape[1], r.Shape[2], r.DType)
	} else {
		s.line("shape (b y x)", "%d × %d × %d %s", r.Shape[0], r.Shape[1], r.Shape[2], r.DType)
	}
	s.line("chunk (b y x)", "%d × %d × %d, inside %s", r.Chunk[0], r.Chunk[1], r.Chunk[2], r.Order)
	s.line("chunks", "%d, %d of them sparse", r.Chunks, r.Sparse)
	s.line("codec", "%s, predictor %d", r.Codec, r.Predictor)
	ratio := 0.0
	if r.StoredBytes > 0 {
		ratio = float64(r.DecodedBytes) / float64(r.StoredBytes)
	}
	s.line("pixels", "%s stored, %s decoded, ratio %.2f", console.BinarySize(r.StoredBytes),
		console.BinarySize(r.DecodedBytes), ratio)
	if r.NoData != nil {
		s.line("nodata", "%v", float64(*r.NoData))
	}
	if maskInfo := r.Mask; maskInfo != nil {
		per := "pixel"
		if maskInfo.Bands > 1 {
			per = fmt.Sprintf("pixel of each of %d bands", maskInfo.Bands)
		}
		s.line("mask", "%s, %d bits a %s, %d chunks of %d × %d, %d of them sparse, %s, %s stored",
			maskInfo.Kind, maskInfo.Bits, per, maskInfo.Chunks, maskInfo.Chunk[0], maskInfo.Chunk[1], maskInfo.Sparse,
			maskInfo.Codec, console.BinarySize(maskInfo.StoredBytes))
	}
	s.frame(r.OpenZL)
}

// rumi adds the lines for rumi files.
func (s *sheet) rumi(r *survey.RumiInfo) {
	if r == nil {
		return
	}
	s.line("rumi", "generation %d, frames of %s", r.Generation, r.Frame)
	const most = 16 // a file may have thousands of steps; --json has them all
	if n := len(r.Times); n > most {
		s.line("times", "%s, %s, … %s: %d", r.TimeKind, strings.Join(r.Times[:most-1], ", "), r.Times[n-1], n)
	} else if n > 0 {
		s.line("times", "%s, %s", r.TimeKind, strings.Join(r.Times, ", "))
	}
}

// bandText describes a band in the words of the file.
func bandText(b *tiff.Band) string {
	var parts []string
	if b.Description != "" {
		parts = append(parts, b.Description)
	}
	if b.Scale != nil {
		parts = append(parts, fmt.Sprintf("scale %v", *b.Scale))
	}
	if b.Offset != nil {
		parts = append(parts, fmt.Sprintf("offset %v", *b.Offset))
	}
	if b.Unit != "" {
		parts = append(parts, "unit "+b.Unit)
	}
	for _, k := range slices.Sorted(maps.Keys(b.Tags)) {
		parts = append(parts, k+"="+b.Tags[k])
	}
	return strings.Join(parts, ", ")
}

func (s *sheet) tiff(t *survey.TIFFInfo) {
	if t == nil {
		return
	}
	kind, order := "classic TIFF", "little-endian"
	if t.BigTIFF {
		kind = "BigTIFF"
	}
	if t.BigEndian {
		order = "big-endian"
	}
	s.line("tiff", "%s, %s, %s, interleave %s, %d directories, %d overviews", kind, order, t.Compression,
		t.Interleave, t.Directories, t.Overviews)
	if t.OverviewFile != "" {
		s.line("overviews", "in %s", t.OverviewFile)
	}
	if t.OverviewFault != "" {
		s.line("", "they are not read: %s", t.OverviewFault)
	}
	for i, size := range t.OverviewSizes {
		s.line(fmt.Sprintf("overview %d", i), "%d × %d", size[0], size[1])
	}
	if t.Chain != "" {
		s.line("", "more TIFF directories are not read: %s", t.Chain)
	}
	switch {
	case t.TOG:
		s.line("TOG", "yes")
	case len(t.NotTOG) > 0:
		s.line("TOG", "no: %s", strings.Join(t.NotTOG, "; "))
	}
	for _, r := range t.TOGRules {
		holds := map[string]string{"yes": "holds", "no": "does not hold", "unknown": "cannot be told"}[r.Holds]
		s.line("", "%s %s: %s: %s", r.Rule, r.Want, holds, r.Why)
	}
	switch {
	case t.EPSG != 0 && t.Citation != "":
		s.line("crs", "EPSG:%d, %s", t.EPSG, console.Printable(t.Citation))
	case t.EPSG != 0:
		s.line("crs", "EPSG:%d", t.EPSG)
	default:
		s.line("crs", "%s", console.Printable(t.Citation))
	}
	if t.PixelAt == "point" {
		s.line("", "the file gives the centres of pixels (RasterPixelIsPoint); the transform is of their corners")
	}
	if t.Transform != nil {
		s.line("transform", "%v", *t.Transform)
	}
	if t.Bounds != nil {
		s.line("bounds", "%v", *t.Bounds)
	}
	if t.Bands == nil && t.BandNames != nil {
		s.line("bands", "%s", console.Printable(strings.Join(t.BandNames, ", ")))
	}
	for i, b := range t.Bands {
		s.line(fmt.Sprintf("band %d", i), "%s", console.Printable(bandText(&b)))
	}
}

func (s *sheet) frame(f *survey.FrameInfo) {
	if f == nil {
		return
	}
	s.line("openzl", "format version %v, checksums %t, %d frames examined", f.FormatVersions, f.Checksums, f.Frames)
	for i, t := range f.Outputs {
		s.line("output", "%s, %s", t, console.BinarySize(int64(f.Sizes[i])))
	}
	s.line("codecs", "%s", strings.Join(f.Codecs, ", "))
}

func (s *sheet) folder(f *survey.FolderInfo) {
	if f == nil {
		return
	}
	s.line("files", "%d in %d directories, the largest %s", f.Files, f.Folders+1, console.BinarySize(f.Largest))
	s.line("rasters", "%d", f.Rasters)
	types := make([]string, 0, len(f.ByType))
	for t, n := range f.ByType {
		t = cmp.Or(t, "no extension")
		types = append(types, fmt.Sprintf("%s %d", console.Printable(t), n))
	}
	sort.Strings(types)
	s.line("by type", "%s", strings.Join(types, ", "))
}
