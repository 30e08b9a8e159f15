package flags

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/spec"
)

// sampler are the flags of windows: how they are chosen. What only one kind of sampler has, such as the stride of a
// grid, is JSON, since some 35 flags would hide those that most runs need.
type sampler struct {
	kind     string // --sampler, or its JSON
	window   string
	onGround string // --geo-window
	perAsset int
}

// add adds the flags to a set.
func (s *sampler) add(fl *pflag.FlagSet) {
	console.Var(fl, &s.window, "window", "")
	console.Var(fl, &s.onGround, "geo-window", "")
	console.CountVar(fl, &s.perAsset, "per-asset", 0, 1)
	console.ChoiceOrVar(fl, &s.kind, "sampler", "", console.IsObject, spec.SamplerKinds()...)
}

// sampler returns what the flags say.
func (s *sampler) sampler() (out loader.Sampler, err error) {
	if out.Kind = s.kind; console.IsObject(s.kind) {
		out.Kind = ""
		if err := spec.Read([]byte(s.kind), &out); err != nil {
			return out, console.Usagef("--sampler: %w", err)
		}
	}
	if s.window != "" {
		out.Kind = cmp.Or(out.Kind, spec.RandomWindow)
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
	if s.onGround != "" {
		out.Kind = cmp.Or(out.Kind, spec.GeoWindow)
		side, pixel, two := strings.Cut(s.onGround, "/")
		if !two || json.Unmarshal([]byte(side), &out.SizeM) != nil ||
			json.Unmarshal([]byte(pixel), &out.Resolution) != nil {
			return out, console.Usagef("--geo-window is %q: it must be the sides of a window and of a pixel in "+
				"metres, such as 2560/10", s.onGround)
		}
	}
	out.PerAsset = cmp.Or(s.perAsset, out.PerAsset)
	switch {
	case out.Kind == spec.GeoWindow && out.SizeM == 0:
		return out, console.Usagef("--sampler %s needs --geo-window", out.Kind)
	case spec.NeedsSize(out.Kind) && out.Height == 0 && out.Size == nil && out.Sizes == nil:
		return out, console.Usagef("--sampler %s needs --window", out.Kind)
	}
	return out, nil
}

// flagsOf has the flags of members of a spec that have another name.
var flagsOf = map[string]string{"batch_size": "batch", "size": "window", "sizes": "window", "size_m": "geo-window",
	"resolution": "geo-window"}

// wrongSpec marks the error about a spec that flags have made as wrong usage. It names the flag in place of the member.
func wrongSpec(err error, flags *pflag.FlagSet) error {
	var wrong *fault.MemberError
	if !errors.As(err, &wrong) {
		return console.WrongUsage(err)
	}
	name := cmp.Or(flagsOf[wrong.Member], strings.ReplaceAll(wrong.Member, "_", "-"))
	if !flags.Changed(name) {
		return console.WrongUsage(err)
	}
	return console.WrongUsage(errors.New(wrong.Named("--" + name)))
}
