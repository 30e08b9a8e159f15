// Package payload is the bytes of one batch on the wire: a FlatBuffers header and raw,
// little-endian tensors at offsets divisible by 64, as proto/chaski/v1/batch.fbs lays them out.
//
// Encode copies no tensor: it returns the batch's own memory in order. A Receiver trusts nothing: it
// reads the header by itself (FlatBuffers for Go does not verify a buffer), checks every table,
// vector, shape and range before it uses it, and puts tensors into memory of the receiver, with the
// arithmetic done that is left to a receiver of native tensors.
//
// Headers with version 1 are read. FlatBuffers features outside of the schema (unions, nested
// buffers, 64-bit vectors, file identifiers) are left out.
package payload

// Version is the header version that is written and read.
const Version = 1

// Align is the alignment of tensors in a payload, in bytes.
const Align = 64

// sizePrefix is the bytes of the header's length at the start of a payload.
const sizePrefix = 4

// roundUp returns n rounded up to a multiple of Align.
func roundUp(n int) int { return (n + Align - 1) &^ (Align - 1) }
