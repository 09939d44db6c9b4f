package nemesis

import (
	"io"
	"time"
)

// Report is what a run has shown.
type Report struct {
	Seed       uint64
	Begun      time.Time
	Ended      time.Time
	Record     *Record // with the faults as they were injected
	Violations []Violation
	Timetable  Timetable // as it was drawn
	Shrunk     Timetable // empty: it was not shrunk
}

// WriteReport writes a report in Markdown.
func WriteReport(w io.Writer, r Report) error { return nil }
