package kernel

import "github.com/chaski-eo/chaski/internal/planes"

// Transpose writes byte b of element e, dst[e*width+b], from src[b*n+e], n = len(src)/width. dst and src have
// equal lengths, a multiple of width.
func Transpose(dst, src []byte, width int) {
	if width <= planes.MaxFast {
		planes.Join(dst, src, width)
		return
	}
	n := len(src) / width
	// In tiles of 16 by 16, so that both sides stay in cache: 16 lines of each.
	const tile = 16
	for b0 := 0; b0 < width; b0 += tile {
		b1 := min(b0+tile, width)
		for e0 := 0; e0 < n; e0 += tile {
			e1 := min(e0+tile, n)
			for b := b0; b < b1; b++ {
				for e, v := range src[b*n+e0 : b*n+e1] {
					dst[(e0+e)*width+b] = v
				}
			}
		}
	}
}
