package dataset

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/picture/npy"
)

type replayFlags struct {
	run  flags.Run
	step stepFlags
	out  string
}

func NewReplay(env console.Env) *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay [flags] SPEC.json|DATASET",
		Short: "Reproduce the batch of one training step",
		Long: `Reproduce the batch of one training step, byte for byte, as an .npz file for numpy.load. The run is a
spec in JSON, such as Python's loader.spec, or a dataset with the flags of 'chaski bench load'. The step is
the one that follows a state (--state FILE); with --back 1, the last one before the state; or --step of
--epoch. --rank R --world W takes the rows of one rank.

The file has one array for each tensor of the batch, and the arrays valid, position and sample with one
element for each row. An element type that NumPy lacks becomes raw bytes: bfloat16 is "|V2". The member
step.json names the step and the bad rows.`,
		Example: `  chaski replay --batch 2 --step 1 -o step.npz chips/
  chaski replay --state state.json --back 1 -o last.npz spec.json
  chaski replay --state state.json --rank 1 --world 2 -o - spec.json > step.npz`,
		Args: console.ExactlyOne("SPEC.json or DATASET"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.do(cmd, env, args[0]) },
	}
	f.run.Add(cmd)
	f.step.add(cmd.Flags())
	cmd.Flags().StringVarP(&f.out, "output", "o", "step.npz", "`FILE` to write; - for standard output")
	return cmd
}

// Replayed is the content of step.json.
type Replayed struct {
	Spec    string `json:"spec"`
	Dataset string `json:"dataset"`
	stepAt
	Bad []badRow `json:"bad"`
}

func (f *replayFlags) do(cmd *cobra.Command, env console.Env, path string) error {
	ctx := cmd.Context()
	engine, closeAll, err := f.run.Open(ctx, env, path, nil)
	if err != nil {
		return err
	}
	defer closeAll()
	step, err := f.step.at(cmd.Flags(), engine)
	if err != nil {
		return err
	}
	batch, err := engine.Start(ctx, step.Ticket, false).Wait(ctx)
	if err != nil {
		return err
	}
	defer batch.Release()
	note, err := json.Marshal(Replayed{engine.Hash(), engine.Fingerprint(), step, badRows(batch)})
	if err != nil {
		return err
	}
	return console.WriteFile(f.out, env.Out, func(w io.Writer) error {
		return writeBatch(w, batch, append(note,
			'\n'))
	})
}

// writeBatch writes a batch as .npz.
func writeBatch(w io.Writer, b *loader.Batch, note []byte) error {
	zip := npy.NewZip(w)
	for i := range b.Tensors {
		if err := writeTensor(zip, &b.Tensors[i]); err != nil {
			return err
		}
	}
	ints := func(v []int64) (out []byte) {
		for _, n := range v {
			out = binary.LittleEndian.AppendUint64(out, uint64(n))
		}
		return out
	}
	rows := []int{b.Rows}
	return console.FirstError(zip.Bools("valid", b.Valid), zip.Array("position", chunk.Int64, rows, ints(b.Positions)),
		zip.Array("sample", chunk.Int64, rows, ints(b.Samples)), zip.File("step.json", note), zip.Close())
}

func writeTensor(z *npy.Zip, t *loader.Tensor) error {
	shape := make([]int, len(t.Shape))
	for i, n := range t.Shape {
		shape[i] = int(n)
	}
	switch t.Kind {
	case loader.Dense:
		return z.Array(t.Name, t.DType, shape, t.Data)
	case loader.Text:
		return z.Strings(t.Name, shape, t.Texts())
	}
	return fault.New(fault.Unsupported, fmt.Sprintf("tensor %q", t.Name), fault.NoOffset,
		"it is ragged, which .npz cannot hold")
}
