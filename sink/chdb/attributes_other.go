//go:build !linux

package chdb

import "syscall"

// attributes has nothing to add where no engine exists; New refuses there.
func attributes() *syscall.SysProcAttr { return nil }
