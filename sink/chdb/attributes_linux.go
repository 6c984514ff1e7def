package chdb

import "syscall"

// attributes end the child with its parent, whatever ends that, and keep the
// terminal's Ctrl-C from it: the sink still writes while assay drains.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true}
}
