package taco

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
)

// Sensor is the instrument of a dataset's images, with its bands.
type Sensor struct {
	Name  string
	Bands []Band // in the order of the rasters; nil if unknown
}

// Band is one spectral band.
type Band struct {
	Name       string // such as "B02"
	CommonName string // such as "blue", or empty
}

// sensors are the bands of the sensors of TACO 0.2.0 ("Sensor Extension"), each as "name" or "name
// common name".
var sensors = map[string][]string{
	"landsat1mss": mss13, "landsat2mss": mss13, "landsat3mss": mss13,
	"landsat4mss": mss45, "landsat5mss": mss45, "landsat4tm": tm, "landsat5tm": tm,
	"landsat7etm": append(slices.Clone(tm), "B08 pan"),
	"landsat8oli": oli, "landsat9oli": oli,
	"sentinel2msi": {"B01 coastal aerosol", "B02 blue", "B03 green", "B04 red", "B05 red edge 1",
		"B06 red edge 2", "B07 red edge 3",
		"B08 nir", "B8A red edge 4", "B09 water vapor", "B10 cirrus", "B11 swir 1", "B12 swir 2"},
	"eo1ali": {"B01 pan", "B02 ms-1p", "B03 ms-1", "B04 ms-2", "B05 ms-3", "B06 ms-4", "B07 ms-4p", "B08 ms-5p",
		"B09 ms-5", "B10 ms-7"},
	"aster": append([]string{"B01", "B02", "B3N", "B3B"}, numbered(4, 14)...),
	"modis": numbered(1, 36),
}

var (
	mss13 = []string{"B04 green", "B05 red", "B06 nir 1", "B07 nir 2"}
	mss45 = []string{"B01 green", "B02 red", "B03 nir 1", "B04 nir 2"}
	tm    = []string{"B01 blue", "B02 green", "B03 red", "B04 nir", "B05 swir 1", "B06 tir", "B07 swir 2"}
	oli   = []string{"B01 coastal aerosol", "B02 blue", "B03 green", "B04 red", "B05 nir", "B06 swir 1",
		"B07 swir 2", "B08 pan",
		"B09 cirrus", "B10 tir 1", "B11 tir 2"}
)

func numbered(first, last int) []string {
	var names []string
	for i := first; i <= last; i++ {
		names = append(names, fmt.Sprintf("B%02d", i))
	}
	return names
}

// ParseSensor parses "landsat8oli", which has all bands of the sensor, or "landsat8oli[B02, B01]",
// which has these bands in this order. The bands of an unknown sensor are those in brackets, or
// nil. A band that a known sensor lacks is fault.NotFound.
func ParseSensor(text string) (Sensor, error) {
	name, rest, some := strings.Cut(strings.TrimSpace(text), "[")
	s := Sensor{Name: strings.TrimSpace(name)}
	for _, b := range sensors[strings.ToLower(s.Name)] {
		band, common, _ := strings.Cut(b, " ")
		s.Bands = append(s.Bands, Band{band, common})
	}
	if !some {
		return s, nil
	}
	list, ok := strings.CutSuffix(rest, "]")
	if !ok || strings.TrimSpace(list) == "" {
		return s, fault.New(fault.Corrupt, "sensor", fault.NoOffset, "%.100q is not NAME or NAME[BAND, BAND]", text)
	}
	names := strings.Split(list, ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	if s.Bands == nil {
		for _, n := range names {
			s.Bands = append(s.Bands, Band{Name: n})
		}
		return s, nil
	}
	at, err := s.Pick(names...)
	if err != nil {
		return s, err
	}
	all := s.Bands
	s.Bands = nil
	for _, i := range at {
		s.Bands = append(s.Bands, all[i])
	}
	return s, nil
}

// Pick returns the positions of bands in the rasters, by their names or common names, ignoring
// case. An unknown band is fault.NotFound.
func (s Sensor) Pick(names ...string) ([]int, error) {
	at := make([]int, len(names))
	for k, name := range names {
		at[k] = slices.IndexFunc(s.Bands, func(b Band) bool { return strings.EqualFold(b.Name, name) })
		if at[k] < 0 {
			at[k] = slices.IndexFunc(s.Bands, func(b Band) bool {
				return name != "" && strings.EqualFold(b.CommonName, name)
			})
		}
		if at[k] < 0 {
			return nil, fault.New(fault.NotFound, "sensor "+s.Name, fault.NoOffset, "no band %q: the bands are %s",
				name, strings.Join(s.names(), ", "))
		}
	}
	return at, nil
}

func (s Sensor) names() []string {
	names := make([]string, len(s.Bands))
	for i, b := range s.Bands {
		names[i] = b.Name
	}
	return names
}

// Sensor returns the sensor and bands in the collection document. ok is false if it has none. Bands
// are in the order of their indexes if these are 0, 1, 2, …. Otherwise the indexes count all bands
// of the sensor, of which the rasters have some, and the order of the list counts.
func (d *Dataset) Sensor() (s Sensor, ok bool, err error) {
	type band struct {
		Name   string `json:"name"`
		Common string `json:"common_name"`
		Index  *int   `json:"index"`
	}
	type optical struct {
		Sensor string `json:"sensor"`
		Bands  []band `json:"bands"`
	}
	var doc struct {
		optical
		Optical optical `json:"optical_data"`
		Sensor2 string  `json:"optical:sensor"`
		Bands2  []band  `json:"optical:bands"`
	}
	if c := d.Collection(); c == nil || json.Unmarshal(c, &doc) != nil {
		return s, false, nil
	}
	for _, o := range []optical{doc.optical, doc.Optical, {doc.Sensor2, doc.Bands2}} {
		if o.Sensor == "" && len(o.Bands) == 0 {
			continue
		}
		if len(o.Bands) == 0 {
			s, err = ParseSensor(o.Sensor)
			return s, true, fault.WithFile(fault.WithPart(err, "COLLECTION", fault.NoOffset), d.name())
		}
		s.Name, _, _ = strings.Cut(o.Sensor, "[")
		s.Bands = make([]Band, len(o.Bands))
		seen := make([]bool, len(o.Bands))
		whole := true
		for _, b := range o.Bands {
			whole = whole && b.Index != nil && *b.Index >= 0 && *b.Index < len(seen) && !seen[*b.Index]
			if whole {
				seen[*b.Index] = true
			}
		}
		for i, b := range o.Bands {
			if whole {
				i = *b.Index
			}
			s.Bands[i] = Band{b.Name, b.Common}
		}
		return s, true, nil
	}
	return s, false, nil
}
