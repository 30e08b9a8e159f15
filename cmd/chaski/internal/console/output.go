package console

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
)

// Sha256Hex returns the hash of parts, one after the other.
func Sha256Hex(parts ...[]byte) string {
	hash := sha256.New()
	for _, p := range parts {
		hash.Write(p)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// PrintJSON writes v as one line, without secrets: see fault.WithoutSecrets, which leaves JSON valid.
func PrintJSON(w io.Writer, v any) error {
	return printJSON(w, v, fault.WithoutSecrets)
}

// PrintInput writes v, which another command will read, as one line. It keeps the URIs whole so that they still open.
func PrintInput(w io.Writer, v any) error {
	return printJSON(w, v, func(text string) string { return text })
}

func printJSON(w io.Writer, v any, filter func(string) string) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, filter(string(data))+"\n")
	return err
}

// WriteFile writes a file so that its name never holds half of one, also after a crash: see durable.WriteFile. The
// names "-" and "" stand for the standard output. A file for a store is written to a local folder of temporary files
// first, and then sent, again if that fails.
func (e Env) WriteFile(ctx context.Context, name string, write func(io.Writer) error) error {
	return e.writeFile(ctx, name, false, write)
}

// WriteNew is WriteFile of a file that must not be there: it is fault.Unsupported.
func (e Env) WriteNew(ctx context.Context, name string, write func(io.Writer) error) error {
	return e.writeFile(ctx, name, true, write)
}

func (e Env) writeFile(ctx context.Context, name string, fresh bool, write func(io.Writer) error) error {
	if name == "-" || name == "" {
		return write(e.Out)
	}
	if source.IsRemote(name) {
		return e.send(ctx, name, fresh, write)
	}
	if _, err := os.Lstat(name); fresh && err == nil {
		return fault.WithFile(fault.New(fault.Unsupported, "file", "exists"), name)
	}
	if st, err := os.Stat(name); err == nil && !st.Mode().IsRegular() {
		// A device or pipe, such as /dev/null, must not be replaced by a file.
		file, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return FileError(name, err)
		}
		return FileError(name, cmp.Or(write(file), file.Close()))
	}
	return FileError(name, durable.WriteFile(name, func(f *os.File) error { return write(f) }))
}

// send writes an object of a store.
func (e Env) send(ctx context.Context, uri string, fresh bool, write func(io.Writer) error) error {
	store, err := e.store(uri)
	if err != nil {
		return err
	}
	file, release, err := durable.Scratch()
	if err != nil {
		return err
	}
	defer release()
	if err := write(file); err != nil {
		return err
	}
	return store.Put(ctx, uri, file, fresh)
}

// Remove removes a file, or an object of a store.
func (e Env) Remove(ctx context.Context, name string) error {
	if !source.IsRemote(name) {
		return FileError(name, os.Remove(name))
	}
	store, err := e.store(name)
	if err != nil {
		return err
	}
	return store.Remove(ctx, name)
}

// store returns what writes the objects of a store.
func (e Env) store(uri string) (source.Putter, error) {
	store, ok := e.Files.(source.Putter)
	if !ok {
		return nil, fault.WithFile(fault.New(fault.Unsupported, "output", "no store is written here"), uri)
	}
	return store, nil
}

// Exists returns fault.NotFound about a file, or an object of a store, that is not there.
func (e Env) Exists(ctx context.Context, name string) error {
	if !source.IsRemote(name) {
		_, err := os.Stat(name)
		return FileError(name, err)
	}
	object, err := e.Files.Open(ctx, name)
	if err != nil {
		return err
	}
	return object.Close()
}

// Copy opens a file, and a copy of an object of a store, until close is called.
func (e Env) Copy(ctx context.Context, name string) (file *os.File, closed func(), err error) {
	if !source.IsRemote(name) {
		if file, err = os.Open(name); err != nil {
			return nil, nil, FileError(name, err)
		}
		return file, func() { _ = file.Close() }, nil // it was only read
	}
	object, err := e.Files.Open(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	defer object.Close() //nolint:errcheck // it was only read
	file, release, err := durable.Scratch()
	if err != nil {
		return nil, nil, err
	}
	_, err = io.CopyBuffer(file, source.Sequential(ctx, object), make([]byte, copyBytes))
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		release()
		return nil, nil, err
	}
	return file, release, nil
}

// copyBytes is the size of a request of Copy, in bytes: one of 20 ms takes as long at 400 MB/s.
const copyBytes = 8 << 20

// WriteJSON writes v as one line of JSON, as PrintJSON does, into a file as WriteFile does.
func (e Env) WriteJSON(ctx context.Context, name string, v any) error {
	return e.WriteFile(ctx, name, func(w io.Writer) error { return PrintJSON(w, v) })
}

// Writable returns the error of WriteFile about a file that cannot be created.
func Writable(name string) error {
	if name == "-" || name == "" {
		return nil
	}
	if st, err := os.Stat(name); err == nil && !st.Mode().IsRegular() && !st.IsDir() {
		return nil // a device or pipe
	}
	return FileError(name, durable.Writable(name))
}

// JSON is the format that EndsLike takes where JSON is written.
var JSON = magic.Named(".json")

// EndsLike returns an error if the name of a file that is written has an ending of another format.
func EndsLike(name string, formats ...*magic.Format) error {
	named := magic.Named(name)
	if slices.Contains(formats, named) || named.Class == 0 && magic.OfName(name) == "" {
		return nil
	}
	var ends []string
	for _, format := range formats {
		ends = append(ends, format.Ends...)
	}
	return Usagef("%s has an ending of another format than what is written%s", name,
		strings.TrimSuffix(": "+strings.Join(ends, ", "), ": "))
}

// IsTerminal reports whether out is a terminal, where a person reads what is written.
func IsTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// NotToTerminal refuses to write binary data to a terminal, which would obey some of its bytes. file is the file that
// is written instead, "" or "-" for none.
func NotToTerminal(file string, out io.Writer, what string) error {
	if (file == "" || file == "-") && IsTerminal(out) {
		return Usagef("%s is binary data: send it to a file or to another program, not to a terminal", what)
	}
	return nil
}

// FileError names the file that could not be opened, read or written. Faults stay as they are,
// because they may name another file.
func FileError(name string, err error) error {
	if kind := SystemKind(err); err != nil && kind != 0 && fault.KindOf(err) == 0 {
		var system *fs.PathError
		if errors.As(err, &system) && system.Path == name {
			// The text of the whole error would have the name twice.
			err = system.Err
		}
		return fault.WithFile(fault.Wrap(kind, "file", err), name)
	}
	return err
}

// Printable replaces the control characters of text that comes from a file by spaces.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		// C0, DEL and C1: a terminal would obey some of them.
		if r < ' ' || r == 0x7F || r >= 0x80 && r < 0xA0 {
			return ' '
		}
		return r
	}, s)
}

// DecimalSize writes a number of bytes in units of 1000.
func DecimalSize(n int64) string {
	const units = "kMGTPE"
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	v, i := float64(n)/1000, 0
	// Rounded to one decimal before the comparison, since 999.96 kB would print as 1000.0 kB.
	for ; math.Round(v*10) >= 10000 && i < len(units)-1; i++ {
		v /= 1000
	}
	return fmt.Sprintf("%.1f %cB", v, units[i])
}
