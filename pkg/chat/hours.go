package chat

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"
	_ "time/tzdata" // so that zones do not depend on the machine
)

// Limits of [BusinessHours].
const (
	MaxIntervals = 10  // per day
	MaxDates     = 200 // dates with their own hours
)

// BusinessHours define when agents answer: intervals for each day of the week in a time zone, and dates with their own
// intervals. They are wall-clock times of the zone, so daylight saving changes do not move an opening: an interval is
// open while the clock shows a time within it, however long that takes.
type BusinessHours struct {
	TimeZone string                `json:"timeZone"`        // IANA name, such as Europe/Berlin
	Week     map[string][]Interval `json:"week,omitempty"`  // by day, monday to sunday; a missing day is closed
	Dates    []DateHours           `json:"dates,omitempty"` // holidays and other exceptions
}

// Interval is a part of a day, from From until just before To, as HH:MM. To may be 24:00. If To is before From, the
// interval ends on the next day.
type Interval struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// DateHours are the intervals that begin on one date and replace those of its day of the week; without any the date is
// closed. An interval that began on the previous day continues.
type DateHours struct {
	Date      string     `json:"date"` // YYYY-MM-DD
	Intervals []Interval `json:"intervals"`
}

// weekdays are the keys of [BusinessHours.Week] by time.Weekday.
var weekdays = [...]string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}

const minutesOfDay = 24 * 60

// MarshalJSON implements [json.Marshaler]. A day without intervals is an empty list, never null.
func (h BusinessHours) MarshalJSON() ([]byte, error) {
	type plain BusinessHours
	h.Week = maps.Clone(h.Week)
	for day, all := range h.Week {
		h.Week[day] = append([]Interval{}, all...)
	}
	h.Dates = slices.Clone(h.Dates)
	for i, date := range h.Dates {
		h.Dates[i].Intervals = append([]Interval{}, date.Intervals...)
	}
	return json.Marshal(plain(h))
}

// Check returns all faults of the hours; field names begin with path.
func (h BusinessHours) Check(path string) []DataFault {
	var f dataFaults
	if _, err := h.location(); err != nil {
		f.add(path+".timeZone", "must be the IANA name of a time zone, such as Europe/Berlin")
	}
	for _, day := range sortedKeys(h.Week) {
		if !slices.Contains(weekdays[:], day) {
			f.add(path+".week."+day, "must be monday to sunday")
			continue
		}
		f.intervals(path+".week."+day, h.Week[day])
	}
	if len(h.Dates) > MaxDates {
		f.add(path+".dates", "must have at most "+strconv.Itoa(MaxDates)+" items")
		return f
	}
	seen := map[string]bool{}
	for i, d := range h.Dates {
		at := path + ".dates[" + strconv.Itoa(i) + "]"
		switch _, err := time.Parse(time.DateOnly, d.Date); {
		case err != nil:
			f.add(at+".date", "must be a date such as 2026-12-24")
		case seen[d.Date]:
			f.add(at+".date", "is duplicated")
		}
		seen[d.Date] = true
		f.intervals(at+".intervals", d.Intervals)
	}
	return f
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (f *dataFaults) intervals(path string, all []Interval) {
	if len(all) > MaxIntervals {
		f.add(path, "must have at most "+strconv.Itoa(MaxIntervals)+" items")
		return
	}
	for i, interval := range all {
		at := path + "[" + strconv.Itoa(i) + "]"
		from, okFrom := minuteOf(interval.From)
		to, okTo := minuteOf(interval.To)
		switch {
		case !okFrom || from == minutesOfDay:
			f.add(at+".from", "must be a time from 00:00 to 23:59")
		case !okTo:
			f.add(at+".to", "must be a time from 00:00 to 24:00")
		case from == to:
			f.add(at+".to", "must differ from the beginning; the whole day is 00:00 to 24:00")
		}
	}
}

// minuteOf parses HH:MM, up to 24:00, as the minute of the day.
func minuteOf(text string) (minute int, ok bool) {
	if len(text) != 5 || text[2] != ':' || !isNumber(text[:2]) || !isNumber(text[3:]) {
		return 0, false
	}
	hours, _ := strconv.Atoi(text[:2])
	minutes, _ := strconv.Atoi(text[3:])
	minute = hours*60 + minutes
	return minute, minutes < 60 && minute <= minutesOfDay
}

// location returns the time zone. It rejects "Local", which would be the server's.
func (h BusinessHours) location() (*time.Location, error) {
	if h.TimeZone == "" || h.TimeZone == "Local" {
		return nil, errNoZone
	}
	return time.LoadLocation(h.TimeZone)
}

// Location returns the time zone, or UTC if [BusinessHours.Check] rejects it.
func (h BusinessHours) Location() *time.Location {
	zone, err := h.location()
	if err != nil {
		return time.UTC
	}
	return zone
}

var errNoZone = &time.ParseError{Message: "no time zone"}

// day is a date of the calendar.
type day struct {
	year  int
	month time.Month
	day   int
}

func dayOf(t time.Time) day {
	y, m, d := t.Date()
	return day{y, m, d}
}

func (d day) add(days int) day {
	return dayOf(time.Date(d.year, d.month, d.day+days, 0, 0, 0, 0, time.UTC))
}

func (d day) midnightUTC() time.Time { return time.Date(d.year, d.month, d.day, 0, 0, 0, 0, time.UTC) }

// intervals returns the intervals that begin on a date.
func (h BusinessHours) intervals(d day) []Interval {
	text := d.midnightUTC().Format(time.DateOnly)
	for _, own := range h.Dates {
		if own.Date == text {
			return own.Intervals
		}
	}
	return h.Week[weekdays[d.midnightUTC().Weekday()]]
}

// Open reports whether agents answer at t. Hours rejected by [BusinessHours.Check] are never open.
func (h BusinessHours) Open(t time.Time) bool {
	zone, err := h.location()
	return err == nil && h.openIn(zone, t)
}

func (h BusinessHours) openIn(zone *time.Location, t time.Time) bool {
	local := t.In(zone)
	today := dayOf(local)
	now := local.Hour()*60 + local.Minute()
	for _, i := range h.intervals(today) {
		from, to, overnight := i.minutes()
		if now >= from && (now < to || overnight) {
			return true
		}
	}
	for _, i := range h.intervals(today.add(-1)) {
		if _, to, overnight := i.minutes(); overnight && now < to {
			return true
		}
	}
	return false
}

func (i Interval) minutes() (from, to int, overnight bool) {
	from, _ = minuteOf(i.From)
	to, _ = minuteOf(i.To)
	return from, to, to < from
}

// searchedDays limits the search for the next opening.
const searchedDays = 400

// OpensAt returns the first instant from t on at which agents answer: t itself if they are open. It is zero if there is
// none within the next 400 days.
func (h BusinessHours) OpensAt(t time.Time) time.Time {
	zone, err := h.location()
	if err != nil {
		return time.Time{}
	}
	if h.openIn(zone, t) {
		return t
	}
	today := dayOf(t.In(zone))
	for n := range searchedDays {
		var first time.Time
		for _, at := range h.beginnings(zone, today.add(n)) {
			if !at.Before(t) && h.openIn(zone, at) && (first.IsZero() || at.Before(first)) {
				first = at
			}
		}
		if !first.IsZero() {
			return first.UTC()
		}
	}
	return time.Time{}
}

// beginnings returns every instant of a date at which the hours may begin: the starts of its intervals, which occur
// twice or never if the clock is set back or forward, and the instant of that change.
func (h BusinessHours) beginnings(zone *time.Location, d day) (all []time.Time) {
	midnight := d.midnightUTC()
	_, before := midnight.Add(-minutesOfDay * time.Minute).In(zone).Zone()
	_, after := midnight.Add(2 * minutesOfDay * time.Minute).In(zone).Zone()
	for _, i := range h.intervals(d) {
		from, _, _ := i.minutes()
		wall := midnight.Add(time.Duration(from) * time.Minute)
		for _, offset := range []int{before, after} {
			at := wall.Add(-time.Duration(offset) * time.Second)
			if local := at.In(zone); dayOf(local) == d && local.Hour()*60+local.Minute() == from {
				all = append(all, at)
			}
		}
	}
	_, change := midnight.Add(-minutesOfDay * time.Minute).In(zone).ZoneBounds()
	if !change.IsZero() && dayOf(change.In(zone)) == d {
		all = append(all, change)
	}
	return all
}
