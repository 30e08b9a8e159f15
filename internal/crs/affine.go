package crs

// At returns the coordinates of a place in an image, col pixels to the right of its upper left corner and row pixels
// below it. t is the image's affine transform with its numbers in GDAL's order: X = t[0] + col·t[1] + row·t[2] and
// Y = t[3] + col·t[4] + row·t[5].
func At(t *[6]float64, col, row float64) Point {
	// The conversions round each product: a fused multiply-add, which some processors have, would give other last bits,
	// and with them other pixels and other splits by place.
	return Point{t[0] + float64(col*t[1]) + float64(row*t[2]), t[3] + float64(col*t[4]) + float64(row*t[5])}
}
