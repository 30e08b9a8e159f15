package rows

import (
	"cmp"
)

// BandNames returns what the collection calls the bands of its rasters, nil if it does not say.
func (c *Container) BandNames() []string {
	s, ok, err := c.set.Sensor()
	if err != nil || !ok {
		return nil
	}
	var out []string
	for _, b := range s.Bands {
		out = append(out, cmp.Or(b.Name, b.CommonName))
	}
	return out
}
