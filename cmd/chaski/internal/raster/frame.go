package raster

import (
	"context"
	"encoding/binary"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/open"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/codec/geozl"
	"github.com/chaski-eo/chaski/format/codec/openzl"
	"github.com/chaski-eo/chaski/loader/resources"
)

type frameFlags struct {
	format    string
	maxOutput int
	packTo    string
}

func NewFrame(env console.Env) *cobra.Command {
	var f frameFlags
	cmd := console.Command("frame [flags] FILE", console.ExactlyOne("FILE"),
		func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), env, args[0]) })
	console.ChoiceVar(cmd.Flags(), &f.format, "format", "sha256", "sha256", "raw")
	console.Var(cmd.Flags(), &f.packTo, "pack", "")
	console.CountVar(cmd.Flags(), &f.maxOutput, "max-output", resources.DefaultMaxChunkBytes, 1)
	return cmd
}

// frameOutput is one output of a frame as --format sha256 prints it.
type frameOutput struct {
	Type       string `json:"type"`
	Width      int    `json:"width"`
	Count      int    `json:"count"`
	SHA256     string `json:"sha256"`
	LensSHA256 string `json:"lens_sha256,omitempty"`
}

func (f *frameFlags) run(ctx context.Context, env console.Env, path string) error {
	if f.packTo != "" {
		return pack(ctx, env, f.packTo)
	}
	if f.format == "raw" {
		if err := console.NotToTerminal("", env.Out, "the content of a frame"); err != nil {
			return err
		}
	}
	frame, err := open.Whole(ctx, env.Files, path)
	if err != nil {
		return fault.WithFile(err, path)
	}
	outputs, err := openzl.NewDecoder(openzl.Options{MaxOutput: f.maxOutput, Custom: geozl.Codecs()}).Decode(frame)
	if err != nil {
		return fault.WithFile(err, path)
	}
	if f.format == "raw" {
		for _, o := range outputs {
			if _, err := env.Out.Write(o.Data); err != nil {
				return err
			}
		}
		return nil
	}
	list := make([]frameOutput, len(outputs))
	for i, output := range outputs {
		list[i] = frameOutput{Type: output.Type.String(), Width: output.Width, Count: output.Count,
			SHA256: console.Sha256Hex(output.Data)}
		if output.Type == openzl.String {
			lens, _ := binary.Append(nil, binary.LittleEndian, output.Lens) // numbers of one size do not fail
			list[i].LensSHA256 = console.Sha256Hex(lens)
		}
	}
	return console.PrintJSON(env.Out, map[string]any{"outputs": list})
}
