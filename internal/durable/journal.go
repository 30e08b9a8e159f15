package durable

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
)

// Journal is a file to which a run appends records of its progress. A record is read as a whole or not at all.
//
// A record is stored as its length and its CRC-32C, 32 bits each and little-endian, and its bytes.
type Journal struct{ f *os.File }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const recordHead = 8

// OpenJournal opens a journal, or creates it, and calls read with each record in order. It cuts off a partial record
// at the end, as a kill may leave it. It returns the first error of read.
func OpenJournal(name string, read func(record []byte) error) (_ *Journal, err error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	st, err := file.Stat()
	if err != nil {
		return nil, err
	}
	pos, size := int64(0), st.Size()
	var head [recordHead]byte
	for size-pos >= recordHead {
		if _, err := file.ReadAt(head[:], pos); err != nil {
			return nil, err
		}
		n := int64(binary.LittleEndian.Uint32(head[:4]))
		if n > size-pos-recordHead {
			break
		}
		record := make([]byte, n)
		if _, err := file.ReadAt(record, pos+recordHead); err != nil {
			return nil, err
		}
		if crc32.Checksum(record, castagnoli) != binary.LittleEndian.Uint32(head[4:]) {
			break
		}
		if err := read(record); err != nil {
			return nil, err
		}
		pos += recordHead + n
	}
	if err := file.Truncate(pos); err != nil {
		return nil, err
	}
	_, err = file.Seek(pos, io.SeekStart)
	return &Journal{file}, err
}

// Append writes a record of less than 4 GiB, and waits until it is on the disk.
func (j *Journal) Append(record []byte) error {
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, recordHead+len(record)), uint32(len(record)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(record, castagnoli))
	if _, err := j.f.Write(append(b, record...)); err != nil {
		return err
	}
	return fsync(j.f)
}

// Close closes the file.
func (j *Journal) Close() error { return j.f.Close() }
