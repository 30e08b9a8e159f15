//go:build datadog

package zstd

// The Go binding of DataDog cannot stop early and does not take the capacity of dst. So this file only
// links libzstd through it, and declares the functions as zstd.h does.

/*
#include <stddef.h>

typedef struct ZSTD_DCtx_s ZSTD_DCtx;

ZSTD_DCtx* ZSTD_createDCtx(void);
size_t ZSTD_freeDCtx(ZSTD_DCtx*);
size_t ZSTD_decompressDCtx(ZSTD_DCtx*, void* dst, size_t room, const void* src, size_t size);
size_t ZSTD_decompressBegin(ZSTD_DCtx*);
size_t ZSTD_nextSrcSizeToDecompress(ZSTD_DCtx*);
size_t ZSTD_decompressContinue(ZSTD_DCtx*, void* dst, size_t room, const void* src, size_t size);
unsigned ZSTD_isError(size_t);
const char* ZSTD_getErrorName(size_t);

// chaski_prefix decodes the first frame of src, block by block, until n bytes of dst are there. It
// returns how many are: fewer than n if the frame ends before, or is broken.
static size_t chaski_prefix(ZSTD_DCtx* d, char* dst, size_t room, const char* src, size_t size, size_t n)
{
	size_t done = 0;
	if (ZSTD_isError(ZSTD_decompressBegin(d)))
		return 0;
	while (done < n) {
		size_t const next = ZSTD_nextSrcSizeToDecompress(d);
		if (next == 0 || next > size)
			break;
		size_t const got = ZSTD_decompressContinue(d, dst + done, room - done, src, next);
		if (ZSTD_isError(got))
			break;
		done += got;
		src += next;
		size -= next;
	}
	return done;
}

#cgo noescape ZSTD_decompressDCtx
#cgo nocallback ZSTD_decompressDCtx
#cgo noescape chaski_prefix
#cgo nocallback chaski_prefix
*/
import "C"

import (
	"errors"
	"runtime"
	"unsafe"

	_ "github.com/DataDog/zstd" // links libzstd
)

// Name is the decoder's name, for reports of measurements.
const Name = "datadog"

// InC says that frames are decompressed in C, which the scheduler of Go cannot see: see package procs.
const InC = true

// Exact says that Decompress is as fast without room after dst.
func Exact() bool { return false }

// Decoder decompresses frames, one after the other. It keeps its tables between calls.
type Decoder struct{ d *C.ZSTD_DCtx }

// New returns a decoder for one worker.
func New() *Decoder {
	d := &Decoder{C.ZSTD_createDCtx()}
	if d.d == nil {
		panic("zstd: out of memory")
	}
	runtime.AddCleanup(d, func(c *C.ZSTD_DCtx) { C.ZSTD_freeDCtx(c) }, d.d)
	return d
}

// into lets libzstd store the literals of a block after dst, which is faster than a buffer apart.
func (d *Decoder) into(dst, src []byte) (int, error) {
	if len(src) == 0 {
		return 0, nil
	}
	n := C.ZSTD_decompressDCtx(d.d, unsafe.Pointer(unsafe.SliceData(dst)), C.size_t(cap(dst)),
		unsafe.Pointer(&src[0]), C.size_t(len(src)))
	runtime.KeepAlive(d)
	if C.ZSTD_isError(n) != 0 {
		return 0, errors.New(C.GoString(C.ZSTD_getErrorName(n)))
	}
	return int(n), nil
}

// prefix fills at least the first n bytes of dst, block by block, or reports false. The rest of dst is
// room for the last block.
func (d *Decoder) prefix(dst, src []byte, n int) bool {
	if len(src) == 0 || n == 0 {
		return false
	}
	done := C.chaski_prefix(d.d, (*C.char)(unsafe.Pointer(&dst[0])), C.size_t(len(dst)),
		(*C.char)(unsafe.Pointer(&src[0])), C.size_t(len(src)), C.size_t(n))
	runtime.KeepAlive(d)
	return int(done) >= n
}
