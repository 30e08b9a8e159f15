package pathname

import "bytes"

// Folder returns the beginning of a URI up to and including its last "/".
func Folder(uri []byte) []byte { return uri[:bytes.LastIndexByte(uri, '/')+1] }

// Shared returns the folder that a folder and a URI share.
func Shared(folder, uri []byte) []byte {
	n := 0
	for n < len(folder) && n < len(uri) && folder[n] == uri[n] {
		n++
	}
	return Folder(folder[:n])
}
