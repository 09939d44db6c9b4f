//go:build nemesis

package service

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// clockFile is the variable with the path of a file that has the error of the machine's clock, in milliseconds.
const clockFile = "NEMESIS_CLOCK"

// clockError is the error as read last.
var clockError struct {
	sync.Mutex
	read  time.Time
	value time.Duration
}

// machineTime is the clock of a machine that goes wrong, for TestNemesis.
func machineTime() time.Time {
	const every = 50 * time.Millisecond
	now := time.Now()
	clockError.Lock()
	defer clockError.Unlock()
	if now.Sub(clockError.read) > every {
		clockError.read = now
		text, _ := os.ReadFile(os.Getenv(clockFile))
		ms, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		clockError.value = time.Duration(ms) * time.Millisecond
	}
	return now.Add(clockError.value)
}
