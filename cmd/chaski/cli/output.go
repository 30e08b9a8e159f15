package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/chaski-eo/chaski/fault"
)

// printJSON writes v as one line.
func printJSON(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// writeFile writes a file through a temporary one beside it, so that the name never holds half of
// it. The name "-" stands for out.
func writeFile(name string, out io.Writer, write func(io.Writer) error) error {
	if name == "-" || name == "" {
		return write(out)
	}
	if st, err := os.Stat(name); err == nil && !st.Mode().IsRegular() { // a device or pipe
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return fileError(name, err)
		}
		return fileError(name, firstError(write(f), f.Close()))
	}
	tmp := fmt.Sprintf("%s.%d.tmp", name, os.Getpid())
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return fileError(name, err)
	}
	err = firstError(write(f), f.Close())
	if err == nil {
		err = os.Rename(tmp, name)
	}
	if err != nil {
		os.Remove(tmp)
	}
	return fileError(name, err)
}

// notTyped refuses to write bytes that are no text to a terminal, which would obey some of them.
func notTyped(out io.Writer, what string) error {
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return usagef("%s is no text: send it to a file or to another program, not to a terminal", what)
	}
	return nil
}

// fileError names the file that could not be opened, read or written; faults stay as they are.
func fileError(name string, err error) error {
	if k := systemKind(err); err != nil && k != 0 && fault.KindOf(err) == 0 {
		return fault.WithFile(fault.Wrap(k, "file", fault.NoOffset, err), name)
	}
	return err
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
