package sign

import "syscall"

// closeOnExec keeps a handle from programs that this one starts.
func closeOnExec(fd uintptr) { syscall.CloseOnExec(syscall.Handle(fd)) }
