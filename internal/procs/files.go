package procs

// defaultFiles is what most systems allow a process that does not ask for more.
const defaultFiles = 1024
