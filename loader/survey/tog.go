package survey

import (
	"fmt"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tiff"
)

// notTOG lists how a file differs from the TOG profile (TACO 0.2, "TACO Optimized GeoTIFF"). The profile is the options
// with which GDAL's COG driver writes a file: tiles of a multiple of 16, tile by tile with their bands side by side,
// as BigTIFF, ZSTD with a predictor, without overviews, mask and sparse tiles. Its level of compression is 13, which a
// file does not tell. x is nil for a file whose pixels cannot be read.
func notTOG(m *tiff.Meta, x *chunk.Index) (why []string) {
	if x == nil {
		return []string{"pixels cannot be read"}
	}
	// GDAL's COG driver notes its layout in front of the first directory. Readers of pixels ignore it, so false
	// metadata does no harm.
	noted := m.Ghost["LAYOUT"] == "IFDS_BEFORE_DATA"
	compression := tiff.CompressionName(m.Compression)
	predictor, isComplex := predictorOf(x.DType), x.DType.Components() > 1
	for _, difference := range []struct {
		is  bool
		why string
	}{
		{!m.Tiled, "strips, not tiles"},
		{m.Tiled && !noted, "no note of the COG driver's layout"},
		{m.Tiled && noted && m.Ghost["KNOWN_INCOMPATIBLE_EDITION"] == "YES",
			"rewritten in place since (KNOWN_INCOMPATIBLE_EDITION=YES)"},
		{x.Bands > 1 && m.Planar != 2, "bands are pixel-interleaved, not tile-interleaved"},
		{x.Bands > 1 && m.Planar == 2 && !tileInterleaved(x),
			"bands are not tile-interleaved: the tiles of a position do not follow each other"},
		{m.Tiled && (x.ChunkH%16 != 0 || x.ChunkW%16 != 0), fmt.Sprintf("tiles of %d by %d", x.ChunkH, x.ChunkW)},
		{compression != chunk.Zstd.String(), "compression is " + compression},
		{!m.BigTIFF, "not a BigTIFF"},
		{m.Overviews > 0, fmt.Sprintf("%d overviews", m.Overviews)},
		{isComplex, fmt.Sprintf("no predictor, as there is none for %s", x.DType)},
		{!isComplex && x.Predictor != predictor,
			fmt.Sprintf("predictor %d, where it is %d for %s", x.Predictor, predictor, x.DType)},
		{m.HasMask, "has a mask"},
		{sparse(x) > 0, "has sparse tiles"},
	} {
		if difference.is {
			why = append(why, difference.why)
		}
	}
	return why
}

// predictorOf returns the predictor that GDAL's PREDICTOR=YES stands for. GDAL refuses one for
// float16, so such files are written without.
func predictorOf(d chunk.DType) chunk.Predictor {
	switch {
	case d == chunk.Float16:
		return chunk.NoPredictor
	case d == chunk.Float32 || d == chunk.Float64:
		return chunk.FloatingPoint
	}
	return chunk.Horizontal
}
