package job

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/internal/pathname"
)

// Folder is where a job lies: Dir or Objects.
type Folder interface{ folder }

// Dir returns a folder of a file system.
func Dir(path string) Folder { return localFolder(path) }

// folder is implemented by directories and object stores. Names are separated by "/". A file that exists
// is complete; a missing one is fault.NotFound. Errors name the file.
type folder interface {
	// name returns the name of a file for people.
	name(file string) string
	// prepare makes the folder, and those in it.
	prepare(ctx context.Context) error
	// probe makes sure that files can be written.
	probe(ctx context.Context) error
	exists(ctx context.Context, file string) (bool, error)
	// read reads a file of at most most bytes, section a part of one.
	read(ctx context.Context, file string, most int64) ([]byte, error)
	section(ctx context.Context, file string, off, n int64) ([]byte, error)
	// open opens a file for reading it anywhere.
	open(ctx context.Context, file string) (content, error)
	// write writes or replaces a file. create writes a new file, and returns fs.ErrExist if it exists.
	write(ctx context.Context, file string, write func(io.Writer) error) error
	create(ctx context.Context, file string, b []byte) error
	// list returns the names of the files in a folder of it that begin with begin, without the folder's.
	list(ctx context.Context, sub, begin string) ([]string, error)
}

// content is an open file.
type content interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// localFolder is a folder of a file system.
type localFolder string

func (f localFolder) name(file string) string { return pathname.Join(string(f), file) }

func (f localFolder) prepare(context.Context) error {
	for _, sub := range []string{resultsName, runsName} {
		if err := durable.MkdirAll(f.name(sub)); err != nil {
			return err
		}
	}
	return nil
}

// probe writes a file and removes it: a mode does not tell, as a file system may be full or read-only.
func (f localFolder) probe(context.Context) error {
	folder, err := durable.NewFolder(f.name(resultsName + "/probe"))
	if err != nil {
		return err
	}
	return folder.Remove()
}

func (f localFolder) exists(_ context.Context, file string) (bool, error) {
	_, err := os.Lstat(f.name(file))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (f localFolder) read(_ context.Context, file string, most int64) ([]byte, error) {
	name := f.name(file)
	r, _, err := openRegular(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(data)) > most {
		err = fault.New(fault.Limit, "job", fault.NoOffset, "over %d bytes", most)
	}
	if err != nil {
		return nil, fault.WithFile(err, name)
	}
	return data, nil
}

func (f localFolder) section(ctx context.Context, file string, off, n int64) ([]byte, error) {
	content, err := f.open(ctx, file)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	if off > content.Size() || n > content.Size()-off {
		return nil, fault.WithFile(fault.New(fault.Corrupt, "items", off, "%d bytes in a file of %d", n,
			content.Size()),
			f.name(file))
	}
	b := make([]byte, n)
	_, err = io.ReadFull(io.NewSectionReader(content, off, n), b)
	return b, err
}

type localFile struct {
	*os.File
	size int64
}

func (f localFile) Size() int64 { return f.size }

func (f localFolder) open(_ context.Context, file string) (content, error) {
	r, size, err := openRegular(f.name(file))
	if err != nil {
		return nil, err
	}
	return localFile{r, size}, nil
}

// openRegular opens a file. Others are refused before they are opened: opening a pipe would block.
func openRegular(name string) (*os.File, int64, error) {
	st, err := os.Stat(name)
	if err == nil && !st.Mode().IsRegular() {
		err = fault.WithFile(corrupt("it is not a file"), name)
	}
	if err != nil {
		return nil, 0, missing(name, err)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, 0, missing(name, err)
	}
	return file, st.Size(), nil
}

func (f localFolder) write(_ context.Context, file string, write func(io.Writer) error) error {
	return durable.WriteFile(f.name(file), func(w *os.File) error { return write(w) })
}

func (f localFolder) create(_ context.Context, file string, b []byte) error {
	return durable.CreateFile(f.name(file), func(w *os.File) error {
		_, err := w.Write(b)
		return err
	})
}

func (f localFolder) list(_ context.Context, sub, begin string) ([]string, error) {
	entries, err := os.ReadDir(f.name(sub))
	if err != nil {
		return nil, missing(f.name(sub), err)
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), begin) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}
