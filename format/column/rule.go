package column

// Rule says when a geometry matches a box.
type Rule uint8

const (
	// Intersects: the two have a point in common.
	Intersects Rule = iota
	// Within: all points of the geometry lie in the box, and one lies inside, off the edge.
	Within
)
