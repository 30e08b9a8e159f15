package build

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/internal/taco2"
)

// Members of extensions.
const (
	sensorMember = "optical:sensor"
	bandsMember  = "optical:bands"
	// strategyMember is the member of SplitStrategy.
	strategyMember = "split:strategy"
)

// spread turns the objects of extensions, such as optical: {sensor: sentinel2msi}, into the members that containers
// have: optical:sensor. It returns the names of the extensions, which lose all members of theirs. A member that the
// extension does not define is an error, because it would be ignored.
func spread(members map[string]json.RawMessage) (namespaces []string, err error) {
	for namespace, raw := range maps.Clone(members) {
		known := taco2.ExtensionMembers(namespace)
		if known == nil || !taco2.Has(raw) {
			continue
		}
		names := strings.ReplaceAll(strings.Join(known, ", "), namespace+":", "")
		var o map[string]json.RawMessage
		if json.Unmarshal(raw, &o) != nil {
			return nil, badMember("%s is %.100s: it must be an object with %s", namespace, raw, names)
		}
		namespaces = append(namespaces, namespace)
		delete(members, namespace)
		for _, name := range slices.Sorted(maps.Keys(o)) {
			if !slices.Contains(known, namespace+":"+name) {
				return nil, badMember("%s has %q: it has %s", namespace, name, names)
			}
			members[namespace+":"+name] = o[name]
		}
	}
	return namespaces, nil
}

// filled adds the members that follow from other members of extensions: the bands of a known sensor, and the numbers of
// classes and bands.
func filled(members map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	extra := maps.Clone(members)
	if sensor, err := sensorOf(members); err == nil && sensor.Bands != nil {
		if extra[bandsMember], err = plainJSON(bandsOf(sensor)); err != nil {
			return nil, err
		}
		extra[sensorMember] = quoted(sensor.Name)
	}
	for count, counted := range taco2.Counts {
		var list []json.RawMessage
		if !taco2.Has(extra[count]) && taco2.Has(extra[counted]) && json.Unmarshal(extra[counted], &list) == nil {
			extra[count] = fmt.Append(nil, len(list))
		}
	}
	return extra, nil
}

// sensorOf returns the sensor of members that name one without its bands. An unknown sensor has no bands.
func sensorOf(members map[string]json.RawMessage) (s taco.Sensor, err error) {
	var text string
	if json.Unmarshal(members[sensorMember], &text) != nil || text == "" || taco2.Has(members[bandsMember]) {
		return s, nil
	}
	return taco.ParseSensor(text)
}

// bandsOf returns optical:bands. Their indexes count the bands of the rasters from 0. Of a band that has only a name
// nothing else is said.
func bandsOf(s taco.Sensor) (out []object) {
	for i, band := range s.Bands {
		o := object{{"name", band.Name}, {"index", i}}
		if band.CommonName != "" {
			o = append(o, member{"common_name", band.CommonName})
		}
		if band.Metres > 0 {
			o = append(o, member{"description", fmt.Sprintf("pixels of %g m", band.Metres)},
				member{"center_wavelength", band.Centre}, member{"full_width_half_max", band.Width})
		}
		out = append(out, o)
	}
	return out
}

// checkExtensions returns the first violation of the members of extensions.
func checkExtensions(members map[string]json.RawMessage) error {
	s, err := sensorOf(members)
	if err == nil && s.Name != "" && s.Bands == nil {
		err = fmt.Errorf("it is none of %s, and so it needs %s", strings.Join(taco.Sensors(), ", "), bandsMember)
	}
	if err != nil {
		return badMember("%s is %s: %s", sensorMember, members[sensorMember], withoutKind(err))
	}
	extra, err := filled(members)
	if err != nil {
		return err
	}
	return firstOf(taco2.Violations(extra))
}

// withoutKind returns the text of an error that becomes one of another kind.
func withoutKind(err error) string {
	var f *fault.Error
	if errors.As(err, &f) {
		return strings.TrimSuffix(err.Error(), ": "+f.Kind.Error())
	}
	return err.Error()
}

// firstOf returns an error about the first of the violations.
func firstOf(violations []string) error {
	if len(violations) == 0 {
		return nil
	}
	return badMember("%s", violations[0])
}

// checkTimes checks the start and end of a temporal extent.
func checkTimes(temporal []string) error {
	if len(temporal) == 0 {
		return nil
	}
	for _, text := range temporal {
		if _, err := taco.ParseTimes(text); err != nil || strings.Contains(text, "/") {
			return badMember("extent.temporal has %q: it must be a date or a timestamp such as 2024-05-01T10:00:00Z",
				text)
		}
	}
	if _, err := taco.ParseTimes(temporal[0] + "/" + temporal[1]); err != nil {
		return badMember("extent.temporal is %q: it ends before it starts", temporal)
	}
	return nil
}

// oldMembers are the members that extensions have in generation 1, of tacotoolbox 0.5: a member, or one of the object
// that it is.
var oldMembers = []struct{ old, inner, name string }{
	{"optical_data", "sensor", sensorMember}, {"optical_data", "bands", bandsMember},
	{"labels", "label_classes", "labels:classes"}, {"labels", "label_description", "labels:description"},
	{"scientific", "publications", "publications"},
	{"split_strategy", "", strategyMember},
}

// newExtensions gives the members of extensions of generation 1 their names of generation 2. Members of another form
// stay as they are.
func newExtensions(members map[string]json.RawMessage) {
	made, left := map[string]json.RawMessage{}, map[string]map[string]json.RawMessage{}
	for _, m := range oldMembers {
		var o map[string]json.RawMessage
		value := members[m.old]
		if m.inner != "" && json.Unmarshal(value, &o) == nil {
			if left[m.old] == nil {
				left[m.old] = o
			}
			value = o[m.inner]
			delete(left[m.old], m.inner)
		}
		if taco2.Has(value) {
			made[m.name] = value
		}
	}
	if s, err := sensorOf(made); err != nil || s.Name != "" && s.Bands == nil {
		made[bandsMember] = json.RawMessage("[]") // nothing is known of them
	}
	if len(taco2.Violations(made)) > 0 {
		return
	}
	for _, m := range oldMembers {
		if made[m.name] == nil {
			continue
		}
		members[m.name] = made[m.name]
		delete(members, m.old)
		if b, err := json.Marshal(left[m.old]); err == nil && len(left[m.old]) > 0 {
			members[m.old] = b
		}
	}
}

// oldExtensions is the way back. TACO 0.2.0 has no strategy "manual".
func oldExtensions(more map[string]json.RawMessage) (members []member) {
	objects := map[string]object{}
	for _, m := range oldMembers {
		value := more[m.name]
		if !taco2.Has(value) {
			continue
		}
		delete(more, m.name)
		if m.name == strategyMember && string(value) == `"manual"` {
			value = json.RawMessage(`"other"`)
		}
		if m.inner == "" {
			members = append(members, member{m.old, value})
		} else {
			objects[m.old] = append(objects[m.old], member{m.inner, value})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		members = append(members, member{name, objects[name]})
	}
	for count := range taco2.Counts {
		delete(more, count)
	}
	return members
}
