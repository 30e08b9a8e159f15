package tensors_test

import (
	"archive/zip"
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/arrays"
	"github.com/chaski-eo/chaski/store/tensors"
	"github.com/chaski-eo/chaski/tools/testkit/arrayfile"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

const testdata = "../../testdata/tensors"

// files are those of testdata, of which the last one is not by torch.save.
var files = [...]string{"types.pt", "nested.pt", "chips.pt", "flat.safetensors"}

// TestPyTorch compares every tensor of the corpus with what PyTorch reads.
func TestPyTorch(t *testing.T) { arrayfile.Compare(t, testdata, "CHASKI_TENSORS", tensors.Open) }

// TestDamaged: damaged files are read or refused, with a kind.
func TestDamaged(t *testing.T) {
	for _, name := range files {
		arrayfile.Damage(t, tensors.Open, testdata+"/"+name)
	}
}

// open opens a file of torch.save with a pickle.
func open(pickle string) error {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	if f, err := w.CreateHeader(&zip.FileHeader{Name: "a/data.pkl"}); err == nil {
		_, _ = f.Write([]byte(pickle))
	}
	_ = w.Close()
	one := source.OpenOne(func(context.Context) (source.Reader, error) { return &corpus.Mem{B: b.Bytes()}, nil })
	_, err := tensors.Open(context.Background(), one, "a.pt", arrays.Options{})
	return err
}

// TestNothingIsCalled: pickles that call functions are refused with their names, lists in one another that a walk would
// visit for ever by their number, and pickles that are none.
func TestNothingIsCalled(t *testing.T) {
	laughs := "\x80\x02]q\x00"
	for i := range 40 {
		laughs += "]q" + string(rune(i+1)) + "(h" + string(rune(i)) + "h" + string(rune(i)) + "e"
	}
	for pickle, want := range map[string]struct {
		kind fault.Kind
		says string
	}{
		"\x80\x02cos\nsystem\n(X\x02\x00\x00\x00lstR.":       {fault.Unsupported, "os.system"},
		"\x80\x04\x8c\x02os\x8c\x06system\x93)R.":            {fault.Unsupported, "os.system"},
		"\x80\x02ccollections\nOrderedDict\n)R}b.":           {fault.Unsupported, "no tensor"},
		"\x80\x02cnumpy\nndarray\n)\x81.":                    {fault.Unsupported, "opcode"},
		"\x80\x02]q\x00h\x00a.":                              {fault.Limit, "levels"},
		laughs + ".":                                         {fault.Limit, "levels"},
		"\x80\x02r\xff\xff\xff\xff.":                         {fault.Corrupt, "kept"},
		"\x80\x02X\xff\xff\xff\xff.":                         {fault.Corrupt, "ends"},
		"\x80\x02)\x85R.":                                    {fault.Corrupt, "stack"},
		"":                                                   {fault.Corrupt, "ends"},
		"\x80\x02}(X\x01\x00\x00\x00a":                       {fault.Corrupt, "ends"},
		"\x80\x02]" + strings.Repeat("(", 1000) + "t":        {fault.Corrupt, "ends"},
		"\x80\x02(X\x07\x00\x00\x00storageNNNNtQ.":           {fault.Corrupt, "class"},
		"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(NNNNtR": {fault.Corrupt, "storage"},
	} {
		if err := open(pickle); fault.KindOf(err) != want.kind || !strings.Contains(err.Error(), want.says) {
			t.Errorf("%q: %v, want %q", pickle[:min(len(pickle), 60)], err, want.says)
		}
	}
}

// FuzzOpen: a file of any content is read or refused, with a kind.
func FuzzOpen(f *testing.F) {
	for _, name := range files {
		f.Add(testfile.Read(f, testdata+"/"+name))
	}
	f.Fuzz(func(t *testing.T, b []byte) { arrayfile.ReadAll(t, b, "a.pt", tensors.Open) })
}

// FuzzPickle: a pickle of any content is read or refused, with a kind.
func FuzzPickle(f *testing.F) {
	f.Add("\x80\x02}q\x00(X\x01\x00\x00\x00aK\x01X\x01\x00\x00\x00b]\x94\x8a\x02\x01\x02au.")
	f.Fuzz(func(t *testing.T, pickle string) {
		if err := open(pickle); err != nil && fault.KindOf(err) == 0 {
			t.Fatalf("an error without a kind: %v", err)
		}
	})
}
