package taco

import (
	_ "embed"
	"encoding/csv"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/num"
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
	// Metres is the size of a pixel, Centre and Width the middle of the wavelengths and their full width at half
	// maximum in nanometres. They are known of the bands of ParseSensor.
	Metres, Centre, Width float64
}

// sensorTable has the bands of the sensors of TACO 0.2.0 ("Sensor Extension"), in the order of their rasters: metres of
// a pixel, and the centre of the wavelengths and their full width at half maximum in nanometres. The numbers come from
// tacotoolbox 0.26.9, but for two mistakes: it exchanges the numbers of MS-1 and MS-2, and of MS-5 and MS-5p, of
// eo1ali, and gives B04 of the MSS of Landsat 4 and 5 pixels of 30 m.
//
//go:embed sensors.csv
var sensorTable string

// sensors are the bands of sensorTable by the name of the sensor.
var sensors = sync.OnceValue(func() map[string][]Band {
	rows, err := csv.NewReader(strings.NewReader(sensorTable)).ReadAll()
	if err != nil {
		panic("taco: sensors.csv: " + err.Error())
	}
	bands := map[string][]Band{}
	for _, row := range rows[1:] {
		band := Band{Name: row[1], CommonName: row[2]}
		for i, number := range []*float64{&band.Metres, &band.Centre, &band.Width} {
			if *number, err = strconv.ParseFloat(row[3+i], 64); err != nil {
				panic("taco: sensors.csv: " + err.Error())
			}
		}
		bands[row[0]] = append(bands[row[0]], band)
	}
	return bands
})

// Sensors returns the names of the sensors whose bands ParseSensor knows.
func Sensors() []string { return slices.Sorted(maps.Keys(sensors())) }

// ParseSensor parses "landsat8oli", which has all bands of the sensor, or "landsat8oli[B02, B01]",
// which has these bands in this order. The bands of an unknown sensor are those in brackets, or
// nil. A band that a known sensor lacks is fault.NotFound.
func ParseSensor(text string) (Sensor, error) {
	name, rest, some := strings.Cut(strings.TrimSpace(text), "[")
	sensor := Sensor{Name: strings.TrimSpace(name)}
	sensor.Bands = slices.Clone(sensors()[strings.ToLower(sensor.Name)])
	if !some {
		return sensor, nil
	}
	list, ok := strings.CutSuffix(rest, "]")
	if !ok || strings.TrimSpace(list) == "" {
		return sensor, fault.New(fault.Corrupt, "sensor", "%.100q is not NAME or NAME[BAND, BAND]", text)
	}
	names := strings.Split(list, ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	if sensor.Bands == nil {
		for _, n := range names {
			sensor.Bands = append(sensor.Bands, Band{Name: n})
		}
		return sensor, nil
	}
	places, err := sensor.Pick(names...)
	if err != nil {
		return sensor, err
	}
	sensor.Bands = num.Pick(sensor.Bands, places)
	return sensor, nil
}

// Pick returns the positions of bands in the rasters, by their names or common names, ignoring
// case. An unknown band is fault.NotFound.
func (s Sensor) Pick(names ...string) ([]int, error) {
	places := make([]int, len(names))
	for k, name := range names {
		places[k] = slices.IndexFunc(s.Bands, func(b Band) bool { return strings.EqualFold(b.Name, name) })
		if places[k] < 0 {
			places[k] = slices.IndexFunc(s.Bands, func(b Band) bool {
				return name != "" && strings.EqualFold(b.CommonName, name)
			})
		}
		if places[k] < 0 {
			names := make([]string, len(s.Bands))
			for i, b := range s.Bands {
				names[i] = b.Name
			}
			return nil, fault.New(fault.NotFound, "sensor "+s.Name, "no band %q: the bands are %s",
				name, strings.Join(names, ", "))
		}
	}
	return places, nil
}

// Sensor returns the sensor and bands in the collection document. ok is false if it has none. Bands
// are in the order of their indexes if these are 0, 1, 2, …. Otherwise the indexes count all bands
// of the sensor, although the rasters have only some, and the order of the list counts.
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
			inRange := b.Index != nil && *b.Index >= 0 && *b.Index < len(seen)
			whole = whole && inRange && !seen[*b.Index]
			if whole {
				seen[*b.Index] = true
			}
		}
		for i, b := range o.Bands {
			if whole {
				i = *b.Index
			}
			s.Bands[i] = Band{Name: b.Name, CommonName: b.Common}
		}
		return s, true, nil
	}
	return s, false, nil
}
