package retryafter_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/parley-chat/parley/services/processor/internal/retryafter"
)

func TestParse(t *testing.T) {
	t.Parallel()
	const longest = 5 * time.Minute
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "0": 0, "-7": 0, "soon": 0, "1.5": 0, "7": 7 * time.Second, "300": longest, "301": longest, "99999999999999": longest,
		now.Add(9 * time.Second).Format(http.TimeFormat):                  9 * time.Second,
		now.Add(-time.Second).Format(http.TimeFormat):                     0,
		now.Add(100 * time.Hour).Format(http.TimeFormat):                  longest,
		now.AddDate(500, 0, 0).Format(http.TimeFormat):                    longest,
		now.Add(8 * time.Second).Format(time.ANSIC):                       8 * time.Second,
		now.Add(6 * time.Second).Format("Monday, 02-Jan-06 15:04:05 GMT"): 6 * time.Second,
	} {
		if got := retryafter.Parse(http.Header{"Retry-After": {value}}, now, longest); got != want {
			t.Errorf("%q: got %s, want %s", value, got, want)
		}
	}
}
