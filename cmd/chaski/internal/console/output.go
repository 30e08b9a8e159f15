package console

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/chaski-eo/chaski/fault"
)

func Sha256Hex(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// PrintJSON writes v as one line.
func PrintJSON(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// WriteFile writes a file through a temporary one beside it, so that the name never holds half of
// it. The name "-" stands for out.
func WriteFile(name string, out io.Writer, write func(io.Writer) error) error {
	if name == "-" || name == "" {
		return write(out)
	}
	if st, err := os.Stat(name); err == nil && !st.Mode().IsRegular() { // a device or pipe
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return FileError(name, err)
		}
		return FileError(name, FirstError(write(f), f.Close()))
	}
	tmp := fmt.Sprintf("%s.%d.tmp", name, os.Getpid())
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return FileError(name, err)
	}
	err = FirstError(write(f), f.Close())
	if err == nil {
		err = os.Rename(tmp, name)
	}
	if err != nil {
		os.Remove(tmp)
	}
	return FileError(name, err)
}

// NotToTerminal refuses to write bytes that are no text to a terminal, which would obey some of them.
func NotToTerminal(out io.Writer, what string) error {
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return Usagef("%s is no text: send it to a file or to another program, not to a terminal", what)
	}
	return nil
}

// FileError names the file that could not be opened, read or written; faults stay as they are.
func FileError(name string, err error) error {
	if k := SystemKind(err); err != nil && k != 0 && fault.KindOf(err) == 0 {
		return fault.WithFile(fault.Wrap(k, "file", fault.NoOffset, err), name)
	}
	return err
}

func FirstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// WriteTable writes lines of cells in columns, the first one to the left and the others to the right.
func WriteTable(env Env, rows [][]string) error {
	w := tabwriter.NewWriter(env.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	width := 0
	for _, r := range rows {
		width = max(width, utf8.RuneCountInString(r[0]))
	}
	for _, r := range rows {
		fmt.Fprintf(w, "%-*s\t%s\t\n", width, r[0], strings.Join(r[1:], "\t"))
	}
	return w.Flush()
}
