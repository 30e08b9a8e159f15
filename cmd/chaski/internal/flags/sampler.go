package flags

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/spec"
)

// sampler are the flags of windows: how they are chosen, and the members of each kind of sampler. The members come from
// the spec: a new one is a flag without more ado.
type sampler struct {
	kind     string
	window   string
	onGround string // --geo-window
	perAsset int
	members  []*member
}

// member is the flag of a member that only one kind of sampler has. It implements pflag.Value.
type member struct {
	about spec.SamplerMember
	text  string          // as given
	json  json.RawMessage // its value, nil without the flag
}

// flagOf returns the name of the flag for a member of a spec.
func flagOf(member string) string {
	return cmp.Or(flagsOf[member], strings.ReplaceAll(member, "_", "-"))
}

// needs returns the flag that a sampler of a kind needs beside --sampler, and which alone chooses it.
func needs(kind string) string {
	if kind == spec.GroundWindow {
		return "--geo-window"
	}
	return "--sampler " + kind
}

// add adds the flags to a set.
func (s *sampler) add(fl *pflag.FlagSet) {
	fl.StringVar(&s.window, "window", "", "`HxW`: draw random windows of this size in pixels, or SIDE,SIDE,...: each "+
		"batch has squares of one of these sides (default: the whole chip)")
	fl.StringVar(&s.onGround, "geo-window", "",
		"`SIDE/PIXEL` in metres, such as 2560/10: draw windows at places on the ground; samples are scenes in any CRS")
	console.CountVar(fl, &s.perAsset, "per-asset", 0, 1,
		"windows that an epoch takes from each asset; visits for tile_window (default: 1; for tile_window its "+
			"number of tiles)")
	fl.StringVar(&s.kind, "sampler", "", "how windows are chosen: "+strings.Join(spec.SamplerKinds, ", ")+
		" (default: chip, random_window if --window is set, geo_window if --geo-window is)")
	for m := range spec.SamplerMembers() {
		// --geo-window and --per-asset say these.
		if m.Name == "size_m" || m.Name == "resolution" || m.Name == "visits" {
			continue
		}
		member := &member{about: m}
		s.members = append(s.members, member)
		flag := fl.VarPF(member, flagOf(m.Name), "", member.usage())
		if m.Type.Kind() == reflect.Bool {
			flag.NoOptDefVal = "true"
		}
	}
}

// backticked is the name of a member in the documentation of another one.
var backticked = regexp.MustCompile("`\\w+`")

// usage returns the line of help: the first sentence of the documentation, and the default.
func (m *member) usage() string {
	text := backticked.ReplaceAllStringFunc(m.about.Doc, func(name string) string {
		switch name = strings.Trim(name, "`"); name {
		case m.about.Name:
			return strings.ToUpper(name)
		case "size_m":
			return "SIDE"
		case "resolution":
			return "PIXEL"
		}
		return "--" + flagOf(name)
	})
	text = strings.NewReplacer(" of \""+m.about.Kind+"\"", "", "\""+m.about.Kind+"\"", m.about.Kind).Replace(text)
	text, rest, _ := strings.Cut(strings.TrimSuffix(text, "."), ". ")
	text = strings.ToLower(text[:1]) + text[1:]
	if _, value, found := strings.Cut(rest, "Default"); found {
		value, _, _ = strings.Cut(strings.TrimLeft(value, ": "), ". ")
		text += " (default: " + value + ")"
	}
	return fmt.Sprintf("with %s: %s%s", needs(m.about.Kind), m.form().hint, text)
}

// form is how a flag of a type is written.
type form struct {
	name string // as pflag and console.FlagError call it
	hint string // the form, for help
	json func(text string) (any, error)
}

// form returns the form of the member's type.
func (m *member) form() form {
	t := m.about.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[spec.Pair]():
		return form{"pair", "`HxW`, ", func(text string) (any, error) {
			h, w, err := ParsePair(text)
			if err != nil {
				err = errors.New("it must be HxW in pixels, such as 256x256")
			}
			return []int{h, w}, err
		}}
	case t.Kind() == reflect.Array:
		return form{"range", "`LEAST,MOST`, ", parseRange}
	case t.Kind() == reflect.Slice:
		return form{"numbers", "`A,B,...`, ", parseNumbers}
	case t.Kind() == reflect.Bool:
		return form{"bool", "", func(text string) (any, error) { return strconv.ParseBool(text) }}
	case t.Kind() == reflect.Float64:
		return form{"float64", "", func(text string) (any, error) {
			v, err := strconv.ParseFloat(text, 64)
			return v, cmp.Or(err, above0(v > 0))
		}}
	case t.Kind() == reflect.String:
		return form{"string", "", func(text string) (any, error) { return text, nil }}
	}
	return form{"int", "", func(text string) (any, error) {
		v, err := strconv.ParseInt(text, 10, 64)
		return v, cmp.Or(err, above0(v > 0))
	}}
}

// above0 returns the error for a number that is not above 0: a spec takes 0 for the default.
func above0(is bool) error {
	if is {
		return nil
	}
	return errors.New("it must be above 0")
}

// parseRange reads two numbers.
func parseRange(text string) (any, error) {
	numbers, err := parseNumbers(text)
	if err != nil || len(numbers.([]float64)) != 2 {
		return nil, errors.New("it must be two numbers, such as 0.5,2")
	}
	return numbers, nil
}

// parseNumbers reads numbers.
func parseNumbers(text string) (any, error) {
	var numbers []float64
	for part := range strings.SplitSeq(text, ",") {
		v, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil {
			return nil, errors.New("it must be numbers, such as 0.5,2")
		}
		numbers = append(numbers, v)
	}
	return numbers, nil
}

// Set implements pflag.Value.
func (m *member) Set(text string) error {
	if text == "" { // as without the flag
		m.text, m.json = "", nil
		return nil
	}
	v, err := m.form().json(text)
	if err != nil {
		return err
	}
	m.text = text
	m.json, err = json.Marshal(v)
	return err
}

// String implements pflag.Value.
func (m *member) String() string { return m.text }

// Type implements pflag.Value.
func (m *member) Type() string { return m.form().name }

// check checks that flags stand beside the sampler that they are for.
func (s *sampler) check() error {
	kind := s.kind
	if kind != "" {
		if err := console.OneOf("sampler", kind, spec.SamplerKinds...); err != nil {
			return err
		}
	} else if s.onGround != "" {
		kind = spec.GroundWindow
	}
	for _, m := range s.members {
		if m.json != nil && kind != m.about.Kind {
			return console.Usagef("--%s needs %s", flagOf(m.about.Name), needs(m.about.Kind))
		}
	}
	switch {
	case kind == spec.GroundWindow && s.onGround == "":
		return console.Usagef("--sampler %s needs --geo-window", kind)
	case kind != "" && kind != spec.WholeChip && kind != spec.GroundWindow && s.window == "":
		return console.Usagef("--sampler %s needs --window", kind)
	}
	return nil
}

// sampler returns what the flags say.
func (s *sampler) sampler() (out loader.Sampler, err error) {
	if s.window != "" {
		out.Kind = spec.RandomWindow
		if strings.Contains(s.window, ",") {
			err = json.Unmarshal([]byte("["+s.window+"]"), &out.Sizes)
		} else {
			out.Height, out.Width, err = ParsePair(s.window)
		}
		if err != nil {
			return out, console.Usagef("--window is %q: it must be HxW in pixels, such as 256x256, or sides "+
				"of squares, such as 128,192,256", s.window)
		}
	}
	members := map[string]json.RawMessage{}
	if s.onGround != "" {
		out.Kind = spec.GroundWindow
		side, pixel, two := strings.Cut(s.onGround, "/")
		var metres float64
		if !two || json.Unmarshal([]byte(side), &metres) != nil || json.Unmarshal([]byte(pixel), &metres) != nil {
			return out, console.Usagef("--geo-window is %q: it must be the sides of a window and of a pixel in "+
				"metres, such as 2560/10", s.onGround)
		}
		members["size_m"], members["resolution"] = json.RawMessage(side), json.RawMessage(pixel)
	}
	out.Kind = cmp.Or(s.kind, out.Kind)
	out.PerAsset = s.perAsset
	for _, m := range s.members {
		if m.json != nil {
			members[m.about.Name] = m.json
		}
	}
	document, err := json.Marshal(members)
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(document, &out)
}

// flagsOf has the flags of members that have another name.
var flagsOf = map[string]string{
	"batch_size": "batch", "size": "window", "sizes": "window", "length": "sequence", "order": "sequence-order",
	"step": "sequence-step", "stride_y": "stride", "stride_x": "stride", "scale_min": "scale", "scale_max": "scale",
	"tile_height": "tile", "tile_width": "tile", "size_m": "geo-window", "resolution": "geo-window",
}

// wrongSpec marks the error about a spec that flags have made as wrong usage. It names the flag in place of the member.
func wrongSpec(err error, flags *pflag.FlagSet) error {
	var wrong *spec.MemberError
	if !errors.As(err, &wrong) {
		return console.WrongUsage(err)
	}
	name := flagOf(wrong.Member)
	if !flags.Changed(name) {
		return console.WrongUsage(err)
	}
	return console.WrongUsage(errors.New(wrong.Named("--" + name)))
}
