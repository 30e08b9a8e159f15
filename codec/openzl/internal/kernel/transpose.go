package kernel

import "github.com/chaski-eo/chaski/internal/planes"

// Transpose writes byte b of element e, dst[e*width+b], from src[b*count+e], count = len(src)/width. dst and src have
// equal lengths, a multiple of width.
func Transpose(dst, src []byte, width int) {
	if width <= planes.MaxFast {
		planes.Join(dst, src, width)
		return
	}
	count := len(src) / width
	// In tiles of 16 by 16, so that both sides stay in cache: 16 lines of each.
	const tile = 16
	for b0 := 0; b0 < width; b0 += tile {
		b1 := min(b0+tile, width)
		for e0 := 0; e0 < count; e0 += tile {
			e1 := min(e0+tile, count)
			for b := b0; b < b1; b++ {
				for e, v := range src[b*count+e0 : b*count+e1] {
					dst[(e0+e)*width+b] = v
				}
			}
		}
	}
}
