package chat_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
)

func intervals(fromTo ...string) (all []chat.Interval) {
	for i := 0; i < len(fromTo); i += 2 {
		all = append(all, chat.Interval{From: fromTo[i], To: fromTo[i+1]})
	}
	return all
}

// shop has a lunch break, a night shift, a day without closing time, and a holiday; summer time begins on 29 March and
// ends on 25 October.
func shop() chat.BusinessHours {
	return chat.BusinessHours{
		TimeZone: "Europe/Berlin",
		Week: map[string][]chat.Interval{
			"monday":   intervals("09:00", "12:00", "13:00", "18:00"),
			"friday":   intervals("22:00", "04:00"),
			"saturday": intervals("22:00", "02:30"),
			"sunday":   intervals("02:15", "02:45"),
		},
		Dates: []chat.DateHours{
			{Date: "2026-12-21"}, // a Monday
			{Date: "2026-12-23", Intervals: intervals("00:00", "24:00")},
		},
	}
}

func TestBusinessHours(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for at, opens := range map[string]string{ // opens: the same where it is open
		"2026-03-02T09:00:00+01:00": "2026-03-02T09:00:00+01:00",
		"2026-03-02T08:59:59+01:00": "2026-03-02T09:00:00+01:00",
		"2026-03-02T11:59:59+01:00": "2026-03-02T11:59:59+01:00",
		"2026-03-02T12:00:00+01:00": "2026-03-02T13:00:00+01:00",
		"2026-03-02T18:00:00+01:00": "2026-03-06T22:00:00+01:00",
		"2026-03-07T03:59:59+01:00": "2026-03-07T03:59:59+01:00", // of Friday's night
		"2026-03-07T04:00:00+01:00": "2026-03-07T22:00:00+01:00",
		"2026-03-02T08:00:00Z":      "2026-03-02T08:00:00Z", // in another zone

		// The clock moves from 02:00 to 03:00: Saturday's night shift ends, and Sunday's interval does not occur.
		"2026-03-29T00:59:59Z": "2026-03-29T00:59:59Z",
		"2026-03-29T01:00:00Z": "2026-03-30T07:00:00Z", // 09:00 of Monday, an hour earlier by the sun
		// The clock moves from 03:00 to 02:00: opening hours in between occur twice.
		"2026-10-25T00:20:00Z": "2026-10-25T00:20:00Z", // 02:20, the first time
		// 02:50: open again with Saturday's night when it is 02:00 for the second time
		"2026-10-25T00:50:00Z": "2026-10-25T01:00:00Z",
		"2026-10-25T01:40:00Z": "2026-10-25T01:40:00Z", // 02:40, the second time
		"2026-10-25T01:45:00Z": "2026-10-26T08:00:00Z",

		"2026-12-21T10:00:00+01:00": "2026-12-23T00:00:00+01:00", // a holiday
		"2026-12-23T23:59:59+01:00": "2026-12-23T23:59:59+01:00",
		"2026-12-24T00:00:00+01:00": "2026-12-25T22:00:00+01:00",
	} {
		now, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		want, err := time.Parse(time.RFC3339, opens)
		if err != nil {
			t.Fatal(err)
		}
		if got := shop().Open(now); got != now.Equal(want) {
			t.Errorf("%s: got open %v, want %v", now.In(berlin), got, !got)
		}
		if got := shop().OpensAt(now); !got.Equal(want) {
			t.Errorf("%s: got an opening at %s, want %s", now.In(berlin), got.In(berlin), want.In(berlin))
		}
	}
}

// An interval that begins in the skipped hour begins with the change, also at midnight.
func TestOpeningInAMissingHour(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ zone, date, from, to, before, want string }{
		{"Europe/Berlin", "2026-03-29", "02:30", "08:00", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z"},
		{"America/Santiago", "2026-09-06", "00:00", "08:00", "2026-09-05T12:00:00Z", "2026-09-06T04:00:00Z"},
		{"Australia/Lord_Howe", "2026-10-04", "02:10", "08:00", "2026-10-03T10:00:00Z", "2026-10-03T15:30:00Z"}, // half an hour
		{"Europe/Berlin", "2026-10-25", "02:30", "08:00", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z"},       // twice: the first time
	} {
		h := chat.BusinessHours{TimeZone: test.zone, Dates: []chat.DateHours{{Date: test.date, Intervals: intervals(test.from, test.to)}}}
		now, err := time.Parse(time.RFC3339, test.before)
		if err != nil {
			t.Fatal(err)
		}
		if got := h.OpensAt(now).Format(time.RFC3339); got != test.want {
			t.Errorf("%s %s %s: got %s, want %s", test.zone, test.date, test.from, got, test.want)
		}
	}
	if got := (chat.BusinessHours{TimeZone: "Europe/Berlin"}).OpensAt(time.Now()); !got.IsZero() {
		t.Errorf("hours without an opening: got %s, want none", got)
	}
}

func TestCheckBusinessHours(t *testing.T) {
	t.Parallel()
	if faults := shop().Check("hours"); len(faults) > 0 {
		t.Errorf("got %v, want no faults", faults)
	}
	wrong := chat.BusinessHours{
		TimeZone: "Local",
		Week: map[string][]chat.Interval{
			"Monday": intervals("09:00", "17:00"), "friday": intervals("9:00", "24:01", "24:00", "25:00", "10:00", "10:00", "-1:00", "12:60"),
			"sunday": make([]chat.Interval, chat.MaxIntervals+1),
		},
		Dates: []chat.DateHours{{Date: "2026-02-30"}, {Date: "2026-02-28"}, {Date: "2026-02-28", Intervals: intervals("", "10:00")}},
	}
	want := []chat.DataFault{
		{Field: "hours.timeZone", Message: "must be the IANA name of a time zone, such as Europe/Berlin"},
		{Field: "hours.week.Monday", Message: "must be monday to sunday"},
		{Field: "hours.week.friday[0].from", Message: "must be a time from 00:00 to 23:59"},
		{Field: "hours.week.friday[1].from", Message: "must be a time from 00:00 to 23:59"},
		{Field: "hours.week.friday[2].to", Message: "must differ from the beginning; the whole day is 00:00 to 24:00"},
		{Field: "hours.week.friday[3].from", Message: "must be a time from 00:00 to 23:59"},
		{Field: "hours.week.sunday", Message: "must have at most 10 items"},
		{Field: "hours.dates[0].date", Message: "must be a date such as 2026-12-24"},
		{Field: "hours.dates[2].date", Message: "is duplicated"},
		{Field: "hours.dates[2].intervals[0].from", Message: "must be a time from 00:00 to 23:59"},
	}
	got := wrong.Check("hours")
	if len(got) != len(want) {
		t.Fatalf("got %d faults %v, want %d", len(got), got, len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %v, want %v", got[i], want[i])
		}
	}
}

func TestRateable(t *testing.T) {
	t.Parallel()
	closed := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	never, idle := time.Time{}, closed.Add(-time.Hour)
	for name, test := range map[string]struct {
		chat  chat.Chat
		until time.Time
	}{
		"open":           {chat.Chat{IdleClosesAt: closed}, never},
		"closed":         {chat.Chat{ClosedAt: closed, IdleClosesAt: closed.Add(time.Hour)}, closed.Add(7 * 24 * time.Hour)},
		"never idle":     {chat.Chat{ClosedAt: closed}, closed.Add(7 * 24 * time.Hour)},
		"closed by idle": {chat.Chat{ClosedAt: idle, IdleClosesAt: idle}, never},
		"rated":          {chat.Chat{ClosedAt: closed, Rating: chat.Rating{Score: 1, FirstAt: closed.Add(time.Hour)}}, closed.Add(25 * time.Hour)},
	} {
		if got := test.chat.RateableUntil(); !got.Equal(test.until) {
			t.Errorf("%s: got %s, want %s", name, got, test.until)
		}
		if test.until.IsZero() {
			continue
		}
		if !test.chat.Rateable(test.until) || test.chat.Rateable(test.until.Add(time.Millisecond)) {
			t.Errorf("%s: got another end than %s", name, test.until)
		}
	}
}

// Readers of the settings get a list for each day, also for one that is closed.
func TestHoursAsJSON(t *testing.T) {
	t.Parallel()
	h := chat.BusinessHours{TimeZone: "UTC", Week: map[string][]chat.Interval{"monday": nil}, Dates: []chat.DateHours{{Date: "2026-12-24"}}}
	got, err := json.Marshal(chat.Support{Hours: &h})
	want := `{"hours":{"timeZone":"UTC","week":{"monday":[]},"dates":[{"date":"2026-12-24","intervals":[]}]},"handoverButton":false,"agentsOnly":false,"rating":false}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	if h.Week["monday"] != nil || h.Dates[0].Intervals != nil {
		t.Errorf("got %+v, want the value as before", h)
	}
}
