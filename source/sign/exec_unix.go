//go:build unix

package sign

import "syscall"

// closeOnExec keeps a descriptor from programs that this one starts.
func closeOnExec(fd uintptr) { syscall.CloseOnExec(int(fd)) }
