package taco

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
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
	// Metres is the size of a pixel, Centre and Width the middle of the wavelengths and their full width at half
	// maximum in nanometres. They are known of the bands of ParseSensor.
	Metres, Centre, Width float64
}

// sensors are the bands of the sensors of TACO 0.2.0 ("Sensor Extension"), each as "name|common name|metres of a
// pixel|centre of the wavelengths|their full width at half maximum", both in nanometres. The numbers come from
// tacotoolbox 0.26.9, but for two mistakes: it exchanges the numbers of MS-1 and MS-2, and of MS-5 and MS-5p, of
// eo1ali, and gives B04 of the MSS of Landsat 4 and 5 pixels of 30 m.
var sensors = map[string][]string{
	"landsat1mss": {
		"B04|green|60|553|98", "B05|red|60|652.5|95", "B06|nir 1|60|747.5|105", "B07|nir 2|60|900|178",
	},
	"landsat2mss": {
		"B04|green|60|549.5|101", "B05|red|60|659|104", "B06|nir 1|60|750.5|105", "B07|nir 2|60|897|184",
	},
	"landsat3mss": {
		"B04|green|60|544|96", "B05|red|60|653.5|101", "B06|nir 1|60|743|100", "B07|nir 2|60|896.5|167",
	},
	"landsat4mss": {
		"B01|green|60|549.5|109", "B02|red|60|650.5|93", "B03|nir 1|60|756.5|111", "B04|nir 2|60|914|216",
	},
	"landsat5mss": {
		"B01|green|60|552.5|109", "B02|red|60|648.5|93", "B03|nir 1|60|760|110", "B04|nir 2|60|925|230",
	},
	"landsat4tm": {
		"B01|blue|30|484.5|65", "B02|green|30|569|80", "B03|red|30|659|68", "B04|nir|30|841|128",
		"B05|swir 1|30|1678|214", "B06|tir|30|11080|1300", "B07|swir 2|30|2222.5|247",
	},
	"landsat5tm": {
		"B01|blue|30|485|64", "B02|green|30|569|80", "B03|red|30|660|66", "B04|nir|30|840|127",
		"B05|swir 1|30|1676|214", "B06|tir|30|11435|1970", "B07|swir 2|30|2223.5|249",
	},
	"landsat7etm": {
		"B01|blue|30|477.5|71", "B02|green|30|560|80", "B03|red|30|661.5|61", "B04|nir|30|835|126",
		"B05|swir 1|30|1648|198", "B06|tir|30|11345|2030", "B07|swir 2|30|2205|278", "B08|pan|15|705|378",
	},
	"landsat8oli": {
		"B01|coastal aerosol|30|442.5|15", "B02|blue|30|482.5|59", "B03|green|30|561.5|57", "B04|red|30|654.5|37",
		"B05|nir|30|864.5|27", "B06|swir 1|30|1609|84", "B07|swir 2|30|2201|186", "B08|pan|15|589.5|171",
		"B09|cirrus|30|1373.5|19", "B10|tir 1|30|10875|550", "B11|tir 2|30|12025|950",
	},
	"landsat9oli": {
		"B01|coastal aerosol|30|443|14", "B02|blue|30|481.5|59", "B03|green|30|561|56", "B04|red|30|654|36",
		"B05|nir|30|864.5|27", "B06|swir 1|30|1608.5|85", "B07|swir 2|30|2200|188", "B08|pan|15|589|172",
		"B09|cirrus|30|1374|20", "B10|tir 1|30|10825|650", "B11|tir 2|30|12025|850",
	},
	"sentinel2msi": {
		"B01|coastal aerosol|60|443.5|17", "B02|blue|10|496.5|53", "B03|green|10|560|34", "B04|red|10|664.5|29",
		"B05|red edge 1|20|704.5|13", "B06|red edge 2|20|740.5|13", "B07|red edge 3|20|783|18", "B08|nir|10|840|114",
		"B8A|red edge 4|20|864.5|19", "B09|water vapor|60|945|18", "B10|cirrus|60|1375.5|31",
		"B11|swir 1|20|1613.5|89", "B12|swir 2|20|2199.5|173",
	},
	"eo1ali": {
		"B01|pan|30|588.5|175", "B02|ms-1p|30|441.5|19", "B03|ms-1|30|482.5|61", "B04|ms-2|30|566|74",
		"B05|ms-3|30|660|58", "B06|ms-4|30|790|30", "B07|ms-4p|30|866|44", "B08|ms-5p|30|1244.5|89",
		"B09|ms-5|30|1638|184", "B10|ms-7|30|2224|276",
	},
	"aster": {
		"B01|-|15|558|84", "B02|-|15|659|60", "B3N|-|15|806|100", "B3B|-|15|806|108", "B04|-|30|1655|90",
		"B05|-|30|2165|35", "B06|-|30|2208.5|37.5", "B07|-|30|2262.5|45", "B08|-|30|2333.5|67.5", "B09|-|30|2397.5|65",
		"B10|-|90|8280|340", "B11|-|90|8630|340", "B12|-|90|9075|350", "B13|-|90|10655|650", "B14|-|90|11300|580",
	},
	"modis": {
		"B01|-|250|645.69|45.01", "B02|-|250|856.88|37", "B03|-|500|465.7|17.979", "B04|-|500|553.19|18.989",
		"B05|-|500|1241.5|22", "B06|-|500|1629|27.9", "B07|-|500|2113.2|45", "B08|-|1000|411.67|11",
		"B09|-|1000|442.16|8.01", "B10|-|1000|486.69|9.98", "B11|-|1000|529.669|11.01", "B12|-|1000|546.71|9.019",
		"B13|-|1000|665.19|8.02", "B14|-|1000|677.219|10.02", "B15|-|1000|746.789|9", "B16|-|1000|866.809|15.011",
		"B17|-|1000|903.75|33", "B18|-|1000|935.75|13.01", "B19|-|1000|935.34|44.99", "B20|-|1000|3786|190",
		"B21|-|1000|3991|80", "B22|-|1000|3971|80", "B23|-|1000|4057.5|85", "B24|-|1000|4471.5|85",
		"B25|-|1000|4546|90", "B26|-|1000|1383.6|34", "B27|-|1000|6758.5|225", "B28|-|1000|7334.5|316",
		"B29|-|1000|8526|300",
		"B30|-|1000|9752|270", "B31|-|1000|11013|500", "B32|-|1000|12039.5|475", "B33|-|1000|13362|299",
		"B34|-|1000|13682.5|301", "B35|-|1000|13893|281", "B36|-|1000|14143.5|139",
	},
}

// Sensors returns the names of the sensors whose bands ParseSensor knows.
func Sensors() []string { return slices.Sorted(maps.Keys(sensors)) }

func parseBand(text string) Band {
	names := strings.Split(text, "|")
	number := func(text string) float64 {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			panic("taco: a band of sensors is not written as it must be: " + err.Error())
		}
		return v
	}
	// A band whose color has no common name is written with "-".
	color := strings.TrimPrefix(names[1], "-")
	return Band{names[0], color, number(names[2]), number(names[3]), number(names[4])}
}

// ParseSensor parses "landsat8oli", which has all bands of the sensor, or "landsat8oli[B02, B01]",
// which has these bands in this order. The bands of an unknown sensor are those in brackets, or
// nil. A band that a known sensor lacks is fault.NotFound.
func ParseSensor(text string) (Sensor, error) {
	name, rest, some := strings.Cut(strings.TrimSpace(text), "[")
	sensor := Sensor{Name: strings.TrimSpace(name)}
	for _, b := range sensors[strings.ToLower(sensor.Name)] {
		sensor.Bands = append(sensor.Bands, parseBand(b))
	}
	if !some {
		return sensor, nil
	}
	list, ok := strings.CutSuffix(rest, "]")
	if !ok || strings.TrimSpace(list) == "" {
		return sensor, fault.New(fault.Corrupt, "sensor", fault.NoOffset, "%.100q is not NAME or NAME[BAND, BAND]",
			text)
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
	bands := sensor.Bands
	sensor.Bands = nil
	for _, i := range places {
		sensor.Bands = append(sensor.Bands, bands[i])
	}
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
			return nil, fault.New(fault.NotFound, "sensor "+s.Name, fault.NoOffset, "no band %q: the bands are %s",
				name, strings.Join(s.names(), ", "))
		}
	}
	return places, nil
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
			whole = whole && b.Index != nil && *b.Index >= 0 && *b.Index < len(seen) && !seen[*b.Index]
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
