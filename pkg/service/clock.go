//go:build !nemesis

package service

import "time"

// machineTime is the clock of the machine.
func machineTime() time.Time { return time.Now() }
