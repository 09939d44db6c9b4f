package httpapi

import (
	"net/http"
	"sync/atomic"
	"time"
)

// dateHeader is the value of Date (RFC 9110, 6.6.1), written once a second instead of once an answer.
type dateHeader struct{ latest atomic.Pointer[dateOfSecond] }

type dateOfSecond struct {
	second int64
	value  []string // shared by the answers of that second, never changed
}

func (d *dateHeader) at(now time.Time) []string {
	second := now.Unix()
	latest := d.latest.Load()
	if latest == nil || latest.second != second {
		latest = &dateOfSecond{second: second, value: []string{now.UTC().Format(http.TimeFormat)}}
		d.latest.Store(latest)
	}
	return latest.value
}
