package rows

import (
	"cmp"
)

// bandNames returns the names that the collection gives the bands of its rasters, or their common
// names. It returns nil if the collection describes no sensor.
func (c *Container) bandNames() []string {
	// A collection that cannot be read here has no names. Names only label bands, so that it must
	// not fail the run.
	sensor, ok, err := c.set.Sensor()
	if err != nil || !ok {
		return nil
	}
	var out []string
	for _, b := range sensor.Bands {
		out = append(out, cmp.Or(b.Name, b.CommonName))
	}
	return out
}
