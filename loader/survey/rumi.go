package survey

import (
	"context"
	"strconv"
	"time"

	"github.com/chaski-eo/chaski/rumi"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

// RumiInfo describes a rumi file without its pixels and georeferencing.
type RumiInfo struct {
	Generation int    `json:"generation"` // of the format, 1 to 3
	Frame      string `json:"frame"`      // axes of a frame, such as "h w" or "t b h w"
	// PixelIsPoint says that the file's own transform refers to the centres of pixels.
	PixelIsPoint bool `json:"pixel_is_point,omitempty"`
	// TimeKind and Times belong to generation 3: "instant" with a time for each step, or "interval" with the begin
	// and the end of each.
	TimeKind string   `json:"time_kind,omitempty"`
	Times    []string `json:"times,omitempty"` // ISO 8601 in UTC; days without a time of day
}

// rumiInfo describes a rumi file with header h.
func rumiInfo(ctx context.Context, f *ifd.File, h *rumi.Header) (*RumiInfo, error) {
	i := &RumiInfo{Generation: h.Generation, Frame: h.Unit.Axes(h.Shape[0], h.Times)}
	if h.Generation < 3 {
		return i, nil
	}
	trailer, err := rumi.TrailerOf(ctx, f)
	if err != nil {
		return nil, err
	}
	i.TimeKind = trailer.Kind.String()
	const day = 24 * 60 * 60
	form := time.DateOnly
	for _, s := range trailer.Times {
		if s%day != 0 {
			form = time.RFC3339
		}
	}
	for _, s := range trailer.Times {
		when := time.Unix(s, 0).UTC()
		if y := when.Year(); y < 1 || y > 9999 { // ISO 8601 has four digits for a year
			i.Times = append(i.Times, strconv.FormatInt(s, 10)+" s")
			continue
		}
		i.Times = append(i.Times, when.Format(form))
	}
	return i, nil
}
