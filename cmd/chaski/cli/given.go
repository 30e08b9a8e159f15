package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
)

// maxWords bounds the words of a command in bytes: a million names of 1 KiB.
const maxWords = 1 << 30

// wordsOf returns the words of a command line, and its standard input. A program such as Python runs "COMMAND @-":
// standard input then has a piece with the words after the command, each with a zero byte behind it, and after it the
// pieces of the command's own input. Every user of the machine sees the arguments of a process, and systems take only
// so many of them; nobody sees its standard input. ended is called if the program ends before the command.
func wordsOf(args []string, in io.Reader, ended func()) ([]string, io.Reader, error) {
	if len(args) != 2 || args[1] != "@-" {
		return args, in, nil
	}
	buffered := bufio.NewReader(in)
	size, err := pieceSize(buffered)
	if err != nil {
		return nil, nil, err
	}
	if size > maxWords {
		return nil, nil, fmt.Errorf("%d bytes of words, at most %d", size, maxWords)
	}
	text, err := io.ReadAll(io.LimitReader(buffered, size))
	switch {
	case err != nil:
		return nil, nil, err
	case int64(len(text)) < size:
		return nil, nil, io.ErrUnexpectedEOF
	case size > 0 && text[size-1] != 0:
		return nil, nil, errors.New("the last word has no zero byte behind it")
	case size > 0:
		args = append(args[:1:1], strings.Split(string(text[:size-1]), "\x00")...)
	default:
		args = args[:1]
	}
	return args, pieces(buffered, ended), nil
}

// pieceSize reads the line before a piece, the number of its bytes.
func pieceSize(in *bufio.Reader) (int64, error) {
	line, err := in.ReadSlice('\n')
	if errors.Is(err, io.EOF) {
		return 0, io.ErrUnexpectedEOF
	} else if err != nil {
		return 0, err
	}
	size, err := strconv.ParseUint(string(line[:len(line)-1]), 10, 63)
	return int64(size), err
}

// pieces returns the input of a command that comes as pieces: of each a line with the number of its bytes, then the
// bytes; after the last one a line "0". The program leaves standard input open as long as it lives and wants the
// answer, so the end of standard input, which also the death of the program causes, calls ended. An input that is cut
// ends with io.ErrUnexpectedEOF: it never looks whole.
func pieces(in *bufio.Reader, ended func()) io.Reader {
	read, write := io.Pipe()
	go func() {
		defer ended()
		for {
			size, err := pieceSize(in)
			if err == nil && size == 0 {
				break
			}
			if err == nil {
				_, err = io.CopyN(write, in, size)
			}
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			if err != nil {
				_ = write.CloseWithError(err)
				return
			}
		}
		_ = write.Close()
		_, _ = io.Copy(io.Discard, in) // an error is an end, too
	}()
	return read
}

// graceTime is how long a command may take to remove what it has begun to write when the program that runs it has
// ended.
const graceTime = 10 * time.Second

// stop returns a function that cancels a command as SIGTERM does, and ends the process if that takes too long.
func stop(cancel func(error)) func() {
	return func() {
		cancel(console.Interrupt{Signal: syscall.SIGTERM})
		time.AfterFunc(graceTime, func() { os.Exit(console.ExitTerm) })
	}
}
