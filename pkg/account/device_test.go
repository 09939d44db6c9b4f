package account

import (
	"strings"
	"testing"
	"time"
)

func TestDevice(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	ada, bob := User{DeviceKey: NewSecret()}, User{DeviceKey: NewSecret()}
	cookie := ada.NewDevice(now)
	id, expiry, _ := strings.Cut(cookie, ".")
	for _, test := range []struct {
		name, cookie string
		user         User
		at           time.Time
		want         bool
	}{
		{"a known device", cookie, ada, now.Add(DeviceTTL - time.Second), true},
		{"at its end", cookie, ada, now.Add(DeviceTTL), false},
		{"another user", cookie, bob, now, false},
		{"a user who has signed out everywhere", cookie, User{}, now, false},
		{"a signature of no key", User{}.NewDevice(now), User{}, now, false},
		{"another id", "x" + cookie, ada, now, false},
		{"a later end", id + ".9" + expiry, ada, now, false},
		{"nothing", "", ada, now, false},
	} {
		got, ok := test.user.VerifyDevice(test.cookie, test.at)
		if ok != test.want || ok && got != id {
			t.Errorf("%s: got %q, %v, want %v", test.name, got, ok, test.want)
		}
	}
}
