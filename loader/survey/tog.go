package survey

import (
	"fmt"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/tiff"
)

// TOGRule is the result of one of the eight rules of the TOG profile (TACO 0.2, "TACO Optimized
// GeoTIFF"). Each rule is an option with which GDAL's COG driver writes a file.
type TOGRule struct {
	Rule  string `json:"rule"`  // driver, interleave, blocksize, compress, level, bigtiff, overviews or predictor
	Want  string `json:"want"`  // the value in the profile
	Holds string `json:"holds"` // "yes", "no", or "unknown" if the file does not tell
	Why   string `json:"why"`
}

// togRules checks a file against the profile. x is nil for a file whose pixels cannot be read.
func togRules(m *tiff.Meta, x *chunk.Index) []TOGRule {
	rule := func(name, want string, check func() (holds, why string)) TOGRule {
		holds, why := check()
		return TOGRule{name, want, holds, why}
	}
	return []TOGRule{
		rule("driver", "COG", func() (string, string) { return isCOG(m) }),
		rule("interleave", "TILE", func() (string, string) { return isTileInterleaved(m, x) }),
		rule("blocksize", "a multiple of 16", func() (string, string) {
			switch {
			case !m.Tiled:
				return no, "strips, not tiles"
			case x == nil:
				return unknown, unread
			}
			return yesNo(x.ChunkH%16 == 0 && x.ChunkW%16 == 0, "tiles of %d by %d", x.ChunkH, x.ChunkW)
		}),
		rule("compress", "ZSTD", func() (string, string) {
			name := tiff.CompressionName(m.Compression)
			return yesNo(name == chunk.Zstd.String(), "compression is %s", name)
		}),
		rule("level", "13", func() (string, string) { return unknown, "compressed data does not say its level" }),
		rule("bigtiff", "YES", func() (string, string) {
			if m.BigTIFF {
				return yes, "a BigTIFF"
			}
			return no, "not a BigTIFF"
		}),
		rule("overviews", "NONE", func() (string, string) {
			return yesNo(m.Overviews == 0, "%d overviews", m.Overviews)
		}),
		rule("predictor", "YES", func() (string, string) {
			if x == nil {
				return unknown, unread
			}
			if x.DType.Components() > 1 {
				return no, fmt.Sprintf("no predictor, as there is none for %s", x.DType)
			}
			want := predictorOf(x.DType)
			return yesNo(x.Predictor == want, "predictor %d, where it is %d for %s", x.Predictor, want, x.DType)
		}),
	}
}

const (
	yes, no, unknown = "yes", "no", "unknown"

	// unread is the reason for rules that need the chunk index of a file that has none.
	unread = "pixels cannot be read"
)

// yesNo returns yes or no with a reason.
func yesNo(holds bool, format string, args ...any) (string, string) {
	if holds {
		return yes, fmt.Sprintf(format, args...)
	}
	return no, fmt.Sprintf(format, args...)
}

// isCOG reports whether GDAL's COG driver wrote the file, by the metadata that the driver writes in
// front of the first directory. Readers of pixels ignore it, so false metadata does no harm.
func isCOG(m *tiff.Meta) (string, string) {
	switch {
	case !m.Tiled:
		return no, "strips, not tiles"
	case m.Ghost["LAYOUT"] != "IFDS_BEFORE_DATA":
		return no, "no note of the COG driver's layout"
	case m.Ghost["KNOWN_INCOMPATIBLE_EDITION"] == "YES":
		return no, "rewritten in place since (KNOWN_INCOMPATIBLE_EDITION=YES)"
	}
	return yes, "tiled, and its layout noted as IFDS_BEFORE_DATA"
}

// isTileInterleaved reports whether the bands of each tile follow each other in the file.
func isTileInterleaved(m *tiff.Meta, x *chunk.Index) (string, string) {
	switch {
	case x == nil:
		return unknown, unread
	case x.Bands == 1:
		return yes, "one band"
	case m.Planar != 2:
		return no, "bands are pixel-interleaved, not tile-interleaved"
	case !tileInterleaved(x):
		return no, "bands are not tile-interleaved: the tiles of a position do not follow each other"
	}
	return yes, "the bands of a position follow each other"
}

// notTOG lists how a file differs from a TOG: the rules that do not hold, and the mask and sparse
// tiles that the COG driver can write but a TOG does not have.
func notTOG(rules []TOGRule, m *tiff.Meta, x *chunk.Index) (why []string) {
	if x == nil {
		return []string{unread}
	}
	for i, rule := range rules {
		// Several rules may fail for one reason, such as strips; it is listed once.
		told := i > 0 && rule.Why == rules[0].Why && rules[0].Holds == no
		if rule.Holds == no && !told && (len(why) == 0 || why[len(why)-1] != rule.Why) {
			why = append(why, rule.Why)
		}
	}
	if m.HasMask {
		why = append(why, "has a mask")
	}
	if sparse(x) > 0 {
		why = append(why, "has sparse tiles")
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
