package webp

import "image"

// fromYUV makes RGB of luma and of chroma of half the resolution. Chroma is interpolated between its samples, which
// lie in the middle of four pixels: 9/16 of the nearest, 3/16 of two and 1/16 of the farthest, rounded as
// libwebp does it (its fancy upsampling).
//
// The range is the one of video in BT.601, 16 to 235. The factors are 1.164, 1.596, 0.391, 0.813 and 2.018 in units of
// 1/16384, as libwebp has them: 8 of the bits are dropped at once and 6 at the end.
func fromYUV(dst []byte, m *image.YCbCr, bands int) {
	width, height := m.Rect.Dx(), m.Rect.Dy()
	blue, red := make([]byte, width), make([]byte, width)
	last := (height - 1) / 2
	for y := range height {
		near := y / 2
		far := near - 1 // an even row lies above the middle
		if y&1 == 1 {
			far = near + 1
		}
		far = min(max(far, 0), last)
		upsample(blue, m.Cb[near*m.CStride:], m.Cb[far*m.CStride:])
		upsample(red, m.Cr[near*m.CStride:], m.Cr[far*m.CStride:])
		luma := m.Y[y*m.YStride:][:width]
		row := dst[y*width*bands:][:width*bands]
		for x := range luma {
			target := row[:3]
			luminance, cb, cr := int32(luma[x])*19077>>8, int32(blue[x]), int32(red[x])
			target[2] = clip(luminance + cb*33050>>8 - 17685)
			target[1] = clip(luminance - cb*6419>>8 - cr*13320>>8 + 8708)
			target[0] = clip(luminance + cr*26149>>8 - 14234)
			if bands == 4 {
				row[3] = 255
			}
			row = row[bands:]
		}
	}
}

// upsample fills a row of chroma from the nearest row of samples and the farther one.
func upsample(dst, near, far []byte) {
	width := len(dst)
	dst[0] = byte((3*int(near[0]) + int(far[0]) + 2) >> 2)
	for pair := 1; pair <= (width-1)/2; pair++ {
		left, right := int(near[pair-1]), int(near[pair])
		farLeft, farRight := int(far[pair-1]), int(far[pair])
		sum := left + right + farLeft + farRight + 8
		// The means of a pixel's nearest sample and of the one across, both weighted 1/8, and of the other two, 3/8.
		across := (sum + 2*(farLeft+right)) >> 3
		down := (sum + 2*(left+farRight)) >> 3
		dst[2*pair-1] = byte((across + left) >> 1)
		dst[2*pair] = byte((down + right) >> 1)
	}
	if width&1 == 0 {
		dst[width-1] = byte((3*int(near[width/2-1]) + int(far[width/2-1]) + 2) >> 2)
	}
}

// clip drops the bits that the factors have, and takes the nearest byte.
func clip(v int32) byte {
	if uint32(v) < 256<<6 {
		return byte(v >> 6)
	}
	return byte(^v >> 31) // 0 below, 255 above
}
